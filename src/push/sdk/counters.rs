//! What became of the pushes to SDKs.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Counts since the process started. Written by whoever sends or hears of a push.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sent: AtomicU64,
    pub(super) acked: AtomicU64,
    pub(super) merged: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) repeated: AtomicU64,
    pub(super) oversized: AtomicU64,
    pub(super) held_back: AtomicU64,
    pub(super) bytes: AtomicU64,
    delay_sum: AtomicU64,
    delay_max: AtomicU64,
}

/// Counts since the process started, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Pushes handed to the transport, repetitions included.
    pub sent: u64,
    /// Pushes that clients acknowledged.
    pub acked: u64,
    /// Changes that found an older one still waiting for the same client, and went out with it.
    pub merged: u64,
    /// Pushes that were not acknowledged in time, or refused by the client.
    pub failed: u64,
    /// Pushes that were sent again after that.
    pub repeated: u64,
    /// Pushes that were not sent because they are larger than the client can read.
    pub oversized: u64,
    /// Pushes that were not sent because they would have left the client without any instance.
    pub held_back: u64,
    /// Bytes of pushes handed to the transport.
    pub bytes: u64,
    /// Services, with the clusters asked for, that are subscribed to now.
    pub topics: usize,
    /// Connections that watch names now.
    pub name_watchers: usize,
    /// Longest time from a change to its acknowledgement, in milliseconds.
    pub delay_max_ms: u64,
    /// All those times together, in milliseconds; divided by `acked` the average.
    pub delay_sum_ms: u64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// A push was acknowledged so long after the first change that is in it.
    pub(super) fn acknowledged(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        Self::add(&self.acked);
        self.delay_sum.fetch_add(millis, Relaxed);
        self.delay_max.fetch_max(millis, Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            sent: self.sent.load(Relaxed),
            acked: self.acked.load(Relaxed),
            merged: self.merged.load(Relaxed),
            failed: self.failed.load(Relaxed),
            repeated: self.repeated.load(Relaxed),
            oversized: self.oversized.load(Relaxed),
            held_back: self.held_back.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            delay_max_ms: self.delay_max.load(Relaxed),
            delay_sum_ms: self.delay_sum.load(Relaxed),
            topics: 0,
            name_watchers: 0,
        }
    }
}
