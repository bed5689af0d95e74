//! The registry as the rest of the process holds it: reads that never wait, and commands to the one writer.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot};

use super::{
    appearances::{Appearance, Appearances},
    command::{Command, Error, NamespaceInfo, Reply},
    digest::Digests,
    index::{Index, Walk},
    instance::Instance,
    journal::{JournalReader, RecordName, journal},
    key::{Group, InstanceKey, Namespace, ServiceKey},
    lease_table::BeatCells,
    limits::Limits,
    owners::Owners,
    removals::Removals,
    replication::Replication,
    service::Service,
    settings::Settings,
    share::Share,
    snapshot::Snapshot,
    switches::Switches,
    version::{OwnerId, Stamp, Version},
    watches::{Watch, Watches},
    writer::Writer,
};
use crate::{
    clock::{Clock, Mono},
    shutdown::Shutdown,
};

/// Everything that readers see. Written by the apply loop only.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) index: Arc<Index>,
    pub(super) watches: Arc<Watches>,
    pub(super) appearances: Appearances,
    pub(super) namespaces: ArcSwap<BTreeMap<Namespace, NamespaceInfo>>,
    pub(super) switches: ArcSwap<Switches>,
    pub(super) gauges: Gauges,
    pub(super) beats: Arc<BeatCells>,
    pub(super) clock: Clock,
    pub(super) absent: Arc<Snapshot>,
    pub(super) owners: Owners,
    /// The highest stamp that was given or seen. Raised by anyone.
    pub(super) stamp: AtomicU64,
    /// All own records with a stamp up to this one can be read.
    pub(super) published: AtomicU64,
    pub(super) digests: DashMap<OwnerId, Arc<Digests>>,
    pub(super) removals: RwLock<Removals>,
}

/// Figures of the registry, read at any time; each by itself is exact, together they may be of different moments.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Services that exist.
    pub services: AtomicUsize,
    /// Instances that are listed.
    pub instances: AtomicUsize,
    /// Leases: instances that are kept by beats.
    pub leases: AtomicUsize,
    /// Leases whose instance is unhealthy.
    pub late: AtomicUsize,
    /// Connections of clients that may publish.
    pub connections: AtomicUsize,
    /// Instances that became unhealthy by silence, in all.
    pub lapsed: AtomicU64,
    /// Instances that were removed by silence, in all.
    pub expired: AtomicU64,
    /// Changes of services that were published, in all.
    pub published: AtomicU64,
    /// Times that the process was found to have been frozen.
    pub freezes: AtomicU64,
    /// Times that the brake engaged.
    pub brake_engagements: AtomicU64,
    /// 1 while the brake holds removals back, else 0.
    pub brake_holding: AtomicUsize,
}

/// The registry's figures at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the fields of Gauges")]
pub struct Figures {
    pub services: usize,
    pub instances: usize,
    pub leases: usize,
    pub late: usize,
    pub connections: usize,
    pub lapsed: u64,
    pub expired: u64,
    pub published: u64,
    pub freezes: u64,
    pub brake_engagements: u64,
    pub brake_holding: bool,
    /// Commands that wait for the apply loop.
    pub queued: usize,
    /// How many may wait.
    pub queue_capacity: usize,
    /// Services that somebody watches.
    pub watched: usize,
}

/// A command and where its answer goes.
pub(super) struct Request {
    pub(super) command: Command,
    pub(super) reply: oneshot::Sender<Result<Reply, Error>>,
}

/// Access to the registry. Cheap to clone; all clones see the same.
#[derive(Debug, Clone)]
pub struct RegistryHandle {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Request>,
}

impl RegistryHandle {
    /// Starts an empty registry: spawns its apply loop, which runs until the last handle is dropped.
    #[must_use]
    pub fn start(settings: Settings, limits: Limits, clock: Clock, shutdown: &Shutdown) -> Self {
        Self::begin(settings, limits, clock, shutdown, None).0
    }

    /// As [`RegistryHandle::start`], as one of several registries that tell each other of their records: the journal says
    /// which of this one's changed.
    #[must_use]
    pub fn start_replicated(
        settings: Settings,
        limits: Limits,
        clock: Clock,
        shutdown: &Shutdown,
        replication: Replication,
    ) -> (Self, JournalReader) {
        let limit = replication.journal_limit;
        let (handle, reader) = Self::begin(settings, limits, clock, shutdown, Some(replication));
        (handle, reader.unwrap_or_else(|| journal(limit).1))
    }

    fn begin(
        settings: Settings,
        limits: Limits,
        clock: Clock,
        shutdown: &Shutdown,
        replication: Option<Replication>,
    ) -> (Self, Option<JournalReader>) {
        let (queue, requests) = mpsc::channel(settings.queue);
        let (writer, shared, reader) = Writer::new(settings, limits, clock, replication);
        shutdown.spawn_detached(writer.run(requests));
        (Self { shared, queue }, reader)
    }

    /// Has the apply loop carry `command` out. The answer comes after its effect can be read.
    ///
    /// # Errors
    /// Why the command had no effect; [`Error::Overloaded`] at once if too many commands are waiting.
    pub async fn apply(&self, command: Command) -> Result<Reply, Error> {
        let (reply, answer) = oneshot::channel();
        self.queue.try_send(Request { command, reply }).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Error::Overloaded { waiting: self.queue.max_capacity() },
            mpsc::error::TrySendError::Closed(_) => Error::Stopped,
        })?;
        answer.await.unwrap_or(Err(Error::Stopped))
    }

    /// As [`RegistryHandle::apply`], but waits for a place in the queue: for what must not be refused, such as the end of
    /// a connection.
    ///
    /// # Errors
    /// Why the command had no effect.
    pub async fn apply_surely(&self, command: Command) -> Result<Reply, Error> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(Request { command, reply }).await.map_err(|_| Error::Stopped)?;
        answer.await.unwrap_or(Err(Error::Stopped))
    }

    /// The service of `key`, if it exists.
    #[must_use]
    pub fn service(&self, key: &ServiceKey) -> Option<Arc<Service>> {
        self.shared.index.find(key)
    }

    /// The present state of the service of `key`; the empty state of revision 0 if it does not exist.
    #[must_use]
    pub fn snapshot(&self, key: &ServiceKey) -> Arc<Snapshot> {
        self.service(key).map_or_else(|| self.shared.absent.clone(), |service| service.snapshot())
    }

    /// The services of `namespace`, or of one group of it, in key order.
    pub fn services(&self, namespace: &Namespace, group: Option<&Group>) -> Walk {
        self.shared.index.walk(namespace, group)
    }

    /// All services, in key order.
    pub fn all_services(&self) -> Walk {
        self.shared.index.walk_all()
    }

    /// How many services there are in `namespace`, or in one group of it.
    #[must_use]
    pub fn service_count(&self, namespace: &Namespace, group: Option<&Group>) -> usize {
        self.shared.index.count(namespace, group)
    }

    /// The namespaces that have services, listed or not.
    pub fn used_namespaces(&self) -> impl Iterator<Item = Namespace> + use<> {
        self.shared.index.namespaces().into_iter()
    }

    /// The namespaces that were created, without the built-in `public`.
    #[must_use]
    pub fn namespaces(&self) -> Arc<BTreeMap<Namespace, NamespaceInfo>> {
        self.shared.namespaces.load_full()
    }

    /// The present position of every switch.
    #[must_use]
    pub fn switches(&self) -> Arc<Switches> {
        self.shared.switches.load_full()
    }

    /// Starts to wait for changes of a service, which need not exist. A change after this call is never missed: read the
    /// first snapshot after it.
    #[must_use]
    pub fn watch(&self, key: ServiceKey) -> Watch {
        self.shared.watches.subscribe(key)
    }

    /// Starts to follow which services appear and disappear, from now on; see [`Snapshot::is_present`].
    #[must_use]
    pub fn appearances(&self) -> Appearance {
        self.shared.appearances.follow()
    }

    /// Notes a beat of `instance`, if it is kept by beats. Whether it must also be renewed by a command, because it is
    /// listed as unhealthy, is for the caller to see.
    pub fn beat(&self, instance: &Instance) {
        if let Some(lease) = instance.lease() {
            self.shared.beats.beat(lease, self.shared.clock.now());
        }
    }

    /// How long ago `instance` was last heard of; `None` if it is not kept by beats.
    #[must_use]
    pub fn silence(&self, instance: &Instance) -> Option<Duration> {
        instance.lease().map(|lease| self.shared.beats.silence(lease, self.shared.clock.now()))
    }

    /// The owners of records.
    #[must_use]
    pub fn owners(&self) -> &Owners {
        &self.shared.owners
    }

    /// The highest stamp that this node has given or seen.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp::new(self.shared.stamp.load(Ordering::Relaxed))
    }

    /// Notes a stamp that another member has given or seen: stamps that are given from now on are higher.
    pub fn observe(&self, stamp: Stamp) {
        self.shared.stamp.fetch_max(stamp.number(), Ordering::Relaxed);
    }

    /// The digests of what `owner` holds here.
    #[must_use]
    pub fn digests(&self, owner: OwnerId) -> Arc<Digests> {
        self.shared.digests.get(&owner).map(|digests| digests.clone()).unwrap_or_default()
    }

    /// Frees the number of an owner, if no record of it is left. Returns whether it is free.
    pub fn release_owner(&self, owner: OwnerId) -> bool {
        if owner.is_self() || self.digests(owner).count() > 0 {
            return false;
        }
        self.shared.digests.remove(&owner);
        self.shared.owners.release(owner);
        true
    }

    /// The [`Version::order`] up to which everything that this node says of instances can be read now: what is read after
    /// this call is not older.
    ///
    /// [`Version::order`]: super::version::Version::order
    #[must_use]
    pub fn as_of(&self) -> u64 {
        Version::new(Stamp::new(self.shared.published.load(Ordering::Acquire)), u8::MAX, OwnerId::SELF).order()
    }

    /// What this node itself says of an instance.
    #[must_use]
    pub fn own_share(&self, service: &ServiceKey, instance: &InstanceKey) -> Option<Share> {
        self.service(service)?.snapshot().instances().find(instance)?.share(OwnerId::SELF)
    }

    /// The stamp of the last explicit removal of an instance, if it was not long ago.
    #[must_use]
    pub fn removal(&self, name: &RecordName) -> Option<Stamp> {
        self.shared.removals.read().stamp(name)
    }

    /// Whether there are explicit removals that are not long ago.
    #[must_use]
    pub fn has_removals(&self) -> bool {
        !self.shared.removals.read().is_empty()
    }

    /// The explicit removals that are not long ago.
    #[must_use]
    pub fn removals(&self) -> Vec<(RecordName, Stamp)> {
        self.shared.removals.read().all()
    }

    /// The clock that the registry goes by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Monotonic time now.
    #[must_use]
    pub fn now(&self) -> Mono {
        self.shared.clock.now()
    }

    /// The registry's figures now.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let gauges = &self.shared.gauges;
        Figures {
            services: gauges.services.load(Ordering::Relaxed),
            instances: gauges.instances.load(Ordering::Relaxed),
            leases: gauges.leases.load(Ordering::Relaxed),
            late: gauges.late.load(Ordering::Relaxed),
            connections: gauges.connections.load(Ordering::Relaxed),
            lapsed: gauges.lapsed.load(Ordering::Relaxed),
            expired: gauges.expired.load(Ordering::Relaxed),
            published: gauges.published.load(Ordering::Relaxed),
            freezes: gauges.freezes.load(Ordering::Relaxed),
            brake_engagements: gauges.brake_engagements.load(Ordering::Relaxed),
            brake_holding: gauges.brake_holding.load(Ordering::Relaxed) != 0,
            queued: self.queue.max_capacity() - self.queue.capacity(),
            queue_capacity: self.queue.max_capacity(),
            watched: self.shared.watches.len(),
        }
    }
}

#[cfg(test)]
mod tests;
