//! Worlds in which one thing happens.

use std::time::Duration;

use crate::world::World;

const LONG: Duration = Duration::from_secs(120);

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
