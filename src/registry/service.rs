//! A service: its key, its present snapshot, and what an operator says of it.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;

use super::{
    key::{ClusterName, ServiceKey},
    metadata::Metadata,
    selector::Selector,
    snapshot::Snapshot,
};

/// A service that exists. Its snapshot is written by the apply loop only and read by anyone.
#[derive(Debug)]
pub struct Service {
    key: ServiceKey,
    snapshot: ArcSwap<Snapshot>,
}

impl Service {
    pub(super) fn new(key: ServiceKey, snapshot: Arc<Snapshot>) -> Self {
        Self { key, snapshot: ArcSwap::new(snapshot) }
    }

    /// What it is found by.
    #[must_use]
    pub fn key(&self) -> &ServiceKey {
        &self.key
    }

    /// Its present state. Never waits.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub(super) fn publish(&self, next: Arc<Snapshot>) {
        self.snapshot.store(next);
    }
}

/// What an operator says of a service. A service that has this was created explicitly, or a cluster of it was set up;
/// it stays when its last instance leaves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceSettings {
    /// The share of healthy instances at or below which all are listed as healthy; `None`: never.
    pub protect_threshold: Option<Threshold>,
    /// Free text.
    pub metadata: Metadata,
    /// Which instances a consumer gets.
    pub selector: Selector,
    /// Clusters that were set up.
    pub clusters: BTreeMap<ClusterName, ClusterSettings>,
}

/// A share from 0.0 to 1.0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Threshold(f32);

/// A threshold that is not finite or out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("protect threshold {0} is not allowed; it must be a number from 0.0 to 1.0")]
pub struct ThresholdError(pub f64);

impl crate::error::Classify for ThresholdError {
    fn code(&self) -> crate::error::Code {
        crate::error::Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("protectThreshold")
    }
}

impl Threshold {
    /// Checks `value`.
    ///
    /// # Errors
    /// [`ThresholdError`] if it is not a number from 0.0 to 1.0.
    pub fn new(value: f64) -> Result<Self, ThresholdError> {
        // The cast rounds to the precision in which Nacos keeps and prints it.
        #[expect(clippy::cast_possible_truncation)]
        if (0.0..=1.0).contains(&value) { Ok(Self(value.abs() as f32)) } else { Err(ThresholdError(value)) }
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> f32 {
        self.0
    }

    /// Whether `healthy` of `total` instances are so few that all count as healthy. Never for an empty list.
    #[must_use]
    pub fn protects(self, healthy: usize, total: usize) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let share = healthy as f64 / total as f64;
        total > 0 && share <= f64::from(self.0)
    }
}

/// How the servers probe the instances of a cluster, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// How to probe.
    pub checker: Checker,
    /// The port to probe unless the instance's own is used.
    pub check_port: u16,
    /// Whether to probe the instance's own port.
    pub use_instance_port: bool,
    /// Free text.
    pub metadata: Metadata,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self { checker: Checker::Tcp, check_port: 80, use_instance_port: true, metadata: Metadata::default() }
    }
}

/// A way to probe an instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Checker {
    /// A connection can be opened.
    #[default]
    Tcp,
    /// A GET is answered with the expected status.
    Http {
        /// Path and query.
        path: String,
        /// Headers in the form `name:value|name:value`.
        headers: String,
        /// The status that means healthy.
        expected_status: u16,
    },
    /// A statement runs.
    Mysql {
        /// Who logs in.
        user: String,
        /// With which password.
        password: String,
        /// The statement.
        command: String,
    },
    /// No probe: an operator sets the health.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_starts_at_the_threshold_and_not_for_empty_lists() {
        let half = Threshold::new(0.5).unwrap();
        assert!(half.protects(1, 2));
        assert!(!half.protects(2, 3));
        assert!(!half.protects(0, 0));
        let zero = Threshold::new(0.0).unwrap();
        assert!(zero.protects(0, 3));
        assert!(!zero.protects(1, 3));
        assert!(Threshold::new(1.0).unwrap().protects(3, 3));
    }

    #[test]
    fn thresholds_are_shares() {
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Threshold::new(bad).is_err());
        }
    }
}
