//! What a reader that follows a service must be told when it changes: the whole selection, or what differs.

use std::{mem, sync::Arc};

use super::{
    instance::Instance,
    key::InstanceKey,
    select::{Query, Selected, select},
    selector::Selector,
    snapshot::{Snapshot, difference},
};

/// A reader's query, and the state that it was told last.
///
/// Holds the snapshot, which is shared, and no list of its own; so a thousand followers of a large service cost little.
#[derive(Debug)]
pub struct Follower {
    query: Query,
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    snapshot: Arc<Snapshot>,
    protected: bool,
}

/// News for a follower.
#[derive(Debug, Clone)]
pub enum News {
    /// Everything; what was told before does not count any more.
    Full(Selected),
    /// What differs from the state before.
    Delta {
        /// Instances that are new to the reader or have changed, in key order.
        upserts: Vec<Arc<Instance>>,
        /// Instances that the reader no longer sees, in key order.
        removals: Vec<InstanceKey>,
        /// Whether the operator's settings of the service have changed.
        settings_changed: bool,
        /// Whether all are shown as healthy, as in the state before.
        protected: bool,
    },
    /// The service no longer exists.
    Deleted,
}

impl Follower {
    /// A follower that was told nothing yet.
    #[must_use]
    pub fn new(query: Query) -> Self {
        Self { query, seen: None }
    }

    /// What to tell now that the service is as in `now`; `None` if the reader would see no difference.
    ///
    /// Cost: a comparison of pointers for each instance of the service, and nothing else for those that did not change,
    /// unless a label selector or a protect threshold makes the selection depend on all of them.
    pub fn follow(&mut self, now: Arc<Snapshot>) -> Option<News> {
        let exists = now.revision() != 0;
        let Some(seen) = &mut self.seen else { return Some(self.begin(now)) };
        if seen.snapshot.revision() == now.revision() {
            return None;
        }
        if !exists {
            *seen = Seen { snapshot: now, protected: false };
            return Some(News::Deleted);
        }
        if seen.snapshot.revision() == 0 {
            return Some(self.begin(now));
        }
        let depends = |snapshot: &Snapshot| {
            !self.query.raw
                && snapshot.settings().is_some_and(|settings| {
                    settings.protect_threshold.is_some()
                        || (settings.selector != Selector::None && !self.query.labels.is_empty())
                })
        };
        let (upserts, removals) = if depends(&now) || depends(&seen.snapshot) {
            let new = select(&now, &self.query);
            if new.protected != seen.protected {
                *seen = Seen { snapshot: now, protected: new.protected };
                return Some(News::Full(new));
            }
            difference(new.instances.iter(), select(&seen.snapshot, &self.query).instances.iter())
        } else {
            visible(&self.query, &seen.snapshot, &now)
        };
        let settings_changed = seen.snapshot.settings() != now.settings();
        seen.snapshot = now;
        let nothing = upserts.is_empty() && removals.is_empty() && !settings_changed;
        (!nothing).then_some(News::Delta { upserts, removals, settings_changed, protected: seen.protected })
    }

    fn begin(&mut self, now: Arc<Snapshot>) -> News {
        let selected = select(&now, &self.query);
        self.seen = Some(Seen { snapshot: now, protected: selected.protected });
        News::Full(selected)
    }
}

type Changes = (Vec<Arc<Instance>>, Vec<InstanceKey>);

/// The difference as a reader sees it whose query looks at each instance by itself.
fn visible(query: &Query, old: &Snapshot, new: &Snapshot) -> Changes {
    let shown = |instance: &Instance| query.admits(instance) && (!query.healthy_only || instance.healthy());
    let was_shown = |key: &InstanceKey| old.instances().find(key).is_some_and(|instance| shown(instance));
    let mut delta = new.since(old);
    delta.removals.retain(was_shown);
    let (upserts, hidden): (Vec<_>, Vec<_>) = mem::take(&mut delta.upserts).into_iter().partition(|i| shown(i));
    if !hidden.is_empty() {
        delta.removals.extend(hidden.iter().map(|instance| instance.key()).filter(was_shown));
        delta.removals.sort();
    }
    (upserts, delta.removals)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::registry::{
        key::ClusterName,
        limits::Limits,
        list::InstanceList,
        overlay::Overlay,
        publication::{Kind, Publication},
        service::{ServiceSettings, Threshold},
    };

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Spec {
        healthy: bool,
        enabled: bool,
        other_cluster: bool,
    }

    fn clusters() -> [ClusterName; 2] {
        ["a", "b"].map(|name| Limits::default().cluster(name).unwrap().unwrap())
    }

    fn key(port: u16, spec: &Spec) -> InstanceKey {
        let endpoint = Limits::default().endpoint("10.0.0.1", port.into()).unwrap();
        InstanceKey { endpoint, cluster: clusters()[usize::from(spec.other_cluster)].clone() }
    }

    /// The snapshot after `specs` are put over `old`; an equal instance stays the same one.
    fn next(old: &Snapshot, revision: u64, threshold: Option<f64>, specs: &BTreeMap<u16, Spec>) -> Arc<Snapshot> {
        let mut list = InstanceList::default();
        for (port, spec) in specs {
            let key = key(*port, spec);
            let same =
                old.instances().find(&key).filter(|i| i.healthy() == spec.healthy && i.enabled() == spec.enabled);
            list.insert(same.cloned().unwrap_or_else(|| {
                let publication =
                    Publication { healthy: spec.healthy, enabled: spec.enabled, ..Publication::default() };
                Arc::new(Instance::new(key, Kind::Ephemeral, publication, Overlay::default(), None, None))
            }));
        }
        let settings = threshold.map(|share| {
            Arc::new(ServiceSettings {
                protect_threshold: Some(Threshold::new(share).unwrap()),
                ..ServiceSettings::default()
            })
        });
        Arc::new(Snapshot::new(revision, 0, settings, list))
    }

    /// A reader that believes what it is told.
    #[derive(Default)]
    struct Reader {
        view: BTreeMap<InstanceKey, bool>,
        protected: bool,
    }

    impl Reader {
        fn hear(&mut self, news: News) {
            match news {
                News::Full(selected) => {
                    self.protected = selected.protected;
                    self.view = shown(&selected);
                }
                News::Delta { upserts, removals, protected, .. } => {
                    self.protected = protected;
                    for key in removals {
                        assert!(self.view.remove(&key).is_some(), "removal of what was not shown");
                    }
                    self.view.extend(upserts.iter().map(|i| (i.key(), protected || i.healthy())));
                }
                News::Deleted => *self = Self::default(),
            }
        }
    }

    fn shown(selected: &Selected) -> BTreeMap<InstanceKey, bool> {
        selected.instances.iter().map(|i| (i.key(), selected.protected || i.healthy())).collect()
    }

    fn any_specs() -> impl Strategy<Value = BTreeMap<u16, Spec>> {
        let spec = any::<(bool, bool, bool)>().prop_map(|(healthy, enabled, other_cluster)| Spec {
            healthy,
            enabled,
            other_cluster,
        });
        prop::collection::btree_map(0_u16..6, spec, 0..6)
    }

    proptest! {
        /// Whatever happens between two readings, a follower knows what a new reader would be given.
        #[test]
        fn a_follower_sees_what_a_fresh_reader_sees(
            states in prop::collection::vec((any::<bool>(), prop::option::of(0.0..=1.0_f64), any_specs()), 1..12),
            healthy_only: bool,
            one_cluster: bool,
            raw: bool,
        ) {
            let query = Query {
                clusters: one_cluster.then(|| vec![clusters()[0].clone()]),
                healthy_only,
                raw,
                ..Query::default()
            };
            let mut follower = Follower::new(query.clone());
            let mut reader = Reader::default();
            let mut last = Arc::new(Snapshot::default());
            for (revision, (exists, threshold, specs)) in (1..).zip(states) {
                last = if exists { next(&last, revision, threshold, &specs) } else { Arc::default() };
                if let Some(news) = follower.follow(last.clone()) {
                    reader.hear(news);
                }
                let fresh = select(&last, &query);
                prop_assert_eq!(reader.protected, fresh.protected);
                prop_assert_eq!(&reader.view, &shown(&fresh));
            }
        }
    }

    #[test]
    fn what_the_reader_cannot_see_is_not_told() {
        let query = Query { clusters: Some(vec![clusters()[0].clone()]), ..Query::default() };
        let mut follower = Follower::new(query);
        let other = |healthy| BTreeMap::from([(1, Spec { healthy, enabled: true, other_cluster: true })]);
        let first = next(&Snapshot::default(), 1, None, &other(true));
        assert!(matches!(follower.follow(first.clone()), Some(News::Full(_))));
        let second = next(&first, 2, None, &other(false));
        assert!(follower.follow(second.clone()).is_none());
        assert!(follower.follow(second).is_none());
    }
}
