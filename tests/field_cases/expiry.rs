//! The silent go, the living stay.

use std::time::Duration;

use crate::support::{
    beater::Beater,
    naming::periods,
    server::Server,
    wait::{SOON, holds_for, wait_until},
};

/// Case 28, alibaba/nacos#2258: removing a service in one namespace cancelled the expiry of its namesake in another.
#[test]
fn a_removal_in_one_namespace_leaves_expiry_in_another_alone() {
    let server = Server::with(&["registry.expiry_scan=50ms", "registry.empty_service_ttl=1s"]);
    let metadata = periods(500, 1_500, 3_000);
    for namespace in ["a", "b"] {
        let more = [("namespaceId", namespace), ("metadata", metadata.as_str())];
        server.register("same", "10.0.0.1", 80, &more);
    }
    server.deregister("same", "10.0.0.1", 80, &[("namespaceId", "a")]);
    let b = [("namespaceId", "b")];
    wait_until(SOON, || server.hosts("same", &b), |hosts| hosts.iter().any(|host| host["healthy"] == false));
    wait_until(SOON, || server.hosts("same", &b), Vec::is_empty);
}

/// The rule that the others rest on: who beats is never late, whoever else dies.
#[test]
fn the_living_stay_while_the_silent_go() {
    let server = Server::with(&["registry.expiry_scan=50ms"]);
    let metadata = periods(500, 1_500, 2_000);
    for port in 1..=40 {
        server.register("mixed", "10.0.0.1", port, &[("metadata", &metadata)]);
    }
    let beats = (1..=20).map(|port| Beater::light(&server, "mixed", "10.0.0.1", port, &[])).collect();
    let beater = Beater::start(&server, Duration::from_millis(250), beats);
    let living: Vec<u64> = (1..=20).collect();
    let healthy = || server.ports("mixed", &[("healthyOnly", "true")]);
    wait_until(SOON, || server.ports("mixed", &[]), |ports| *ports == living);
    holds_for(Duration::from_secs(1), healthy, |ports| *ports == living);
    beater.stop();
    wait_until(SOON, || server.ports("mixed", &[]), Vec::is_empty);
}

/// `enableClientBeat=true` takes an instance out of expiry (Nacos 2.5).
#[test]
fn an_exempt_instance_does_not_expire() {
    let server = Server::with(&["registry.expiry_scan=50ms"]);
    let metadata = periods(100, 200, 300);
    server.register("ex", "10.0.0.1", 1, &[("metadata", &metadata)]);
    server.register("ex", "10.0.0.1", 2, &[("metadata", &format!("{metadata},enableClientBeat=true"))]);
    wait_until(SOON, || server.ports("ex", &[]), |ports| *ports == [2]);
    holds_for(Duration::from_secs(1), || server.ports("ex", &[("healthyOnly", "true")]), |ports| *ports == [2]);
}

#[test]
fn without_expiry_the_silent_become_unhealthy_and_stay() {
    let server = Server::with(&["registry.expiry_scan=50ms", "registry.expire_instances=false"]);
    server.register("stay", "10.0.0.1", 80, &[("metadata", &periods(100, 200, 300))]);
    wait_until(SOON, || server.host("stay", &[])["healthy"].clone(), |healthy| *healthy == false);
    holds_for(Duration::from_secs(1), || server.ports("stay", &[]), |ports| *ports == [80]);
    assert_eq!(server.light_beat("stay", "10.0.0.1", 80), 10_200);
    assert_eq!(server.host("stay", &[])["healthy"], true);
}

/// alibaba/nacos#631: when the network stalls, everything expired at once. The brake keeps the instances listed.
#[test]
fn the_brake_holds_a_mass_expiry_back_for_its_time() {
    let brake = ["registry.brake=true", "registry.brake_min_leases=10", "registry.brake_hold=3s"];
    let server = Server::with(&[&brake[..], &["registry.expiry_scan=50ms"]].concat());
    for port in 1..=20 {
        server.register("mass", "10.0.0.1", port, &[("metadata", &periods(100, 500, 900))]);
    }
    wait_until(SOON, || server.ports("mass", &[("healthyOnly", "true")]), Vec::is_empty);
    holds_for(Duration::from_millis(1_500), || server.ports("mass", &[]).len(), |count| *count == 20);
    assert!(server.log().contains("brake engaged"), "{}", server.log());
    wait_until(SOON, || server.ports("mass", &[]), Vec::is_empty);
}
