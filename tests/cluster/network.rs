//! Networks that fail between nodes, and between a node and its client.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    churn::Churn,
    fleet::Fleet,
    namespaces::{Network, http, inside, run},
    publishers::Publishers,
    support::{
        cluster::{Cluster, DEAD, IN_TIME},
        wait::{SOON, holds_for, wait_until},
    },
    witness::Witness,
};

/// By when all lists are equal once the network has healed.
const HEALED: Duration = Duration::from_secs(10);

/// Three nodes, each on a host of its own, reached by the test through another path than by each other.
fn cluster(network: &Network, settings: &[&str]) -> Cluster {
    let members: Vec<_> = (0..3).map(|host| (http(host).to_string(), http(host))).collect();
    let names: Vec<_> = members.iter().map(|(name, _)| format!("{name:?}")).collect();
    let list = format!("cluster.members=[{}]", names.join(","));
    let mut cluster = Cluster::unlisted(members, &[&[list.as_str()], settings].concat());
    for host in 0..3 {
        let wrapper = network.wrapper(host);
        cluster.wrap(host, &[&wrapper[0], &wrapper[1]]);
        cluster.restart(host);
    }
    cluster.await_all_ready();
    cluster.await_agreed();
    cluster
}

/// Row 50, and other ways in which a network fails. Clients reach all nodes all the time.
#[test]
fn links_that_are_cut_cost_no_instance_and_heal() {
    inside("network::links_that_are_cut_cost_no_instance_and_heal", || {
        let network = Network::new(3);
        let mut cluster = cluster(&network, &[]);
        // A node that hears no other one hears a third of the beats.
        let publishers = Publishers::with((1_000, 15_000, 30_000), &cluster.https(), "beaten", 40);
        let fleet = Fleet::start(&cluster.grpcs(), &["held"], 1_001, 9);
        cluster.await_ports(SOON, "beaten", &publishers.ports);
        cluster.await_ports(SOON, "held", &fleet.ports);
        let churn = Churn::start(&cluster.https()[..1], "churned", 60);
        let begun = fleet.now();
        let expected = [("beaten", &publishers.ports[..]), ("held", &fleet.ports[..])];
        let witness = Witness::start(&cluster.https(), &expected);
        let healed = |cluster: &Cluster, what: &str| {
            let since = Instant::now();
            let ports = cluster.await_equal(HEALED, &["beaten", "held", "news"]);
            eprintln!("{what}: lists are equal {:?} after it healed", since.elapsed());
            assert_eq!(ports["beaten"], publishers.ports, "{what}");
            assert_eq!(ports["held"], fleet.ports, "{what}");
            cluster.await_agreed();
        };

        network.cut(0, 1);
        thread::sleep(DEAD + Duration::from_secs(1));
        cluster.node(0).register("news", "10.0.0.2", 1, &[]);
        cluster.kill(2);
        cluster.restart(2);
        thread::sleep(Duration::from_secs(4));
        network.heal(0, 1);
        cluster.await_ready(2);
        fleet.await_registered();
        healed(&cluster, "a pair was cut and the third restarted");
        cluster.await_ports(SOON, "news", &[1]);

        let (churned, changes) = churn.stop();
        eprintln!("{changes} registrations and removals meanwhile");
        cluster.await_ports(HEALED, "churned", &churned);

        network.drop_way(1, 2);
        thread::sleep(DEAD + Duration::from_secs(1));
        cluster.node(1).register("news", "10.0.0.2", 2, &[]);
        network.heal_way(1, 2);
        healed(&cluster, "one way was cut");
        cluster.await_ports(SOON, "news", &[1, 2]);

        network.cut(0, 1);
        network.cut(0, 2);
        thread::sleep(DEAD + Duration::from_secs(1));
        cluster.node(0).register("news", "10.0.0.2", 3, &[]);
        cluster.node(1).register("news", "10.0.0.2", 4, &[]);
        // What one side removes while the other still lists it, and hears beats of it.
        cluster.node(2).deregister("news", "10.0.0.2", 1, &[]);
        assert_eq!(cluster.node(0).light_beat("news", "10.0.0.2", 1), 10_200);
        network.heal(0, 1);
        network.heal(0, 2);
        healed(&cluster, "one node was alone");
        cluster.await_ports(SOON, "news", &[2, 3, 4]);

        // A cut that ends before anybody is found dead: messages are late, nothing else.
        network.cut(1, 2);
        cluster.node(1).register("news", "10.0.0.2", 5, &[]);
        cluster.node(2).deregister("news", "10.0.0.2", 2, &[]);
        thread::sleep(Duration::from_millis(1_500));
        network.heal(1, 2);
        healed(&cluster, "messages were late");
        cluster.await_ports(SOON, "news", &[3, 4, 5]);

        witness.stop();
        publishers.stop();
        fleet.assert_no_empty_push();
        fleet.assert_never_missing(begun, &fleet.ports);
        fleet.await_told("held", &fleet.ports);
        let news = || [0, 1, 2].map(|node| cluster.node(node).ports("news", &[]));
        holds_for(Duration::from_secs(3), news, |news| news.iter().all(|ports| *ports == [3, 4, 5]));
    });
}

/// Row 46, with the bounds turned down that are 20 s and 5 s.
#[test]
fn a_client_that_lost_its_power_is_gone_everywhere() {
    inside("network::a_client_that_lost_its_power_is_gone_everywhere", || {
        let network = Network::new(3);
        let cluster = cluster(&network, &["sdk.idle_timeout=2s", "sdk.detection_timeout=1s", "sdk.sweep=200ms"]);
        run(&["ip", "addr", "add", "10.77.0.200/24", "dev", "middle"]);
        let here = Fleet::start(&cluster.grpcs()[..1], &["held"], 1, 2);
        let there = Fleet::start_from(Some([10, 77, 0, 200].into()), &cluster.grpcs()[..1], &["held"], 101, 3);
        let all: Vec<_> = here.ports.iter().chain(&there.ports).copied().collect();
        cluster.await_ports(SOON, "held", &all);
        let lists = || [0, 1, 2].map(|node| cluster.node(node).ports("held", &[]));
        holds_for(Duration::from_secs(4), lists, |lists| lists.iter().all(|list| *list == all));
        run(&["ip", "addr", "del", "10.77.0.200/24", "dev", "middle"]);
        let since = Instant::now();
        wait_until(IN_TIME, lists, |lists| lists.iter().all(|list| *list == here.ports));
        eprintln!("gone everywhere after {:?}", since.elapsed());
        assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
    });
}
