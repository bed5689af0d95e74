//! The life of the process's tasks: one cancellation token that says "drain", and a tracker that waits for everybody.
//!
//! The only place of the crate that spawns.

use std::{future::Future, time::Duration};

use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFutureOwned},
    task::TaskTracker,
};

use crate::quiet::Quiet;

/// Spawns tasks, tells them to drain, and waits for them. Cheap to clone; all clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// A new, running state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `task` on the runtime; [`Shutdown::drained`] waits for it.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(self.tasks.track_future(task));
    }

    /// Runs `task` on the runtime without waiting for it at the end: for a task that ends when nobody needs it any more.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn_detached<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(task);
    }

    /// Completes when the process is told to drain; at once if it already was. Costs next to nothing to poll again, so
    /// that a busy connection can have it at hand.
    pub fn draining(&self) -> Quiet<WaitForCancellationFutureOwned> {
        Quiet::new(self.drain.clone().cancelled_owned())
    }

    /// Whether the process was told to drain.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// A token that is cancelled when the drain starts, for code that takes one.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.drain.clone()
    }

    /// Tells every task to drain. Repeating it changes nothing.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Waits until every task has ended, at most `bound`. Returns how many were still running at the bound.
    pub async fn drained(&self, bound: Duration) -> usize {
        self.tasks.close();
        if tokio::time::timeout(bound, self.tasks.wait()).await.is_err() {
            return self.tasks.len();
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_for_tasks_and_counts_the_stuck() {
        let shutdown = Shutdown::new();
        let inner = shutdown.clone();
        shutdown.spawn(async move { inner.draining().await });
        shutdown.spawn(std::future::pending());
        shutdown.drain();
        assert_eq!(shutdown.drained(Duration::from_secs(1)).await, 1);
    }
}
