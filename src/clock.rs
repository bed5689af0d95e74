//! Time as the rest of the crate sees it: monotonic milliseconds since the process started, and wall time for display.
//!
//! Deciders take a [`Mono`] as an argument and never read a clock. [`Clock`] stands on tokio's `Instant`, so paused and
//! simulated time hold everywhere.

use std::{
    ops::Add,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

/// A point on the monotonic time line: milliseconds since the [`Clock`] was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(u64);

impl Mono {
    /// The moment at which the clock was made.
    pub const ZERO: Self = Self(0);

    /// The point `ms` milliseconds after the clock was made.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the clock was made.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this point; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Mono {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Reads the time. Cheap to copy; every copy shares one origin.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose monotonic time starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Monotonic time now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn now(&self) -> Mono {
        let ms = Instant::now().duration_since(self.origin).as_millis();
        Mono(u64::try_from(ms).unwrap_or(u64::MAX))
    }

    /// Wall time now, in milliseconds since 1970-01-01 UTC. For display and for wire fields that ask for it only:
    /// nothing is ever decided by it.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn wall_millis(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_a_later_point_is_zero() {
        assert_eq!(Mono::from_millis(5).since(Mono::from_millis(9)), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn follows_simulated_time() {
        let clock = Clock::start();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now(), Mono::from_millis(3_000));
    }
}
