//! Digests of what one owner holds, kept up with every change, so that two nodes compare a million records in a few bytes.
//!
//! A digest is the wrapping sum of a hash of each record's name and version: a record that changes is taken out and put in
//! anew, in any order.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{hash::mix, version::Version};

/// Buckets of an owner's records. With a million records one holds 250, and all digests are 32 KiB.
pub const BUCKETS: usize = 4_096;

/// The digests of one owner's records. Written by the apply loop only; read by anyone, while changes go on.
#[derive(Debug)]
pub struct Digests {
    buckets: Box<[AtomicU64]>,
    root: AtomicU64,
    count: AtomicU64,
}

impl Default for Digests {
    fn default() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            root: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }
    }
}

/// The bucket of a record, by the hash of its instance.
#[must_use]
pub const fn bucket(hash: u64) -> usize {
    (hash >> 52) as usize
}

impl Digests {
    /// Puts a record in; `hash` is that of its instance.
    pub(super) fn add(&self, hash: u64, version: Version) {
        self.change(hash, item(hash, version));
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a record out.
    pub(super) fn take(&self, hash: u64, version: Version) {
        self.change(hash, item(hash, version).wrapping_neg());
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    fn change(&self, hash: u64, by: u64) {
        if let Some(bucket) = self.buckets.get(bucket(hash)) {
            let old = bucket.fetch_add(by, Ordering::Relaxed);
            // The root sums the buckets mixed, so that equal changes in two buckets do not cancel out.
            let place = hash >> 52;
            let moved = rooted(place, old.wrapping_add(by)).wrapping_sub(rooted(place, old));
            self.root.fetch_add(moved, Ordering::Relaxed);
        }
    }

    /// The digest of everything; 0 for nothing.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.root.load(Ordering::Relaxed)
    }

    /// How many records there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The digest of each bucket, in order.
    #[must_use]
    pub fn buckets(&self) -> Vec<u64> {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect()
    }
}

fn item(hash: u64, version: Version) -> u64 {
    mix(hash ^ mix(version.order().wrapping_add(1)))
}

fn rooted(place: u64, digest: u64) -> u64 {
    if digest == 0 { 0 } else { mix(digest ^ mix(place + 1)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::registry::version::OwnerId;

    proptest! {
        /// Whatever way led there, and whatever number the owner has here: equal records have equal digests.
        #[test]
        fn the_order_of_changes_leaves_no_trace(records in prop::collection::vec((any::<u64>(), 0_u64..1 << 52), 0..50)) {
            let (ours, theirs) = (Digests::default(), Digests::default());
            let other = OwnerId::new(7).unwrap();
            for (hash, order) in &records {
                ours.add(*hash, Version::from_order(*order, OwnerId::SELF));
            }
            for (hash, order) in records.iter().rev() {
                theirs.add(*hash, Version::from_order(order / 2, other));
                theirs.take(*hash, Version::from_order(order / 2, other));
                theirs.add(*hash, Version::from_order(*order, other));
            }
            prop_assert_eq!(ours.root(), theirs.root());
            prop_assert_eq!(ours.buckets(), theirs.buckets());
            prop_assert_eq!(ours.count(), records.len() as u64);
            for (hash, order) in &records {
                ours.take(*hash, Version::from_order(*order, OwnerId::SELF));
            }
            prop_assert_eq!((ours.root(), ours.count()), (0, 0));
        }
    }
}
