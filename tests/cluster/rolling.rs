//! Nodes that are told to stop and started again one after the other, as an update does.

use std::{thread, time::Duration};

use rustix::process::Signal;

use super::{
    churn::Churn,
    fleet::Fleet,
    publishers::Publishers,
    support::{
        cluster::{Cluster, GRACE},
        wait::{SOON, wait_until},
    },
    witness::Witness,
};

#[test]
fn a_rolling_restart_is_seen_by_nobody() {
    // A node that leaves still keeps copies of what it handed to the one before.
    let mut cluster = Cluster::with(&["cluster.handover_linger=30s"]);
    let publishers = Publishers::start(&cluster.https(), "beaten", 60);
    let fleet = Fleet::start(&cluster.grpcs(), &["held"], 1_001, 30);
    cluster.await_ports(SOON, "beaten", &publishers.ports);
    cluster.await_ports(SOON, "held", &fleet.ports);
    let churn = Churn::start(&cluster.https(), "churned", 60);
    let begun = fleet.now();
    let expected = [("beaten", &publishers.ports[..]), ("held", &fleet.ports[..])];
    let witness = Witness::start(&cluster.https(), &expected);
    for node in 0..cluster.len() {
        let stopping = fleet.now();
        cluster.stop(node);
        let stopped = fleet.now();
        // Half of the drain timeout would be given to what cannot be handed over.
        assert!(stopped - stopping < Duration::from_secs(4), "{:?}", stopped - stopping);
        cluster.restart(node);
        cluster.await_ready(node);
        eprintln!("node {node}: drained in {:?}, ready again after {:?}", stopped - stopping, fleet.now() - stopped);
        fleet.await_registered();
        let ports = cluster.await_equal(SOON, &["beaten", "held"]);
        assert_eq!(ports["beaten"], publishers.ports);
        assert_eq!(ports["held"], fleet.ports);
    }
    let (churned, changes) = churn.stop();
    eprintln!("{changes} registrations and removals meanwhile");
    // Copies of the lives that have ended are given up meanwhile.
    thread::sleep(GRACE);
    witness.stop();
    publishers.stop();
    fleet.assert_never_missing(begun, &fleet.ports);
    fleet.await_told("held", &fleet.ports);
    let ports = cluster.await_equal(SOON, &["beaten", "held"]);
    assert_eq!(ports["held"], fleet.ports);
    cluster.await_ports(SOON, "churned", &churned);
}

#[test]
fn all_told_to_stop_at_once_end_in_time() {
    let mut cluster = Cluster::start();
    let publishers = Publishers::start(&cluster.https(), "beaten", 40);
    let fleet = Fleet::start(&cluster.grpcs(), &["held"], 1_001, 12);
    cluster.await_ports(SOON, "beaten", &publishers.ports);
    cluster.await_ports(SOON, "held", &fleet.ports);
    cluster.running().for_each(|node| node.signal(Signal::TERM));
    let since = fleet.now();
    (0..cluster.len()).for_each(|node| cluster.ended_well(node));
    let took = fleet.now() - since;
    eprintln!("all have stopped after {took:?}");
    // They promise 10 s; there is nobody to hand anything to.
    assert!(took < Duration::from_secs(11), "{took:?}");
    (0..cluster.len()).for_each(|node| cluster.restart(node));
    cluster.await_all_ready();
    fleet.await_registered();
    let complete = || cluster.await_equal(SOON, &["beaten", "held"]);
    wait_until(SOON, complete, |ports| ports["beaten"] == publishers.ports && ports["held"] == fleet.ports);
    drop(publishers);
}
