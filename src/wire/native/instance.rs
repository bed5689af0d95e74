//! Instances: keys, what is published, overlays, and what readers see.

use std::{collections::BTreeMap, time::Duration};

use super::{DecodeError, changed, duration, millis};
use crate::{
    error::{Classify, Code},
    registry::{
        heartbeat::{DELETE_KEY, INTERVAL_KEY, LONGEST_MILLIS, TIMEOUT_KEY},
        instance::Instance,
        key::{InstanceKey, NameError, ServiceKey, Target},
        limits::Limits,
        metadata::{Metadata, TooLarge},
        overlay::{Overlay, OverlayChange, Parts},
        publication::{Kind, Publication, Weight, WeightError},
        select::Query,
    },
    wire::pb,
};

/// A key, a publication or a change of an overlay that is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A part is missing or malformed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A name, an address or a port.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The weight.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// The metadata.
    #[error(transparent)]
    Metadata(#[from] TooLarge),
}

impl Classify for Error {
    fn code(&self) -> Code {
        match self {
            Self::Decode(error) => error.code(),
            Self::Name(error) => error.code(),
            Self::Weight(error) => error.code(),
            Self::Metadata(error) => error.code(),
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Decode(error) => error.field(),
            Self::Name(error) => error.field(),
            Self::Weight(error) => error.field(),
            Self::Metadata(error) => error.field(),
        }
    }
}

/// The service and the instance that `key` means.
///
/// # Errors
/// [`Error::Decode`] without a key, [`Error::Name`] for a name that is not allowed.
pub fn key(limits: &Limits, key: Option<&pb::InstanceKey>) -> Result<(ServiceKey, Target), Error> {
    let key = key.ok_or(DecodeError::Missing { field: "key" })?;
    let service = limits.service_key(&key.namespace, &key.group, &key.service)?;
    let endpoint = limits.endpoint(&key.ip, key.port.into())?;
    Ok((service, Target { endpoint, cluster: limits.cluster(&key.cluster)? }))
}

/// The service and the instance that `key` gives a name to: no cluster is `DEFAULT`.
///
/// # Errors
/// As [`key`].
pub fn new_key(limits: &Limits, key: Option<&pb::InstanceKey>) -> Result<(ServiceKey, InstanceKey), Error> {
    let (service, Target { endpoint, cluster }) = self::key(limits, key)?;
    Ok((service, InstanceKey { endpoint, cluster: cluster.unwrap_or_default() }))
}

/// What a publisher says; `None` says nothing, so all defaults hold.
///
/// The periods that are set as fields become reserved metadata; whether they fit together is for the registry to say.
///
/// # Errors
/// [`Error`] for the first part that is refused.
pub fn publication(limits: &Limits, spec: Option<pb::InstanceSpec>) -> Result<(Kind, Publication), Error> {
    let Some(spec) = spec else { return Ok((Kind::default(), Publication::default())) };
    let mut metadata = spec.metadata;
    for (field, key, period) in [
        ("spec.heartbeat_interval", INTERVAL_KEY, spec.heartbeat_interval),
        ("spec.heartbeat_timeout", TIMEOUT_KEY, spec.heartbeat_timeout),
        ("spec.delete_timeout", DELETE_KEY, spec.delete_timeout),
    ] {
        if let Some(period) = period {
            let period = millis(field, period)?;
            if !(1..=LONGEST_MILLIS).contains(&period) {
                let value = i64::try_from(period).unwrap_or(i64::MAX);
                return Err(DecodeError::Range { field, value, allowed: "1 to 86400000 milliseconds" }.into());
            }
            metadata.insert(key.to_owned(), period.to_string());
        }
    }
    let publication = Publication {
        weight: spec.weight.map(Weight::new).transpose()?.unwrap_or_default(),
        enabled: spec.enabled.unwrap_or(true),
        healthy: spec.healthy.unwrap_or(true),
        metadata: limits.metadata(metadata)?,
        app: None,
    };
    Ok((kind("kind", spec.kind)?.unwrap_or_default(), publication))
}

/// The change of an overlay that a request asks for, its key aside.
///
/// # Errors
/// [`Error`] for the first part that is refused.
pub fn overlay_change(limits: &Limits, request: pb::UpdateInstanceRequest) -> Result<OverlayChange, Error> {
    let pb::UpdateInstanceRequest { key: _, weight, enabled, metadata, update_mask } = request;
    let set = [weight.is_some(), enabled.is_some(), !metadata.is_empty()];
    let [with_weight, with_enabled, with_metadata] =
        changed(update_mask.as_ref(), ["weight", "enabled", "metadata"], set)?;
    let weight = weight.map(Weight::new).transpose()?;
    let metadata = limits.metadata(metadata)?;
    Ok(OverlayChange {
        unset: Parts { weight: with_weight, enabled: with_enabled, metadata: with_metadata },
        weight: weight.filter(|_| with_weight),
        enabled: enabled.filter(|_| with_enabled),
        set_metadata: if with_metadata { self::metadata(&metadata) } else { BTreeMap::new() },
        ..OverlayChange::default()
    })
}

/// More clusters than this in one query are refused: each instance is looked up in the list.
const MOST_CLUSTERS: usize = 1_024;

/// What a consumer asks for. Without a consumer no selector is applied.
///
/// # Errors
/// [`Error`] for a cluster name that is not allowed, or too many.
pub fn query(
    limits: &Limits,
    clusters: &[String],
    healthy_only: bool,
    raw: bool,
    consumer: Option<pb::Consumer>,
) -> Result<Query, Error> {
    if clusters.len() > MOST_CLUSTERS {
        let value = i64::try_from(clusters.len()).unwrap_or(i64::MAX);
        return Err(DecodeError::Range { field: "clusters", value, allowed: "at most 1024 names" }.into());
    }
    let mut names = Vec::with_capacity(clusters.len());
    for name in clusters {
        names.push(limits.cluster(name)?.unwrap_or_default());
    }
    Ok(Query {
        clusters: (!names.is_empty()).then_some(names),
        healthy_only,
        labels: consumer.map(|consumer| consumer.labels).unwrap_or_default(),
        raw,
    })
}

/// The kind of a number; `None` for "unspecified".
///
/// # Errors
/// [`DecodeError::Enum`] if it is no kind.
pub fn kind(field: &'static str, value: i32) -> Result<Option<Kind>, DecodeError> {
    match pb::InstanceKind::try_from(value) {
        Ok(pb::InstanceKind::Unspecified) => Ok(None),
        Ok(pb::InstanceKind::Ephemeral) => Ok(Some(Kind::Ephemeral)),
        Ok(pb::InstanceKind::Persistent) => Ok(Some(Kind::Persistent)),
        Err(_) => Err(DecodeError::Enum { field, value }),
    }
}

/// The number of a kind.
#[must_use]
pub fn kind_number(kind: Kind) -> i32 {
    match kind {
        Kind::Ephemeral => pb::InstanceKind::Ephemeral,
        Kind::Persistent => pb::InstanceKind::Persistent,
    }
    .into()
}

/// How a reader sees an instance, beside what the instance itself says.
#[derive(Debug, Clone, Copy, Default)]
pub struct View {
    /// It is shown as healthy whatever it is: the protection of its service holds.
    pub protected: bool,
    /// Time since its last beat, if that is to be told.
    pub silence: Option<Duration>,
    /// Time since an operator last changed its overlay, if that is to be told.
    pub overlay_age: Option<Duration>,
}

/// `instance` of `service` for a reader.
#[must_use]
pub fn instance(service: &ServiceKey, instance: &Instance, view: View) -> pb::Instance {
    let periods = instance.periods();
    pb::Instance {
        cluster: instance.cluster().as_str().to_owned(),
        ip: instance.address().to_string(),
        port: instance.port().into(),
        weight: instance.weight().value(),
        enabled: instance.enabled(),
        healthy: view.protected || instance.healthy(),
        kind: kind_number(instance.kind()),
        metadata: metadata(instance.metadata()),
        instance_id: instance.id(service),
        heartbeat_interval: Some(duration(periods.interval)),
        heartbeat_timeout: Some(duration(periods.timeout)),
        delete_timeout: Some(duration(periods.delete)),
        since_last_beat: view.silence.map(duration),
        overlay: instance.overlay().map(|over| overlay(over, view.overlay_age)),
    }
}

/// Where in its service an instance stands.
#[must_use]
pub fn address(key: &InstanceKey) -> pb::InstanceAddress {
    pb::InstanceAddress {
        cluster: key.cluster.as_str().to_owned(),
        ip: key.endpoint.address.to_string(),
        port: key.endpoint.port.into(),
    }
}

/// Metadata as a map.
#[must_use]
pub fn metadata(metadata: &Metadata) -> BTreeMap<String, String> {
    metadata.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn overlay(overlay: &Overlay, age: Option<Duration>) -> pb::InstanceOverlay {
    pb::InstanceOverlay {
        weight: overlay.weight().map(Weight::value),
        enabled: overlay.enabled(),
        metadata: overlay.metadata().clone(),
        origin: overlay.origin().to_owned(),
        age: age.map(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Mono,
        registry::heartbeat::Periods,
        wire::native::{At, Shape},
    };

    fn key_message(ip: &str, port: u32, cluster: &str) -> pb::InstanceKey {
        pb::InstanceKey { service: "s".into(), ip: ip.into(), port, cluster: cluster.into(), ..Default::default() }
    }

    #[test]
    fn an_empty_cluster_is_named_at_registration_only() {
        let limits = Limits::default();
        let sent = key_message("10.0.0.1", 80, "");
        assert_eq!(key(&limits, Some(&sent)).unwrap().1.cluster, None);
        assert_eq!(new_key(&limits, Some(&sent)).unwrap().1.cluster.as_str(), "DEFAULT");
    }

    #[test]
    fn bad_keys_name_their_field() {
        let limits = Limits::default();
        let of = |sent: Option<&pb::InstanceKey>| At(Shape::Keyed, key(&limits, sent).unwrap_err()).field();
        assert_eq!(of(None), Some("key"));
        assert_eq!(of(Some(&key_message("", 80, ""))), Some("key.ip"));
        assert_eq!(of(Some(&key_message("a", 65_536, ""))), Some("key.port"));
        assert_eq!(of(Some(&key_message("a", 1, "x y"))), Some("key.cluster"));
        assert_eq!(of(Some(&pb::InstanceKey::default())), Some("key.service"));
    }

    #[test]
    fn periods_become_reserved_metadata() {
        let spec = pb::InstanceSpec {
            metadata: [(TIMEOUT_KEY.to_owned(), "99".to_owned())].into(),
            heartbeat_timeout: Some(prost_types::Duration { seconds: 6, nanos: 0 }),
            ..Default::default()
        };
        let (kind, publication) = publication(&Limits::default(), Some(spec)).unwrap();
        assert_eq!(kind, Kind::Ephemeral);
        assert_eq!(Periods::of(&publication.metadata).unwrap().timeout, Duration::from_secs(6));
    }

    #[test]
    fn bad_publications_name_their_field() {
        let of = |spec| At(Shape::Registration, publication(&Limits::default(), Some(spec)).unwrap_err()).field();
        for weight in [f64::NAN, f64::INFINITY, -1.0, 10_000.5] {
            assert_eq!(of(pb::InstanceSpec { weight: Some(weight), ..Default::default() }), Some("spec.weight"));
        }
        assert_eq!(of(pb::InstanceSpec { kind: 7, ..Default::default() }), Some("spec.kind"));
        let delete_timeout = Some(prost_types::Duration { seconds: -1, nanos: 0 });
        assert_eq!(of(pb::InstanceSpec { delete_timeout, ..Default::default() }), Some("spec.delete_timeout"));
        let metadata = [("k".to_owned(), "v".repeat(70_000))].into();
        assert_eq!(of(pb::InstanceSpec { metadata, ..Default::default() }), Some("spec.metadata"));
    }

    #[test]
    fn a_masked_field_without_a_value_goes_back_to_the_publisher() {
        let set = OverlayChange { weight: Some(Weight::default()), enabled: Some(false), ..Default::default() };
        let overlay = Overlay::default().changed(&set, Mono::ZERO);
        let request = pb::UpdateInstanceRequest {
            update_mask: Some(prost_types::FieldMask { paths: vec!["weight".into()] }),
            ..Default::default()
        };
        let overlay = overlay.changed(&overlay_change(&Limits::default(), request).unwrap(), Mono::ZERO);
        assert_eq!((overlay.weight(), overlay.enabled()), (None, Some(false)));
    }
}
