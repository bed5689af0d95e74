//! What clients speak to: a node's front, which hands each write to the owner of its beat source.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nomina::{
    cluster::{
        MemberName,
        detector::Standing,
        transport::{Accept, Accepted, BoxFuture, Transport},
    },
    registry::{
        Command, Instance, InstanceKey, Kind, Publication, RegistryHandle, ServiceCommand, Target, hash,
        owners::Incarnation,
        share::Share,
        version::{OwnerId, Version},
    },
    shutdown::Shutdown,
    wire::{
        pb::peer::{self as pb, forward_request::Request, forward_response::Outcome},
        peer as wire,
    },
};
use parking_lot::RwLock;

use crate::world::{Node, member, service};

/// How long an owner may take before the next in line is asked.
const OWNER: Duration = Duration::from_secs(1);

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
        let request = || Request::Register(pb::Register { service: name(), record: record(key, publication) });
        let own = ServiceCommand::Register(key.clone(), Kind::Ephemeral, publication.clone());
        self.write(key, request, async { self.registry.apply(Command::Service(service(), own)).await.is_ok() }).await
    }

    pub async fn beat(&self, key: &InstanceKey, full: &Publication) -> Wrote {
        let request = || {
            let target = Some(wire::target_name(&target(key)));
            Request::Beat(pb::Beat { service: name(), target, full: record(key, full), ..Default::default() })
        };
        self.write(key, request, renew(&self.registry, key, full)).await
    }

    pub async fn remove(&self, key: &InstanceKey) -> Wrote {
        let request = || {
            let target = Some(wire::target_name(&target(key)));
            Request::Deregister(pb::Deregister { service: name(), target })
        };
        self.write(key, request, deregister(&self.registry, key)).await
    }

    /// Has the owner do it, then who is next in line, at last this node by `own`. Fails when the node ends meanwhile.
    async fn write(
        &self,
        key: &InstanceKey,
        request: impl Fn() -> Request,
        own: impl Future<Output = bool>,
    ) -> Wrote {
        let late = AtomicBool::new(false);
        let work = async {
            let eligible = self.cluster.eligible();
            for owner in eligible.in_line(hash::endpoint(&service(), &key.endpoint)) {
                if *owner == member(&self.name) {
                    break;
                }
                if self.cluster.standing(owner) == Some(Standing::Up) {
                    match self.ask(owner, request()).await {
                        Some(done) => return done,
                        None => late.store(true, Ordering::Relaxed),
                    }
                }
            }
            own.await
        };
        let done = tokio::select! {
            biased;
            () = self.shutdown.draining() => None,
            done = work => Some(done),
        };
        Wrote { done: done == Some(true), late: done.is_none() || late.into_inner() }
    }

    async fn ask(&self, owner: &MemberName, request: Request) -> Option<bool> {
        let standing = pb::Standing { stamp: self.registry.stamp().number(), ..Default::default() };
        let request = pb::ForwardRequest { standing: Some(standing), request: Some(request) };
        let answer = tokio::time::timeout(OWNER, self.transport.forward(owner, request)).await;
        let Ok(Ok(pb::ForwardResponse { outcome: Some(Outcome::Done(done)), .. })) = answer else {
            return matches!(answer, Ok(Ok(_))).then_some(false);
        };
        let incarnation = Incarnation { name: owner.as_str().into(), epoch: done.epoch };
        let owner = self.registry.owners().number(&incarnation).filter(|owner| !owner.is_self())?;
        let as_of = wire::order(done.as_of_stamp, done.as_of_minor);
        let read = wire::replicas(done.service.into_iter().collect(), owner, as_of);
        let _ = self.registry.apply_surely(Command::Replicate(read.replicas)).await;
        Some(true)
    }
}

fn name() -> Option<pb::ServiceName> {
    Some(wire::service_name(&service()))
}

fn target(key: &InstanceKey) -> Target {
    Target { endpoint: key.endpoint.clone(), cluster: Some(key.cluster.clone()) }
}

fn record(key: &InstanceKey, publication: &Publication) -> Option<pb::Record> {
    let (version, publication) = (Version::default(), publication.clone());
    let share = Share { version, beats: true, connections: false, publication, snowflake: None };
    Some(wire::record(key, &share))
}

async fn deregister(registry: &RegistryHandle, key: &InstanceKey) -> bool {
    let command = ServiceCommand::Deregister(target(key), Kind::Ephemeral);
    // What is not there is as gone as it can be.
    let _ = registry.apply(Command::Service(service(), command)).await;
    registry.snapshot(&service()).instances().find(key).is_none()
}

/// A beat at the node that answers for it.
async fn renew(registry: &RegistryHandle, key: &InstanceKey, full: &Publication) -> bool {
    let found = registry.snapshot(&service()).instances().find(key).cloned();
    let kept_here = |instance: &Arc<Instance>| instance.lease().is_some() && instance.is_well_here();
    let command = match &found {
        Some(instance) if kept_here(instance) => {
            registry.beat(instance);
            return true;
        }
        Some(_) => ServiceCommand::Renew(key.clone()),
        None => ServiceCommand::Register(key.clone(), Kind::Ephemeral, full.clone()),
    };
    registry.apply(Command::Service(service(), command)).await.is_ok()
}

/// Answers the other members: what is between nodes goes to the cluster, what clients wrote elsewhere to the registry.
pub struct Porch {
    registry: RegistryHandle,
    shutdown: Shutdown,
    /// The network wants a door before the node behind it is there.
    door: RwLock<Option<Arc<dyn Accept>>>,
}

impl Porch {
    pub fn new(registry: RegistryHandle, shutdown: Shutdown) -> Self {
        Self { registry, shutdown, door: RwLock::new(None) }
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
        if !matches!(request.request, Some(Request::Register(_) | Request::Beat(_) | Request::Deregister(_))) {
            return self.door.read().as_ref().expect("the node is there").forward(from, request);
        }
        let registry = self.registry.clone();
        Box::pin(async move {
            registry.observe(nomina::registry::version::Stamp::new(request.standing.unwrap_or_default().stamp));
            let (key, done) = match request.request {
                Some(Request::Register(pb::Register { record: Some(record), .. })) => {
                    let (key, share) = wire::share(record, OwnerId::SELF).unwrap();
                    let command = ServiceCommand::Register(key.clone(), Kind::Ephemeral, share.publication);
                    let done = registry.apply(Command::Service(service(), command)).await.is_ok();
                    (key, done)
                }
                Some(Request::Beat(pb::Beat { full: Some(record), .. })) => {
                    let (key, share) = wire::share(record, OwnerId::SELF).unwrap();
                    let done = renew(&registry, &key, &share.publication).await;
                    (key, done)
                }
                Some(Request::Deregister(pb::Deregister { target, .. })) => {
                    let target = wire::target(target).unwrap();
                    let key = InstanceKey { endpoint: target.endpoint, cluster: target.cluster.unwrap_or_default() };
                    let done = deregister(&registry, &key).await;
                    (key, done)
                }
                _ => unreachable!("it was looked at before"),
            };
            let outcome = if done { done_with(&registry, &key) } else { Outcome::Unknown(pb::Unknown {}) };
            pb::ForwardResponse { standing: None, outcome: Some(outcome) }
        })
    }

    fn list_orphans(
        &self,
        from: MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, pb::ListOrphansResponse> {
        self.door.read().as_ref().expect("the node is there").list_orphans(from, request)
    }
}

/// The owner's record as it is now.
fn done_with(registry: &RegistryHandle, key: &InstanceKey) -> Outcome {
    let as_of = registry.as_of();
    let mut now = wire::Grouped::default();
    let name = (service(), key.clone());
    let share = registry.own_share(&service(), key);
    let outlived = |removed| share.as_ref().is_some_and(|share| share.version.stamp() >= removed);
    if let Some(stamp) = registry.removal(&name).filter(|removed| !outlived(*removed)) {
        now.removal(&name, stamp);
    }
    match &share {
        Some(share) => now.record(&service(), key, share),
        None => now.absence(&service(), key),
    }
    let (as_of_stamp, as_of_minor) = wire::as_of(as_of);
    let epoch = registry.owners().incarnation(OwnerId::SELF).map_or(0, |me| me.epoch);
    Outcome::Done(pb::Done {
        epoch,
        service: now.into_services().pop(),
        as_of_stamp,
        as_of_minor,
        registered: false,
    })
}
