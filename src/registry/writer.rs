//! The apply loop: the one writer of the registry.
//!
//! It takes commands in batches, lets [`decide`] say what each does, carries the edits out on drafts of the services, and
//! publishes every draft that changed as one new snapshot before it answers. A command that fails, or whose decider
//! panics, has left no trace.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use parking_lot::RwLock;
use smallvec::SmallVec;
use tokio::{
    sync::{mpsc, oneshot},
    time::MissedTickBehavior,
};
use tracing::{error, info, warn};

use super::{
    appearances::Appearances,
    apply::{Context, Edit, close, decide, expire},
    command::{Command, Error, NamespaceCommand, Reply, ServiceCommand},
    digest::Digests,
    draft::{Draft, Drafts},
    hash, heartbeat,
    index::Index,
    instance::{ConnectionId, Instance},
    journal::{Journal, JournalReader, RecordName, journal},
    key::{InstanceKey, Namespace, ServiceKey},
    lease::{self, Brake, FreezeGuard},
    lease_table::LeaseTable,
    limits::Limits,
    overlay::Overlay,
    owners::Owners,
    publication::Kind,
    removals::Removals,
    replication::{Replica, Replication, replicate},
    service::Service,
    settings::Settings,
    snapshot::Snapshot,
    store::{Gauges, Request, Shared},
    switches::{SwitchChange, Switches},
    version::{Stamp, Version},
    watches::Watches,
};
use crate::clock::{Clock, Mono};

/// Commands of one batch: as many as share one snapshot when they hit one service. More would make the first of a burst
/// wait longer for its answer (256: 0.3 ms), fewer would publish more often.
const BATCH: usize = 256;

/// Leases that one look handles before commands get their turn again: about 10 ms of work.
const EXPIRE_AT_ONCE: usize = 8_192;

pub(super) struct Writer {
    shared: Arc<Shared>,
    settings: Settings,
    limits: Limits,
    connections: HashMap<ConnectionId, Published>,
    leases: LeaseTable,
    guard: FreezeGuard,
    brake: Brake,
    revision: u64,
    wall: u64,
    snowflake: AtomicSnowflake,
    retained: HashMap<(ServiceKey, InstanceKey), Retained>,
    emptied: VecDeque<Emptied>,
    replicating: Option<Replicating>,
}

/// What a registry that is one of several needs beyond the rest.
struct Replicating {
    settings: Replication,
    journal: Journal,
    /// Own records that changed in this batch.
    changed: Vec<RecordName>,
}

/// What an open connection publishes, by service.
type Published = HashMap<ServiceKey, Vec<InstanceKey>, ahash::RandomState>;

/// What an operator had laid over an instance that expired.
struct Retained {
    overlay: Overlay,
    until: Mono,
}

/// A service that had become empty, with the revision of that moment: if it still has it, it has been empty since.
struct Emptied {
    service: Arc<Service>,
    revision: u64,
    at: Mono,
}

/// Numbers for instance ids that grow across restarts: the start in wall milliseconds, shifted, then counted up.
struct AtomicSnowflake(AtomicU64);

struct Answer {
    to: oneshot::Sender<Result<Reply, Error>>,
    result: Result<Reply, Error>,
    draft: Option<usize>,
}

impl Writer {
    /// The apply loop of an empty registry, what readers see of it, and if it is one of several, the journal of its
    /// changes.
    pub(super) fn new(
        settings: Settings,
        limits: Limits,
        clock: Clock,
        replication: Option<Replication>,
    ) -> (Self, Arc<Shared>, Option<JournalReader>) {
        let leases = LeaseTable::default();
        let now = clock.now();
        let floor = replication.as_ref().map_or(0, |replication| replication.floor.number());
        let shared = Arc::new(Shared {
            index: Arc::new(Index::default()),
            watches: Arc::new(Watches::default()),
            appearances: Appearances::default(),
            namespaces: ArcSwap::default(),
            switches: ArcSwap::from_pointee(Switches::default()),
            gauges: Gauges::default(),
            beats: leases.cells(),
            clock,
            absent: Arc::new(Snapshot::default()),
            owners: Owners::default(),
            stamp: AtomicU64::new(floor),
            published: AtomicU64::new(floor),
            digests: DashMap::with_shard_amount(4),
            removals: RwLock::new(Removals::new(replication.as_ref().map_or(0, |r| r.removal_limit))),
        });
        let wall = clock.wall_millis();
        let (replicating, reader) = match replication {
            Some(settings) => {
                let (journal, reader) = journal(settings.journal_limit);
                (Some(Replicating { settings, journal, changed: Vec::new() }), Some(reader))
            }
            None => (None, None),
        };
        let writer = Self {
            guard: FreezeGuard::new(settings.expiry_scan, settings.freeze_tolerance, now),
            brake: Brake::new(settings.brake()),
            shared: shared.clone(),
            settings,
            limits,
            connections: HashMap::new(),
            leases,
            revision: 0,
            wall,
            snowflake: AtomicSnowflake(AtomicU64::new(wall << 20)),
            retained: HashMap::new(),
            emptied: VecDeque::new(),
            replicating,
        };
        (writer, shared, reader)
    }

    /// Runs until every handle is gone.
    pub(super) async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut looks = tokio::time::interval(self.settings.expiry_scan);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        let mut more_due = false;
        // Commands and leases that are due take turns.
        let mut served = false;
        loop {
            tokio::select! {
                biased;
                _ = looks.tick() => {
                    more_due = self.look();
                    self.clean(self.shared.clock.now());
                }
                () = std::future::ready(()), if more_due && served => {
                    more_due = self.look();
                    served = false;
                }
                taken = requests.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        return;
                    }
                    self.apply(batch.drain(..));
                    served = true;
                }
                () = std::future::ready(()), if more_due => more_due = self.look(),
            }
        }
    }

    fn apply(&mut self, batch: impl Iterator<Item = Request>) {
        let now = self.shared.clock.now();
        let mut drafts = Drafts::default();
        let mut answers = Vec::with_capacity(BATCH);
        for Request { command, reply } in batch {
            let (result, draft) = match command {
                Command::Service(key, command) => {
                    let at = drafts.open(key, &self.shared.index);
                    (self.apply_to_service(&mut drafts, at, command, now), Some(at))
                }
                Command::Open(connection) => {
                    self.connections.entry(connection).or_default();
                    self.shared.gauges.connections.store(self.connections.len(), Ordering::Relaxed);
                    (Ok(Reply::default()), None)
                }
                Command::Close(connection) => {
                    self.close(&mut drafts, connection, now);
                    (Ok(Reply::default()), None)
                }
                Command::Namespace(namespace, command) => (self.apply_to_namespaces(namespace, command), None),
                Command::Switch(change) => {
                    self.switch(change);
                    (Ok(Reply::default()), None)
                }
                Command::Renew(names) => {
                    for (service, instance) in names {
                        let at = drafts.open(service, &self.shared.index);
                        // That it is unknown the caller sees in the snapshot.
                        let _ = self.apply_to_service(&mut drafts, at, ServiceCommand::Renew(instance), now);
                    }
                    (Ok(Reply::default()), None)
                }
                Command::Replicate(replicas) => {
                    for (service, replica) in replicas {
                        self.replicate(&mut drafts, service, replica, now);
                    }
                    (Ok(Reply::default()), None)
                }
            };
            answers.push(Answer { to: reply, result, draft });
        }
        self.publish(&mut drafts, now);
        for Answer { to, mut result, draft } in answers {
            if let (Ok(reply), Some(draft)) = (&mut result, draft.and_then(|at| drafts.all.get(at))) {
                reply.revision = if draft.exists { draft.service.snapshot().revision() } else { 0 };
            }
            // Who no longer waits for the answer has still had the change.
            let _ = to.send(result);
        }
    }

    fn switch(&self, change: SwitchChange) {
        info!(?change, "switch changed");
        let before = self.shared.switches.load_full();
        let now = Switches::clone(&before).with(change);
        let resumed = now.push_enabled && !before.push_enabled;
        self.shared.switches.store(Arc::new(now));
        if resumed {
            // Whoever pushes has passed over what changed in the meantime, and finds out by a look at the revisions.
            self.shared.watches.notify_all();
        }
    }

    fn apply_to_service(
        &mut self,
        drafts: &mut Drafts,
        at: usize,
        command: ServiceCommand,
        now: Mono,
    ) -> Result<Reply, Error> {
        let Some(draft) = drafts.all.get_mut(at) else { return Err(Error::Internal) };
        let context = Retention { writer: self, now };
        let decided = catch_unwind(AssertUnwindSafe(|| decide(draft.view(), command, &context)));
        let edits = decided.unwrap_or_else(|_| {
            error!(service = ?draft.service.key(), "a command panicked; nothing was changed");
            Err(Error::Internal)
        })?;
        let mut reply = Reply::default();
        for edit in edits {
            self.carry_out(draft, edit, now, &mut reply.instances);
        }
        Ok(reply)
    }

    fn replicate(&mut self, drafts: &mut Drafts, service: ServiceKey, replica: Replica, now: Mono) {
        self.shared.stamp.fetch_max(replica.stamp().number(), Ordering::Relaxed);
        let at = drafts.open(service, &self.shared.index);
        let Some(draft) = drafts.all.get_mut(at) else { return };
        let context = Retention { writer: self, now };
        let decided = catch_unwind(AssertUnwindSafe(|| replicate(draft.view(), replica, &context)));
        let edits = decided.unwrap_or_else(|_| {
            error!(service = ?draft.service.key(), "a replica panicked; nothing was changed");
            Vec::new()
        });
        for edit in edits {
            self.carry_out(draft, edit, now, &mut SmallVec::new());
        }
    }

    fn close(&mut self, drafts: &mut Drafts, connection: ConnectionId, now: Mono) {
        let published = self.connections.remove(&connection).unwrap_or_default();
        self.shared.gauges.connections.store(self.connections.len(), Ordering::Relaxed);
        for (service, published) in published {
            let at = drafts.open(service, &self.shared.index);
            let Some(draft) = drafts.all.get_mut(at) else { continue };
            let context = Retention { writer: self, now };
            for edit in close(draft.view(), connection, &published, &context) {
                self.carry_out(draft, edit, now, &mut SmallVec::new());
            }
        }
    }

    fn carry_out(&mut self, draft: &mut Draft, edit: Edit, now: Mono, shown: &mut SmallVec<[Arc<Instance>; 1]>) {
        match edit {
            Edit::Put { instance, beat } => {
                let lease = match instance.lease() {
                    None if beat => self.leases.open(now),
                    lease => lease,
                };
                let instance = Arc::new(instance.with_lease(lease));
                if let Some(lease) = lease {
                    if beat {
                        self.shared.beats.beat(lease, now);
                    }
                    let limit = (!heartbeat::is_exempt(instance.metadata())).then(|| lease::limit(&instance));
                    let last = !instance.is_well_here();
                    self.leases.hold(lease, draft.service.clone(), instance.clone(), limit, last);
                }
                let old = draft.instances.insert(instance.clone());
                if let Some(ended) = old.as_ref().and_then(|old| old.lease()).filter(|old| lease != Some(*old)) {
                    self.leases.close(ended);
                }
                self.recount(old.as_deref(), Some(&instance));
                self.account(draft.service.key(), old.as_deref(), Some(&instance));
                draft.exists = true;
                draft.changed |= old.is_none_or(|old| !old.looks_like(&instance));
                draft.replaced = true;
                shown.push(instance);
            }
            Edit::Touch(instance) => {
                if let Some(lease) = instance.lease() {
                    self.shared.beats.beat(lease, now);
                }
                shown.push(instance);
            }
            Edit::Show(instance) => shown.push(instance),
            Edit::Remove { key, retain } => {
                let Some(old) = draft.instances.remove(&key) else { return };
                if let Some(lease) = old.lease() {
                    self.leases.close(lease);
                }
                let place = (draft.service.key().clone(), key);
                match old.overlay() {
                    Some(overlay) if retain => {
                        let until = now + self.settings.overlay_retention;
                        self.retained.insert(place, Retained { overlay: overlay.clone(), until });
                    }
                    _ => {
                        self.retained.remove(&place);
                    }
                }
                self.recount(Some(&old), None);
                self.account(draft.service.key(), Some(&old), None);
                draft.changed = true;
                shown.push(old);
            }
            Edit::Removed { key, stamp, here } => {
                let Some(replicating) = &mut self.replicating else { return };
                let name = (draft.service.key().clone(), key);
                if self.shared.removals.write().note(name.clone(), stamp, now) && here {
                    replicating.changed.push(name);
                }
            }
            Edit::Record(connection, keys) => {
                let Some(published) = self.connections.get_mut(&connection) else { return };
                if keys.is_empty() {
                    published.remove(draft.service.key());
                } else {
                    published.insert(draft.service.key().clone(), keys);
                }
            }
            Edit::Settings(settings) => {
                let same = draft.exists && draft.settings.as_ref() == Some(&settings);
                draft.changed |= !same;
                draft.exists = true;
                draft.settings = Some(settings);
            }
            Edit::Delete => {
                draft.exists = false;
                draft.changed = true;
                draft.settings = None;
            }
        }
    }

    fn recount(&self, old: Option<&Instance>, new: Option<&Instance>) {
        let gauges = &self.shared.gauges;
        let late = |instance: &&Instance| instance.lease().is_some() && !instance.is_well_here();
        move_by(&gauges.instances, old.is_some(), new.is_some());
        move_by(&gauges.late, old.filter(late).is_some(), new.filter(late).is_some());
        gauges.leases.store(self.leases.len(), Ordering::Relaxed);
    }

    /// Keeps the digests up, and notes what the other members must be told of.
    fn account(&mut self, service: &ServiceKey, old: Option<&Instance>, new: Option<&Instance>) {
        let Some(replicating) = &mut self.replicating else { return };
        let versions = |instance: Option<&Instance>| -> SmallVec<[Version; 2]> {
            let ephemeral = instance.filter(|instance| instance.kind() == Kind::Ephemeral);
            ephemeral.into_iter().flat_map(Instance::versions).collect()
        };
        let (before, after) = (versions(old), versions(new));
        let (Some(any), true) = (new.or(old), before != after) else { return };
        let key = any.key();
        let hash = hash::instance(service, &key);
        let of = |owner| self.shared.digests.entry(owner).or_insert_with(|| Arc::new(Digests::default())).clone();
        for gone in before.iter().filter(|version| !after.contains(version)) {
            of(gone.owner()).take(hash, *gone);
        }
        for come in after.iter().filter(|version| !before.contains(version)) {
            of(come.owner()).add(hash, *come);
        }
        let own = |versions: &[Version]| versions.iter().find(|version| version.owner().is_self()).copied();
        if own(&before) != own(&after) {
            replicating.changed.push((service.clone(), key));
        }
    }

    fn publish(&mut self, drafts: &mut Drafts, now: Mono) {
        let mut appearances = Vec::new();
        for draft in &mut drafts.all {
            if !draft.changed {
                if draft.replaced {
                    draft.service.publish(Arc::new(draft.service.snapshot().read_the_same(draft.instances.clone())));
                }
                continue;
            }
            if !draft.exists && !draft.listed {
                continue;
            }
            self.revision += 1;
            self.wall = self.wall.max(self.shared.clock.wall_millis());
            draft.instances.shrink();
            let snapshot = Snapshot::new(self.revision, self.wall, draft.settings.clone(), draft.instances.clone());
            let is_present = snapshot.is_present();
            if draft.service.snapshot().is_present() != is_present {
                appearances.push(draft.service.key().clone());
            }
            draft.service.publish(Arc::new(snapshot));
            let gauges = &self.shared.gauges;
            match (draft.listed, draft.exists) {
                (false, true) => self.shared.index.add(draft.service.clone()),
                (true, false) => self.shared.index.take(draft.service.key()),
                (true, true) | (false, false) => {}
            }
            move_by(&gauges.services, draft.listed, draft.exists);
            gauges.published.fetch_add(1, Ordering::Relaxed);
            if draft.exists && draft.instances.is_empty() && draft.settings.is_none() {
                let service = draft.service.clone();
                self.emptied.push_back(Emptied { service, revision: self.revision, at: now });
            }
            self.shared.watches.notify(draft.service.key(), self.revision);
        }
        // After the index has them: who is told of one looks there.
        for key in appearances {
            self.shared.appearances.tell(key);
        }
        if let Some(replicating) = &mut self.replicating {
            // All that has a stamp up to this one can be read from now on.
            self.shared.published.store(self.shared.stamp.load(Ordering::Relaxed), Ordering::Release);
            replicating.journal.write(&mut replicating.changed);
        }
    }

    fn apply_to_namespaces(&self, namespace: Namespace, command: NamespaceCommand) -> Result<Reply, Error> {
        if namespace == Namespace::default() {
            return Err(Error::NamespaceReserved);
        }
        let mut list = BTreeMap::clone(&self.shared.namespaces.load());
        match command {
            NamespaceCommand::Create(info) => {
                if list.contains_key(&namespace) {
                    return Err(Error::NamespaceExists(namespace));
                }
                list.insert(namespace, info);
            }
            NamespaceCommand::Update(info) => match list.get_mut(&namespace) {
                Some(present) => *present = info,
                None => return Err(Error::NamespaceUnknown(namespace)),
            },
            NamespaceCommand::Delete => {
                if list.remove(&namespace).is_none() {
                    return Err(Error::NamespaceUnknown(namespace));
                }
            }
        }
        self.shared.namespaces.store(Arc::new(list));
        Ok(Reply::default())
    }

    /// Ends the leases that are due, unless the process has just been frozen. Returns whether more are waiting.
    fn look(&mut self) -> bool {
        let now = self.shared.clock.now();
        if let Some(frozen) = self.guard.observe(now) {
            let frozen_ms = u64::try_from(frozen.as_millis()).unwrap_or(u64::MAX);
            warn!(frozen_ms, "this process did not run, every lease begins anew");
            self.shared.gauges.freezes.store(self.guard.freezes(), Ordering::Relaxed);
        }
        if !self.shared.switches.load().health_check_enabled {
            return false;
        }
        let late = self.shared.gauges.late.load(Ordering::Relaxed);
        let was_engaged = self.brake.engaged_since().is_some();
        let held_back = self.brake.holds(late, self.leases.len(), now);
        let gauges = &self.shared.gauges;
        gauges.brake_holding.store(usize::from(held_back), Ordering::Relaxed);
        gauges.brake_engagements.store(self.brake.engagements(), Ordering::Relaxed);
        match (was_engaged, self.brake.engaged_since().is_some()) {
            (false, true) => warn!(late, leases = self.leases.len(), "brake engaged, removals are held back"),
            (true, false) => info!(late, leases = self.leases.len(), "brake released"),
            (true, true) | (false, false) => {}
        }
        let removals = self.settings.expire_instances && !held_back;
        let due = self.leases.due(now, self.guard.thaw(), removals, EXPIRE_AT_ONCE);
        let more = due.len() == EXPIRE_AT_ONCE;
        let mut drafts = Drafts::default();
        let (mut ended, mut removed) = (0, 0);
        for due in &due {
            let exempt = due.held.service.snapshot().settings().is_some_and(|s| heartbeat::is_exempt(&s.metadata));
            let context = Retention { writer: self, now };
            let Some(edit) = expire(due, removals, &context).filter(|_| !exempt) else {
                // Nothing to do before another full period.
                self.shared.beats.beat(due.lease, now);
                continue;
            };
            let counter = match &edit {
                Edit::Remove { .. } => &self.shared.gauges.expired,
                _ => &self.shared.gauges.lapsed,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            removed += usize::from(matches!(edit, Edit::Remove { .. }));
            let at = drafts.open_service(due.held.service.clone());
            if let Some(draft) = drafts.all.get_mut(at) {
                self.carry_out(draft, edit, now, &mut SmallVec::new());
                ended += 1;
            }
        }
        if ended > 0 {
            info!(removed, late = ended - removed, services = drafts.all.len(), "instances were silent for too long");
        }
        self.publish(&mut drafts, now);
        more
    }

    /// Removes services that have been empty for long enough, and forgets overlays that were kept for long enough.
    fn clean(&mut self, now: Mono) {
        let mut drafts = Drafts::default();
        while let Some(oldest) = self.emptied.front() {
            if now.since(oldest.at) < self.settings.empty_service_ttl {
                break;
            }
            let Some(Emptied { service, revision, .. }) = self.emptied.pop_front() else { break };
            if service.snapshot().revision() == revision {
                let at = drafts.open_service(service);
                if let Some(draft) = drafts.all.get_mut(at) {
                    self.carry_out(draft, Edit::Delete, now, &mut SmallVec::new());
                }
            }
        }
        self.publish(&mut drafts, now);
        self.retained.retain(|_, kept| kept.until > now);
        if let Some(replicating) = &self.replicating {
            let ttl = u64::try_from(replicating.settings.removal_ttl.as_millis()).unwrap_or(u64::MAX);
            let before = Mono::from_millis(now.as_millis().saturating_sub(ttl));
            self.shared.removals.write().forget(before);
        }
    }
}

struct Retention<'a> {
    writer: &'a Writer,
    now: Mono,
}

impl Context for Retention<'_> {
    fn retained(&self, service: &ServiceKey, instance: &InstanceKey) -> Option<Overlay> {
        let kept = &self.writer.retained;
        if kept.is_empty() {
            return None;
        }
        kept.get(&(service.clone(), instance.clone()))
            .filter(|kept| kept.until > self.now)
            .map(|kept| kept.overlay.clone())
    }

    fn snowflake(&self) -> u64 {
        self.writer.snowflake.0.fetch_add(1, Ordering::Relaxed)
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(self.writer.shared.stamp.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn owners(&self) -> &Owners {
        &self.writer.shared.owners
    }

    fn removed(&self, service: &ServiceKey, instance: &InstanceKey) -> Option<Stamp> {
        self.writer.replicating.as_ref()?;
        self.writer.shared.removals.read().stamp(&(service.clone(), instance.clone()))
    }

    fn now(&self) -> Mono {
        self.now
    }

    fn limits(&self) -> &Limits {
        &self.writer.limits
    }

    fn published(&self, connection: ConnectionId, service: &ServiceKey) -> Option<&[InstanceKey]> {
        let published = self.writer.connections.get(&connection)?;
        Some(published.get(service).map_or(&[], Vec::as_slice))
    }
}

fn move_by(gauge: &std::sync::atomic::AtomicUsize, was: bool, is: bool) {
    match (was, is) {
        (false, true) => {
            gauge.fetch_add(1, Ordering::Relaxed);
        }
        (true, false) => {
            gauge.fetch_sub(1, Ordering::Relaxed);
        }
        (true, true) | (false, false) => {}
    }
}
