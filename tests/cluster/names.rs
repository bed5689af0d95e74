//! The names of members: how they are written, found, and what a node does that has none.

use std::{collections::BTreeSet, fs, net::SocketAddr, thread, time::Duration};

use super::{
    namespaces::{inside, mount_hosts},
    publishers::Publishers,
    support::{
        cluster::{Cluster, free_port},
        wait::SOON,
    },
    witness::Witness,
};

/// Row 53.
#[test]
fn names_are_compared_whole_whatever_their_case_and_the_dot_at_their_end() {
    let port = free_port(&mut BTreeSet::new());
    let at = |address: &str| -> SocketAddr { format!("{address}:{port}").parse().unwrap() };
    let members = vec![
        (format!("LocalHost.:{port}"), at("127.0.0.1")),
        (format!("127.0.0.10:{port}"), at("127.0.0.10")),
        (format!("127.0.0.100:{port}"), at("127.0.0.100")),
    ];
    let list = format!(
        r#"cluster.members=["localhost:{port}", "LOCALHOST.:{port}", "127.0.0.10:{port}", "127.0.0.100:{port}"]"#
    );
    let mut cluster = Cluster::unlisted(members, &[&list]);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.await_all_ready();
    for node in 0..3 {
        let port = u16::try_from(node).unwrap() + 1;
        cluster.node(node).register("named", "10.0.0.1", port, &[]);
        assert!(cluster.node(node).log().contains("members=3"), "a name is listed once");
    }
    cluster.await_ports(SOON, "named", &[1, 2, 3]);
}

/// Row 53.
#[test]
fn a_node_that_is_not_in_its_list_says_so_and_does_not_serve() {
    let ports = &mut BTreeSet::new();
    let http = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let (own, other) = (free_port(ports), free_port(ports));
    for list in [
        format!(r#"cluster.members=["127.0.0.10:{own}", "127.0.0.1:{other}"]"#),
        format!(r#"cluster.members=["127.0.0.1:{own}0", "localhost:{own}"]"#).replace(&format!("{own}0"), "1"),
    ] {
        let mut cluster = Cluster::unlisted(vec![(format!("127.0.0.1:{own}"), http(own))], &[&list]);
        let log = cluster.launch(0).unwrap_err();
        for part in ["cluster.", &format!("127.0.0.1:{own}"), "not"] {
            assert!(log.contains(part), "{part:?} is not in {log:?}");
        }
        assert!(!log.contains("node started"), "{log}");
    }
}

/// Row 52: names are found anew at each connect, and a node is the same wherever it is.
#[test]
fn nodes_that_come_back_at_other_addresses_are_the_members_that_they_were() {
    inside("names::nodes_that_come_back_at_other_addresses_are_the_members_that_they_were", || {
        let dir = tempfile::tempdir().unwrap();
        let hosts = dir.path().join("hosts");
        let write = |addresses: [u8; 3]| {
            let mut text = "127.0.0.1 localhost\n".to_owned();
            for (node, last) in addresses.iter().enumerate() {
                text.push_str(&format!("127.0.0.{last} nomina-{node}\n"));
            }
            fs::write(&hosts, text).unwrap();
        };
        let at = |last: u8| SocketAddr::from(([127, 0, 0, last], 8_848));
        write([1, 2, 3]);
        mount_hosts(&hosts);
        let members = (0..3_u8).map(|node| (format!("nomina-{node}:8848"), at(node + 1))).collect();
        let list = r#"cluster.members=["nomina-0", "nomina-1", "nomina-2"]"#;
        let mut cluster = Cluster::unlisted(members, &[list]);
        (0..3).for_each(|node| cluster.restart(node));
        cluster.await_all_ready();
        cluster.await_agreed();

        // Clients know both addresses of the one that moves.
        let clients = [at(1), at(2), at(3), at(9)];
        let publishers = Publishers::start(&clients, "beaten", 30);
        cluster.await_ports(SOON, "beaten", &publishers.ports);
        let witness = Witness::start(&clients, &[("beaten", &publishers.ports)]);
        cluster.kill(1);
        write([1, 9, 3]);
        cluster.place(1, at(9));
        cluster.restart(1);
        cluster.await_ready(1);
        cluster.await_agreed();
        cluster.node(1).register("news", "10.0.0.1", 1, &[]);
        cluster.await_ports(Duration::from_secs(15), "news", &[1]);
        assert_eq!(cluster.await_equal(SOON, &["beaten"])["beaten"], publishers.ports);
        thread::sleep(Duration::from_secs(1));
        witness.stop();
        publishers.stop();

        // All three at once, each where another one was.
        (0..3).for_each(|node| cluster.kill(node));
        write([9, 3, 2]);
        for (node, last) in [(0, 9), (1, 3), (2, 2)] {
            cluster.place(node, at(last));
            cluster.restart(node);
        }
        cluster.await_all_ready();
        cluster.await_agreed();
        for node in 0..3 {
            cluster.node(node).register("again", "10.0.0.1", u16::try_from(node).unwrap() + 1, &[]);
        }
        cluster.await_ports(Duration::from_secs(15), "again", &[1, 2, 3]);
    });
}
