//! What is left of members that are gone: how long it stays listed.
//!
//! The rule, the same on every node: the records of a member that is dead, departed or started anew stay for `grace` after
//! that, while at least half of the members are up here; its publishers have that long to turn up elsewhere. A node that
//! sees fewer is itself cut off, more likely than not: there they stay until it sees half again, at most for
//! `isolation_grace`.

use std::{collections::BTreeMap, time::Duration};

use crate::{clock::Mono, registry::version::OwnerId};

/// The former owners whose records are still held.
#[derive(Debug)]
pub struct Orphans {
    grace: Duration,
    isolation_grace: Duration,
    since: BTreeMap<OwnerId, Mono>,
    /// Since when at least half of the members have been up; `None`: they are not.
    majority: Option<Mono>,
}

impl Orphans {
    /// None yet, on a node that sees nobody yet.
    #[must_use]
    pub fn new(grace: Duration, isolation_grace: Duration) -> Self {
        Self { grace, isolation_grace, since: BTreeMap::new(), majority: None }
    }

    /// `owner` is gone since `since`. Returns whether that is news.
    pub fn add(&mut self, owner: OwnerId, since: Mono) -> bool {
        if owner.is_self() || self.since.contains_key(&owner) {
            return false;
        }
        self.since.insert(owner, since);
        true
    }

    /// `owner` was not gone, or nothing of it is left.
    pub fn remove(&mut self, owner: OwnerId) {
        self.since.remove(&owner);
    }

    /// Whether at least half of the members are up.
    pub fn set_majority(&mut self, majority: bool, now: Mono) {
        match (majority, self.majority) {
            (true, None) => self.majority = Some(now),
            (false, _) => self.majority = None,
            (true, Some(_)) => {}
        }
    }

    /// Whether at least half of the members are up, so that what is gone may be taken over.
    #[must_use]
    pub const fn has_majority(&self) -> bool {
        self.majority.is_some()
    }

    /// Those whose time is over at `now`.
    #[must_use]
    pub fn over(&self, now: Mono) -> Vec<OwnerId> {
        self.since.keys().copied().filter(|owner| self.remaining(*owner, now) == Some(Duration::ZERO)).collect()
    }

    /// How much longer the records of `owner` stay, as things stand; `None` if it is not gone.
    #[must_use]
    pub fn remaining(&self, owner: OwnerId, now: Mono) -> Option<Duration> {
        let since = *self.since.get(&owner)?;
        Some(match self.majority {
            // After a time in isolation all members come back one after the other: the grace counts from the first.
            Some(majority) => self.grace.saturating_sub(now.since(since.max(majority))),
            None => self.isolation_grace.saturating_sub(now.since(since)),
        })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = OwnerId> + '_ {
        self.since.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: u64) -> Mono {
        Mono::from_millis(secs * 1_000)
    }

    #[test]
    fn with_a_majority_the_grace_counts_and_without_the_longer_one() {
        let owner = OwnerId::new(1).unwrap();
        let mut orphans = Orphans::new(Duration::from_secs(30), Duration::from_secs(600));
        orphans.set_majority(true, at(0));
        assert!(orphans.add(owner, at(10)) && !orphans.add(owner, at(20)));
        assert!(!orphans.add(OwnerId::SELF, at(0)));
        assert_eq!(orphans.over(at(39)), []);
        assert_eq!(orphans.over(at(40)), [owner]);
        orphans.set_majority(false, at(40));
        assert_eq!(orphans.over(at(609)), []);
        assert_eq!(orphans.over(at(610)), [owner]);
        orphans.set_majority(true, at(100));
        orphans.set_majority(true, at(120));
        assert_eq!(orphans.remaining(owner, at(110)), Some(Duration::from_secs(20)));
        orphans.remove(owner);
        assert_eq!((orphans.over(at(999)).len(), orphans.remaining(owner, at(1))), (0, None));
    }
}
