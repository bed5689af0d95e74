//! How often an instance beats and how long it may be silent, from the reserved keys of its metadata.

use std::time::Duration;

use super::{key::excerpt, metadata::Metadata};
use crate::error::{Classify, Code};

/// The reserved key of the time between beats, in milliseconds.
pub const INTERVAL_KEY: &str = "preserved.heart.beat.interval";
/// The reserved key of the silence after which an instance is unhealthy, in milliseconds.
pub const TIMEOUT_KEY: &str = "preserved.heart.beat.timeout";
/// The reserved key of the silence after which an instance is removed, in milliseconds.
pub const DELETE_KEY: &str = "preserved.ip.delete.timeout";
/// The reserved key that switches expiry off for an instance or a service if its value is `true` (Nacos 2.5).
pub const EXEMPT_KEY: &str = "enableClientBeat";

/// The longest period that may be asked for, in milliseconds: one day.
pub const LONGEST_MILLIS: u64 = 86_400_000;

/// The periods of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// Time between beats, told to the client.
    pub interval: Duration,
    /// Silence after which the instance is unhealthy.
    pub timeout: Duration,
    /// Silence after which the instance is removed.
    pub delete: Duration,
}

impl Default for Periods {
    /// 5 s, 15 s and 30 s (Nacos).
    fn default() -> Self {
        Self { interval: Duration::from_secs(5), timeout: Duration::from_secs(15), delete: Duration::from_secs(30) }
    }
}

/// A reserved key whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeriodError {
    /// The value is no number of milliseconds in range.
    #[error("metadata '{key}' is '{value}'; it must be a whole number of milliseconds from 1 to 86400000")]
    Value {
        /// The reserved key.
        key: &'static str,
        /// What was given, cut to 128 bytes.
        value: String,
    },
    /// The interval is longer than a timeout: the instance would flap for ever.
    #[error(
        "metadata '{INTERVAL_KEY}' ({interval} ms) must not be longer than '{TIMEOUT_KEY}' ({timeout} ms) and \
         '{DELETE_KEY}' ({delete} ms)"
    )]
    Order {
        /// Milliseconds between beats.
        interval: u128,
        /// Milliseconds until unhealthy.
        timeout: u128,
        /// Milliseconds until removed.
        delete: u128,
    },
}

impl Classify for PeriodError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("metadata")
    }
}

impl Periods {
    /// The periods that `metadata` asks for; an absent key has its default.
    ///
    /// # Errors
    /// [`PeriodError`] if a value is no whole number of milliseconds from 1 to a day, or if the interval is longer than
    /// one of the timeouts.
    pub fn of(metadata: &Metadata) -> Result<Self, PeriodError> {
        if metadata.is_empty() {
            return Ok(Self::default());
        }
        let default = Self::default();
        let periods = Self {
            interval: period(metadata, INTERVAL_KEY, default.interval)?,
            timeout: period(metadata, TIMEOUT_KEY, default.timeout)?,
            delete: period(metadata, DELETE_KEY, default.delete)?,
        };
        if periods.interval > periods.timeout || periods.interval > periods.delete {
            return Err(PeriodError::Order {
                interval: periods.interval.as_millis(),
                timeout: periods.timeout.as_millis(),
                delete: periods.delete.as_millis(),
            });
        }
        Ok(periods)
    }
}

/// Whether `metadata` takes its instance or service out of expiry.
#[must_use]
pub fn is_exempt(metadata: &Metadata) -> bool {
    metadata.value(EXEMPT_KEY).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

fn period(metadata: &Metadata, key: &'static str, default: Duration) -> Result<Duration, PeriodError> {
    let Some(value) = metadata.value(key) else { return Ok(default) };
    match value.parse() {
        Ok(millis) if (1..=LONGEST_MILLIS).contains(&millis) => Ok(Duration::from_millis(millis)),
        _ => Err(PeriodError::Value { key, value: excerpt(value) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::limits::Limits;

    fn of(pairs: &[(&str, &str)]) -> Result<Periods, PeriodError> {
        Periods::of(&Limits::default().metadata(pairs.iter().copied()).unwrap())
    }

    #[test]
    fn absent_keys_have_their_defaults() {
        assert_eq!(of(&[]), Ok(Periods::default()));
        assert_eq!(of(&[("zone", "a"), (TIMEOUT_KEY, "6000")]).unwrap().timeout, Duration::from_secs(6));
    }

    #[test]
    fn a_timeout_below_the_interval_is_refused() {
        let error = of(&[(INTERVAL_KEY, "10000"), (TIMEOUT_KEY, "5000"), (DELETE_KEY, "5000")]).unwrap_err();
        assert_eq!(error, PeriodError::Order { interval: 10_000, timeout: 5_000, delete: 5_000 });
    }

    #[test]
    fn values_that_are_no_periods_are_refused() {
        for value in ["0", "-1", "abc", "1000000000000", "", "1.5"] {
            let error = of(&[(TIMEOUT_KEY, value)]).unwrap_err();
            assert_eq!(error, PeriodError::Value { key: TIMEOUT_KEY, value: value.to_owned() });
        }
    }
}
