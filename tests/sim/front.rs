//! What clients speak to: a node's naming, which hands each write to the owner of its beat source.

use std::sync::Arc;

use nomina::{
    cluster::{
        MemberName,
        transport::{Accept, Accepted, BoxFuture},
    },
    naming::{BeatResult, Registration},
    registry::{InstanceKey, Kind, Publication, Target},
    shutdown::Shutdown,
    wire::pb::peer as pb,
};
use parking_lot::RwLock;

use crate::world::{Node, service};

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrote {
    /// Whether it was acknowledged.
    pub done: bool,
    /// Whether it, or an attempt of it, may still be carried out later somewhere.
    pub late: bool,
}

impl Node {
    pub async fn list(&self, key: &InstanceKey, publication: &Publication) -> Wrote {
        let (service, instance, publication) = (service(), key.clone(), publication.clone());
        let registration = Registration { service, instance, kind: Kind::Ephemeral, publication };
        self.write(async { self.naming.register(registration).await.is_ok() }).await
    }

    pub async fn beat(&self, key: &InstanceKey, full: &Publication) -> Wrote {
        self.write(async {
            let beat = self.naming.beat(service(), &target(key), Some(full.clone())).await;
            beat.is_ok_and(|beat| !matches!(beat.result, BeatResult::Unknown))
        })
        .await
    }

    pub async fn remove(&self, key: &InstanceKey) -> Wrote {
        self.write(async {
            // What is not there is as gone as it can be.
            let _ = self.naming.deregister(service(), target(key), Kind::Ephemeral).await;
            self.find(key).is_none()
        })
        .await
    }

    /// Fails when the node ends meanwhile.
    async fn write(&self, work: impl Future<Output = bool>) -> Wrote {
        let failed = || self.forwarder.figures().failed;
        let before = failed();
        let done = tokio::select! {
            biased;
            () = self.shutdown.draining() => None,
            done = work => Some(done),
        };
        Wrote { done: done == Some(true), late: done.is_none() || failed() > before }
    }
}

pub fn target(key: &InstanceKey) -> Target {
    Target { endpoint: key.endpoint.clone(), cluster: Some(key.cluster.clone()) }
}

/// The network wants a door before the node behind it is there.
pub struct Porch {
    shutdown: Shutdown,
    door: RwLock<Option<Arc<dyn Accept>>>,
}

impl Porch {
    pub fn new(shutdown: Shutdown) -> Self {
        Self { shutdown, door: RwLock::new(None) }
    }

    pub fn open(&self, door: Arc<dyn Accept>) {
        *self.door.write() = Some(door);
    }
}

impl Accept for Porch {
    fn link(&self, from: MemberName, link: Accepted) {
        if let Some(door) = self.door.read().as_ref().filter(|_| !self.shutdown.is_draining()) {
            door.link(from, link);
        }
    }

    fn forward(&self, from: MemberName, request: pb::ForwardRequest) -> BoxFuture<'static, pb::ForwardResponse> {
        self.door.read().as_ref().expect("the node is there").forward(from, request)
    }

    fn list_orphans(
        &self,
        from: MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, pb::ListOrphansResponse> {
        self.door.read().as_ref().expect("the node is there").list_orphans(from, request)
    }
}
