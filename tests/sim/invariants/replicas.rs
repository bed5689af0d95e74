//! After faults end, all nodes list what lives, with the same data, within 15 s; and go on to do so.
//!
//! Source: invariants 1 and 2 of the semantics paper, section 13.1; field cases 49 and 50; the bound is this project's own:
//! a dial that backs off (5 s), a connect timeout, and two rounds of verification that find nothing moving.

use std::time::Duration;

use super::Look;
use crate::{
    oracle::{Publisher, number},
    world::World,
};

const BOUND: Duration = Duration::from_secs(15);

/// Once all have agreed: how long a write may take to all of them.
const SPREAD: Duration = Duration::from_millis(1_000);

pub fn check(look: &Look<'_>) -> Result<(), String> {
    if let (Some(calm), None) = (look.calm, look.settled)
        && look.now.since(calm) > BOUND
    {
        let why = is_settled(look.world, look.publishers).err().unwrap_or_default();
        return Err(format!("the nodes are not of one mind {BOUND:?} after the faults: {why}"));
    }
    let Some(settled) = look.settled else { return Ok(()) };
    for node in look.world.nodes() {
        let listed = node.listed();
        for (id, publisher) in look.publishers {
            let since = publisher.said.1.max(settled);
            if !publisher.held || look.now.since(publisher.said.1) < SPREAD {
                continue;
            }
            let Some(instance) = listed.get(&publisher.key) else {
                return Err(format!("{} does not list p{id}, which lives", node.name));
            };
            if !instance.healthy() {
                return Err(format!("{} lists p{id}, which is well, as unhealthy", node.name));
            }
            let said = number(instance.metadata());
            if !publisher.may_say(said) {
                let (acknowledged, since) = (publisher.said.0, look.now.since(since));
                return Err(format!("{} lists p{id} as {said} and not as {acknowledged} after {since:?}", node.name));
            }
        }
    }
    Ok(())
}

pub fn is_settled(world: &World, publishers: &[(usize, Publisher)]) -> Result<(), String> {
    let nodes = world.nodes();
    if let Some(node) = nodes.iter().find(|node| !node.is_ready()) {
        let waiting = node.cluster.waiting_for().borrow().iter().map(ToString::to_string).collect::<Vec<_>>();
        return Err(format!("{} does not serve, it waits for {}", node.name, waiting.join(" ")));
    }
    if let Some(disagreement) = world.disagreements().first() {
        return Err(disagreement.clone());
    }
    for (id, publisher) in publishers.iter().filter(|(_, publisher)| publisher.held) {
        let mut data = Vec::new();
        for node in &nodes {
            let Some(instance) = node.find(&publisher.key) else {
                return Err(format!("{} does not list p{id}", node.name));
            };
            if !instance.healthy() {
                return Err(format!("{} lists p{id} as unhealthy", node.name));
            }
            data.push(number(instance.metadata()));
        }
        if data.iter().any(|data| !publisher.may_say(*data)) || data.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("p{id} is listed with the data {data:?}, acknowledged were {}", publisher.said.0));
        }
    }
    Ok(())
}
