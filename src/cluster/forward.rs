//! Writes that another member owns, from the side that sends them: one hop to the owner, and its answer back.
//!
//! The answer brings the owner's record, which this node's registry holds before the client hears of it: who has written
//! through a node reads it there. An owner that cannot be reached is passed over for the next in line, and this node is the
//! last in every line, so that no write depends on a member that is gone.

mod batch;
mod lanes;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{debug, warn};

use self::lanes::{Lanes, Pushed, Waiting};
use super::{
    epoch::Epoch,
    member::MemberName,
    routes::{Hop, Routes},
    transport::Transport,
};
use crate::{
    registry::{
        BeatResult, Command, Endpoint, Error, Instance, InstanceKey, Kind, Publication, RegistryHandle, ServiceCommand,
        ServiceKey, Target,
        key::excerpt,
        overlay::Overlay,
        owners::Incarnation,
        replication::Replica,
        service::Service,
        share::Share,
        version::{Stamp, Version},
    },
    shutdown::Shutdown,
    wire::{
        pb::peer::{self as pb, forward_request::Request, forward_response::Outcome},
        peer as wire,
    },
};

/// How writes are forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long an owner may take to answer before the next in line is asked. Lower: a busy owner is passed over; higher:
    /// clients wait longer while a member is gone but not yet known to be.
    pub timeout: Duration,
    /// How long beats may wait to be told to their owners. Raised, the leases there are that much shorter.
    pub flush: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(1), flush: Duration::from_millis(500) }
    }
}

/// Figures of forwarding since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Requests that were answered by other members.
    pub answered: u64,
    /// Requests that were not, and went on to the next in line.
    pub failed: u64,
    /// Beats that were answered at once and told to their owners afterwards.
    pub batched: u64,
    /// Beats that wait to be told to their owners.
    pub waiting: usize,
}

/// What is to be done with a beat of an instance that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// This node answers for it.
    Here,
    /// Its owner will be told of the beat, which can be answered.
    Waits,
    /// Its owner must be asked, with [`Forwarder::beat`].
    Ask,
}

/// Sends writes to their owners. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct Forwarder {
    inner: Arc<Inner>,
}

struct Inner {
    routes: Routes,
    transport: Arc<dyn Transport>,
    registry: RegistryHandle,
    settings: Settings,
    shutdown: Shutdown,
    lanes: Mutex<Lanes>,
    /// A lane has enough for a message.
    enough: Notify,
    answered: AtomicU64,
    failed: AtomicU64,
    batched: AtomicU64,
}

/// What an owner said.
enum Answer {
    /// It was done; what it was about, and whether a beat had to list it.
    Done { instance: Option<InstanceKey>, registered: bool },
    /// It was refused.
    Refused(Error),
    /// The beat met no instance.
    Unknown,
}

impl Forwarder {
    /// Starts to forward for `registry`. The task that sends batched beats runs until the drain, and sends the last ones
    /// then.
    #[must_use]
    pub fn start(
        routes: Routes,
        transport: Arc<dyn Transport>,
        registry: RegistryHandle,
        settings: Settings,
        shutdown: &Shutdown,
    ) -> Self {
        let inner = Inner {
            routes,
            transport,
            registry,
            settings,
            shutdown: shutdown.clone(),
            lanes: Mutex::default(),
            enough: Notify::new(),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            batched: AtomicU64::new(0),
        };
        let forwarder = Self { inner: Arc::new(inner) };
        shutdown.spawn(forwarder.clone().send_beats());
        forwarder
    }

    /// Figures of forwarding now.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            answered: self.inner.answered.load(Ordering::Relaxed),
            failed: self.inner.failed.load(Ordering::Relaxed),
            batched: self.inner.batched.load(Ordering::Relaxed),
            waiting: self.inner.lanes.lock().len(),
        }
    }

    /// Whether this node answers for the beat source.
    #[must_use]
    pub fn is_here(&self, service: &ServiceKey, endpoint: &Endpoint) -> bool {
        self.inner.routes.first(service, endpoint) == Hop::Here
    }

    /// Has the owner list an instance that beats keep. Returns it as this node lists it, and the revision here.
    ///
    /// # Errors
    /// Those of [`ServiceCommand::Register`], as the owner found them.
    pub async fn register(
        &self,
        service: ServiceKey,
        instance: InstanceKey,
        publication: Publication,
    ) -> Result<(Arc<Instance>, u64), Error> {
        let told = said(&instance, publication.clone());
        let register = || {
            Request::Register(pb::Register { service: Some(wire::service_name(&service)), record: Some(told.clone()) })
        };
        match self.ask(&service, &instance.endpoint, register).await {
            Some(Answer::Done { .. }) => Ok(self.listed(&service, instance, publication)),
            Some(Answer::Refused(error)) => Err(error),
            Some(Answer::Unknown) | None => {
                let command = ServiceCommand::Register(instance, Kind::Ephemeral, publication);
                let reply = self.inner.registry.apply(Command::Service(service, command)).await?;
                let revision = reply.revision;
                Ok((reply.instances.into_iter().next().ok_or(Error::Internal)?, revision))
            }
        }
    }

    /// Has the owner remove the ephemeral instance that `target` means. Returns the revision of the service here.
    ///
    /// # Errors
    /// Those of [`ServiceCommand::Deregister`], as the owner found them. What this node lists is removed even if the owner
    /// has not heard of it yet.
    pub async fn deregister(&self, service: ServiceKey, target: Target) -> Result<u64, Error> {
        let deregister = || {
            let target = Some(wire::target_name(&target));
            Request::Deregister(pb::Deregister { service: Some(wire::service_name(&service)), target })
        };
        match self.ask(&service, &target.endpoint, deregister).await {
            Some(Answer::Done { .. }) => return Ok(self.inner.registry.snapshot(&service).revision()),
            Some(Answer::Refused(error @ (Error::InstanceUnknown { .. } | Error::ServiceUnknown(_)))) => {
                let snapshot = self.inner.registry.snapshot(&service);
                if !matches!(snapshot.instances().resolve(&target), Ok(Some(_))) {
                    return Err(error);
                }
            }
            Some(Answer::Refused(error)) => return Err(error),
            Some(Answer::Unknown) | None => {}
        }
        let command = ServiceCommand::Deregister(target, Kind::Ephemeral);
        Ok(self.inner.registry.apply(Command::Service(service, command)).await?.revision)
    }

    /// A beat of the instance that `target` means. Answered at once if this node sees that its owner keeps it in good
    /// health; else by the owner.
    ///
    /// # Errors
    /// Those of [`RegistryHandle::renew`], as the owner found them.
    pub async fn beat(
        &self,
        service: &ServiceKey,
        target: &Target,
        full: Option<Publication>,
    ) -> Result<BeatResult, Error> {
        let registry = &self.inner.registry;
        if self.is_here(service, &target.endpoint) {
            return registry.renew(service, target, full).await;
        }
        let listed = registry.service(service);
        let found = listed.as_ref().and_then(|listed| listed.snapshot().instances().resolve(target).ok()?.cloned());
        if let (Some(listed), Some(instance)) = (&listed, &found) {
            match self.note(listed, instance)? {
                Noted::Waits => return Ok(BeatResult::Renewed(instance.clone())),
                Noted::Here => return registry.renew(service, target, full).await,
                Noted::Ask => {}
            }
        }
        let known = found.as_ref().and_then(|instance| {
            let share = instance.shares().find(|share| share.beats)?;
            Some(wire::record(&instance.key(), &share))
        });
        let InstanceKey { endpoint, cluster } = named(target);
        let described = full.clone().map(|full| said(&InstanceKey { endpoint, cluster }, full));
        let beat = || {
            Request::Beat(pb::Beat {
                service: Some(wire::service_name(service)),
                target: Some(wire::target_name(target)),
                full: described.clone(),
                known: known.clone(),
            })
        };
        match self.ask(service, &target.endpoint, beat).await {
            Some(Answer::Done { instance: Some(key), registered }) => {
                let (instance, _) = self.listed(service, key, full.unwrap_or_default());
                Ok(if registered { BeatResult::Registered(instance) } else { BeatResult::Renewed(instance) })
            }
            Some(Answer::Done { instance: None, .. } | Answer::Unknown) => Ok(BeatResult::Unknown),
            Some(Answer::Refused(error)) => Err(error),
            None => registry.renew(service, target, full).await,
        }
    }

    /// Has the owner of a listed instance told of a beat, if that is all there is to do.
    ///
    /// # Errors
    /// [`Error::NoBeats`] for a persistent instance.
    pub fn note(&self, service: &Arc<Service>, instance: &Arc<Instance>) -> Result<Noted, Error> {
        if instance.kind() == Kind::Persistent {
            return Err(Error::NoBeats { service: service.key().clone(), kind: instance.kind() });
        }
        let endpoint = instance.key().endpoint;
        let Hop::There { member, epoch } = self.inner.routes.first(service.key(), &endpoint) else {
            return Ok(Noted::Here);
        };
        let owner = self.inner.registry.owners().find(member.as_str(), epoch.number());
        if !owner.is_some_and(|owner| instance.beats_well_at(owner)) {
            return Ok(Noted::Ask);
        }
        let beat = Waiting { service: service.clone(), instance: instance.clone() };
        let pushed = self.inner.lanes.lock().push(&member, beat);
        match pushed {
            Pushed::Full => return Ok(Noted::Ask),
            Pushed::Enough => self.inner.enough.notify_one(),
            Pushed::Waits => {}
        }
        self.inner.batched.fetch_add(1, Ordering::Relaxed);
        Ok(Noted::Waits)
    }

    /// Asks who answers for the beat source, one after the other; `None` when it is this node's turn.
    async fn ask(&self, service: &ServiceKey, endpoint: &Endpoint, request: impl Fn() -> Request) -> Option<Answer> {
        for hop in self.inner.routes.route(service, endpoint) {
            let Hop::There { member, epoch } = hop else { break };
            let Some(outcome) = self.call(&member, request()).await else { continue };
            match self.understand(&member, epoch, outcome).await {
                Ok(answer) => return Some(answer),
                Err(reason) => {
                    self.inner.failed.fetch_add(1, Ordering::Relaxed);
                    warn!(peer = %member, reason, "the answer to a forwarded write is of no use");
                }
            }
        }
        None
    }

    /// One request to one member; `None` if it has not been answered in time.
    async fn call(&self, member: &MemberName, request: Request) -> Option<Outcome> {
        let registry = &self.inner.registry;
        let standing = pb::Standing { stamp: registry.stamp().number(), ..pb::Standing::default() };
        let request = pb::ForwardRequest { standing: Some(standing), request: Some(request) };
        let answer = self.inner.transport.forward(member, request);
        let failure = match tokio::time::timeout(self.inner.settings.timeout, answer).await {
            Ok(Ok(response)) => {
                registry.observe(Stamp::new(response.standing.unwrap_or_default().stamp));
                if response.outcome.is_some() {
                    self.inner.answered.fetch_add(1, Ordering::Relaxed);
                    return response.outcome;
                }
                "an empty answer".to_owned()
            }
            Ok(Err(unreachable)) => unreachable.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        self.inner.failed.fetch_add(1, Ordering::Relaxed);
        debug!(peer = %member, reason = failure, "a write goes on to the next in line");
        None
    }

    /// What `outcome` says; what the owner holds is held here too after that.
    async fn understand(&self, member: &MemberName, epoch: Epoch, outcome: Outcome) -> Result<Answer, String> {
        match outcome {
            Outcome::Done(done) => {
                let as_of = wire::order(done.as_of_stamp, done.as_of_minor);
                let services = done.service.into_iter().collect();
                let instance = self.take_in(member, epoch, Epoch::new(done.epoch), services, as_of).await?;
                Ok(Answer::Done { instance, registered: done.registered })
            }
            Outcome::Unknown(pb::Unknown {}) => Ok(Answer::Unknown),
            Outcome::Refused(refused) => {
                let message = excerpt(&refused.message);
                match wire::refusal::error(refused) {
                    Ok(Error::Stopped) => Err(Error::Stopped.to_string()),
                    Ok(error) => Ok(Answer::Refused(error)),
                    Err(_) => Err(message),
                }
            }
            Outcome::Noted(_) => Err("it answers another question".to_owned()),
        }
    }

    /// Holds what an owner says of its records. Returns the instance of the last of them.
    async fn take_in(
        &self,
        member: &MemberName,
        known: Epoch,
        epoch: Epoch,
        services: Vec<pb::ServiceRecords>,
        as_of: u64,
    ) -> Result<Option<InstanceKey>, String> {
        let registry = &self.inner.registry;
        if epoch < known {
            return Err("it comes from a life of that member that is over".to_owned());
        }
        let incarnation = Incarnation { name: member.as_str().into(), epoch: epoch.number() };
        let owner = registry.owners().number(&incarnation).ok_or("there is no number left for its records")?;
        let mut read = wire::replicas(services, owner, as_of);
        if let Some((malformed, _)) = read.malformed {
            return Err(malformed.to_string());
        }
        let last = read.replicas.iter().rev().find_map(|(_, replica)| match replica {
            Replica::Put { key, .. } => Some(key.clone()),
            Replica::Absent { .. } | Replica::Removed { .. } | Replica::Adopt { .. } | Replica::Yield { .. } => None,
        });
        read.replicas.retain(|(service, replica)| match replica {
            Replica::Put { key, share, .. } => {
                let snapshot = registry.snapshot(service);
                snapshot.instances().find(key).and_then(|held| held.version(owner)) != Some(share.version)
            }
            Replica::Absent { .. } | Replica::Removed { .. } | Replica::Adopt { .. } | Replica::Yield { .. } => true,
        });
        if !read.replicas.is_empty() {
            registry.apply_surely(Command::Replicate(read.replicas)).await.map_err(|error| error.to_string())?;
        }
        Ok(last)
    }

    /// The instance as this node lists it, and the revision of its service. Should it be gone again already, as it was
    /// published.
    fn listed(&self, service: &ServiceKey, key: InstanceKey, publication: Publication) -> (Arc<Instance>, u64) {
        let snapshot = self.inner.registry.snapshot(service);
        let listed = snapshot.instances().find(&key).cloned();
        let instance = listed.unwrap_or_else(|| {
            Arc::new(Instance::new(key, Kind::Ephemeral, publication, Overlay::default(), None, None))
        });
        (instance, snapshot.revision())
    }
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

/// The instance that `target` gives a name to: no cluster is `DEFAULT`.
fn named(target: &Target) -> InstanceKey {
    let Target { endpoint, cluster } = target.clone();
    InstanceKey { endpoint, cluster: cluster.unwrap_or_default() }
}

/// What a publisher says, as a record that has no version yet.
fn said(key: &InstanceKey, publication: Publication) -> pb::Record {
    let version = Version::default();
    wire::record(key, &Share { version, beats: true, connections: false, publication, snowflake: None })
}
