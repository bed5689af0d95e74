//! Services, clusters and namespaces: their settings, and what readers see.

use std::collections::{BTreeMap, BTreeSet};

use super::{DecodeError, changed, instance::metadata};
use crate::{
    error::{Classify, Code},
    registry::{
        command::ServiceChange,
        key::{ClusterName, NameError, ServiceKey},
        limits::Limits,
        metadata::TooLarge,
        selector::{ExpressionError, LabelExpression, Selector},
        service::{Checker, ClusterSettings, ServiceSettings, Threshold, ThresholdError},
        snapshot::Snapshot,
    },
    wire::pb,
};

/// A key or a setting that is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A part is missing or malformed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The protect threshold.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// The metadata.
    #[error(transparent)]
    Metadata(#[from] TooLarge),
    /// The selector.
    #[error(transparent)]
    Selector(#[from] ExpressionError),
    /// A header of an HTTP health check.
    #[error("header '{0}' cannot be kept: a name must be a token, a value must hold no '|' and no control character")]
    Header(String),
}

impl Classify for Error {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Decode(error) => error.field(),
            Self::Name(error) => error.field(),
            Self::Threshold(_) => Some("settings.protect_threshold"),
            Self::Metadata(_) => Some("settings.metadata"),
            Self::Selector(_) => Some("settings.selector.label.labels"),
            Self::Header(_) => Some("settings.health_checker.http.headers"),
        }
    }
}

/// The service that `key` means.
///
/// # Errors
/// [`Error::Decode`] without a key, [`Error::Name`] for a name that is not allowed.
pub fn key(limits: &Limits, key: Option<&pb::ServiceKey>) -> Result<ServiceKey, Error> {
    let key = key.ok_or(DecodeError::Missing { field: "key" })?;
    Ok(limits.service_key(&key.namespace, &key.group, &key.service)?)
}

/// The name of a service.
#[must_use]
pub fn key_message(key: &ServiceKey) -> pb::ServiceKey {
    pb::ServiceKey {
        namespace: key.namespace.as_str().to_owned(),
        group: key.group.as_str().to_owned(),
        service: key.name.as_str().to_owned(),
    }
}

/// The settings of a new service.
///
/// # Errors
/// [`Error`] for the first part that is refused.
pub fn settings(limits: &Limits, settings: Option<pb::ServiceSettings>) -> Result<ServiceSettings, Error> {
    let settings = settings.unwrap_or_default();
    Ok(ServiceSettings {
        protect_threshold: threshold(settings.protect_threshold)?,
        metadata: limits.metadata(settings.metadata)?,
        selector: selector(settings.selector)?,
        clusters: BTreeMap::new(),
    })
}

/// The change of a service's settings that a request asks for.
///
/// # Errors
/// [`Error`] for the first part that is refused.
pub fn change(limits: &Limits, request: pb::UpdateServiceRequest) -> Result<ServiceChange, Error> {
    let settings = request.settings.unwrap_or_default();
    let set = [settings.protect_threshold.is_some(), !settings.metadata.is_empty(), settings.selector.is_some()];
    let allowed = ["protect_threshold", "metadata", "selector"];
    let [with_threshold, with_metadata, with_selector] = changed(request.update_mask.as_ref(), allowed, set)?;
    let threshold = threshold(settings.protect_threshold)?;
    let metadata = limits.metadata(settings.metadata)?;
    let selector = selector(settings.selector)?;
    Ok(ServiceChange {
        protect_threshold: with_threshold.then_some(threshold),
        metadata: with_metadata.then_some(metadata),
        selector: with_selector.then_some(selector),
    })
}

fn threshold(value: Option<f32>) -> Result<Option<Threshold>, Error> {
    Ok(value.map(|share| Threshold::new(share.into())).transpose()?)
}

fn selector(selector: Option<pb::Selector>) -> Result<Selector, Error> {
    match selector.and_then(|selector| selector.rule) {
        None => Ok(Selector::None),
        Some(pb::selector::Rule::Label(label)) => {
            let terms: Vec<_> =
                label.labels.iter().map(|name| format!("CONSUMER.label.{name} = PROVIDER.label.{name}")).collect();
            Ok(Selector::Label(LabelExpression::parse(&terms.join(" & "))?))
        }
    }
}

/// The settings of a service, as a message.
#[must_use]
pub fn settings_message(settings: &ServiceSettings) -> pb::ServiceSettings {
    let selector = match &settings.selector {
        Selector::None => None,
        Selector::Label(expression) => {
            let labels = expression.labels().map(str::to_owned).collect();
            Some(pb::Selector { rule: Some(pb::selector::Rule::Label(pb::LabelSelector { labels })) })
        }
    };
    pb::ServiceSettings {
        protect_threshold: settings.protect_threshold.map(Threshold::value),
        metadata: metadata(&settings.metadata),
        selector,
    }
}

/// How a service fares, counted from its instances.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Count {
    clusters: BTreeSet<ClusterName>,
    instances: u64,
    healthy: u64,
    protected: bool,
}

impl Count {
    fn of(snapshot: &Snapshot) -> Self {
        let mut count = Self::default();
        let (mut healthy, mut enabled) = (0, 0);
        for instance in snapshot.instances().iter() {
            count.instances += 1;
            enabled += usize::from(instance.enabled());
            healthy += usize::from(instance.enabled() && instance.healthy());
            if !count.clusters.contains(instance.cluster()) {
                count.clusters.insert(instance.cluster().clone());
            }
        }
        count.healthy = healthy as u64;
        count.protected = snapshot
            .settings()
            .and_then(|settings| settings.protect_threshold)
            .is_some_and(|threshold| threshold.protects(healthy, enabled));
        count
    }
}

/// A service, as a message.
#[must_use]
pub fn service(key: &ServiceKey, snapshot: &Snapshot) -> pb::Service {
    let mut count = Count::of(snapshot);
    count.clusters.extend(snapshot.settings().iter().flat_map(|settings| settings.clusters.keys().cloned()));
    let clusters = count.clusters.iter().map(|name| cluster_message(name.as_str(), &snapshot.cluster(name))).collect();
    pb::Service {
        clusters,
        instance_count: count.instances,
        healthy_instance_count: count.healthy,
        protected: count.protected,
        ..service_in_watch(key, snapshot)
    }
}

/// A service, as a message, without what is said of its instances.
#[must_use]
pub fn service_in_watch(key: &ServiceKey, snapshot: &Snapshot) -> pb::Service {
    pb::Service {
        key: Some(key_message(key)),
        settings: Some(snapshot.settings().map(|settings| settings_message(settings)).unwrap_or_default()),
        explicit: snapshot.settings().is_some(),
        revision: snapshot.revision(),
        ..pb::Service::default()
    }
}

/// A service, as a row of a list.
#[must_use]
pub fn summary(key: &ServiceKey, snapshot: &Snapshot) -> pb::ServiceSummary {
    let count = Count::of(snapshot);
    pb::ServiceSummary {
        key: Some(key_message(key)),
        cluster_count: u32::try_from(count.clusters.len()).unwrap_or(u32::MAX),
        instance_count: count.instances,
        healthy_instance_count: count.healthy,
        protected: count.protected,
        revision: snapshot.revision(),
    }
}

/// `present` with the change that a request asks for.
///
/// # Errors
/// [`Error`] for the first part that is refused.
pub fn cluster_change(
    limits: &Limits,
    present: ClusterSettings,
    request: pb::UpdateClusterRequest,
) -> Result<ClusterSettings, Error> {
    let new = request.settings.unwrap_or_default();
    let set = [
        new.health_checker.is_some(),
        new.check_port.is_some(),
        new.use_instance_port.is_some(),
        !new.metadata.is_empty(),
    ];
    let allowed = ["health_checker", "check_port", "use_instance_port", "metadata"];
    let [with_checker, with_port, with_use, with_metadata] = changed(request.update_mask.as_ref(), allowed, set)?;
    let default = ClusterSettings::default();
    let checker = checker(new.health_checker)?;
    let check_port = new.check_port.map_or(Ok(default.check_port), port)?;
    let use_instance_port = new.use_instance_port.unwrap_or(default.use_instance_port);
    let metadata = limits.metadata(new.metadata)?;
    Ok(ClusterSettings {
        checker: if with_checker { checker } else { present.checker },
        check_port: if with_port { check_port } else { present.check_port },
        use_instance_port: if with_use { use_instance_port } else { present.use_instance_port },
        metadata: if with_metadata { metadata } else { present.metadata },
    })
}

fn port(port: u32) -> Result<u16, DecodeError> {
    let refused = DecodeError::Range { field: "settings.check_port", value: port.into(), allowed: "0 to 65535" };
    u16::try_from(port).map_err(|_| refused)
}

fn checker(checker: Option<pb::HealthChecker>) -> Result<Checker, Error> {
    use pb::health_checker::Kind;
    Ok(match checker.and_then(|checker| checker.kind) {
        None | Some(Kind::Tcp(_)) => Checker::Tcp,
        Some(Kind::None(_)) => Checker::None,
        Some(Kind::Mysql(pb::MysqlHealthChecker { user, password, command })) => {
            Checker::Mysql { user, password, command }
        }
        Some(Kind::Http(http)) => {
            let expected_status = match http.expected_status {
                0 => 200,
                status => u16::try_from(status).ok().filter(|status| (100..=599).contains(status)).ok_or(
                    DecodeError::Range {
                        field: "settings.health_checker.http.expected_status",
                        value: status.into(),
                        allowed: "0 and 100 to 599",
                    },
                )?,
            };
            Checker::Http { path: http.path, headers: headers(&http.headers)?, expected_status }
        }
    })
}

/// Headers in the form in which the registry keeps them: `name:value|name:value`.
fn headers(headers: &BTreeMap<String, String>) -> Result<String, Error> {
    let mut pairs = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let good = http::HeaderName::try_from(name.as_str()).is_ok()
            && http::HeaderValue::try_from(value.as_str()).is_ok()
            && !name.contains('|')
            && !value.contains('|');
        if !good {
            return Err(Error::Header(crate::registry::key::excerpt(name)));
        }
        pairs.push(format!("{name}:{value}"));
    }
    Ok(pairs.join("|"))
}

/// A cluster, as a message. A password is left out.
#[must_use]
pub fn cluster_message(name: &str, settings: &ClusterSettings) -> pb::Cluster {
    use pb::health_checker::Kind;
    let kind = match &settings.checker {
        Checker::Tcp => Kind::Tcp(pb::TcpHealthChecker {}),
        Checker::None => Kind::None(pb::NoHealthChecker {}),
        Checker::Http { path, headers, expected_status } => Kind::Http(pb::HttpHealthChecker {
            path: path.clone(),
            headers: headers
                .split('|')
                .filter_map(|pair| pair.split_once(':'))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            expected_status: (*expected_status).into(),
        }),
        Checker::Mysql { user, password: _, command } => Kind::Mysql(pb::MysqlHealthChecker {
            user: user.clone(),
            password: String::new(),
            command: command.clone(),
        }),
    };
    pb::Cluster {
        name: name.to_owned(),
        settings: Some(pb::ClusterSettings {
            health_checker: Some(pb::HealthChecker { kind: Some(kind) }),
            check_port: Some(settings.check_port.into()),
            use_instance_port: Some(settings.use_instance_port),
            metadata: metadata(&settings.metadata),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_as_they_went() {
        let sent = pb::ServiceSettings {
            protect_threshold: Some(0.3),
            metadata: [("owner".to_owned(), "x".to_owned())].into(),
            selector: Some(pb::Selector {
                rule: Some(pb::selector::Rule::Label(pb::LabelSelector { labels: vec!["zone".into(), "rack".into()] })),
            }),
        };
        let kept = settings(&Limits::default(), Some(sent.clone())).unwrap();
        assert_eq!(settings_message(&kept), sent);
    }

    #[test]
    fn bad_settings_name_their_field() {
        let of = |settings| super::settings(&Limits::default(), Some(settings)).unwrap_err().field();
        for share in [f32::NAN, f32::INFINITY, -0.1, 1.1] {
            let sent = pb::ServiceSettings { protect_threshold: Some(share), ..Default::default() };
            assert_eq!(of(sent), Some("settings.protect_threshold"));
        }
        for labels in [vec![], vec![String::new()], vec!["a=b".to_owned()]] {
            let rule = Some(pb::selector::Rule::Label(pb::LabelSelector { labels }));
            let sent = pb::ServiceSettings { selector: Some(pb::Selector { rule }), ..Default::default() };
            assert_eq!(of(sent), Some("settings.selector.label.labels"));
        }
    }

    #[test]
    fn a_cluster_change_touches_what_it_names() {
        let limits = Limits::default();
        let http = pb::HealthChecker {
            kind: Some(pb::health_checker::Kind::Http(pb::HttpHealthChecker {
                path: "/up".into(),
                headers: [("x-a".to_owned(), "b".to_owned())].into(),
                expected_status: 204,
            })),
        };
        let request = |settings| pb::UpdateClusterRequest { settings: Some(settings), ..Default::default() };
        let first = pb::ClusterSettings { health_checker: Some(http.clone()), ..Default::default() };
        let with_http = cluster_change(&limits, ClusterSettings::default(), request(first)).unwrap();
        let second = pb::ClusterSettings { check_port: Some(81), ..Default::default() };
        let with_port = cluster_change(&limits, with_http, request(second)).unwrap();
        let shown = cluster_message("c", &with_port).settings.unwrap();
        assert_eq!((shown.health_checker, shown.check_port), (Some(http), Some(81)));

        let bad = pb::ClusterSettings { check_port: Some(65_536), ..Default::default() };
        let error = cluster_change(&limits, ClusterSettings::default(), request(bad)).unwrap_err();
        assert_eq!(error.field(), Some("settings.check_port"));
    }
}
