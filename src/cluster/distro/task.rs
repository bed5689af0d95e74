//! What one peer has still to be told: a task for each record that changed, merged while it waits.
//!
//! A task is a name; the state is read when it is sent. So a burst of changes of one record costs one message, and a peer
//! that is away costs names, up to a bound: past it the names are forgotten, and the digests find the difference later.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use crate::{clock::Mono, registry::journal::RecordName};

/// One record whose latest state one peer has still to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DistroDelayTask {
    /// Which record.
    pub name: RecordName,
    /// When it is to be sent. Counted from the first change, however many more come.
    pub due: Mono,
}

/// The tasks for one peer.
#[derive(Debug)]
pub struct Outbox {
    window: Duration,
    limit: usize,
    /// In the order in which they are due.
    waiting: VecDeque<DistroDelayTask>,
    names: HashSet<RecordName, ahash::RandomState>,
    /// Sent and not acknowledged, in the order of their numbers, each with the time at which its first was due.
    sent: VecDeque<(u64, Mono, Vec<RecordName>)>,
    overflown: bool,
    /// Since when the oldest change that the peer has not acknowledged has been due.
    behind: Option<Mono>,
}

impl Outbox {
    /// An empty outbox: tasks wait for `window` to be merged, and past `limit` of them all are forgotten.
    #[must_use]
    pub fn new(window: Duration, limit: usize) -> Self {
        let (waiting, names, sent) = (VecDeque::new(), HashSet::default(), VecDeque::new());
        Self { window, limit, waiting, names, sent, overflown: false, behind: None }
    }

    /// A record has changed.
    pub fn add(&mut self, name: RecordName, now: Mono) {
        if self.names.len() >= self.limit {
            self.forget();
        } else if self.names.insert(name.clone()) {
            let due = now + self.window;
            self.waiting.push_back(DistroDelayTask { name, due });
            self.behind.get_or_insert(due);
        }
    }

    /// Too much has changed to name it: what waits is forgotten.
    pub fn forget(&mut self) {
        (self.waiting, self.names) = (VecDeque::new(), HashSet::default());
        self.overflown = true;
    }

    /// When the next tasks are due; `None` if none waits.
    #[must_use]
    pub fn due(&self) -> Option<Mono> {
        self.waiting.front().map(|task| task.due)
    }

    /// Takes the tasks that are due at `now`, at most `most`, to be sent as the batch of number `order`.
    pub fn take(&mut self, order: u64, most: usize, now: Mono) -> Vec<RecordName> {
        let due = self.waiting.iter().take(most).take_while(|task| task.due <= now).count();
        let first = self.due();
        let names: Vec<_> = self.waiting.drain(..due).map(|task| task.name).collect();
        for name in &names {
            self.names.remove(name);
        }
        if let Some(first) = first.filter(|_| !names.is_empty()) {
            self.sent.push_back((order, first, names.clone()));
        }
        names
    }

    /// The peer has applied all batches up to `order`.
    pub fn acknowledge(&mut self, order: u64) {
        while self.sent.front().is_some_and(|(sent, ..)| *sent <= order) {
            self.sent.pop_front();
            self.behind = self.sent.front().map(|(_, first, _)| *first).or(self.due());
        }
    }

    /// The peer was found to hold what this node holds.
    pub fn agree(&mut self) {
        if self.is_empty() {
            self.behind = None;
        }
    }

    /// Since when the oldest change that the peer has not acknowledged has been due; `None` if it has them all.
    #[must_use]
    pub const fn behind(&self) -> Option<Mono> {
        self.behind
    }

    /// The link broke: what was not acknowledged waits again.
    pub fn broken(&mut self, now: Mono) {
        for (_, _, names) in std::mem::take(&mut self.sent) {
            for name in names {
                self.add(name, now);
            }
        }
    }

    /// Whether tasks were forgotten since this was asked last.
    pub fn take_overflown(&mut self) -> bool {
        std::mem::take(&mut self.overflown)
    }

    /// Tasks that wait or are not acknowledged.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() + self.sent.iter().map(|(.., names)| names.len()).sum::<usize>()
    }

    /// Whether the peer has been told everything, and said so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{ClusterName, InstanceKey, Limits};

    const WINDOW: Duration = Duration::from_millis(10);

    fn name(port: i64) -> RecordName {
        let limits = Limits::default();
        let endpoint = limits.endpoint("10.0.0.1", port).unwrap();
        (limits.service_key("", "", "s").unwrap(), InstanceKey { endpoint, cluster: ClusterName::default() })
    }

    const fn at(ms: u64) -> Mono {
        Mono::from_millis(ms)
    }

    #[test]
    fn changes_merge_and_the_window_counts_from_the_first() {
        let mut outbox = Outbox::new(WINDOW, 10);
        outbox.add(name(1), at(0));
        outbox.add(name(2), at(5));
        outbox.add(name(1), at(9));
        assert_eq!(outbox.due(), Some(at(10)));
        assert_eq!(outbox.take(1, 10, at(9)), []);
        assert_eq!(outbox.take(1, 10, at(10)), [name(1)]);
        assert_eq!(outbox.take(2, 10, at(15)), [name(2)]);
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_unless_it_changed_since() {
        let mut outbox = Outbox::new(WINDOW, 10);
        for port in 1..=3 {
            outbox.add(name(port), at(0));
        }
        assert_eq!(outbox.take(1, 1, at(10)), [name(1)]);
        assert_eq!(outbox.take(2, 10, at(10)), [name(2), name(3)]);
        outbox.add(name(2), at(20));
        assert_eq!(outbox.len(), 4);
        outbox.acknowledge(1);
        outbox.broken(at(21));
        assert_eq!(outbox.take(1, 10, at(40)), [name(2), name(3)]);
        outbox.acknowledge(1);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_peer_is_behind_from_when_its_oldest_change_was_due() {
        let mut outbox = Outbox::new(WINDOW, 2);
        assert_eq!(outbox.behind(), None);
        outbox.add(name(1), at(0));
        outbox.take(1, 1, at(10));
        outbox.add(name(2), at(30));
        assert_eq!(outbox.behind(), Some(at(10)));
        outbox.broken(at(50));
        outbox.agree();
        assert_eq!(outbox.behind(), Some(at(10)), "a link that breaks makes nothing younger");
        outbox.take(1, 1, at(60));
        outbox.take(2, 1, at(60));
        outbox.acknowledge(1);
        assert_eq!(outbox.behind(), Some(at(60)));
        outbox.acknowledge(2);
        assert_eq!(outbox.behind(), None);

        for port in 1..=3 {
            outbox.add(name(port), at(70));
        }
        assert_eq!((outbox.len(), outbox.behind()), (0, Some(at(80))), "what was forgotten is still to come");
        outbox.agree();
        assert_eq!(outbox.behind(), None);
    }

    #[test]
    fn past_the_limit_all_is_forgotten_and_that_is_known() {
        let mut outbox = Outbox::new(WINDOW, 2);
        for port in 1..=3 {
            outbox.add(name(port), at(0));
        }
        assert!(outbox.is_empty());
        assert!(outbox.take_overflown() && !outbox.take_overflown());
        outbox.add(name(1), at(0));
        assert_eq!(outbox.len(), 1);
    }
}
