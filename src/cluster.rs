//! The cluster: who belongs to it, who is alive, who owns what, and how records travel between nodes.
//!
//! Deciders are pure: they take state, input and time, and return what to do.

pub mod detector;
mod distro;
pub mod epoch;
pub mod forward;
pub mod forwarded;
mod handle;
mod hub;
mod life;
pub mod member;
pub mod network;
pub mod ownership;
pub mod resolve;
mod roster;
pub mod routes;
mod serving;
pub mod settings;
pub mod source;
pub mod stage;
pub mod transport;
pub mod view;

pub use self::{
    epoch::Epoch,
    handle::{Cluster, Parts},
    member::{MemberList, MemberName},
    roster::{Alone, Roster},
    settings::Settings,
    stage::Stage,
    view::ClusterView,
};
