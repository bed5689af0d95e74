//! Worlds in which one thing happens.

use std::time::Duration;

use nomina::{
    cluster::{Settings, transport::memory::Fate},
    registry::{Command, ServiceCommand},
};

use crate::{
    oracle::{number, publication},
    world::{World, key, member, service},
};

const LONG: Duration = Duration::from_secs(120);
const SECOND: Duration = Duration::from_secs(1);

/// Has connections at `name` publish instances of these ports.
async fn publish(world: &World, name: &str, ports: std::ops::RangeInclusive<i64>) {
    let (node, connection) = (world.node(name).unwrap(), world.connection());
    let wanted = ports.map(|port| (key("10.0.0.1", port), publication(1))).collect();
    node.registry.apply(Command::Open(connection)).await.unwrap();
    let publish = ServiceCommand::Publish(connection, wanted);
    node.registry.apply(Command::Service(service(), publish)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_registered_at_one_node_is_listed_by_all() {
    let world = World::new(3).await;
    let a = world.node("a").unwrap();
    a.register("10.0.0.1", 80).await;
    world.within(LONG, "all list it", |world| world.everywhere(&["10.0.0.1:80"])).await;
    a.deregister("10.0.0.1", 80).await;
    world.within(LONG, "nobody lists it", |world| world.everywhere(&[])).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_has_everything_before_it_is_ready() {
    let world = World::new(3).await;
    for port in 1..=2_500 {
        world.node("a").unwrap().register("10.0.0.1", port).await;
    }
    world.kill("c");
    world.start("c").await;
    assert_eq!(world.listed("c").len(), 2_500);
}

#[tokio::test(start_paused = true)]
async fn beat_sources_of_a_dead_node_live_on_elsewhere() {
    let world = World::new(3).await;
    for port in 1..=30 {
        world.node("a").unwrap().register("10.0.0.1", port).await;
    }
    world.within(LONG, "all list them", |world| world.names.iter().all(|name| world.listed(name).len() == 30)).await;
    // Handed over to their owners, with the lingering copies gone.
    tokio::time::sleep(Duration::from_secs(12)).await;
    world.kill("b");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let leases = |name| world.node(name).unwrap().registry.figures().leases;
    assert_eq!(leases("a") + leases("c"), 30);
    assert_eq!(world.listed("a").len(), 30);
    assert_eq!(world.listed("c").len(), 30);
}

#[tokio::test(start_paused = true)]
async fn what_a_member_left_goes_when_it_is_taken_off_the_list() {
    let world = World::new(3).await;
    world.node("c").unwrap().register("10.0.0.1", 80).await;
    world.within(LONG, "all list it", |world| world.everywhere(&["10.0.0.1:80"])).await;
    world.leave_out("c");
    world.kill("c");
    // Nobody beats: the grace of the copy, or the lease at who took it over, ends.
    world.within(LONG, "nobody lists it", |world| world.everywhere(&[])).await;
}

/// Source: invariant 5 of the semantics paper, section 13.1; the design, section 4: a cluster at rest sends a few hundred
/// bytes.
#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_sends_pings_and_roots_only() {
    let world = World::new(3).await;
    for (name, first) in [("a", 1), ("b", 1_001), ("c", 2_001)] {
        publish(&world, name, first..=first + 999).await;
    }
    tokio::time::sleep(15 * SECOND).await;
    assert_eq!(world.disagreements(), Vec::<String>::new());
    let pairs = || world.names.iter().flat_map(|from| world.names.iter().map(move |to| (from, to)));
    let sent = |(from, to): (&String, &String)| world.network.sent(&member(from), &member(to));
    let before: Vec<_> = pairs().map(sent).collect();
    tokio::time::sleep(50 * SECOND).await;
    for ((from, to), before) in pairs().zip(before).filter(|((from, to), _)| from != to) {
        let after = sent((from, to));
        let (messages, bytes) = ((after.0 - before.0) / 10, (after.1 - before.1) / 10);
        // In five seconds: ten pings, ten answers to pings of the other, a root and an answer to one.
        assert!(messages <= 23, "{messages} messages from {from} to {to}");
        assert!(bytes <= 1_000, "{bytes} bytes from {from} to {to}");
    }
}

/// Source: invariant 6 of the semantics paper, section 13.1, and its weakness W20.
#[tokio::test(start_paused = true)]
async fn a_peer_that_hangs_or_crawls_holds_up_nobody_else() {
    let settings = Settings { outbox_limit: 1_000, ..Settings::default() };
    let world = World::with(3, settings).await;
    world.network.cut_both(&member("a"), &member("c"), None);
    world.network.delay(&member("b"), &member("c"), 3 * SECOND);
    for port in 1..=3_000 {
        world.node("a").unwrap().register("10.0.0.1", port).await;
        if port % 100 == 0 {
            let begun = world.clock.now();
            world.within(SECOND, "b lists it", |world| world.listed("b").len() == usize::try_from(port).unwrap()).await;
            assert!(world.clock.now().since(begun) <= Duration::from_millis(20));
            let waits = world.node("a").unwrap().backlog("c");
            // What is under way, and what waits.
            assert!(waits <= 9_000, "{waits} records wait for c");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
    let waits = world.node("a").unwrap().backlog("c");
    assert!(waits <= 1_000, "{waits} records wait for c");
}

/// Source: field case 50.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_for_a_while_is_kept_while_its_owner_lives() {
    let world = World::new(3).await;
    publish(&world, "a", 1..=100).await;
    world.within(SECOND, "all list them", |world| world.names.iter().all(|name| world.listed(name).len() == 100)).await;
    world.network.cut(&member("a"), &member("b"), None);
    let full = |world: &World| world.listed("b").len() == 100;
    for second in 0..60 {
        tokio::time::sleep(SECOND).await;
        match second {
            20 => world.kill("c"),
            24 => world.begin("c"),
            _ => {}
        }
        assert!(full(&world), "b lists {} after {second} s", world.listed("b").len());
    }
    publish(&world, "a", 101..=200).await;
    world.network.heal_all();
    let whole = |world: &World| world.names.iter().all(|name| world.listed(name).len() == 200);
    world.within(10 * SECOND, "all list all", |world| whole(world) && world.disagreements().is_empty()).await;
}

/// Source: field case 59.
#[tokio::test(start_paused = true)]
async fn what_was_removed_stays_away_from_who_was_late_or_absent() {
    let world = World::new(3).await;
    let (first, second) = (key("10.0.0.1", 1), key("10.0.0.1", 2));
    for key in [&first, &second] {
        assert!(world.node("a").unwrap().list(key, &publication(1)).await.done);
    }
    let all = |count| move |world: &World| world.nodes().iter().all(|node| node.listed().len() == count);
    world.within(SECOND, "all list both", all(2)).await;
    world.network.delay(&member("b"), &member("c"), 10 * SECOND);
    assert!(world.node("b").unwrap().remove(&first).await.done);
    tokio::time::sleep(5 * SECOND).await;
    world.kill("c");
    assert!(world.node("b").unwrap().remove(&second).await.done);
    tokio::time::sleep(5 * SECOND).await;
    world.network.delay(&member("b"), &member("c"), Duration::ZERO);
    world.start("c").await;
    for _ in 0..200 {
        assert!(all(0)(&world), "{:?}", world.describe());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Source: field case 49.
#[tokio::test(start_paused = true)]
async fn what_clients_publish_again_while_all_nodes_restart_is_listed_by_all() {
    let world = World::new(3).await;
    for (name, first) in [("a", 1), ("b", 101), ("c", 201)] {
        publish(&world, name, first..=first + 99).await;
    }
    for _ in 0..5 {
        tokio::time::sleep(5 * SECOND).await;
        for (name, first) in [("a", 1), ("b", 101), ("c", 201)] {
            world.kill(name);
            tokio::time::sleep(Duration::from_millis(300)).await;
            world.begin(name);
            let node = world.node(name).unwrap();
            // SDKs come back as soon as they are let in.
            node.cluster.joined().await;
            publish(&world, name, first..=first + 99).await;
        }
        let whole = |world: &World| world.names.iter().all(|name| world.listed(name).len() == 300);
        world.within(10 * SECOND, "all list all", whole).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_lost_its_disk_is_known_to_all_by_one_epoch() {
    let world = World::empty(3, 1, Settings::default());
    world.begin_after("a", 100);
    world.begin("b");
    for name in ["a", "b"] {
        world.joined(name).await;
    }
    world.kill("a");
    world.wipe("a");
    // It never met the first life of `a`, and takes the second at its word.
    world.begin("c");
    world.begin_after("a", 1);
    for name in ["a", "b", "c"] {
        world.joined(name).await;
    }
    assert_eq!(world.node("a").unwrap().incarnation().unwrap().epoch, 102);
    publish(&world, "a", 1..=10).await;
    let agreed = |world: &World| world.listed("c").len() == 10 && world.disagreements().is_empty();
    world.within(5 * SECOND, "all know its records", agreed).await;
}

#[tokio::test(start_paused = true)]
async fn beats_follow_a_registration_at_who_was_the_owner_before() {
    let world = World::new(3).await;
    let key = key("10.0.0.1", 1);
    let b = world.node("b").unwrap();
    assert!(b.list(&key, &publication(1)).await.done);
    tokio::time::sleep(SECOND).await;
    let keeps =
        |node: &std::sync::Arc<crate::world::Node>| node.find(&key).is_some_and(|found| found.lease().is_some());
    let owner = world.nodes().into_iter().find(keeps).unwrap();
    let other = world.nodes().into_iter().find(|node| node.name != owner.name).unwrap();
    // By a node that does not know yet that the owner is back.
    let late = ServiceCommand::Register(key.clone(), nomina::registry::Kind::Ephemeral, publication(2));
    other.registry.apply(Command::Service(service(), late)).await.unwrap();
    for _ in 0..12 {
        tokio::time::sleep(5 * SECOND).await;
        assert!(b.beat(&key, &publication(2)).await.done);
        for node in world.nodes() {
            assert_eq!(number(node.find(&key).unwrap().metadata()), 2, "{}", node.name);
        }
    }
    assert!(!keeps(&other), "its lease has ended");
}

#[tokio::test(start_paused = true)]
async fn messages_of_an_old_link_that_come_in_late_undo_nothing() {
    let world = World::new(3).await;
    let at = |name| world.node(name).unwrap();
    for port in 1..=20 {
        at("a").register("10.0.0.1", port).await;
    }
    world.network.delay(&member("a"), &member("b"), Duration::from_millis(50));
    tokio::time::sleep(SECOND).await;
    for round in 0..20 {
        for port in 1..=20 {
            if (port + round) % 3 == 0 {
                at("a").deregister("10.0.0.1", port).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
        world.network.break_links(&member("a"), &member("b"), Fate::Late(Duration::from_millis(300)));
        for port in 1..=20 {
            at("a").register("10.0.0.1", port).await;
        }
        tokio::time::sleep(SECOND).await;
        assert_eq!(world.listed("b").len(), 20, "round {round}");
    }
}
