//! One instance of a service: what its publisher said, seen through what an operator laid over it.
//!
//! It is the merge of its shares, one for each member that has a publisher of it: the newest registration says what is
//! listed, and it is healthy if one share is. Nearly every instance has one share only, which stands in it directly.
//!
//! Immutable; a change makes a new one. When it was last heard of is not here but in the lease table, so that a beat
//! touches no instance.

use std::{cmp::Ordering, num::NonZeroU64};

use smallvec::SmallVec;

use super::{
    heartbeat::Periods,
    key::{Address, ClusterName, Endpoint, InstanceKey, ServiceKey},
    lease_table::LeaseId,
    metadata::Metadata,
    overlay::Overlay,
    owners::Owners,
    publication::{Kind, Publication, Weight},
    share::Share,
    version::{OwnerId, Version},
};

/// One listed instance.
#[derive(Debug, Clone)]
pub struct Instance {
    address: Address,
    cluster: ClusterName,
    weight: Weight,
    metadata: Metadata,
    rare: Option<Box<Rare>>,
    /// Of the share that is listed.
    version: Version,
    connection: Option<ConnectionId>,
    lease: Option<LeaseId>,
    port: u16,
    flags: Flags,
}

/// Truth values in one byte, because an instance has room for no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flags(u8);

impl Flags {
    const PERSISTENT: u8 = 1;
    const ENABLED: u8 = 2;
    /// Listed as healthy: one share is.
    const HEALTHY: u8 = 4;
    /// The share that is listed is healthy itself.
    const WELL: u8 = 8;
    /// The share that is listed is another member's, and beats keep it there.
    const BEATS: u8 = 16;
    /// The share that is listed is another member's, and connections keep it there.
    const CONNECTIONS: u8 = 32;
    /// What a reader sees.
    const SEEN: u8 = Self::PERSISTENT | Self::ENABLED | Self::HEALTHY;

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
    /// The shares that are not listed, from the newest to the oldest.
    covered: Vec<Share>,
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

/// An instance taken apart, to be changed and put together again.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) key: InstanceKey,
    pub(super) kind: Kind,
    /// This node's share.
    pub(super) own: Option<Own>,
    /// The shares of other members, in any order.
    pub(super) others: SmallVec<[Share; 1]>,
    pub(super) overlay: Overlay,
    pub(super) snowflake: Option<u64>,
}

/// What this node itself says of an instance, and who has it say so.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) version: Version,
    pub(super) publication: Publication,
    pub(super) lease: Option<LeaseId>,
    /// From the oldest to the newest.
    pub(super) connections: SmallVec<[ConnectionId; 1]>,
}

impl Own {
    fn share(&self, snowflake: Option<u64>) -> Share {
        Share {
            version: self.version,
            beats: self.lease.is_some(),
            connections: !self.connections.is_empty(),
            publication: self.publication.clone(),
            snowflake,
        }
    }
}

impl Parts {
    /// Puts the instance together; `None` if nobody says anything of it any more.
    pub(super) fn assemble(self, owners: &Owners) -> Option<Instance> {
        let Self { key, kind, own, others, overlay, snowflake } = self;
        let mut shares: SmallVec<[Share; 2]> = own.iter().map(|own| own.share(snowflake)).collect();
        shares.extend(others);
        shares.sort_by(|a, b| newer(b.version, a.version, owners));
        let healthy = shares.iter().any(|share| share.publication.healthy);
        let mut shares = shares.into_iter();
        let listed = shares.next()?;
        let snowflake = snowflake.or(listed.snowflake);
        let mut instance = Instance::new(key, kind, listed.publication, overlay, snowflake, None);
        let foreign = !listed.version.owner().is_self();
        instance.version = listed.version;
        instance.flags = instance
            .flags
            .with(Flags::HEALTHY, healthy)
            .with(Flags::BEATS, foreign && listed.beats)
            .with(Flags::CONNECTIONS, foreign && listed.connections);
        if shares.len() > 0 {
            instance.rare.get_or_insert_default().covered = shares.collect();
        }
        if let Some(mut own) = own {
            instance.lease = own.lease;
            instance.connection = own.connections.pop();
            if !own.connections.is_empty() {
                instance.rare.get_or_insert_default().older_connections = own.connections.into_vec();
            }
        }
        Some(instance)
    }
}

/// Which of two shares is listed before the other: the same on every node, whatever the owners' numbers are there. Changes
/// that are no registrations do not count: of two registrations that did not know of each other the same one stays listed.
fn newer(a: Version, b: Version, owners: &Owners) -> Ordering {
    a.stamp().cmp(&b.stamp()).then_with(|| owners.incarnation(a.owner()).cmp(&owners.incarnation(b.owner())))
}

impl Instance {
    /// An instance as its publisher on this node describes it, with `overlay` laid over.
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
            covered: Vec::new(),
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
                .with(Flags::HEALTHY | Flags::WELL, healthy),
            version: Version::default(),
            lease,
            connection: None,
            rare: rare.boxed(),
        }
    }

    /// The instance taken apart.
    #[must_use]
    pub(super) fn parts(&self) -> Parts {
        let mut others: SmallVec<[Share; 1]> = SmallVec::new();
        let mut own = None;
        for share in self.shares() {
            if share.version.owner().is_self() {
                let (version, publication) = (share.version, share.publication);
                own = Some(Own { version, publication, lease: self.lease, connections: self.connections().collect() });
            } else {
                others.push(share);
            }
        }
        Parts {
            key: self.key(),
            kind: self.kind(),
            own,
            others,
            overlay: self.overlay().cloned().unwrap_or_default(),
            snowflake: self.snowflake(),
        }
    }

    /// The same instance with `overlay` in place of the present one.
    #[must_use]
    pub fn with_overlay(&self, overlay: Overlay) -> Self {
        let next = Self::new(self.key(), self.kind(), self.publication(), overlay, self.snowflake(), self.lease);
        let (version, connection, flags) = (self.version, self.connection, self.flags);
        let flags = flags.with(Flags::ENABLED, next.enabled());
        let mut next = Self { version, connection, flags, ..next };
        if let Some(rare) = &self.rare
            && !(rare.covered.is_empty() && rare.older_connections.is_empty())
        {
            let kept = next.rare.get_or_insert_default();
            kept.covered.clone_from(&rare.covered);
            kept.older_connections.clone_from(&rare.older_connections);
        }
        next
    }

    /// The same instance, kept listed by `lease`.
    #[must_use]
    pub(super) fn with_lease(self, lease: Option<LeaseId>) -> Self {
        Self { lease, ..self }
    }

    /// What each member says of it, what is listed first.
    pub fn shares(&self) -> impl Iterator<Item = Share> + '_ {
        std::iter::once(self.listed()).chain(self.covered().iter().map(|share| self.as_kept_now(share)))
    }

    /// What `owner` says of it.
    #[must_use]
    pub fn share(&self, owner: OwnerId) -> Option<Share> {
        if self.version.owner() == owner {
            return Some(self.listed());
        }
        self.covered().iter().find(|share| share.version.owner() == owner).map(|share| self.as_kept_now(share))
    }

    /// The version of what `owner` says of it.
    #[must_use]
    pub fn version(&self, owner: OwnerId) -> Option<Version> {
        self.versions().find(|version| version.owner() == owner)
    }

    /// The versions of all shares, that of the one that is listed first.
    pub fn versions(&self) -> impl Iterator<Item = Version> + '_ {
        std::iter::once(self.version).chain(self.covered().iter().map(|share| share.version))
    }

    /// Whether what this node itself says of it is that it is well; `false` if it says nothing.
    #[must_use]
    pub fn is_well_here(&self) -> bool {
        if self.version.owner().is_self() {
            return self.flags.has(Flags::WELL);
        }
        self.covered().iter().any(|share| share.version.owner().is_self() && share.publication.healthy)
    }

    /// Whether `owner` says that it is well, beats keep it there, and no beats elsewhere keep a later registration: all that
    /// a beat there has to do is to be noted.
    #[must_use]
    pub fn beats_well_at(&self, owner: OwnerId) -> bool {
        let well = if owner.is_self() {
            self.is_well_here() && self.lease.is_some()
        } else if self.version.owner() == owner {
            self.flags.has(Flags::WELL) && self.flags.has(Flags::BEATS)
        } else {
            self.covered()
                .iter()
                .any(|share| share.version.owner() == owner && share.publication.healthy && share.beats)
        };
        well && self.later_beats(owner).is_none()
    }

    /// The newest share of which beats keep a later registration than the one of `owner`.
    #[must_use]
    pub fn later_beats(&self, owner: OwnerId) -> Option<Share> {
        if self.version.owner() == owner {
            return None;
        }
        let stamp = self.version(owner)?.stamp();
        self.shares().take_while(|share| share.version.stamp() > stamp).find(|share| share.beats)
    }

    /// Whether only other members have publishers of it.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.version(OwnerId::SELF).is_none()
    }

    fn listed(&self) -> Share {
        let own = self.version.owner().is_self();
        Share {
            version: self.version,
            beats: if own { self.lease.is_some() } else { self.flags.has(Flags::BEATS) },
            connections: if own { self.connection.is_some() } else { self.flags.has(Flags::CONNECTIONS) },
            publication: Publication { healthy: self.flags.has(Flags::WELL), ..self.publication() },
            snowflake: self.snowflake(),
        }
    }

    /// Who keeps this node's share stands in the instance, covered or not.
    fn as_kept_now(&self, share: &Share) -> Share {
        let mut share = share.clone();
        if share.version.owner().is_self() {
            (share.beats, share.connections) = (self.lease.is_some(), self.connection.is_some());
        }
        share
    }

    fn covered(&self) -> &[Share] {
        self.rare.as_ref().map_or(&[][..], |rare| rare.covered.as_slice())
    }

    /// The connections that publish it here, from the oldest to the newest.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let older = self.rare.as_ref().map_or(&[][..], |rare| rare.older_connections.as_slice());
        older.iter().copied().chain(self.connection)
    }

    /// Whether a connection publishes it here.
    #[must_use]
    pub fn has_connection(&self) -> bool {
        self.connection.is_some()
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
            let rare = rare.as_deref().cloned().unwrap_or_default();
            Rare { older_connections: Vec::new(), covered: Vec::new(), ..rare }
        };
        self.weight == other.weight
            && self.flags.0 & Flags::SEEN == other.flags.0 & Flags::SEEN
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
    use crate::registry::{limits::Limits, owners::Incarnation, version::Stamp};

    #[test]
    fn an_instance_is_small() {
        // A million of them make this a promise: 300 bytes of memory an instance leave room for no more.
        assert!(size_of::<Instance>() <= 88, "{}", size_of::<Instance>());
    }

    fn key() -> InstanceKey {
        let endpoint = Limits::default().endpoint("10.0.0.7", 8080).unwrap();
        InstanceKey { endpoint, cluster: ClusterName::default() }
    }

    fn weighing(weight: f64, healthy: bool) -> Publication {
        Publication { weight: Weight::new(weight).unwrap(), healthy, ..Publication::default() }
    }

    fn share(owner: OwnerId, stamp: u64, publication: Publication) -> Share {
        let version = Version::new(Stamp::new(stamp), 0, owner);
        Share { version, beats: true, connections: false, publication, snowflake: None }
    }

    #[test]
    fn the_newest_share_is_listed_and_all_come_back() {
        let owners = Owners::default();
        let [b, c] = ["b", "c"].map(|name| owners.number(&Incarnation { name: name.into(), epoch: 1 }).unwrap());
        let connection = |number| ConnectionId::new(NonZeroU64::new(number).unwrap());
        let own = Own {
            version: Version::new(Stamp::new(5), 1, OwnerId::SELF),
            publication: weighing(5.0, false),
            lease: None,
            connections: SmallVec::from_slice(&[connection(1), connection(2)]),
        };
        let others = SmallVec::from_vec(vec![share(b, 7, weighing(7.0, false)), share(c, 7, weighing(8.0, true))]);
        let (kind, snowflake, overlay) = (Kind::Ephemeral, Some(9), Overlay::default());
        let parts = Parts { key: key(), kind, own: Some(own), others, overlay, snowflake };
        let instance = parts.assemble(&owners).unwrap();
        assert_eq!(instance.weight().value(), 8.0, "of equal versions the one of the greater name");
        assert!(instance.healthy() && !instance.is_well_here() && !instance.is_elsewhere());
        assert_eq!(instance.versions().map(|v| v.owner()).collect::<Vec<_>>(), [c, b, OwnerId::SELF]);
        assert_eq!(instance.connections().map(ConnectionId::number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!([b, c, OwnerId::SELF].map(|owner| instance.beats_well_at(owner)), [false, true, false]);
        assert!(!instance.share(c).unwrap().connections && instance.share(OwnerId::SELF).unwrap().connections);
        let mut parts = instance.with_overlay(Overlay::default()).parts();
        assert_eq!(parts.own.as_ref().unwrap().publication.weight.value(), 5.0);
        assert_eq!(parts.own.as_ref().unwrap().connections.len(), 2);
        parts.others.retain(|share| share.version.owner() != c);
        let instance = parts.assemble(&owners).unwrap();
        assert_eq!((instance.weight().value(), instance.healthy(), instance.snowflake()), (7.0, false, Some(9)));
        let mut parts = instance.parts();
        (parts.own, parts.others) = (None, SmallVec::new());
        assert!(parts.assemble(&owners).is_none());
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
