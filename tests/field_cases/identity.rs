//! Which instance a request means.

use std::time::Duration;

use crate::support::{
    beater::Beater,
    naming::{code, periods},
    server::Server,
    wait::{SOON, holds_for, wait_until},
};

/// Case 13, alibaba/nacos#1470: instances with one address in two clusters shared one beat entry, so only the last
/// survived.
#[test]
fn one_address_in_two_clusters_is_two_instances() {
    let server = Server::with(&["registry.expiry_scan=50ms"]);
    let metadata = periods(500, 1_500, 2_500);
    for cluster in ["c1", "c2"] {
        server.register("two", "10.0.0.1", 80, &[("clusterName", cluster), ("metadata", &metadata)]);
    }
    let beat = |cluster: &str| Beater::light(&server, "two", "10.0.0.1", 80, &[("clusterName", cluster)]);
    let beater = Beater::start(&server, Duration::from_millis(250), vec![beat("c1"), beat("c2")]);
    holds_for(
        Duration::from_secs(3),
        || server.clusters("two", &[("healthyOnly", "true")]),
        |clusters| clusters == &["c1", "c2"],
    );
    beater.stop();
    server.deregister("two", "10.0.0.1", 80, &[("clusterName", "c1")]);
    assert_eq!(server.clusters("two", &[]), ["c2"]);
    wait_until(SOON, || server.clusters("two", &[]), Vec::is_empty);
}

/// Case 13: a request that names no cluster must not pick one of several by chance.
#[test]
fn an_address_in_several_clusters_must_be_named_with_its_cluster() {
    let server = Server::start();
    for cluster in ["c1", "c2"] {
        server.register("two", "10.0.0.1", 80, &[("clusterName", cluster)]);
    }
    for method in ["DELETE", "PUT", "PATCH", "GET"] {
        server.on_instance(method, "two", "10.0.0.1", 80, &[]).refused(&["c1", "c2", "cluster"]);
    }
    let beat = server.put("/instance/beat").params(&[("serviceName", "two"), ("ip", "10.0.0.1"), ("port", "80")]);
    beat.send().refused(&["c1", "c2", "cluster"]);
    assert_eq!(server.clusters("two", &[]), ["c1", "c2"]);
    server.register("two", "10.0.0.1", 80, &[]);
    assert_eq!(code(&beat.send().json()), 10_200);
    server.deregister("two", "10.0.0.1", 80, &[]);
    assert_eq!(server.clusters("two", &[]), ["c1", "c2"], "without a name it is the one in DEFAULT");
}

/// Case 14, nacos-group/nacos-sdk-python#31, alibaba/nacos#2533: a registration without a cluster and a beat with
/// `DEFAULT` made two instances, one of which then died.
#[test]
fn no_cluster_and_the_default_cluster_are_one() {
    let server = Server::with(&["registry.expiry_scan=50ms"]);
    let address = r#""ip":"10.0.0.1","port":80"#;
    let beats = [
        format!(r#"{{{address},"cluster":"DEFAULT"}}"#),
        format!("{{{address}}}"),
        format!(r#"{{{address},"cluster":null}}"#),
        format!(r#"{{{address},"cluster":""}}"#),
    ];
    let metadata = periods(500, 1_500, 60_000);
    let metadata = [("metadata", metadata.as_str())];
    let service = |nth: usize| format!("one-{nth}");
    for nth in 0..beats.len() {
        server.register(&service(nth), "10.0.0.1", 80, &metadata);
        server.register(&service(nth), "10.0.0.1", 80, &[&metadata[..], &[("clusterName", "")]].concat());
    }
    let healthy = |nth: usize| server.clusters(&service(nth), &[("healthyOnly", "true")]);
    wait_until(SOON, || (0..beats.len()).map(healthy).collect::<Vec<_>>().concat(), Vec::is_empty);
    for (nth, beat) in beats.iter().enumerate() {
        assert_eq!(code(&server.beat(&service(nth), &[("beat", beat)])), 10_200);
        assert_eq!(healthy(nth), ["DEFAULT"], "{beat}");
        assert_eq!(server.clusters(&service(nth), &[]), ["DEFAULT"], "{beat}");
    }
}

/// Case 14: the Python SDK registers in a cluster named `None` and beats without one.
#[test]
fn a_beat_without_a_cluster_keeps_the_only_instance_of_its_address() {
    let server = Server::start();
    server.register("py", "10.0.0.1", 80, &[("clusterName", "None")]);
    assert_eq!(server.light_beat("py", "10.0.0.1", 80), 10_200);
    assert_eq!(code(&server.beat("py", &[("beat", r#"{"ip":"10.0.0.1","port":80,"weight":9}"#)])), 10_200);
    assert_eq!(server.clusters("py", &[]), ["None"]);
    server.deregister("py", "10.0.0.1", 80, &[]);
    assert!(server.hosts("py", &[]).is_empty());
}

/// Probe P2: upstream keys an instance by its address alone, so a removal in another cluster removes it.
#[test]
fn a_removal_in_another_cluster_removes_nothing() {
    let server = Server::start();
    server.register("p2", "10.0.0.1", 80, &[("clusterName", "c1")]);
    server.deregister("p2", "10.0.0.1", 80, &[("clusterName", "c2")]);
    server.deregister("p2", "10.0.0.1", 80, &[("clusterName", "DEFAULT")]);
    assert_eq!(server.clusters("p2", &[]), ["c1"]);
    let detail = server.on_instance("GET", "p2", "10.0.0.1", 80, &[("clusterName", "c2")]);
    assert_eq!(detail.status, 404, "who asks is told");
}
