//! What can be asked of the apply loop, and what it answers.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    heartbeat::PeriodError,
    instance::{ConnectionId, Instance},
    key::{ClusterName, Endpoint, InstanceKey, Namespace, ServiceKey, Target},
    list::Ambiguous,
    metadata::{Metadata, TooLarge},
    overlay::OverlayChange,
    publication::{Kind, Publication},
    replication::Replica,
    selector::Selector,
    service::{ClusterSettings, ServiceSettings, Threshold},
    switches::SwitchChange,
};
use crate::error::{Classify, Code};

/// One change of the registry. Everything in it has been validated.
#[derive(Debug, Clone)]
pub enum Command {
    /// A change of one service or of an instance in it.
    Service(ServiceKey, ServiceCommand),
    /// A connection begins; only from now on it may publish.
    Open(ConnectionId),
    /// A connection has ended; what it alone published is removed.
    Close(ConnectionId),
    /// A change of the list of namespaces.
    Namespace(Namespace, NamespaceCommand),
    /// A change of a switch.
    Switch(SwitchChange),
    /// As [`ServiceCommand::Renew`] for many instances; those that are unknown are passed over.
    Renew(Vec<(ServiceKey, InstanceKey)>),
    /// Records of other members, or of this one, come and go. It cannot fail.
    Replicate(Vec<(ServiceKey, Replica)>),
}

/// A change of one service.
#[derive(Debug, Clone)]
pub enum ServiceCommand {
    /// Lists an instance, or replaces what its publisher said of it. Creates the service if it does not exist. An
    /// ephemeral instance is kept by beats from now on.
    Register(InstanceKey, Kind, Publication),
    /// Ends what [`ServiceCommand::Register`] began, if the instance is of that kind. It goes, unless a connection
    /// publishes it too.
    Deregister(Target, Kind),
    /// A connection publishes exactly these instances in the service, in place of those it published before.
    Publish(ConnectionId, Vec<(InstanceKey, Publication)>),
    /// A connection no longer publishes the instance that is meant; if it publishes one only, that one, whatever is meant.
    Withdraw(ConnectionId, Target),
    /// Makes a beat-kept instance healthy again.
    Renew(InstanceKey),
    /// Changes what an operator laid over one instance.
    Overlay(Target, OverlayChange),
    /// Changes what an operator laid over several instances; those that do not exist are passed over.
    OverlayMany(Selection, OverlayChange),
    /// Sets the health of an instance whose cluster has no checker.
    SetHealth(Target, bool),
    /// Creates the service explicitly.
    Create(ServiceSettings),
    /// Replaces settings of the service; clusters that were set up stay.
    Update(ServiceChange),
    /// Removes the service, which must have no instances.
    Delete,
    /// Sets a cluster of the service up.
    SetCluster(ClusterName, ClusterSettings),
}

/// Instances of a service.
#[derive(Debug, Clone)]
pub enum Selection {
    /// All of a kind.
    All(Kind),
    /// Those that are meant, if they are of that kind.
    Listed(Vec<(Target, Kind)>),
}

/// New settings of a service. What is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct ServiceChange {
    /// The protect threshold; `Some(None)`: never protected.
    pub protect_threshold: Option<Option<Threshold>>,
    /// The metadata, whole.
    pub metadata: Option<Metadata>,
    /// The selector.
    pub selector: Option<Selector>,
}

/// A change of the list of namespaces.
#[derive(Debug, Clone)]
pub enum NamespaceCommand {
    /// Adds it.
    Create(NamespaceInfo),
    /// Changes what is said of it.
    Update(NamespaceInfo),
    /// Takes it off the list. Services in it are not touched.
    Delete,
}

/// What is said of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceInfo {
    /// The name for people.
    pub name: String,
    /// More about it.
    pub description: String,
}

/// The answer to a command that took effect. It is sent after the new snapshot is there to be read.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The revision of the service after the command; 0 if the command is not about a service, or it is gone.
    pub revision: u64,
    /// The instances that the command was about, as they are now, or as they were before they were removed.
    pub instances: SmallVec<[Arc<Instance>; 1]>,
}

/// Why a command had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The service does not exist.
    #[error("service {0} not found in namespace {namespace}", namespace = .0.namespace)]
    ServiceUnknown(ServiceKey),
    /// The service exists already.
    #[error("service {0} already exists in namespace {namespace}", namespace = .0.namespace)]
    ServiceExists(ServiceKey),
    /// The service has instances.
    #[error("service {service} has {count} instances; deregister them first")]
    ServiceNotEmpty {
        /// The service.
        service: ServiceKey,
        /// How many instances it has.
        count: usize,
    },
    /// The service has no such instance.
    #[error(
        "instance {} of cluster {} not found in service {service}",
        target.endpoint,
        target.cluster.as_ref().map_or("(not named)", |cluster| cluster.as_str())
    )]
    InstanceUnknown {
        /// The service.
        service: ServiceKey,
        /// The instance that was meant.
        target: Target,
    },
    /// The instance is there, but lives in the other way.
    #[error("instance {endpoint} in service {service} is {present}, not {asked}")]
    OtherKind {
        /// The service.
        service: ServiceKey,
        /// Where the instance listens.
        endpoint: Endpoint,
        /// How it lives.
        present: Kind,
        /// How it was thought to live.
        asked: Kind,
    },
    /// The instance is there, but only connections keep it.
    #[error(
        "instance {endpoint} in service {service} is published by a connection; it goes when that ends or withdraws it"
    )]
    HeldByConnection {
        /// The service.
        service: ServiceKey,
        /// Where the instance listens.
        endpoint: Endpoint,
    },
    /// The instance is there, but its publishers are at other members.
    #[error("instance {endpoint} in service {service} is published at another member of the cluster")]
    HeldElsewhere {
        /// The service.
        service: ServiceKey,
        /// Where the instance listens.
        endpoint: Endpoint,
    },
    /// A beat for an instance that is not kept by beats.
    #[error("the instance in service {service} is {kind} and takes no beats; only ephemeral instances do")]
    NoBeats {
        /// The service.
        service: ServiceKey,
        /// The kind of the instance.
        kind: Kind,
    },
    /// The request fits several instances.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// The service holds instances of the other kind.
    #[error("service {service} is {present}; an instance that is {asked} cannot be registered in it")]
    KindConflict {
        /// The service.
        service: ServiceKey,
        /// The kind of its instances.
        present: Kind,
        /// The kind that was asked for.
        asked: Kind,
    },
    /// The health of the instance is not an operator's to set.
    #[error("health check is still working, service: {service}, cluster: {cluster}")]
    Checked {
        /// The service.
        service: ServiceKey,
        /// The cluster that has a checker.
        cluster: ClusterName,
    },
    /// The namespace is not on the list.
    #[error("namespace '{0}' not found")]
    NamespaceUnknown(Namespace),
    /// The namespace is on the list already.
    #[error("namespace '{0}' already exists")]
    NamespaceExists(Namespace),
    /// The namespace `public` is always there.
    #[error("namespace 'public' is built in and cannot be changed")]
    NamespaceReserved,
    /// The connection that publishes has ended, or never began.
    #[error("the connection has ended; what it published is gone")]
    ConnectionGone,
    /// Publisher's and operator's metadata together exceed the limit.
    #[error(transparent)]
    Metadata(#[from] TooLarge),
    /// Publisher's and operator's metadata together ask for periods that cannot be kept.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// Too many commands are waiting.
    #[error("{waiting} changes are waiting to be applied, the setting registry.queue allows no more; try again")]
    Overloaded {
        /// How many may wait.
        waiting: usize,
    },
    /// The apply loop has ended.
    #[error("this server is shutting down")]
    Stopped,
    /// A fault of ours; nothing was changed.
    #[error("the change failed inside the server; nothing was changed")]
    Internal,
}

impl Classify for Error {
    fn code(&self) -> Code {
        match self {
            Self::ServiceUnknown(_) | Self::InstanceUnknown { .. } | Self::NamespaceUnknown(_) => Code::NotFound,
            Self::ServiceExists(_) | Self::NamespaceExists(_) => Code::AlreadyExists,
            Self::ServiceNotEmpty { .. }
            | Self::KindConflict { .. }
            | Self::OtherKind { .. }
            | Self::HeldByConnection { .. }
            | Self::HeldElsewhere { .. }
            | Self::NoBeats { .. }
            | Self::Checked { .. } => Code::FailedPrecondition,
            Self::Ambiguous(_) | Self::NamespaceReserved | Self::Metadata(_) | Self::Period(_) => Code::InvalidArgument,
            Self::Overloaded { .. } => Code::ResourceExhausted,
            Self::Stopped | Self::ConnectionGone => Code::Unavailable,
            Self::Internal => Code::Internal,
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Ambiguous(_) => Some("cluster"),
            Self::KindConflict { .. } | Self::OtherKind { .. } => Some("ephemeral"),
            Self::NamespaceReserved => Some("namespace"),
            Self::Metadata(error) => error.field(),
            Self::Period(error) => error.field(),
            Self::ServiceUnknown(_)
            | Self::ServiceExists(_)
            | Self::ServiceNotEmpty { .. }
            | Self::InstanceUnknown { .. }
            | Self::HeldByConnection { .. }
            | Self::HeldElsewhere { .. }
            | Self::NoBeats { .. }
            | Self::Checked { .. }
            | Self::NamespaceUnknown(_)
            | Self::NamespaceExists(_)
            | Self::Overloaded { .. }
            | Self::ConnectionGone
            | Self::Stopped
            | Self::Internal => None,
        }
    }
}
