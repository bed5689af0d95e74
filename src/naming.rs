//! The use cases of naming: what every front end calls, and the only way to the registry.
//!
//! Values that come in have been decoded but not judged: here they are checked once, whatever protocol they came by.

mod beat;
mod connection;
mod error;
mod operate;
mod publish;
mod pulse;
mod query;

use std::sync::Arc;

pub use self::{
    beat::{Beat, BeatResult},
    error::Error,
    publish::Registration,
    pulse::{Held, Pulse},
    query::{Listing, Page, ServiceFilter, ServicePage},
};
pub use crate::cluster::{
    Alone, ClusterView, Roster, Stage,
    detector::Standing,
    view::{Agreement, CopyView, LinkView, MemberView, MovedView, OrphanView},
};
use crate::registry::{Figures, Limits, RegistryHandle};

/// Access to the use cases. Cheap to clone; all clones see the same registry.
#[derive(Debug, Clone)]
pub struct Naming {
    registry: RegistryHandle,
    limits: Arc<Limits>,
}

impl Naming {
    /// The use cases over `registry`, within `limits`.
    #[must_use]
    pub fn new(registry: RegistryHandle, limits: Limits) -> Self {
        Self { registry, limits: Arc::new(limits) }
    }

    /// The validators of names, addresses and metadata.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The registry's figures now.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.registry.figures()
    }
}
