//! Nodes that are killed, stopped for a while, or all started anew, while clients go on.

use std::{thread, time::Duration};

use super::{
    fleet::Fleet,
    publishers::Publishers,
    support::{
        cluster::{Cluster, DEAD, GRACE, IN_TIME},
        wait::{SOON, holds_for, wait_until},
    },
    witness::Witness,
};

#[test]
fn each_node_in_turn_may_be_killed_and_nobody_is_missed() {
    let mut cluster = Cluster::start();
    let publishers = Publishers::start(&cluster.https(), "beaten", 60);
    let fleet = Fleet::start(&cluster.grpcs(), &["held"], 1_001, 30);
    cluster.await_ports(SOON, "beaten", &publishers.ports);
    cluster.await_ports(SOON, "held", &fleet.ports);
    let expected = [("beaten", &publishers.ports[..]), ("held", &fleet.ports[..])];
    let witness = Witness::start(&cluster.https(), &expected);
    for node in 0..cluster.len() {
        let there = fleet.at(cluster.grpcs()[node]);
        cluster.kill(node);
        fleet.await_registered();
        eprintln!("node {node}: its {there} connections are back at {:?}", fleet.now());
        // Until its copies have been given up everywhere.
        thread::sleep(DEAD + GRACE);
        cluster.restart(node);
        cluster.await_ready(node);
        let ports = cluster.await_equal(SOON, &["beaten", "held"]);
        assert_eq!(ports["beaten"], publishers.ports);
        assert_eq!(ports["held"], fleet.ports);
    }
    witness.stop();
    publishers.stop();
    fleet.assert_no_empty_push();
    fleet.await_told("held", &fleet.ports);
}

#[test]
fn what_the_connections_of_a_dead_node_published_stays_for_the_grace_and_goes_then() {
    let mut cluster = Cluster::start();
    let orphans = Fleet::start(&cluster.grpcs()[..1], &["held"], 1, 5);
    let others = Fleet::start(&cluster.grpcs()[1..], &["held"], 101, 4);
    let all: Vec<_> = orphans.ports.iter().chain(&others.ports).copied().collect();
    cluster.await_ports(SOON, "held", &all);
    cluster.kill(0);
    let lists = || [1, 2].map(|node| cluster.node(node).ports("held", &[]));
    holds_for(GRACE, lists, |lists| lists.iter().all(|list| *list == all));
    let began = others.now();
    wait_until(DEAD + SOON, lists, |lists| lists.iter().all(|list| *list == others.ports));
    let took = GRACE + (others.now() - began);
    eprintln!("instances of a dead node's connections are gone after {took:?}");
    // The bound: found dead, and the grace from then on; the rest is what a busy machine may take.
    assert!(took < DEAD + GRACE + Duration::from_secs(4), "{took:?}");
}

#[test]
fn a_node_that_was_frozen_for_20_s_removes_nobody_and_nobody_is_missed_elsewhere() {
    let cluster = Cluster::start();
    let https = cluster.https();
    let publishers = Publishers::start(&https, "beaten", 60);
    let fleet = Fleet::start(&cluster.grpcs(), &["held"], 1_001, 12);
    cluster.await_ports(SOON, "beaten", &publishers.ports);
    cluster.await_ports(SOON, "held", &fleet.ports);
    let expected = [("beaten", &publishers.ports[..]), ("held", &fleet.ports[..])];
    let witness = Witness::start(&https, &expected);
    cluster.node(1).freeze(Duration::from_secs(20));
    fleet.await_registered();
    let ports = cluster.await_equal(SOON, &["beaten", "held"]);
    assert_eq!(ports["beaten"], publishers.ports);
    assert_eq!(ports["held"], fleet.ports);
    // For as long as an instance without beats would last.
    thread::sleep(Duration::from_secs(9));
    witness.stop();
    publishers.stop();
    fleet.assert_no_empty_push();
    fleet.await_told("held", &fleet.ports);
    assert_eq!(cluster.await_equal(SOON, &["held"])["held"], fleet.ports);
}

#[test]
fn one_node_of_three_keeps_what_all_had() {
    let mut cluster = Cluster::start();
    let publishers = Publishers::start(&cluster.https(), "beaten", 60);
    let fleet = Fleet::start(&cluster.grpcs(), &["held"], 1_001, 12);
    cluster.await_ports(SOON, "beaten", &publishers.ports);
    cluster.await_ports(SOON, "held", &fleet.ports);
    let expected = [("beaten", &publishers.ports[..]), ("held", &fleet.ports[..])];
    let witness = Witness::start(&cluster.https(), &expected);
    cluster.kill(0);
    cluster.kill(1);
    fleet.await_registered();
    thread::sleep(DEAD + GRACE);
    for node in [0, 1] {
        cluster.restart(node);
    }
    cluster.await_all_ready();
    let ports = cluster.await_equal(SOON, &["beaten", "held"]);
    assert_eq!((&ports["beaten"], &ports["held"]), (&publishers.ports, &fleet.ports));
    thread::sleep(GRACE);
    witness.stop();
    publishers.stop();
    fleet.assert_no_empty_push();
    fleet.await_told("held", &fleet.ports);
}

/// Row 49: all nodes are gone at once, so that only the clients know what there was, or one right after the other.
#[test]
fn nodes_that_all_start_anew_have_everything_again() {
    let mut cluster = Cluster::start();
    let mut publishers = Publishers::start(&cluster.https(), "beaten", 40);
    let fleet = Fleet::start(&cluster.grpcs(), &["held", "kept"], 1_001, 30);
    cluster.await_ports(SOON, "held", &fleet.ports);
    for round in 0..4 {
        if round % 2 == 0 {
            (0..cluster.len()).for_each(|node| cluster.kill(node));
            (0..cluster.len()).for_each(|node| cluster.restart(node));
        } else {
            for node in 0..cluster.len() {
                cluster.kill(node);
                cluster.restart(node);
            }
        }
        cluster.await_all_ready();
        fleet.await_registered();
        for (service, ports) in [("beaten", &publishers.ports), ("held", &fleet.ports), ("kept", &fleet.ports)] {
            cluster.await_ports(IN_TIME, service, ports);
        }
        cluster.await_equal(SOON, &["beaten", "held", "kept"]);
        eprintln!("round {round}: everything is there again");
    }
    let services = ["beaten", "held", "kept"];
    let expected = [("beaten", &publishers.ports[..]), ("held", &fleet.ports), ("kept", &fleet.ports)];
    let witness = Witness::start(&cluster.https(), &expected);
    // What was of earlier lives is given up meanwhile.
    thread::sleep(GRACE + Duration::from_secs(2));
    witness.stop();
    publishers.end();
    assert!(publishers.beats() > 0);
    cluster.await_equal(IN_TIME, &services);
}
