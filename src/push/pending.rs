//! Pushes that wait for their ack: what to send again, what to give up, and when.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    time::Duration,
};

use super::datagram::Datagram;
use crate::clock::Mono;

/// What an ack is matched on: whom it comes from, and the number that it names.
type Key = (SocketAddr, u64);

/// What is to be done about a push whose ack is late.
#[derive(Debug, Clone)]
pub(super) enum Late {
    /// Send it again.
    Again(SocketAddr, Datagram),
    /// It has failed and is forgotten.
    Failed(SocketAddr),
}

/// The pushes that are not acknowledged, at most one of each subscriber: a newer one takes the place of an older one.
#[derive(Debug)]
pub(super) struct Pending {
    timeout: Duration,
    resends: u32,
    waiting: HashMap<Key, Waiting>,
    /// The push that a subscriber waits with, by the subscriber's number.
    latest: HashMap<u64, Key>,
    deadlines: BTreeSet<(Mono, Key)>,
}

#[derive(Debug)]
struct Waiting {
    subscriber: u64,
    datagram: Datagram,
    sent: Mono,
    deadline: Mono,
    resends: u32,
}

/// What [`Pending::sent`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Noted {
    /// An older push of this subscriber was not acknowledged yet and is forgotten.
    pub(super) superseded: bool,
    /// Nothing was waiting before, so nobody watches the time.
    pub(super) was_empty: bool,
}

impl Pending {
    /// Nothing waits. An ack is late after `timeout`; a push is sent again `resends` times.
    pub(super) fn new(timeout: Duration, resends: u32) -> Self {
        Self { timeout, resends, waiting: HashMap::new(), latest: HashMap::new(), deadlines: BTreeSet::new() }
    }

    /// `datagram` goes to `subscriber` at `target` for the first time.
    pub(super) fn sent(&mut self, subscriber: u64, target: SocketAddr, datagram: Datagram, now: Mono) -> Noted {
        let was_empty = self.waiting.is_empty();
        let superseded = self.latest.get(&subscriber).copied().is_some_and(|older| self.take(older).is_some());
        let key = (target, datagram.number);
        let deadline = now + self.timeout;
        self.latest.insert(subscriber, key);
        self.deadlines.insert((deadline, key));
        self.waiting.insert(key, Waiting { subscriber, datagram, sent: now, deadline, resends: self.resends });
        Noted { superseded, was_empty }
    }

    /// An ack with `number` came from `from`. Returns how long after the push; `None` if no such push waits.
    pub(super) fn acked(&mut self, from: SocketAddr, number: u64, now: Mono) -> Option<Duration> {
        self.take((from, number)).map(|waiting| now.since(waiting.sent))
    }

    /// Forgets a push that could not be sent.
    pub(super) fn forget(&mut self, target: SocketAddr, number: u64) {
        self.take((target, number));
    }

    /// The pushes whose ack is late at `now`.
    pub(super) fn late(&mut self, now: Mono) -> Vec<Late> {
        let mut late = Vec::new();
        while let Some((deadline, key)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.deadlines.remove(&(deadline, key));
            match self.waiting.get_mut(&key) {
                Some(waiting) if waiting.resends > 0 => {
                    waiting.resends -= 1;
                    waiting.deadline = now + self.timeout;
                    self.deadlines.insert((waiting.deadline, key));
                    late.push(Late::Again(key.0, waiting.datagram.clone()));
                }
                Some(_) | None => {
                    self.take(key);
                    late.push(Late::Failed(key.0));
                }
            }
        }
        late
    }

    /// When [`Pending::late`] has something next; `None` if nothing waits. No later call of [`Pending::sent`] brings
    /// it forward.
    pub(super) fn next(&self) -> Option<Mono> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// How many pushes wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn take(&mut self, key: Key) -> Option<Waiting> {
        let waiting = self.waiting.remove(&key)?;
        self.deadlines.remove(&(waiting.deadline, key));
        if self.latest.get(&waiting.subscriber) == Some(&key) {
            self.latest.remove(&waiting.subscriber);
        }
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_millis(ms)
    }

    fn target(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn datagram(number: u64) -> Datagram {
        Datagram::encode("{}", number).unwrap()
    }

    fn pending() -> Pending {
        Pending::new(Duration::from_secs(10), 1)
    }

    /// `again:<port>:<number>` or `failed:<port>`.
    fn late(pending: &mut Pending, ms: u64) -> Vec<String> {
        let told = |late| match late {
            Late::Again(to, datagram) => format!("again:{}:{}", to.port(), datagram.number),
            Late::Failed(to) => format!("failed:{}", to.port()),
        };
        pending.late(at(ms)).into_iter().map(told).collect()
    }

    #[test]
    fn without_an_ack_it_is_sent_again_once_and_then_given_up() {
        let mut pending = pending();
        pending.sent(1, target(5), datagram(7), at(0));
        assert!(late(&mut pending, 9_999).is_empty());
        assert_eq!(late(&mut pending, 10_000), ["again:5:7"]);
        assert_eq!(pending.next(), Some(at(20_000)));
        assert_eq!(late(&mut pending, 20_000), ["failed:5"]);
        assert_eq!((pending.next(), pending.len(), pending.latest.len()), (None, 0, 0));
    }

    #[test]
    fn an_ack_ends_it_if_target_and_number_match() {
        let mut pending = pending();
        pending.sent(1, target(5), datagram(7), at(0));
        assert_eq!(pending.acked(target(6), 7, at(1)), None);
        assert_eq!(pending.acked(target(5), 8, at(1)), None);
        assert_eq!(late(&mut pending, 10_000), ["again:5:7"]);
        assert_eq!(pending.acked(target(5), 7, at(10_200)), Some(Duration::from_millis(10_200)));
        assert_eq!(pending.acked(target(5), 7, at(10_201)), None);
        assert!(late(&mut pending, 99_999).is_empty());
    }

    #[test]
    fn a_newer_push_takes_the_place_of_an_older_one() {
        let mut pending = pending();
        assert_eq!(pending.sent(1, target(5), datagram(1), at(0)), Noted { superseded: false, was_empty: true });
        for number in 2..100 {
            let noted = pending.sent(1, target(5), datagram(number), at(number));
            assert_eq!(noted, Noted { superseded: true, was_empty: false });
        }
        pending.sent(2, target(5), datagram(100), at(100));
        assert_eq!((pending.len(), pending.deadlines.len()), (2, 2));
        assert_eq!(late(&mut pending, 11_000), ["again:5:99", "again:5:100"]);
    }

    #[test]
    fn what_could_not_be_sent_is_forgotten() {
        let mut pending = pending();
        pending.sent(1, target(5), datagram(7), at(0));
        pending.forget(target(5), 7);
        assert_eq!((pending.next(), pending.len()), (None, 0));
    }
}
