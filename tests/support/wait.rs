//! Waiting for conditions.

use std::{
    fmt::Debug,
    thread::sleep,
    time::{Duration, Instant},
};

/// For what must happen soon but has no time of its own: far more than a busy machine needs.
pub const SOON: Duration = Duration::from_secs(20);

/// Looks at `state` until `done` says that it is as it should be; returns that state.
#[track_caller]
pub fn wait_until<T: Debug>(deadline: Duration, mut state: impl FnMut() -> T, done: impl Fn(&T) -> bool) -> T {
    let start = Instant::now();
    loop {
        let now = state();
        if done(&now) {
            return now;
        }
        assert!(start.elapsed() < deadline, "not reached within {deadline:?}; the last state was {now:?}");
        sleep(Duration::from_millis(10));
    }
}

/// Looks at `state` for all of `time` and fails as soon as `holds` does not.
#[track_caller]
pub fn holds_for<T: Debug>(time: Duration, mut state: impl FnMut() -> T, holds: impl Fn(&T) -> bool) {
    let start = Instant::now();
    while start.elapsed() < time {
        let now = state();
        assert!(holds(&now), "after {:?} the state was {now:?}", start.elapsed());
        sleep(Duration::from_millis(10));
    }
}
