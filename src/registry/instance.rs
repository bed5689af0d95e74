//! One instance of a service: what its publisher said, seen through what an operator laid over it.
//!
//! Immutable; a change makes a new one. When it was last heard of is not here but in the lease table, so that a beat
//! touches no instance.

use std::fmt;

use super::{
    heartbeat::Periods,
    key::{Address, ClusterName, Endpoint, InstanceKey, ServiceKey},
    lease_table::LeaseId,
    metadata::Metadata,
    overlay::Overlay,
};
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

/// One listed instance.
#[derive(Debug, Clone)]
pub struct Instance {
    address: Address,
    cluster: ClusterName,
    weight: Weight,
    metadata: Metadata,
    rare: Option<Box<Rare>>,
    lease: Option<LeaseId>,
    port: u16,
    kind: Kind,
    enabled: bool,
    healthy: bool,
}

/// What few instances have, kept apart to keep the many small.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rare {
    snowflake: Option<u64>,
    app: Option<Box<str>>,
    overlay: Option<Overlaid>,
}

#[derive(Debug, Clone, PartialEq)]
struct Overlaid {
    overlay: Overlay,
    published_weight: Weight,
    published_enabled: bool,
    published_metadata: Metadata,
}

impl Instance {
    /// An instance as its publisher describes it, with `overlay` laid over.
    ///
    /// `snowflake` is its unique number if its id is made that way; `lease` is the lease that keeps it listed.
    #[must_use]
    pub fn new(
        key: InstanceKey,
        kind: Kind,
        publication: Publication,
        overlay: Overlay,
        snowflake: Option<u64>,
        lease: Option<LeaseId>,
    ) -> Self {
        let Publication { weight, enabled, healthy, metadata, app } = publication;
        let rare = Rare {
            snowflake,
            app,
            overlay: (!overlay.is_empty()).then(|| Overlaid {
                published_weight: weight,
                published_enabled: enabled,
                published_metadata: metadata.clone(),
                overlay: overlay.clone(),
            }),
        };
        Self {
            address: key.endpoint.address,
            port: key.endpoint.port,
            cluster: key.cluster,
            kind,
            weight: overlay.weight().unwrap_or(weight),
            enabled: overlay.enabled().unwrap_or(enabled),
            metadata: metadata.merged_with(overlay.metadata()),
            healthy,
            lease,
            rare: (rare != Rare::default()).then(|| Box::new(rare)),
        }
    }

    /// The same instance with another health.
    #[must_use]
    pub fn with_health(&self, healthy: bool) -> Self {
        Self { healthy, ..self.clone() }
    }

    /// The same instance with `overlay` in place of the present one.
    #[must_use]
    pub fn with_overlay(&self, overlay: Overlay) -> Self {
        Self::new(self.key(), self.kind, self.publication(), overlay, self.snowflake(), self.lease)
    }

    /// The same instance, kept listed by `lease`.
    #[must_use]
    pub(super) fn with_lease(self, lease: Option<LeaseId>) -> Self {
        Self { lease, ..self }
    }

    /// What its publisher said last, without any overlay.
    #[must_use]
    pub fn publication(&self) -> Publication {
        let app = self.rare.as_ref().and_then(|rare| rare.app.clone());
        match self.overlaid() {
            Some(under) => Publication {
                weight: under.published_weight,
                enabled: under.published_enabled,
                metadata: under.published_metadata.clone(),
                healthy: self.healthy,
                app,
            },
            None => Publication {
                weight: self.weight,
                enabled: self.enabled,
                metadata: self.metadata.clone(),
                healthy: self.healthy,
                app,
            },
        }
    }

    /// What it is found by inside its service.
    #[must_use]
    pub fn key(&self) -> InstanceKey {
        InstanceKey {
            endpoint: Endpoint { address: self.address.clone(), port: self.port },
            cluster: self.cluster.clone(),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// How it lives.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its share of traffic, an operator's if there is one.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Whether clients may see it: an operator's word if there is one.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Whether it is believed to be well.
    #[must_use]
    pub fn healthy(&self) -> bool {
        self.healthy
    }

    /// The publisher's metadata with the operator's laid over it.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The application it belongs to, if it said so.
    #[must_use]
    pub fn app(&self) -> Option<&str> {
        self.rare.as_ref().and_then(|rare| rare.app.as_deref())
    }

    /// What an operator laid over it; `None` if nothing.
    #[must_use]
    pub fn overlay(&self) -> Option<&Overlay> {
        self.overlaid().map(|under| &under.overlay)
    }

    /// The lease that keeps it listed, if it is kept by beats.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseId> {
        self.lease
    }

    /// The unique number in its id, if its id is made that way.
    #[must_use]
    pub fn snowflake(&self) -> Option<u64> {
        self.rare.as_ref().and_then(|rare| rare.snowflake)
    }

    /// Its periods of beat and expiry. A reserved key with a value that is not allowed counts as absent here:
    /// registrations were checked before.
    #[must_use]
    pub fn periods(&self) -> Periods {
        Periods::of(&self.metadata).unwrap_or_default()
    }

    /// Its id: `ip#port#cluster#group@@service`, or with a unique number in place of `ip#port` (Nacos 2.5).
    #[must_use]
    pub fn id(&self, service: &ServiceKey) -> String {
        match self.snowflake() {
            Some(number) => format!("{number}#{}#{service}", self.cluster),
            None => format!("{}#{}#{}#{service}", self.address, self.port, self.cluster),
        }
    }

    /// Whether a reader could tell this instance from `other`, which has the same key.
    #[must_use]
    pub fn looks_like(&self, other: &Self) -> bool {
        self.weight == other.weight
            && self.enabled == other.enabled
            && self.healthy == other.healthy
            && self.kind == other.kind
            && self.metadata == other.metadata
            && self.rare == other.rare
    }

    fn overlaid(&self) -> Option<&Overlaid> {
        self.rare.as_ref().and_then(|rare| rare.overlay.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::limits::Limits;

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

    #[test]
    fn an_instance_is_small() {
        // A million of them make this a promise: 300 bytes of memory an instance leave room for no more.
        assert!(size_of::<Instance>() <= 80, "{}", size_of::<Instance>());
    }

    #[test]
    fn ids_follow_the_generator() {
        let limits = Limits::default();
        let service = limits.service_key("", "", "demo").unwrap();
        let key = InstanceKey { endpoint: limits.endpoint("10.0.0.7", 8080).unwrap(), cluster: ClusterName::default() };
        let make = |snowflake| {
            Instance::new(key.clone(), Kind::Ephemeral, Publication::default(), Overlay::default(), snowflake, None)
        };
        assert_eq!(make(None).id(&service), "10.0.0.7#8080#DEFAULT#DEFAULT_GROUP@@demo");
        assert_eq!(make(Some(42)).id(&service), "42#DEFAULT#DEFAULT_GROUP@@demo");
    }
}
