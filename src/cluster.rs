//! The cluster: who the other members are, and what is said between them.

pub mod handshake;
pub mod member;
pub mod transport;
