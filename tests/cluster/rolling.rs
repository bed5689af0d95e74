//! Nodes that are told to stop and started again one after the other, as an update does.

use std::thread;

use super::{
    fleet::Fleet,
    publishers::Publishers,
    support::{
        cluster::{Cluster, GRACE},
        wait::SOON,
    },
    witness::Witness,
};

#[test]
fn a_rolling_restart_is_seen_by_nobody() {
    let mut cluster = Cluster::start();
    let publishers = Publishers::start(&cluster.https(), "beaten", 60);
    let fleet = Fleet::start(&cluster.grpcs(), &["held"], 1_001, 30);
    cluster.await_ports(SOON, "beaten", &publishers.ports);
    cluster.await_ports(SOON, "held", &fleet.ports);
    let begun = fleet.now();
    let expected = [("beaten", &publishers.ports[..]), ("held", &fleet.ports[..])];
    let witness = Witness::start(&cluster.https(), &expected);
    for node in 0..cluster.len() {
        let stopping = fleet.now();
        cluster.stop(node);
        let stopped = fleet.now();
        cluster.restart(node);
        cluster.await_ready(node);
        eprintln!("node {node}: drained in {:?}, ready again after {:?}", stopped - stopping, fleet.now() - stopped);
        fleet.await_registered();
        let ports = cluster.await_equal(SOON, &["beaten", "held"]);
        assert_eq!(ports["beaten"], publishers.ports);
        assert_eq!(ports["held"], fleet.ports);
    }
    // Copies of the lives that have ended are given up meanwhile.
    thread::sleep(GRACE);
    witness.stop();
    publishers.stop();
    fleet.assert_never_missing(begun, &fleet.ports);
    let ports = cluster.await_equal(SOON, &["beaten", "held"]);
    assert_eq!(ports["held"], fleet.ports);
}
