//! The server's own pause is not its clients' fault.

use std::time::Duration;

use crate::support::{
    beater::Beater,
    naming::periods,
    server::Server,
    wait::{SOON, holds_for, wait_until},
};

const FROZEN: Duration = Duration::from_millis(3_500);

/// Case 29, alibaba/nacos#8090, #7336, etcd-io/etcd#2660, #15247: a server that was frozen for longer than the timeout
/// woke up, saw old beat times and removed live instances in bulk.
#[test]
fn a_frozen_server_blames_no_live_instance() {
    let server = Server::with(&["registry.expiry_scan=100ms"]);
    let metadata = periods(500, 2_000, 2_500);
    for port in 1..=200 {
        server.register("frozen", "10.0.0.1", port, &[("metadata", &metadata)]);
    }
    let beat = |port| Beater::light(&server, "frozen", "10.0.0.1", port, &[]);
    let beaters: Vec<_> = (0..4)
        .map(|part| {
            Beater::start(&server, Duration::from_millis(500), (part * 50 + 1..=part * 50 + 50).map(beat).collect())
        })
        .collect();
    let healthy = || server.ports("frozen", &[("healthyOnly", "true")]).len();
    wait_until(SOON, healthy, |count| *count == 200);
    server.freeze(FROZEN);
    holds_for(Duration::from_secs(3), healthy, |count| *count == 200);
    assert!(server.log().contains("did not run"), "the freeze is told: {}", server.log());
    for beater in beaters {
        beater.stop();
    }
    wait_until(SOON, || server.ports("frozen", &[]), Vec::is_empty);
}

/// Case 29: who is silent gets one full new period after the pause, and no more.
#[test]
fn after_a_pause_every_lease_gets_one_full_new_period() {
    let server = Server::with(&["registry.expiry_scan=100ms"]);
    server.register("fresh", "10.0.0.1", 80, &[("metadata", &periods(500, 1_500, 2_500))]);
    server.freeze(FROZEN);
    let all_healthy = || server.ports("fresh", &[("healthyOnly", "true")]);
    holds_for(Duration::from_millis(1_200), all_healthy, |ports| *ports == [80]);
    wait_until(SOON, || server.host("fresh", &[])["healthy"].clone(), |healthy| *healthy == false);
    wait_until(SOON, || server.ports("fresh", &[]), Vec::is_empty);
}
