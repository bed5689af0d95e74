//! Why an owner refused a forwarded write, told so that the client reads what the owner itself would have told it.

use super::{LIMITS, Malformed, pb};
use crate::registry::{
    ClusterName, Endpoint, Error, Kind, Namespace, ServiceKey, Target,
    heartbeat::{DELETE_KEY, INTERVAL_KEY, PeriodError, TIMEOUT_KEY},
    list::Ambiguous,
    metadata::TooLarge,
};

/// The reason of a request that the owner could not read.
pub const MALFORMED: &str = "malformed";

macro_rules! reasons {
    ($($reason:ident = $name:literal,)+) => {
        /// The closed set of reasons.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Reason {
            $($reason,)+
        }

        impl Reason {
            const fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)+
                }
            }

            fn parse(name: &str) -> Option<Self> {
                [$(Self::$reason,)+].into_iter().find(|reason| reason.name() == name)
            }
        }
    };
}

reasons! {
    ServiceUnknown = "service_unknown",
    ServiceExists = "service_exists",
    ServiceNotEmpty = "service_not_empty",
    InstanceUnknown = "instance_unknown",
    OtherKind = "other_kind",
    HeldByConnection = "held_by_connection",
    HeldElsewhere = "held_elsewhere",
    NoBeats = "no_beats",
    Ambiguous = "ambiguous",
    KindConflict = "kind_conflict",
    Checked = "checked",
    NamespaceUnknown = "namespace_unknown",
    NamespaceExists = "namespace_exists",
    NamespaceReserved = "namespace_reserved",
    ConnectionGone = "connection_gone",
    Metadata = "metadata",
    PeriodValue = "period_value",
    PeriodOrder = "period_order",
    Overloaded = "overloaded",
    Stopped = "stopped",
    Internal = "internal",
}

/// The refusal that says `error`.
#[must_use]
pub fn refused(error: &Error) -> pb::Refused {
    let (reason, facts) = match error {
        Error::ServiceUnknown(service) => (Reason::ServiceUnknown, Told::default().service(service)),
        Error::ServiceExists(service) => (Reason::ServiceExists, Told::default().service(service)),
        Error::ServiceNotEmpty { service, count } => {
            (Reason::ServiceNotEmpty, Told::default().service(service).fact(count))
        }
        Error::InstanceUnknown { service, target } => {
            let told = Told::default().service(service).endpoint(&target.endpoint);
            (Reason::InstanceUnknown, target.cluster.iter().fold(told, Told::fact))
        }
        Error::OtherKind { service, endpoint, present, asked } => {
            (Reason::OtherKind, Told::default().service(service).endpoint(endpoint).fact(present).fact(asked))
        }
        Error::HeldByConnection { service, endpoint } => {
            (Reason::HeldByConnection, Told::default().service(service).endpoint(endpoint))
        }
        Error::HeldElsewhere { service, endpoint } => {
            (Reason::HeldElsewhere, Told::default().service(service).endpoint(endpoint))
        }
        Error::NoBeats { service, kind } => (Reason::NoBeats, Told::default().service(service).fact(kind)),
        Error::Ambiguous(Ambiguous { endpoint, clusters }) => {
            (Reason::Ambiguous, clusters.iter().fold(Told::default().endpoint(endpoint), Told::fact))
        }
        Error::KindConflict { service, present, asked } => {
            (Reason::KindConflict, Told::default().service(service).fact(present).fact(asked))
        }
        Error::Checked { service, cluster } => (Reason::Checked, Told::default().service(service).fact(cluster)),
        Error::NamespaceUnknown(namespace) => (Reason::NamespaceUnknown, Told::default().fact(namespace)),
        Error::NamespaceExists(namespace) => (Reason::NamespaceExists, Told::default().fact(namespace)),
        Error::NamespaceReserved => (Reason::NamespaceReserved, Told::default()),
        Error::ConnectionGone => (Reason::ConnectionGone, Told::default()),
        Error::Metadata(TooLarge { size, limit }) => (Reason::Metadata, Told::default().fact(size).fact(limit)),
        Error::Period(PeriodError::Value { key, value }) => {
            (Reason::PeriodValue, Told::default().fact(key).fact(value))
        }
        Error::Period(PeriodError::Order { interval, timeout, delete }) => {
            (Reason::PeriodOrder, Told::default().fact(interval).fact(timeout).fact(delete))
        }
        Error::Overloaded { waiting } => (Reason::Overloaded, Told::default().fact(waiting)),
        Error::Stopped => (Reason::Stopped, Told::default()),
        Error::Internal => (Reason::Internal, Told::default()),
    };
    pb::Refused { reason: reason.name().to_owned(), message: error.to_string(), facts: facts.0 }
}

/// The refusal of a request that cannot be read.
#[must_use]
pub fn malformed(error: &Malformed) -> pb::Refused {
    pb::Refused { reason: MALFORMED.to_owned(), message: error.to_string(), facts: Vec::new() }
}

/// What a refusal says.
///
/// # Errors
/// [`Malformed`] if its reason is none of the closed set, or lacks facts: the two members do not understand each other.
pub fn error(refused: pb::Refused) -> Result<Error, Malformed> {
    let reason = Reason::parse(&refused.reason).ok_or(Malformed::Missing { field: "reason" })?;
    let mut facts = Facts(refused.facts.into_iter());
    Ok(match reason {
        Reason::ServiceUnknown => Error::ServiceUnknown(facts.service()?),
        Reason::ServiceExists => Error::ServiceExists(facts.service()?),
        Reason::ServiceNotEmpty => Error::ServiceNotEmpty { service: facts.service()?, count: facts.number()? },
        Reason::InstanceUnknown => {
            let (service, endpoint) = (facts.service()?, facts.endpoint()?);
            let cluster = facts.clusters()?.pop();
            Error::InstanceUnknown { service, target: Target { endpoint, cluster } }
        }
        Reason::OtherKind => {
            let (service, endpoint) = (facts.service()?, facts.endpoint()?);
            Error::OtherKind { service, endpoint, present: facts.kind()?, asked: facts.kind()? }
        }
        Reason::HeldByConnection => Error::HeldByConnection { service: facts.service()?, endpoint: facts.endpoint()? },
        Reason::HeldElsewhere => Error::HeldElsewhere { service: facts.service()?, endpoint: facts.endpoint()? },
        Reason::NoBeats => Error::NoBeats { service: facts.service()?, kind: facts.kind()? },
        Reason::Ambiguous => Error::Ambiguous(Ambiguous { endpoint: facts.endpoint()?, clusters: facts.clusters()? }),
        Reason::KindConflict => {
            Error::KindConflict { service: facts.service()?, present: facts.kind()?, asked: facts.kind()? }
        }
        Reason::Checked => {
            let service = facts.service()?;
            Error::Checked { service, cluster: facts.clusters()?.pop().unwrap_or_default() }
        }
        Reason::NamespaceUnknown => Error::NamespaceUnknown(facts.namespace()?),
        Reason::NamespaceExists => Error::NamespaceExists(facts.namespace()?),
        Reason::NamespaceReserved => Error::NamespaceReserved,
        Reason::ConnectionGone => Error::ConnectionGone,
        Reason::Metadata => Error::Metadata(TooLarge { size: facts.number()?, limit: facts.number()? }),
        Reason::PeriodValue => Error::Period(PeriodError::Value { key: facts.period()?, value: facts.text()? }),
        Reason::PeriodOrder => {
            let (interval, timeout, delete) = (facts.number()?, facts.number()?, facts.number()?);
            Error::Period(PeriodError::Order { interval, timeout, delete })
        }
        Reason::Overloaded => Error::Overloaded { waiting: facts.number()? },
        Reason::Stopped => Error::Stopped,
        Reason::Internal => Error::Internal,
    })
}

/// Facts on their way out.
#[derive(Debug, Default)]
struct Told(Vec<String>);

impl Told {
    fn fact(mut self, fact: impl ToString) -> Self {
        self.0.push(fact.to_string());
        self
    }

    fn service(self, key: &ServiceKey) -> Self {
        self.fact(&key.namespace).fact(&key.group).fact(&key.name)
    }

    fn endpoint(self, endpoint: &Endpoint) -> Self {
        self.fact(&endpoint.address).fact(endpoint.port)
    }
}

/// Facts that come in, in the order in which they were told.
#[derive(Debug)]
struct Facts(std::vec::IntoIter<String>);

impl Facts {
    const MISSING: Malformed = Malformed::Missing { field: "facts" };

    fn text(&mut self) -> Result<String, Malformed> {
        self.0.next().ok_or(Self::MISSING)
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, Malformed> {
        self.text()?.parse().map_err(|_| Self::MISSING)
    }

    fn service(&mut self) -> Result<ServiceKey, Malformed> {
        Ok(LIMITS.service_key(&self.text()?, &self.text()?, &self.text()?)?)
    }

    fn endpoint(&mut self) -> Result<Endpoint, Malformed> {
        Ok(LIMITS.endpoint(&self.text()?, self.number()?)?)
    }

    fn namespace(&mut self) -> Result<Namespace, Malformed> {
        Ok(LIMITS.namespace(&self.text()?)?)
    }

    fn kind(&mut self) -> Result<Kind, Malformed> {
        let text = self.text()?;
        [Kind::Ephemeral, Kind::Persistent].into_iter().find(|kind| kind.to_string() == text).ok_or(Self::MISSING)
    }

    fn period(&mut self) -> Result<&'static str, Malformed> {
        let text = self.text()?;
        [INTERVAL_KEY, TIMEOUT_KEY, DELETE_KEY].into_iter().find(|key| *key == text).ok_or(Self::MISSING)
    }

    /// All that is left.
    fn clusters(&mut self) -> Result<Vec<ClusterName>, Malformed> {
        self.0
            .by_ref()
            .filter_map(|text| LIMITS.cluster(&text).transpose())
            .collect::<Result<_, _>>()
            .map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_comes_back_as_it_went() {
        let service = LIMITS.service_key("n", "g", "s").unwrap();
        let endpoint = LIMITS.endpoint("10.0.0.1", 80).unwrap();
        let cluster = LIMITS.cluster("c1").unwrap().unwrap();
        let namespace = service.namespace.clone();
        let (present, asked) = (Kind::Ephemeral, Kind::Persistent);
        let target = |cluster| Target { endpoint: endpoint.clone(), cluster };
        let errors = [
            Error::ServiceUnknown(service.clone()),
            Error::ServiceExists(service.clone()),
            Error::ServiceNotEmpty { service: service.clone(), count: 3 },
            Error::InstanceUnknown { service: service.clone(), target: target(None) },
            Error::InstanceUnknown { service: service.clone(), target: target(Some(cluster.clone())) },
            Error::OtherKind { service: service.clone(), endpoint: endpoint.clone(), present, asked },
            Error::HeldByConnection { service: service.clone(), endpoint: endpoint.clone() },
            Error::HeldElsewhere { service: service.clone(), endpoint: endpoint.clone() },
            Error::NoBeats { service: service.clone(), kind: asked },
            Ambiguous { endpoint: endpoint.clone(), clusters: vec![ClusterName::default(), cluster.clone()] }.into(),
            Error::KindConflict { service: service.clone(), present: asked, asked: present },
            Error::Checked { service, cluster },
            Error::NamespaceUnknown(namespace.clone()),
            Error::NamespaceExists(namespace),
            Error::NamespaceReserved,
            Error::ConnectionGone,
            TooLarge { size: 9, limit: 8 }.into(),
            PeriodError::Value { key: TIMEOUT_KEY, value: "x".to_owned() }.into(),
            PeriodError::Order { interval: 3, timeout: 2, delete: 1 }.into(),
            Error::Overloaded { waiting: 4_096 },
            Error::Stopped,
            Error::Internal,
        ];
        for told in errors {
            let refused = refused(&told);
            assert_eq!(refused.message, told.to_string());
            assert_eq!(error(refused), Ok(told));
        }
    }

    #[test]
    fn what_is_not_understood_is_no_error_of_the_client() {
        let strange = |reason: &str| pb::Refused { reason: reason.to_owned(), ..Default::default() };
        assert_eq!(error(strange("full_moon")), Err(Malformed::Missing { field: "reason" }));
        assert_eq!(error(strange("service_unknown")), Err(Malformed::Missing { field: "facts" }));
        assert!(error(malformed(&Malformed::Missing { field: "service" })).is_err());
    }
}
