use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::registry::{
    limits::Limits,
    overlay::Overlay,
    publication::{Kind, Publication},
};

fn key(address: &str, port: u16, cluster: &str) -> InstanceKey {
    let limits = Limits::default();
    InstanceKey {
        endpoint: limits.endpoint(address, i64::from(port)).unwrap(),
        cluster: limits.cluster(cluster).unwrap().unwrap_or_default(),
    }
}

fn instance(key: &InstanceKey) -> Arc<Instance> {
    Arc::new(Instance::new(key.clone(), Kind::Ephemeral, Publication::default(), Overlay::default(), None, None))
}

fn target(address: &str, port: u16, cluster: Option<&str>) -> Target {
    let whole = key(address, port, cluster.unwrap_or(""));
    Target { endpoint: whole.endpoint, cluster: cluster.map(|_| whole.cluster) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The list behaves like a sorted map, whatever its size, and a copy taken before a change does not see it.
    #[test]
    fn behaves_like_a_sorted_map(steps in prop::collection::vec((0_u8..3, 0_u16..400, 0_u8..2), 0..900)) {
        let mut list = InstanceList::default();
        let mut model = BTreeMap::new();
        for (step, port, cluster) in steps {
            let add = step > 0;
            let key = key("10.0.0.1", port, if cluster == 0 { "a" } else { "b" });
            let before: Vec<_> = list.iter().cloned().collect();
            let copy = list.clone();
            if add {
                let new = instance(&key);
                prop_assert_eq!(list.insert(new.clone()).is_some(), model.insert(key, new).is_some());
            } else {
                prop_assert_eq!(list.remove(&key).is_some(), model.remove(&key).is_some());
            }
            prop_assert_eq!(copy.len(), before.len());
            prop_assert!(copy.iter().zip(&before).all(|(a, b)| Arc::ptr_eq(a, b)));
        }
        prop_assert_eq!(list.len(), model.len());
        prop_assert!(list.iter().zip(model.values()).all(|(a, b)| Arc::ptr_eq(a, b)));
        for key in model.keys() {
            prop_assert!(list.find(key).is_some());
        }
    }
}

#[test]
fn without_a_cluster_default_wins_else_the_only_one() {
    let mut list = InstanceList::default();
    list.insert(instance(&key("10.0.0.1", 80, "c1")));
    assert_eq!(list.resolve(&target("10.0.0.1", 80, None)).unwrap().unwrap().cluster().as_str(), "c1");
    assert!(list.resolve(&target("10.0.0.1", 80, Some("c2"))).unwrap().is_none());
    list.insert(instance(&key("10.0.0.1", 80, "c2")));
    let error = list.resolve(&target("10.0.0.1", 80, None)).unwrap_err();
    assert_eq!(error.to_string(), "10.0.0.1:80 is in several clusters (c1, c2); the request must name one");
    list.insert(instance(&key("10.0.0.1", 80, "DEFAULT")));
    assert_eq!(list.resolve(&target("10.0.0.1", 80, None)).unwrap().unwrap().cluster().as_str(), "DEFAULT");
}

#[test]
fn resolves_across_chunks() {
    let mut list = InstanceList::default();
    for port in 0..1_000 {
        list.insert(instance(&key("10.0.0.1", port, "c1")));
    }
    for port in 0..1_000 {
        assert_eq!(list.resolve(&target("10.0.0.1", port, None)).unwrap().unwrap().port(), port);
    }
    assert!(list.resolve(&target("10.0.0.1", 1_000, None)).unwrap().is_none());
}
