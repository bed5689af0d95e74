//! Batches of this node's own records, read at the moment at which they are made.
//!
//! Every batch says as of which point in this node's history it was read: the point is taken before anything is read, so
//! what the batch calls absent is absent, and what the receiver holds from before that point is older.

use std::{collections::HashSet, sync::Arc, time::Duration};

use crate::{
    registry::{
        InstanceKey, Kind, RegistryHandle, ServiceKey,
        digest::{BUCKETS, bucket},
        hash,
        index::Walk,
        journal::RecordName,
        owners::Incarnation,
        service::Service,
        version::OwnerId,
    },
    wire::{
        pb::peer as pb,
        peer::{self, Grouped},
    },
};

/// Entries of one batch: about 100 KiB, and 1 ms of work for the receiver's apply loop.
pub const ENTRIES: usize = 1_000;

/// Bytes past which a batch takes no further entry, so that large metadata makes short batches.
const BYTES: usize = 512 * 1024;

/// The latest state of the records of these names.
#[must_use]
pub fn latest(registry: &RegistryHandle, order: u64, names: &[RecordName]) -> pb::Batch {
    let as_of = registry.as_of();
    let mut grouped = Grouped::default();
    for name in names {
        let (service, key) = name;
        let share = registry.own_share(service, key);
        if let Some(removed) = registry.removal(name)
            && share.as_ref().is_none_or(|share| share.version.stamp() < removed)
        {
            grouped.removal(name, removed);
        }
        match share {
            Some(share) => grouped.record(service, key, &share),
            None => grouped.absence(service, key),
        }
    }
    batch(order, as_of, grouped)
}

fn batch(order: u64, as_of: u64, grouped: Grouped) -> pb::Batch {
    let (as_of_stamp, as_of_minor) = peer::as_of(as_of);
    pb::Batch { order, as_of_stamp, as_of_minor, services: grouped.into_services() }
}

/// Which of its records a node is asked for.
#[derive(Debug)]
pub enum Selection {
    /// Those in these buckets.
    Buckets(Vec<bool>),
    /// Those with these hashes.
    Hashes(HashSet<u64, ahash::RandomState>),
}

impl Selection {
    /// The records in these buckets; buckets that there are not select nothing.
    #[must_use]
    pub fn buckets(wanted: &[u32]) -> Self {
        let mut buckets = vec![false; BUCKETS];
        for wanted in wanted {
            if let Some(bucket) = buckets.get_mut(*wanted as usize) {
                *bucket = true;
            }
        }
        Self::Buckets(buckets)
    }

    /// Whether a record is selected, by the hash of its instance.
    #[must_use]
    pub fn has(&self, hash: u64) -> bool {
        match self {
            Self::Buckets(buckets) => buckets.get(bucket(hash)).copied().unwrap_or(false),
            Self::Hashes(hashes) => hashes.contains(&hash),
        }
    }
}

/// Many own records, a batch at a time.
#[derive(Debug)]
pub struct Bulk {
    walk: Walk,
    /// The service in whose middle the last batch ended, and its last instance.
    within: Option<(Arc<Service>, InstanceKey)>,
    selection: Selection,
}

impl Bulk {
    /// The selected records of this node.
    #[must_use]
    pub fn new(registry: &RegistryHandle, selection: Selection) -> Self {
        Self { walk: registry.all_services(), within: None, selection }
    }

    /// The next batch; `None` at the end. One call looks at a bounded number of services and may return an empty batch.
    pub fn next(&mut self, registry: &RegistryHandle, order: u64) -> Option<pb::Batch> {
        const LOOKED_AT: usize = 4_096;
        let as_of = registry.as_of();
        let mut grouped = Grouped::default();
        for looked_at in 0..LOOKED_AT {
            let (service, after) = match self.within.take() {
                Some((service, instance)) => (service, Some(instance)),
                None => match self.walk.next() {
                    Some(service) => (service, None),
                    None if looked_at == 0 => return None,
                    None => break,
                },
            };
            // Read now, later than `as_of`. Should the service have given way to a new one of its name, the changes that
            // made that one are on their way by themselves.
            let (key, snapshot) = (service.key(), service.snapshot());
            let from = |instance: &InstanceKey| after.as_ref().is_none_or(|after| instance > after);
            for instance in snapshot.instances().iter().filter(|instance| instance.kind() == Kind::Ephemeral) {
                let name = instance.key();
                if !from(&name) || !self.selection.has(hash::instance(key, &name)) {
                    continue;
                }
                let Some(share) = instance.share(OwnerId::SELF) else { continue };
                grouped.record(key, &name, &share);
                if grouped.len() >= ENTRIES || grouped.bytes() >= BYTES {
                    self.within = Some((service.clone(), name));
                    return Some(batch(order, as_of, grouped));
                }
            }
        }
        Some(batch(order, as_of, grouped))
    }
}

/// What this node owns in some buckets, by hash and version. Nothing may be sent on the link between the call and the
/// listing.
pub async fn listing(registry: &RegistryHandle, buckets: Vec<u32>) -> pb::Listing {
    const STEP: usize = 512;
    let selection = Selection::buckets(&buckets);
    let (as_of_stamp, as_of_minor) = peer::as_of(registry.as_of());
    let mut listing = pb::Listing { buckets, as_of_stamp, as_of_minor, ..Default::default() };
    for (number, service) in registry.all_services().enumerate() {
        if number % STEP == STEP - 1 {
            tokio::task::yield_now().await;
        }
        for instance in service.snapshot().instances().iter().filter(|i| i.kind() == Kind::Ephemeral) {
            let Some(version) = instance.version(OwnerId::SELF) else { continue };
            let hash = hash::instance(service.key(), &instance.key());
            if selection.has(hash) {
                listing.keys.push(hash);
                listing.versions.push(version.order());
            }
        }
    }
    listing
}

/// All explicit removals that are known here.
#[must_use]
pub fn removals(registry: &RegistryHandle) -> pb::Removals {
    let mut grouped = Grouped::default();
    for (name, stamp) in registry.removals() {
        grouped.removal(&name, stamp);
    }
    pb::Removals { services: grouped.into_services() }
}

/// Services that a page of orphans looks at, at most.
const PAGE_SERVICES: usize = 8_192;

/// What is still held of `owners` that are gone, with the time that each has left: the page behind `cursor`, a service
/// that the page before named.
pub fn orphans(
    registry: &RegistryHandle,
    owners: &[(OwnerId, Incarnation, Duration)],
    cursor: Option<ServiceKey>,
) -> pb::ListOrphansResponse {
    let mut walk = registry.all_services();
    if let Some(cursor) = cursor {
        walk = walk.after(cursor);
    }
    let mut found: Vec<Grouped> = owners.iter().map(|_| Grouped::default()).collect();
    let mut next_cursor = String::new();
    for (looked_at, service) in walk.take(if owners.is_empty() { 0 } else { usize::MAX }).enumerate() {
        for instance in service.snapshot().instances().iter() {
            for ((owner, ..), found) in owners.iter().zip(&mut found) {
                if let Some(share) = instance.share(*owner) {
                    found.record(service.key(), &instance.key(), &share);
                }
            }
        }
        let full = found.iter().any(|found| found.len() >= ENTRIES || found.bytes() >= BYTES);
        if full || looked_at + 1 >= PAGE_SERVICES {
            next_cursor = peer::cursor(service.key());
            break;
        }
    }
    let orphans = owners.iter().zip(found).filter(|(_, found)| !found.is_empty());
    let orphans = orphans.map(|((_, incarnation, remaining), found)| pb::OrphanRecords {
        member: incarnation.name.to_string(),
        epoch: incarnation.epoch,
        remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
        services: found.into_services(),
    });
    pb::ListOrphansResponse { orphans: orphans.collect(), next_cursor }
}
