//! The cluster in one process: paused time, a network with faults, and everything decided by one seed.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod world;

use std::time::Duration;

use world::World;

#[tokio::test(start_paused = true)]
async fn what_is_registered_at_one_node_is_listed_by_all() {
    let world = World::new(3).await;
    world.register("a", "10.0.0.1", 80).await;
    world.until("all list it", |world| world.everywhere(&["10.0.0.1:80"])).await;
    world.deregister("a", "10.0.0.1", 80).await;
    world.until("nobody lists it", |world| world.everywhere(&[])).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_has_everything_before_it_is_ready() {
    let mut world = World::new(3).await;
    for port in 1..=2_500 {
        world.register("a", "10.0.0.1", port).await;
    }
    world.kill("c");
    world.start("c").await;
    assert_eq!(world.listed("c").len(), 2_500);
}

#[tokio::test(start_paused = true)]
async fn beat_sources_of_a_dead_node_live_on_elsewhere() {
    let mut world = World::new(3).await;
    for port in 1..=30 {
        world.register("a", "10.0.0.1", port).await;
    }
    world.until("all list them", |world| world.listed("b").len() == 30 && world.listed("c").len() == 30).await;
    // Handed over to their owners, with the lingering copies gone.
    tokio::time::sleep(Duration::from_secs(12)).await;
    world.kill("b");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let leases = world.leases("a") + world.leases("c");
    assert_eq!(leases, 30);
    assert_eq!(world.listed("a").len(), 30);
    assert_eq!(world.listed("c").len(), 30);
}

#[tokio::test(start_paused = true)]
async fn what_a_member_left_goes_when_it_is_taken_off_the_list() {
    let mut world = World::new(3).await;
    world.register("c", "10.0.0.1", 80).await;
    world.until("all list it", |world| world.everywhere(&["10.0.0.1:80"])).await;
    world.leave_out("c");
    world.kill("c");
    // Nobody beats: the grace of the copy, or the lease at who took it over, ends.
    world.until("nobody lists it", |world| world.everywhere(&[])).await;
}
