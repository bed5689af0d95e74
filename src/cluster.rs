//! The cluster: who belongs to it, who is alive, who owns what, and what is said between its members.
//!
//! Deciders are pure: they take state, input and time, and return what to do.

pub mod epoch;
pub mod forward;
pub mod forwarded;
pub mod handshake;
pub mod member;
pub mod ownership;
pub mod routes;
pub mod stage;
pub mod transport;

pub use self::{
    epoch::Epoch,
    member::{MemberList, MemberName},
    stage::Stage,
};
