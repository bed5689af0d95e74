//! The cluster: who belongs to it, who is alive, who owns what, and how records travel between nodes.
//!
//! Deciders are pure: they take state, input and time, and return what to do.

mod complaints;
pub mod detector;
pub mod dial;
mod distro;
pub mod epoch;
pub mod forward;
pub mod forwarded;
mod handle;
pub mod handshake;
mod http2;
mod hub;
mod life;
pub mod listen;
pub mod member;
pub mod ownership;
pub mod resolve;
pub mod routes;
mod secure;
pub mod service;
pub mod settings;
mod severable;
pub mod source;
pub mod stage;
mod stream;
pub mod tls;
pub mod transport;

pub use self::{
    epoch::Epoch,
    handle::{Cluster, Parts},
    member::{MemberList, MemberName},
    settings::Settings,
    stage::Stage,
};

#[cfg(test)]
mod tests;
