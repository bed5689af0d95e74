//! When the subscribers of one service are pushed to: at once when a change follows a quiet time, else once for each
//! merge window.

use std::time::Duration;

use crate::clock::Mono;

/// Who is pushed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All subscribers.
    All,
    /// Those that never were.
    Newcomers,
}

/// What is planned for one service. Changes while a push is planned are part of it.
#[derive(Debug)]
pub(super) struct Schedule {
    delay: Duration,
    /// From when on the next push to all may go out.
    open_at: Mono,
    all: Option<Mono>,
    newcomers: Option<Mono>,
}

impl Schedule {
    /// Nothing planned; `delay` is the merge window.
    pub(super) fn new(delay: Duration) -> Self {
        Self { delay, open_at: Mono::ZERO, all: None, newcomers: None }
    }

    /// The service has changed.
    pub(super) fn changed(&mut self, now: Mono) {
        self.all.get_or_insert(self.open_at.max(now));
    }

    /// Somebody has subscribed (Nacos 2.5: one push to the newcomer after the merge delay).
    pub(super) fn joined(&mut self, now: Mono) {
        self.newcomers.get_or_insert(now + self.delay);
    }

    /// When [`Schedule::take`] has something next; `None` if nothing is planned.
    pub(super) fn next(&self) -> Option<Mono> {
        self.all.into_iter().chain(self.newcomers).min()
    }

    /// What is to be done now; it is planned no longer.
    pub(super) fn take(&mut self, now: Mono) -> Option<Scope> {
        if self.all.is_some_and(|at| at <= now) {
            self.open_at = now + self.delay;
            self.all = None;
            self.newcomers = None;
            return Some(Scope::All);
        }
        self.newcomers.take_if(|at| *at <= now).map(|_| Scope::Newcomers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_millis(ms)
    }

    fn schedule() -> Schedule {
        Schedule::new(Duration::from_millis(500))
    }

    #[test]
    fn the_first_change_goes_out_at_once_and_the_others_are_merged() {
        let mut schedule = schedule();
        schedule.changed(at(10_000));
        assert_eq!(schedule.take(at(10_000)), Some(Scope::All));
        for ms in [10_001, 10_100, 10_499] {
            schedule.changed(at(ms));
            assert_eq!(schedule.take(at(ms)), None);
        }
        assert_eq!(schedule.next(), Some(at(10_500)));
        assert_eq!(schedule.take(at(10_500)), Some(Scope::All));
        assert_eq!(schedule.next(), None);
        schedule.changed(at(11_200));
        assert_eq!(schedule.next(), Some(at(11_200)));
    }

    #[test]
    fn newcomers_wait_together_from_the_first_one_on() {
        let mut schedule = schedule();
        schedule.joined(at(1_000));
        schedule.joined(at(1_400));
        assert_eq!(schedule.take(at(1_499)), None);
        assert_eq!(schedule.take(at(1_500)), Some(Scope::Newcomers));
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn a_push_to_all_serves_newcomers_too() {
        let mut schedule = schedule();
        schedule.joined(at(1_000));
        schedule.changed(at(1_100));
        assert_eq!(schedule.take(at(1_100)), Some(Scope::All));
        assert_eq!(schedule.next(), None);
    }
}
