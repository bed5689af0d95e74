//! Writes and the members that own them: one that cannot be reached, and removals that somebody has not heard of.

use std::{
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    publishers::Caller,
    support::{
        cluster::{Cluster, DEAD, IN_TIME},
        wait::{SOON, holds_for, wait_until},
    },
};

/// Row 56. `cluster.forward_timeout` is how long an owner may take; then the next in line answers.
#[test]
fn no_port_is_unwritable_beside_a_member_that_is_frozen() {
    let cluster = Cluster::start();
    cluster.node(2).signal(Signal::STOP);
    let slowest = write_all(&cluster, "frozen");
    cluster.node(2).signal(Signal::CONT);
    eprintln!("slowest write beside a frozen member: {slowest:?}");
    assert!(slowest < Duration::from_millis(2_500), "{slowest:?}");
    cluster.await_equal(IN_TIME, &["frozen"]);
    cluster.await_ports(SOON, "frozen", &[]);
}

/// Row 56.
#[test]
fn no_port_is_unwritable_beside_a_member_that_never_answers() {
    let mut cluster = Cluster::planned(3, &["cluster.join_timeout=4s"]);
    // Accepts connections, and says nothing.
    let peer = SocketAddr::new(cluster.https()[2].ip(), cluster.https()[2].port() + 1_001);
    let silent = TcpListener::bind(peer).unwrap();
    for node in [0, 1] {
        cluster.restart(node);
    }
    for node in [0, 1] {
        cluster.await_ready(node);
    }
    let slowest = write_all(&cluster, "silent");
    eprintln!("slowest write beside a member that never answers: {slowest:?}");
    assert!(slowest < Duration::from_millis(2_500), "{slowest:?}");
    drop(silent);
}

/// Registers, beats for and removes 300 ports at the first node; returns how long the slowest request took.
fn write_all(cluster: &Cluster, service: &str) -> Duration {
    let node = cluster.node(0);
    let mut caller = Caller::patient(&[node.http()]);
    let mut slowest = Duration::ZERO;
    for (method, path, answer) in [("POST", "", "ok"), ("PUT", "/beat", "10200"), ("DELETE", "", "ok")] {
        for port in 1..=300_u16 {
            let call = node.ns(method, &format!("/instance{path}"));
            let call = call.params(&[("serviceName", service), ("ip", "10.0.0.1"), ("port", &port.to_string())]);
            let began = Instant::now();
            let said = caller.at(node.http(), &call).unwrap();
            slowest = slowest.max(began.elapsed());
            assert!(said.status == 200 && said.text().contains(answer), "{method} {port}: {said:?}");
        }
        if method == "POST" {
            assert_eq!(node.ports(service, &[]).len(), 300);
        }
    }
    assert_eq!(node.ports(service, &[]), [0_u64; 0]);
    slowest
}

/// Row 59.
#[test]
fn what_was_removed_while_a_node_was_away_does_not_come_back_with_it() {
    let mut cluster = Cluster::start();
    let ports: Vec<_> = (1..=40).collect();
    let remove_all = |cluster: &Cluster, service: &str, nodes: [usize; 2]| {
        for port in 1..=40_u16 {
            cluster.node(nodes[usize::from(port) % 2]).deregister(service, "10.0.0.1", port, &[]);
        }
    };
    for (service, freeze) in [("frozen", true), ("killed", false)] {
        for port in 1..=40_u16 {
            cluster.node(usize::from(port) % 3).register(service, "10.0.0.1", port, &[]);
        }
        cluster.await_ports(SOON, service, &ports);
        if freeze {
            cluster.node(2).signal(Signal::STOP);
            // Others have taken over what it owns, and it does not know.
            thread::sleep(DEAD);
            remove_all(&cluster, service, [0, 1]);
            cluster.node(2).signal(Signal::CONT);
        } else {
            cluster.kill(2);
            remove_all(&cluster, service, [0, 1]);
            cluster.restart(2);
            cluster.await_ready(2);
        }
        cluster.await_ports(IN_TIME, service, &[]);
        let lists = || cluster.running().map(|node| node.ports(service, &[])).collect::<Vec<_>>();
        // Three verifications.
        holds_for(Duration::from_secs(4), lists, |lists| lists.iter().all(Vec::is_empty));
    }
}

/// Row 59.
#[test]
fn a_removal_at_one_node_wins_over_the_registration_that_another_one_still_tells() {
    let cluster = Cluster::start();
    for round in 0..50_u16 {
        let port = round + 1;
        let (at, by) = (usize::from(round) % 3, usize::from(round / 3 + 1 + round) % 3);
        cluster.node(at).register("hasty", "10.0.0.1", port, &[]);
        cluster.node(by).deregister("hasty", "10.0.0.1", port, &[]);
    }
    cluster.await_ports(SOON, "hasty", &[]);
    let lists = || cluster.running().map(|node| node.ports("hasty", &[])).collect::<Vec<_>>();
    wait_until(SOON, lists, |lists| lists.iter().all(Vec::is_empty));
    holds_for(Duration::from_secs(3), lists, |lists| lists.iter().all(Vec::is_empty));
}
