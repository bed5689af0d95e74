//! What became of the pushes.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use super::subscriber::SubscriberCounts;

/// Counts since the process started; they never go back. Written by whoever sends and by the reader of acks.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) total: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) resent: AtomicU64,
    pub(super) superseded: AtomicU64,
    pub(super) too_large: AtomicU64,
    pub(super) malformed_acks: AtomicU64,
    pub(super) unmatched_acks: AtomicU64,
    succeeded: AtomicU64,
    cost_total: AtomicU64,
    /// Since the last reset.
    cost_most: AtomicU64,
    /// What the counts were at the last reset.
    base: Mutex<Base>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Base {
    total: u64,
    succeeded: u64,
    failed: u64,
    cost_total: u64,
}

/// What became of the pushes since the process started, and whom there is to push to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Pushes, each to one subscriber; sending one again is not another.
    pub total: u64,
    /// Pushes that were acknowledged.
    pub succeeded: u64,
    /// Pushes that could not be sent, or were not acknowledged in time.
    pub failed: u64,
    /// Datagrams that were sent again.
    pub resent: u64,
    /// Pushes whose ack had not come when a newer one was sent to the same subscriber.
    pub superseded: u64,
    /// Lists that did not fit into a datagram.
    pub too_large: u64,
    /// Datagrams that came in and were no acks.
    pub malformed_acks: u64,
    /// Acks that fit no push that waits.
    pub unmatched_acks: u64,
    /// Pushes that wait for their ack now.
    pub waiting: usize,
    /// Services with UDP subscribers now.
    pub services: usize,
    /// Subscribers now.
    pub subscribers: SubscriberCounts,
}

/// What became of the pushes since the last reset (`GET /operator/push/state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// Pushes.
    pub total: u64,
    /// Pushes that were acknowledged.
    pub succeeded: u64,
    /// Pushes that failed.
    pub failed: u64,
    /// Average time from push to ack; `None` without an ack.
    pub average_cost: Option<Duration>,
    /// Longest time from push to ack; `None` without an ack.
    pub most_cost: Option<Duration>,
}

impl Counters {
    /// One more.
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A push was acknowledged `cost` after it was sent.
    pub(super) fn acknowledged(&self, cost: Duration) {
        let cost = u64::try_from(cost.as_millis()).unwrap_or(u64::MAX);
        self.cost_total.fetch_add(cost, Ordering::Relaxed);
        self.cost_most.fetch_max(cost, Ordering::Relaxed);
        Self::count(&self.succeeded);
    }

    /// The counts; what is not counted here is zero.
    pub(super) fn figures(&self) -> Figures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            total: read(&self.total),
            succeeded: read(&self.succeeded),
            failed: read(&self.failed),
            resent: read(&self.resent),
            superseded: read(&self.superseded),
            too_large: read(&self.too_large),
            malformed_acks: read(&self.malformed_acks),
            unmatched_acks: read(&self.unmatched_acks),
            ..Figures::default()
        }
    }

    /// The counts since the last reset.
    pub(super) fn state(&self) -> State {
        let base = *self.base.lock();
        let now = self.read();
        let succeeded = now.succeeded.saturating_sub(base.succeeded);
        let cost = now.cost_total.saturating_sub(base.cost_total);
        let most = self.cost_most.load(Ordering::Relaxed);
        State {
            total: now.total.saturating_sub(base.total),
            succeeded,
            failed: now.failed.saturating_sub(base.failed),
            average_cost: cost.checked_div(succeeded).map(Duration::from_millis),
            most_cost: (succeeded > 0).then_some(Duration::from_millis(most)),
        }
    }

    /// Lets [`Counters::state`] begin at zero.
    pub(super) fn reset(&self) {
        let mut base = self.base.lock();
        *base = self.read();
        self.cost_most.store(0, Ordering::Relaxed);
    }

    fn read(&self) -> Base {
        Base {
            total: self.total.load(Ordering::Relaxed),
            succeeded: self.succeeded.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            cost_total: self.cost_total.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_begins_the_state_anew_and_leaves_the_figures() {
        let counters = Counters::default();
        assert_eq!(counters.state(), State::default());
        for ms in [10, 30] {
            Counters::count(&counters.total);
            counters.acknowledged(Duration::from_millis(ms));
        }
        let state = counters.state();
        assert_eq!((state.total, state.succeeded, state.failed), (2, 2, 0));
        assert_eq!(state.average_cost, Some(Duration::from_millis(20)));
        assert_eq!(state.most_cost, Some(Duration::from_millis(30)));
        counters.reset();
        assert_eq!(counters.state(), State::default());
        assert_eq!(counters.figures().total, 2);
    }
}
