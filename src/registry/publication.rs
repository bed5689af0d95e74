//! What a publisher says of an instance.

use std::fmt;

use super::metadata::Metadata;
use crate::error::{Classify, Code};

/// The share of traffic that an instance wants, 0.0 to 10,000.0; 0 takes no traffic.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Weight(f64);

/// A weight that is not finite or out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("weight {0} is not allowed; the weights range from 0.0 to 10000.0")]
pub struct WeightError(pub f64);

impl Classify for WeightError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("weight")
    }
}

impl Weight {
    /// Checks `value`.
    ///
    /// # Errors
    /// [`WeightError`] if it is not a number from 0.0 to 10,000.0 (Nacos 2.5 names the same bounds).
    pub fn new(value: f64) -> Result<Self, WeightError> {
        // A NaN is in no range.
        if (0.0..=10_000.0).contains(&value) { Ok(Self(value.abs())) } else { Err(WeightError(value)) }
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self(1.0)
    }
}

/// How an instance lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// As long as its publisher.
    #[default]
    Ephemeral,
    /// Until it is removed; its health is probed by the servers.
    Persistent,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ephemeral => "ephemeral",
            Self::Persistent => "persistent",
        })
    }
}

/// How the id of an instance is made (metadata `preserved.instance.id.generator`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdGenerator {
    /// `ip#port#cluster#group@@service`.
    #[default]
    Simple,
    /// `<unique number>#cluster#group@@service`.
    Snowflake,
}

impl IdGenerator {
    /// The generator that `metadata` asks for; one that is not known counts as simple.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        match metadata.value("preserved.instance.id.generator") {
            Some("snowflake") => Self::Snowflake,
            _ => Self::Simple,
        }
    }
}

/// What a publisher says of an instance when it registers: everything but the key.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// Its share of traffic.
    pub weight: Weight,
    /// Whether it wants to be listed to clients.
    pub enabled: bool,
    /// Whether it calls itself healthy.
    pub healthy: bool,
    /// Free text, with the reserved `preserved.*` keys.
    pub metadata: Metadata,
    /// The application it belongs to, if it says so (Nacos 1.4 `app`).
    pub app: Option<Box<str>>,
}

impl Default for Publication {
    fn default() -> Self {
        Self { weight: Weight::default(), enabled: true, healthy: true, metadata: Metadata::default(), app: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_finite_and_in_range() {
        for good in [0.0, 0.0001, 1.0, 10_000.0] {
            assert_eq!(Weight::new(good).unwrap().value(), good);
        }
        for bad in [-1.0, 10_000.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Weight::new(bad).is_err(), "{bad}");
        }
        assert!(Weight::new(-0.0).unwrap().value().is_sign_positive());
    }
}
