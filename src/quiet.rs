//! A future that is polled only when it has something to say.
//!
//! A task that waits for several things polls them all whenever one of them wakes it. For a rare event that a hundred
//! thousand connections wait for, each of these polls would take one and the same lock.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use parking_lot::Mutex;

/// Polls `F` once, and then only after `F` itself has woken its task.
#[derive(Debug)]
pub struct Quiet<F> {
    inner: Pin<Box<F>>,
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.lock().wake_by_ref();
    }
}

impl<F> Quiet<F> {
    /// `inner`, left alone until it wakes its task.
    pub fn new(inner: F) -> Self {
        let bell = Bell { rung: AtomicBool::new(true), task: Mutex::new(Waker::noop().clone()) };
        Self { inner: Box::pin(inner), bell: Arc::new(bell) }
    }
}

impl<F: Future> Future for Quiet<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut task = self.bell.task.lock();
            if !task.will_wake(context.waker()) {
                task.clone_from(context.waker());
            }
        }
        if !self.bell.rung.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        let waker = Waker::from(self.bell.clone());
        self.inner.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn, time::Duration};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn is_polled_at_first_and_when_it_wakes_and_at_no_other_time() {
        let polls = Cell::new(0);
        let mut sleep = Box::pin(tokio::time::sleep(Duration::from_secs(10)));
        let mut quiet = Quiet::new(poll_fn(|context| {
            polls.set(polls.get() + 1);
            sleep.as_mut().poll(context)
        }));
        for _ in 0..5 {
            tokio::select! {
                () = &mut quiet => unreachable!("too early"),
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
        assert_eq!(polls.get(), 1);
        quiet.await;
        assert_eq!(polls.get(), 2);
    }
}
