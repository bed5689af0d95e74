//! Explicit removals that are not long past: what keeps a stale copy of a removed instance from coming back.

use std::collections::{HashMap, VecDeque};

use super::{journal::RecordName, version::Stamp};
use crate::clock::Mono;

/// Removed instances and the stamps of their removals, at most a bounded number, each for a bounded time.
#[derive(Debug)]
pub(super) struct Removals {
    stamps: HashMap<RecordName, Stamp, ahash::RandomState>,
    /// In the order in which they came; a name that was removed again stands here again.
    order: VecDeque<(Mono, RecordName, Stamp)>,
    limit: usize,
}

impl Removals {
    /// None yet, and never more than `limit`.
    pub(super) fn new(limit: usize) -> Self {
        Self { stamps: HashMap::default(), order: VecDeque::new(), limit }
    }

    /// Notes a removal. Returns whether it was news.
    pub(super) fn note(&mut self, name: RecordName, stamp: Stamp, now: Mono) -> bool {
        if self.stamps.get(&name).is_some_and(|known| *known >= stamp) {
            return false;
        }
        self.stamps.insert(name.clone(), stamp);
        self.order.push_back((now, name, stamp));
        while self.order.len() > self.limit {
            self.forget_oldest();
        }
        true
    }

    /// The stamp of the last removal of the instance of that name.
    pub(super) fn stamp(&self, name: &RecordName) -> Option<Stamp> {
        self.stamps.get(name).copied()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// Forgets those that came before `before`.
    pub(super) fn forget(&mut self, before: Mono) {
        while self.order.front().is_some_and(|(at, ..)| *at < before) {
            self.forget_oldest();
        }
    }

    /// All that are known, in the order in which they came.
    pub(super) fn all(&self) -> Vec<(RecordName, Stamp)> {
        let latest = |(_, name, stamp): &&(Mono, RecordName, Stamp)| self.stamps.get(name) == Some(stamp);
        self.order.iter().filter(latest).map(|(_, name, stamp)| (name.clone(), *stamp)).collect()
    }

    fn forget_oldest(&mut self) {
        if let Some((_, name, stamp)) = self.order.pop_front()
            && self.stamps.get(&name) == Some(&stamp)
        {
            self.stamps.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{ClusterName, InstanceKey, Limits};

    fn name(port: i64) -> RecordName {
        let limits = Limits::default();
        let endpoint = limits.endpoint("10.0.0.1", port).unwrap();
        (limits.service_key("", "", "s").unwrap(), InstanceKey { endpoint, cluster: ClusterName::default() })
    }

    #[test]
    fn the_last_removal_counts_until_its_time_or_too_many() {
        let mut removals = Removals::new(3);
        let at = Mono::from_millis;
        assert!(removals.note(name(1), Stamp::new(5), at(0)));
        assert!(!removals.note(name(1), Stamp::new(5), at(1)));
        assert!(!removals.note(name(1), Stamp::new(4), at(1)));
        assert!(removals.note(name(1), Stamp::new(6), at(2)));
        removals.forget(at(2));
        assert_eq!(removals.stamp(&name(1)), Some(Stamp::new(6)));
        removals.forget(at(3));
        assert_eq!(removals.stamp(&name(1)), None);
        for port in 1..=5 {
            removals.note(name(port), Stamp::new(9), at(9));
        }
        assert_eq!(removals.all().len(), 3);
        assert_eq!(removals.stamp(&name(2)), None);
        assert_eq!(removals.stamp(&name(3)), Some(Stamp::new(9)));
    }
}
