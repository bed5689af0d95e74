//! The cluster: who the other members are, and what is said between them.

mod complaints;
pub mod dial;
pub mod handshake;
mod http2;
pub mod listen;
pub mod member;
mod secure;
pub mod service;
mod severable;
mod stream;
pub mod tls;
pub mod transport;

#[cfg(test)]
mod tests;
