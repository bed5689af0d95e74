//! All services: found by key without waiting, and walked in key order.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use dashmap::DashMap;
use parking_lot::RwLock;

use super::{
    key::{Group, Namespace, ServiceKey},
    service::Service,
};

/// More shards than cores: a shard that grows stops its readers, and small ones grow fast (worst insert of a million
/// services under 1 ms with 256 shards, 9 ms with 8).
const SHARDS: usize = 256;

/// How many services a walk takes from the index at once; the lock is held for about 50 µs.
const STEP: usize = 512;

/// The services of the registry. Changed by the apply loop only; read by anyone.
#[derive(Debug)]
pub struct Index {
    by_key: DashMap<Entry, (), ahash::RandomState>,
    ordered: RwLock<Ordered>,
}

#[derive(Debug, Default)]
struct Ordered {
    services: BTreeSet<Entry>,
    groups: BTreeMap<(Namespace, Group), usize>,
}

/// A service that stands in maps under the key that it holds itself.
#[derive(Debug, Clone)]
struct Entry(Arc<Service>);

impl Borrow<ServiceKey> for Entry {
    fn borrow(&self) -> &ServiceKey {
        self.0.key()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl std::hash::Hash for Entry {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

impl Default for Index {
    fn default() -> Self {
        Self {
            by_key: DashMap::with_hasher_and_shard_amount(ahash::RandomState::new(), SHARDS),
            ordered: RwLock::default(),
        }
    }
}

impl Index {
    /// The service of `key`.
    #[must_use]
    pub fn find(&self, key: &ServiceKey) -> Option<Arc<Service>> {
        self.by_key.get(key).map(|entry| entry.key().0.clone())
    }

    /// `key`, but sharing the memory of its namespace and group with a service that stands next to it.
    #[must_use]
    pub fn share(&self, key: ServiceKey) -> ServiceKey {
        let ordered = self.ordered.read();
        let before = ordered.services.range::<ServiceKey, _>(..&key).next_back();
        let after = ordered.services.range::<ServiceKey, _>(&key..).next();
        before.into_iter().chain(after).fold(key, |key, Entry(neighbour)| ServiceKey {
            namespace: key.namespace.shared_with(&neighbour.key().namespace),
            group: key.group.shared_with(&neighbour.key().group),
            name: key.name,
        })
    }

    /// Adds a service that is not there.
    pub(super) fn add(&self, service: Arc<Service>) {
        let key = service.key();
        let group = (key.namespace.clone(), key.group.clone());
        let mut ordered = self.ordered.write();
        if ordered.services.insert(Entry(service.clone())) {
            *ordered.groups.entry(group).or_default() += 1;
        }
        drop(ordered);
        self.by_key.insert(Entry(service), ());
    }

    /// Takes a service out.
    pub(super) fn take(&self, key: &ServiceKey) {
        self.by_key.remove(key);
        let mut ordered = self.ordered.write();
        if ordered.services.remove(key) {
            let group = (key.namespace.clone(), key.group.clone());
            if let Some(count) = ordered.groups.get_mut(&group) {
                *count -= 1;
                if *count == 0 {
                    ordered.groups.remove(&group);
                }
            }
        }
    }

    /// How many services there are in `namespace`, or in one group of it.
    #[must_use]
    pub fn count(&self, namespace: &Namespace, group: Option<&Group>) -> usize {
        let ordered = self.ordered.read();
        match group {
            Some(group) => ordered.groups.get(&(namespace.clone(), group.clone())).copied().unwrap_or(0),
            None => {
                let first = ServiceKey::lower_bound(namespace.clone(), None);
                let of_namespace = ordered.groups.range((first.namespace, first.group)..);
                of_namespace.take_while(|((ns, _), _)| ns == namespace).map(|(_, count)| count).sum()
            }
        }
    }

    /// The namespaces that have services.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<Namespace> {
        self.ordered.read().groups.keys().map(|(namespace, _)| namespace.clone()).collect()
    }

    /// The services of `namespace`, or of one group of it, in key order. Services that come or go during the walk may be
    /// in it or not.
    pub fn walk(self: &Arc<Self>, namespace: &Namespace, group: Option<&Group>) -> Walk {
        Walk {
            index: self.clone(),
            from: Bound::Included(ServiceKey::lower_bound(namespace.clone(), group.cloned())),
            namespace: Some(namespace.clone()),
            group: group.cloned(),
            step: Vec::new().into_iter(),
            ended: false,
        }
    }

    /// All services, in key order; see [`Index::walk`].
    pub fn walk_all(self: &Arc<Self>) -> Walk {
        let (from, step) = (Bound::Unbounded, Vec::new().into_iter());
        Walk { index: self.clone(), from, namespace: None, group: None, step, ended: false }
    }
}

/// Walks over services in steps, so that the index is never held for long.
#[derive(Debug)]
pub struct Walk {
    index: Arc<Index>,
    from: Bound<ServiceKey>,
    /// `None`: all.
    namespace: Option<Namespace>,
    group: Option<Group>,
    step: std::vec::IntoIter<Arc<Service>>,
    ended: bool,
}

impl Walk {
    /// The same walk, but from the first service after `key` on, which need not exist.
    #[must_use]
    pub fn after(mut self, key: ServiceKey) -> Self {
        self.from = Bound::Excluded(key);
        self
    }
}

impl Iterator for Walk {
    type Item = Arc<Service>;

    fn next(&mut self) -> Option<Arc<Service>> {
        if let Some(service) = self.step.next() {
            return Some(service);
        }
        if self.ended {
            return None;
        }
        let inside = |entry: &&Entry| {
            let key = entry.0.key();
            self.namespace.as_ref().is_none_or(|namespace| key.namespace == *namespace)
                && self.group.as_ref().is_none_or(|group| key.group == *group)
        };
        let step: Vec<_> = {
            let ordered = self.index.ordered.read();
            let range = ordered.services.range::<ServiceKey, _>((self.from.as_ref(), Bound::Unbounded));
            range.take_while(inside).take(STEP).map(|entry| entry.0.clone()).collect()
        };
        self.ended = step.len() < STEP;
        if let Some(last) = step.last() {
            self.from = Bound::Excluded(last.key().clone());
        }
        self.step = step.into_iter();
        self.step.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{limits::Limits, snapshot::Snapshot};

    fn add(index: &Index, namespace: &str, group: &str, name: &str) {
        let key = Limits::default().service_key(namespace, group, name).unwrap();
        index.add(Arc::new(Service::new(key, Arc::new(Snapshot::default()))));
    }

    #[test]
    fn walks_one_group_in_order_across_steps() {
        let index = Arc::new(Index::default());
        for number in 0..1_500 {
            add(&index, "", "", &format!("s{number:04}"));
            add(&index, "", "other", &format!("s{number:04}"));
            add(&index, "z", "", &format!("s{number:04}"));
        }
        let public = Namespace::default();
        let names: Vec<_> = index.walk(&public, Some(&Group::default())).map(|s| s.key().name.to_string()).collect();
        assert_eq!(names, (0..1_500).map(|n| format!("s{n:04}")).collect::<Vec<_>>());
        assert_eq!(index.walk(&public, None).count(), 3_000);
        assert_eq!(index.count(&public, None), 3_000);
        assert_eq!(index.count(&public, Some(&Group::default())), 1_500);
        let middle = Limits::default().service_key("", "other", "s1497x").unwrap();
        assert_eq!(index.walk(&public, None).after(middle.clone()).count(), 2);
        assert_eq!(index.walk_all().count(), 4_500);
        assert_eq!(index.walk_all().after(middle).count(), 1_502);
    }

    #[test]
    fn what_is_taken_out_is_gone_from_both() {
        let index = Arc::new(Index::default());
        add(&index, "", "", "a");
        let key = Limits::default().service_key("", "", "a").unwrap();
        assert!(index.find(&key).is_some());
        index.take(&key);
        assert!(index.find(&key).is_none());
        assert_eq!(index.count(&key.namespace, None), 0);
        assert!(index.namespaces().is_empty());
    }
}
