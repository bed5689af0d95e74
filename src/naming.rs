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
    beat::Beat,
    error::Error,
    publish::Registration,
    pulse::{Held, Pulse},
    query::{Listing, Page, ServiceFilter, ServicePage},
};
pub use crate::{
    cluster::{
        Alone, ClusterView, Roster, Stage,
        detector::Standing,
        forward::Figures as Forwarding,
        view::{Agreement, CopyView, LinkView, MemberView, MovedView, OrphanView},
    },
    registry::BeatResult,
};
use crate::{
    cluster::{Cluster, forward::Forwarder},
    registry::{Figures, Limits, RegistryHandle},
};

/// Access to the use cases. Cheap to clone; all clones see the same registry.
#[derive(Debug, Clone)]
pub struct Naming {
    registry: RegistryHandle,
    limits: Arc<Limits>,
    /// To the owners of beat sources, if this node is one of several.
    forwarder: Option<Forwarder>,
    cluster: Option<Cluster>,
}

impl Naming {
    /// The use cases over `registry`, within `limits`.
    #[must_use]
    pub fn new(registry: RegistryHandle, limits: Limits) -> Self {
        Self { registry, limits: Arc::new(limits), forwarder: None, cluster: None }
    }

    /// The use cases over the registry of a member of a cluster: what beats keep goes by `forwarder` to its owner.
    #[must_use]
    pub fn clustered(registry: RegistryHandle, limits: Limits, forwarder: Forwarder) -> Self {
        Self { registry, limits: Arc::new(limits), forwarder: Some(forwarder), cluster: None }
    }

    /// The same, on a node that may leave `cluster`.
    #[must_use]
    pub fn of(self, cluster: Cluster) -> Self {
        Self { cluster: Some(cluster), ..self }
    }

    /// Whether this node has begun to leave a cluster.
    fn is_leaving(&self) -> bool {
        self.cluster.as_ref().is_some_and(Cluster::is_leaving)
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

    /// The figures of what is forwarded to other members; `None` on a node that is alone.
    #[must_use]
    pub fn forwarding(&self) -> Option<Forwarding> {
        self.forwarder.as_ref().map(Forwarder::figures)
    }
}
