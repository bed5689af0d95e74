//! The transport over the network: connections to the other members and from them, proved and, if so set, encrypted
//! before anything else is said on them.

mod complaints;
pub mod dial;
pub mod handshake;
mod http2;
pub mod listen;
mod secure;
pub mod service;
mod severable;
mod stream;
pub mod tls;

#[cfg(test)]
mod tests;
