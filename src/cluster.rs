//! The cluster: who belongs to it, who is alive, who owns what, and how records travel between nodes.
//!
//! Deciders are pure: they take state, input and time, and return what to do.

pub mod detector;
pub mod epoch;
pub mod member;
pub mod ownership;
pub mod resolve;
pub mod settings;
pub mod source;
pub mod stage;

pub use self::{
    epoch::Epoch,
    member::{MemberList, MemberName},
    settings::Settings,
    stage::Stage,
};
