//! What a reader gets of a snapshot: clusters, enabled, selector, protect threshold, healthy.

use std::sync::Arc;

use super::{
    instance::Instance,
    key::ClusterName,
    selector::{Labels, Selector},
    snapshot::Snapshot,
};

/// What a reader asks for.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Only these clusters; `None`: all. A name that no instance has contributes nothing.
    pub clusters: Option<Vec<ClusterName>>,
    /// Only healthy instances.
    pub healthy_only: bool,
    /// The reader's labels, for a service with a label selector.
    pub labels: Labels,
    /// The instances as they are, for operators: disabled ones too, and neither selector nor protection.
    pub raw: bool,
}

impl Query {
    /// Whether `instance` passes what can be said of it alone: the wanted clusters, and that it is enabled.
    #[must_use]
    pub fn admits(&self, instance: &Instance) -> bool {
        (self.raw || instance.enabled())
            && self.clusters.as_ref().is_none_or(|clusters| clusters.contains(instance.cluster()))
    }

    /// Whether the answer depends on the snapshot and `healthy_only` alone, so that it can be shared by readers.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.clusters.is_none() && self.labels.is_empty() && !self.raw
    }
}

/// What a reader gets.
#[derive(Debug, Clone, Default)]
pub struct Selected {
    /// The instances, in the snapshot's order. Disabled ones are among them only if the query is raw.
    pub instances: Vec<Arc<Instance>>,
    /// So few were healthy that protection set in: all are to be shown as healthy.
    pub protected: bool,
}

/// Selects from `snapshot` what `query` asks for.
///
/// Order: enabled instances of the wanted clusters; then the selector, which passes all if it would pass none; then the
/// protect threshold, whose share is taken over what is left; then `healthy_only`, unless protection set in. A service
/// that was never given a threshold is never protected (Nacos 2.5, with the ratio of 1.4).
#[must_use]
pub fn select(snapshot: &Snapshot, query: &Query) -> Selected {
    let mut instances: Vec<_> =
        snapshot.instances().iter().filter(|instance| query.admits(instance)).cloned().collect();
    let mut protected = false;
    if let Some(settings) = snapshot.settings()
        && !query.raw
    {
        if let Selector::Label(expression) = &settings.selector
            && !query.labels.is_empty()
        {
            let admitted: Vec<_> = instances.iter().filter(|i| expression.admits(i, &query.labels)).cloned().collect();
            if !admitted.is_empty() {
                instances = admitted;
            }
        }
        let healthy = instances.iter().filter(|instance| instance.healthy()).count();
        protected = settings.protect_threshold.is_some_and(|threshold| threshold.protects(healthy, instances.len()));
    }
    if query.healthy_only && !protected {
        instances.retain(|instance| instance.healthy());
    }
    Selected { instances, protected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{
        key::InstanceKey,
        limits::Limits,
        list::InstanceList,
        overlay::Overlay,
        publication::{Kind, Publication},
        selector::LabelExpression,
        service::{ServiceSettings, Threshold},
    };

    struct Spec {
        port: i64,
        cluster: &'static str,
        healthy: bool,
        enabled: bool,
        zone: &'static str,
    }

    const UP: Spec = Spec { port: 1, cluster: "a", healthy: true, enabled: true, zone: "x" };

    fn snapshot(settings: Option<ServiceSettings>, specs: &[Spec]) -> Snapshot {
        let limits = Limits::default();
        let mut list = InstanceList::default();
        for spec in specs {
            let key = InstanceKey {
                endpoint: limits.endpoint("10.0.0.1", spec.port).unwrap(),
                cluster: limits.cluster(spec.cluster).unwrap().unwrap(),
            };
            let publication = Publication {
                healthy: spec.healthy,
                enabled: spec.enabled,
                metadata: limits.metadata([("zone", spec.zone)]).unwrap(),
                ..Publication::default()
            };
            list.insert(Arc::new(Instance::new(key, Kind::Ephemeral, publication, Overlay::default(), None, None)));
        }
        Snapshot::new(1, 0, settings.map(Arc::new), list)
    }

    fn ports(selected: &Selected) -> Vec<u16> {
        selected.instances.iter().map(|i| i.port()).collect()
    }

    #[test]
    fn clusters_disabled_and_health_filter() {
        let snapshot = snapshot(
            None,
            &[
                UP,
                Spec { port: 2, cluster: "b", ..UP },
                Spec { port: 3, healthy: false, ..UP },
                Spec { port: 4, enabled: false, ..UP },
            ],
        );
        assert_eq!(ports(&select(&snapshot, &Query::default())), [1, 2, 3]);
        let of_a = |healthy_only| Query {
            clusters: Some(vec![Limits::default().cluster("a").unwrap().unwrap()]),
            healthy_only,
            ..Query::default()
        };
        assert_eq!(ports(&select(&snapshot, &of_a(false))), [1, 3]);
        assert_eq!(ports(&select(&snapshot, &of_a(true))), [1]);
        let nothing = Query { clusters: Some(Vec::new()), ..Query::default() };
        assert!(select(&snapshot, &nothing).instances.is_empty());
    }

    #[test]
    fn protection_counts_enabled_ones_and_overrides_healthy_only() {
        let settings = ServiceSettings { protect_threshold: Some(Threshold::new(0.5).unwrap()), ..Default::default() };
        let specs = [UP, Spec { port: 2, healthy: false, ..UP }, Spec { port: 3, enabled: false, ..UP }];
        let healthy_only = Query { healthy_only: true, ..Query::default() };
        let selected = select(&snapshot(Some(settings), &specs), &healthy_only);
        assert!(selected.protected);
        assert_eq!(ports(&selected), [1, 2]);
        let selected = select(&snapshot(None, &specs), &healthy_only);
        assert!(!selected.protected);
        assert_eq!(ports(&selected), [1]);
    }

    #[test]
    fn labels_select_and_an_empty_match_is_all() {
        let selector = Selector::Label(LabelExpression::parse("CONSUMER.label.zone = PROVIDER.label.zone").unwrap());
        let settings = ServiceSettings { selector, ..Default::default() };
        let snapshot = snapshot(Some(settings), &[UP, Spec { port: 2, zone: "y", ..UP }]);
        let from =
            |zone: &str| Query { labels: Labels::from([("zone".to_owned(), zone.to_owned())]), ..Query::default() };
        assert_eq!(ports(&select(&snapshot, &from("y"))), [2]);
        assert_eq!(ports(&select(&snapshot, &from("z"))), [1, 2]);
        assert_eq!(ports(&select(&snapshot, &Query::default())), [1, 2]);
    }
}
