//! What must hold, one file each; all look at the world again and again while a run goes on.

mod dead;
mod failover;
mod removed;
mod replicas;

use nomina::clock::Mono;

use crate::{
    faults::Mood,
    oracle::{Oracle, Publisher},
    world::World,
};

/// What the invariants look at.
pub struct Look<'a> {
    pub world: &'a World,
    pub publishers: &'a [(usize, Publisher)],
    pub mood: Mood,
    pub now: Mono,
    /// Since when there has been no fault; `None`: the faults are not over.
    pub calm: Option<Mono>,
    /// Since when all nodes have agreed on everything, after the faults.
    pub settled: Option<Mono>,
}

/// All of them. Each says what is wrong, if anything is.
#[derive(Default)]
pub struct Invariants {
    failover: failover::Failover,
    removed: removed::Removed,
}

impl Invariants {
    pub fn check(&mut self, look: &Look<'_>) -> Result<(), String> {
        replicas::check(look)?;
        self.failover.check(look)?;
        self.removed.check(look)?;
        dead::check(look)
    }
}

/// Whether all nodes serve and are of one mind, and list what they must: what [`Look::settled`] begins with.
pub fn is_settled(world: &World, oracle: &Oracle) -> Result<(), String> {
    replicas::is_settled(world, &oracle.all())
}
