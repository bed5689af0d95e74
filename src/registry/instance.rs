//! One instance of a service: what its publisher said, seen through what an operator laid over it.
//!
//! Immutable; a change makes a new one. When it was last heard of is not here but in the lease table, so that a beat
//! touches no instance.

use std::num::NonZeroU64;

use super::{
    heartbeat::Periods,
    key::{Address, ClusterName, Endpoint, InstanceKey, ServiceKey},
    lease_table::LeaseId,
    metadata::Metadata,
    overlay::Overlay,
    publication::{Kind, Publication, Weight},
};
/// One listed instance.
#[derive(Debug, Clone)]
pub struct Instance {
    address: Address,
    cluster: ClusterName,
    weight: Weight,
    metadata: Metadata,
    rare: Option<Box<Rare>>,
    connection: Option<ConnectionId>,
    lease: Option<LeaseId>,
    port: u16,
    flags: Flags,
}

/// Three truth values in one byte, because an instance has room for no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flags(u8);

impl Flags {
    const PERSISTENT: u8 = 1;
    const ENABLED: u8 = 2;
    const HEALTHY: u8 = 4;

    const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    const fn with(self, flag: u8, on: bool) -> Self {
        if on { Self(self.0 | flag) } else { Self(self.0 & !flag) }
    }
}

/// A client connection that publishes instances: they are listed as long as it is open. Unique for the life of the
/// process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(NonZeroU64);

impl ConnectionId {
    /// The connection of this number.
    #[must_use]
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

/// What few instances have, kept apart to keep the many small.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rare {
    /// Connections that publish it too, from the oldest to the newest but one.
    older_connections: Vec<ConnectionId>,
    snowflake: Option<u64>,
    app: Option<Box<str>>,
    overlay: Option<Overlaid>,
}

impl Rare {
    fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
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
            older_connections: Vec::new(),
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
            weight: overlay.weight().unwrap_or(weight),
            metadata: metadata.merged_with(overlay.metadata()),
            flags: Flags(0)
                .with(Flags::PERSISTENT, kind == Kind::Persistent)
                .with(Flags::ENABLED, overlay.enabled().unwrap_or(enabled))
                .with(Flags::HEALTHY, healthy),
            lease,
            connection: None,
            rare: rare.boxed(),
        }
    }

    /// The same instance with another health.
    #[must_use]
    pub fn with_health(&self, healthy: bool) -> Self {
        Self { flags: self.flags.with(Flags::HEALTHY, healthy), ..self.clone() }
    }

    /// The same instance with `overlay` in place of the present one.
    #[must_use]
    pub fn with_overlay(&self, overlay: Overlay) -> Self {
        Self::new(self.key(), self.kind(), self.publication(), overlay, self.snowflake(), self.lease)
            .with_publishers_of(self)
    }

    /// The same instance, published also by all connections that publish `other`.
    #[must_use]
    pub(super) fn with_publishers_of(self, other: &Self) -> Self {
        other.connections().fold(self, Self::with_connection)
    }

    /// The same instance, published also by `connection`, from now on the newest.
    #[must_use]
    pub(super) fn with_connection(self, connection: ConnectionId) -> Self {
        let mut next = self.without_connection(connection);
        if let Some(older) = next.connection.replace(connection) {
            let mut rare = next.rare.take().unwrap_or_default();
            rare.older_connections.push(older);
            next.rare = Some(rare);
        }
        next
    }

    /// The same instance, no longer published by `connection`.
    #[must_use]
    pub(super) fn without_connection(mut self, connection: ConnectionId) -> Self {
        let mut rare = self.rare.take().map_or_else(Rare::default, |rare| *rare);
        rare.older_connections.retain(|older| *older != connection);
        if self.connection == Some(connection) {
            self.connection = rare.older_connections.pop();
        }
        self.rare = rare.boxed();
        self
    }

    /// The connections that publish it, from the oldest to the newest.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let older = self.rare.as_ref().map_or(&[][..], |rare| rare.older_connections.as_slice());
        older.iter().copied().chain(self.connection)
    }

    /// Whether a connection publishes it.
    #[must_use]
    pub fn has_connection(&self) -> bool {
        self.connection.is_some()
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
                healthy: self.healthy(),
                app,
            },
            None => Publication {
                weight: self.weight,
                enabled: self.enabled(),
                metadata: self.metadata.clone(),
                healthy: self.healthy(),
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
        if self.flags.has(Flags::PERSISTENT) { Kind::Persistent } else { Kind::Ephemeral }
    }

    /// Its share of traffic, an operator's if there is one.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Whether clients may see it: an operator's word if there is one.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.flags.has(Flags::ENABLED)
    }

    /// Whether it is believed to be well.
    #[must_use]
    pub fn healthy(&self) -> bool {
        self.flags.has(Flags::HEALTHY)
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

    /// Its periods of beat and expiry. What was listed has been checked, the publisher's and the
    /// operator's keys together; were it not, the defaults would hold.
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
        let shown = |rare: &Option<Box<Rare>>| {
            rare.as_ref().map(|rare| Rare { older_connections: Vec::new(), ..Rare::clone(rare) }).unwrap_or_default()
        };
        self.weight == other.weight
            && self.flags == other.flags
            && self.metadata == other.metadata
            && shown(&self.rare) == shown(&other.rare)
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
    fn an_instance_is_small() {
        // A million of them make this a promise: 300 bytes of memory an instance leave room for no more.
        assert!(size_of::<Instance>() <= 80, "{}", size_of::<Instance>());
    }

    #[test]
    fn the_newest_connection_comes_last_and_the_end_of_one_leaves_the_others() {
        let limits = Limits::default();
        let key = InstanceKey { endpoint: limits.endpoint("10.0.0.7", 8080).unwrap(), cluster: ClusterName::default() };
        let connection = |number| ConnectionId::new(NonZeroU64::new(number).unwrap());
        let of = |instance: &Instance| instance.connections().map(ConnectionId::number).collect::<Vec<_>>();
        let instance = Instance::new(key, Kind::Ephemeral, Publication::default(), Overlay::default(), None, None);
        let instance = [1, 2, 3, 1].into_iter().fold(instance, |i, number| i.with_connection(connection(number)));
        assert_eq!(of(&instance), [2, 3, 1]);
        let instance = instance.without_connection(connection(1));
        assert_eq!(of(&instance), [2, 3]);
        let instance = instance.without_connection(connection(2)).without_connection(connection(3));
        assert!(!instance.has_connection() && instance.rare.is_none());
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
