//! What members say to each other (`nomina.peer.v1`) and the registry's values, translated into each other.
//!
//! A peer's names were checked where they were registered; they are checked again for what they are made of, but not
//! against this node's limits: what one member took, every member keeps.

pub mod refusal;

use std::{collections::HashMap, sync::LazyLock};

use super::pb::peer as pb;
use crate::{
    error::{Classify, Code},
    registry::{
        InstanceKey, Limits, Publication, ServiceKey, Target, Weight,
        journal::RecordName,
        key::NameError,
        metadata::TooLarge,
        publication::WeightError,
        replication::Replica,
        share::Share,
        version::{OwnerId, Stamp, Version},
    },
};

/// Limits that no registration can pass.
static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::of_peers);

/// A peer's message that cannot be understood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Malformed {
    /// A part is missing.
    #[error("{field} is missing")]
    Missing {
        /// Which one.
        field: &'static str,
    },
    /// A name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A weight is not allowed.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// There is more metadata than anybody can register.
    #[error(transparent)]
    Metadata(#[from] TooLarge),
    /// A minor number is too large.
    #[error("minor {minor} is not allowed; it must be at most 255")]
    Minor {
        /// What was given.
        minor: u32,
    },
    /// A digest or a bucket does not fit.
    #[error("{field} {value} is not allowed")]
    Number {
        /// Which number.
        field: &'static str,
        /// What was given.
        value: u64,
    },
}

impl Classify for Malformed {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Missing { field } | Self::Number { field, .. } => Some(field),
            Self::Name(error) => error.field(),
            Self::Weight(error) => error.field(),
            Self::Metadata(error) => error.field(),
            Self::Minor { .. } => Some("minor"),
        }
    }
}

/// A service's name.
#[must_use]
pub fn service_name(key: &ServiceKey) -> pb::ServiceName {
    pb::ServiceName { namespace: key.namespace.to_string(), group: key.group.to_string(), name: key.name.to_string() }
}

/// A service's key.
///
/// # Errors
/// [`Malformed`] if it is missing or not allowed.
pub fn service_key(name: Option<pb::ServiceName>) -> Result<ServiceKey, Malformed> {
    let name = name.ok_or(Malformed::Missing { field: "service" })?;
    Ok(LIMITS.service_key(&name.namespace, &name.group, &name.name)?)
}

/// A service as the place where a page ends.
#[must_use]
pub fn cursor(key: &ServiceKey) -> String {
    format!("{}\n{}\n{}", key.namespace, key.group, key.name)
}

/// The service at which a page ended; `None` for an empty cursor.
///
/// # Errors
/// [`Malformed`] if it is no cursor.
pub fn service_at(cursor: &str) -> Result<Option<ServiceKey>, Malformed> {
    if cursor.is_empty() {
        return Ok(None);
    }
    let mut parts = cursor.split('\n');
    let (Some(namespace), Some(group), Some(name), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Malformed::Missing { field: "cursor" });
    };
    Ok(Some(LIMITS.service_key(namespace, group, name)?))
}

/// An instance's name.
#[must_use]
pub fn instance_name(key: &InstanceKey) -> pb::InstanceName {
    pb::InstanceName {
        address: key.endpoint.address.to_string(),
        port: u32::from(key.endpoint.port),
        cluster: key.cluster.to_string(),
    }
}

/// An instance's key.
///
/// # Errors
/// [`Malformed`] if it is missing or not allowed.
pub fn instance_key(name: Option<pb::InstanceName>) -> Result<InstanceKey, Malformed> {
    let name = name.ok_or(Malformed::Missing { field: "instance" })?;
    let endpoint = LIMITS.endpoint(&name.address, i64::from(name.port))?;
    Ok(InstanceKey { endpoint, cluster: LIMITS.cluster(&name.cluster)?.unwrap_or_default() })
}

/// Which instance is meant.
#[must_use]
pub fn target_name(target: &Target) -> pb::Target {
    pb::Target {
        address: target.endpoint.address.to_string(),
        port: u32::from(target.endpoint.port),
        cluster: target.cluster.as_ref().map(ToString::to_string),
    }
}

/// Which instance is meant.
///
/// # Errors
/// [`Malformed`] if it is missing or not allowed.
pub fn target(name: Option<pb::Target>) -> Result<Target, Malformed> {
    let name = name.ok_or(Malformed::Missing { field: "target" })?;
    let endpoint = LIMITS.endpoint(&name.address, i64::from(name.port))?;
    let cluster = name.cluster.map(|cluster| LIMITS.cluster(&cluster)).transpose()?.flatten();
    Ok(Target { endpoint, cluster })
}

/// What is said of an instance, as a record.
#[must_use]
pub fn record(key: &InstanceKey, share: &Share) -> pb::Record {
    let publication = &share.publication;
    pb::Record {
        instance: Some(instance_name(key)),
        stamp: share.version.stamp().number(),
        minor: u32::from(share.version.minor()),
        weight: publication.weight.value(),
        enabled: publication.enabled,
        healthy: publication.healthy,
        metadata: publication
            .metadata
            .iter()
            .map(|(key, value)| pb::Pair { key: key.to_owned(), value: value.to_owned() })
            .collect(),
        app: publication.app.as_deref().unwrap_or_default().to_owned(),
        snowflake: share.snowflake.unwrap_or_default(),
        beats: share.beats,
        connections: share.connections,
    }
}

/// What a record of `owner` says of which instance.
///
/// # Errors
/// [`Malformed`] if a part is missing or not allowed.
pub fn share(record: pb::Record, owner: OwnerId) -> Result<(InstanceKey, Share), Malformed> {
    let key = instance_key(record.instance)?;
    let minor = u8::try_from(record.minor).map_err(|_| Malformed::Minor { minor: record.minor })?;
    let publication = Publication {
        weight: Weight::new(record.weight)?,
        enabled: record.enabled,
        healthy: record.healthy,
        metadata: LIMITS.metadata(record.metadata.into_iter().map(|pair| (pair.key, pair.value)))?,
        app: (!record.app.is_empty()).then(|| record.app.into()),
    };
    let share = Share {
        version: Version::new(Stamp::new(record.stamp), minor, owner),
        beats: record.beats,
        connections: record.connections,
        publication,
        snowflake: (record.snowflake != 0).then_some(record.snowflake),
    };
    Ok((key, share))
}

/// A point in an owner's history ([`Version::order`]) as stamp and minor number.
#[must_use]
pub fn as_of(order: u64) -> (u64, u32) {
    let version = Version::from_order(order, OwnerId::SELF);
    (version.stamp().number(), u32::from(version.minor()))
}

/// The point in an owner's history of this stamp and minor number.
#[must_use]
pub fn order(stamp: u64, minor: u32) -> u64 {
    let minor = u8::try_from(minor).unwrap_or(u8::MAX);
    Version::new(Stamp::new(stamp), minor, OwnerId::SELF).order()
}

/// Collects what is said of many instances by service, services in the order in which they first came.
#[derive(Debug, Default)]
pub struct Grouped {
    services: Vec<pb::ServiceRecords>,
    places: HashMap<ServiceKey, usize>,
    entries: usize,
    bytes: usize,
}

impl Grouped {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// About how many bytes they take on the wire.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a record.
    pub fn record(&mut self, service: &ServiceKey, key: &InstanceKey, share: &Share) {
        let record = record(key, share);
        self.bytes += record.metadata.iter().map(|pair| pair.key.len() + pair.value.len() + 8).sum::<usize>();
        self.of(service, |records| records.records.push(record));
    }

    /// Adds that nothing is said of an instance.
    pub fn absence(&mut self, service: &ServiceKey, key: &InstanceKey) {
        let instance = Some(instance_name(key));
        self.of(service, |records| records.absences.push(pb::Absence { instance }));
    }

    /// Adds that an instance was removed.
    pub fn removal(&mut self, (service, key): &RecordName, stamp: Stamp) {
        let (instance, stamp) = (Some(instance_name(key)), stamp.number());
        self.of(service, |records| records.removals.push(pb::Removal { instance, stamp }));
    }

    /// What has been collected.
    #[must_use]
    pub fn into_services(self) -> Vec<pb::ServiceRecords> {
        self.services
    }

    fn of(&mut self, service: &ServiceKey, add: impl FnOnce(&mut pb::ServiceRecords)) {
        let place = *self.places.entry(service.clone()).or_insert_with(|| {
            self.services.push(pb::ServiceRecords { service: Some(service_name(service)), ..Default::default() });
            self.services.len() - 1
        });
        if let Some(records) = self.services.get_mut(place) {
            add(records);
            self.entries += 1;
            self.bytes += 64;
        }
    }
}

/// Replicas for the registry, and how many entries could not be understood and were left out.
#[derive(Debug, Default)]
pub struct Read {
    /// What could be understood.
    pub replicas: Vec<(ServiceKey, Replica)>,
    /// The first reason why an entry was left out, and how many were.
    pub malformed: Option<(Malformed, usize)>,
}

impl Read {
    fn push(&mut self, entry: Result<(ServiceKey, Replica), Malformed>) {
        match entry {
            Ok(entry) => self.replicas.push(entry),
            Err(error) => match &mut self.malformed {
                Some((_, count)) => *count += 1,
                None => self.malformed = Some((error, 1)),
            },
        }
    }
}

/// What `owner` says of the instances of several services, as of that point in its history.
#[must_use]
pub fn replicas(services: Vec<pb::ServiceRecords>, owner: OwnerId, as_of: u64) -> Read {
    let mut read = Read::default();
    for records in services {
        let service = match service_key(records.service) {
            Ok(service) => service,
            Err(error) => {
                read.push(Err(error));
                continue;
            }
        };
        // Removals first: a record that came after one has the higher stamp and is not touched by it.
        for removal in records.removals {
            let stamp = Stamp::new(removal.stamp);
            let key = instance_key(removal.instance);
            read.push(key.map(|key| (service.clone(), Replica::Removed { key, stamp })));
        }
        for absence in records.absences {
            let key = instance_key(absence.instance);
            read.push(key.map(|key| (service.clone(), Replica::Absent { key, owner, as_of })));
        }
        for record in records.records {
            let share = share(record, owner);
            read.push(share.map(|(key, share)| (service.clone(), Replica::Put { key, share, as_of })));
        }
    }
    read
}

/// Records whose owner this node becomes.
#[must_use]
pub fn adoptions(services: Vec<pb::ServiceRecords>) -> Read {
    let read = replicas(services, OwnerId::SELF, 0);
    let adopt = |(service, replica)| match replica {
        Replica::Put { key, share, .. } => Some((service, Replica::Adopt { key, share })),
        Replica::Absent { .. } | Replica::Removed { .. } | Replica::Adopt { .. } | Replica::Yield { .. } => None,
    };
    Read { replicas: read.replicas.into_iter().filter_map(adopt).collect(), malformed: read.malformed }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn shares()(
            stamp in 0_u64..1 << 44, minor: u8, beats: bool, connections: bool, enabled: bool, healthy: bool,
            weight in 0.0..10_000.0, pairs in prop::collection::btree_map(".{0,8}", ".{0,8}", 0..4),
            app in prop::option::of("[a-z]{1,5}"), snowflake in prop::option::of(1_u64..),
        ) -> Share {
            let metadata = LIMITS.metadata(pairs).unwrap();
            let weight = Weight::new(weight).unwrap();
            let app = app.map(Into::into);
            let version = Version::new(Stamp::new(stamp), minor, OwnerId::new(3).unwrap());
            let publication = Publication { weight, enabled, healthy, metadata, app };
            Share { version, beats, connections, publication, snowflake }
        }
    }

    proptest! {
        #[test]
        fn a_share_comes_back_as_it_went(said in shares(), port: u16) {
            let endpoint = LIMITS.endpoint("host.example", i64::from(port)).unwrap();
            let key = InstanceKey { endpoint, cluster: LIMITS.cluster("c1").unwrap().unwrap() };
            let back = share(record(&key, &said), said.version.owner()).unwrap();
            prop_assert_eq!(back, (key, said));
        }

        #[test]
        fn a_point_in_history_comes_back(at in 0_u64..1 << 52) {
            let (stamp, minor) = as_of(at);
            prop_assert_eq!(order(stamp, minor), at);
        }
    }

    #[test]
    fn what_cannot_be_understood_is_left_out_and_counted() {
        let endpoint = LIMITS.endpoint("10.0.0.1", 1).unwrap();
        let key = InstanceKey { endpoint, cluster: crate::registry::ClusterName::default() };
        let service = LIMITS.service_key("", "", "s").unwrap();
        let version = Version::default();
        let publication = Publication::default();
        let said = Share { version, beats: true, connections: false, publication, snowflake: None };
        let mut grouped = Grouped::default();
        grouped.record(&service, &key, &said);
        grouped.absence(&service, &key);
        grouped.removal(&(service.clone(), key.clone()), Stamp::new(7));
        assert_eq!(grouped.len(), 3);
        let mut services = grouped.into_services();
        assert_eq!(services.len(), 1);
        services[0].records.push(pb::Record { weight: f64::NAN, ..record(&key, &said) });
        services[0].absences.push(pb::Absence { instance: None });
        services.push(pb::ServiceRecords::default());
        let read = replicas(services, OwnerId::new(1).unwrap(), 9);
        assert_eq!(read.replicas.len(), 3);
        assert_eq!(read.malformed, Some((Malformed::Missing { field: "instance" }, 3)));
    }
}
