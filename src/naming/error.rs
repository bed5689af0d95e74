use crate::{
    error::{Classify, Code},
    registry::{
        self, heartbeat::PeriodError, key::NameError, metadata::TooLarge, publication::WeightError,
        selector::ExpressionError, service::ThresholdError,
    },
};

/// Why a use case had no effect.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A name, an address or a port is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A weight is not allowed.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// There is too much metadata.
    #[error(transparent)]
    Metadata(#[from] TooLarge),
    /// A reserved key of the metadata holds no usable period.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// A protect threshold is not allowed.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// A selector expression is not allowed.
    #[error(transparent)]
    Selector(#[from] ExpressionError),
    /// Another argument is not allowed.
    #[error("{field} {value} is not allowed; {allowed}")]
    Argument {
        /// Which one.
        field: &'static str,
        /// What was given, cut to 128 bytes and in quotes if it is text.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Persistent instances do not exist yet.
    #[error(
        "persistent instances are not available in this version of Nomina yet; register with ephemeral=true, or leave \
         ephemeral out"
    )]
    PersistentUnavailable,
    /// What all members of a cluster must hold alike cannot be changed on one of them.
    #[error("{what} needs the replicated store, which this version has in standalone mode only")]
    ClusterWide {
        /// What was to be changed.
        what: &'static str,
    },
    /// The registry refused.
    #[error(transparent)]
    Registry(registry::Error),
}

impl From<registry::Error> for Error {
    /// What is wrong with an argument is told in one way, whoever found it.
    fn from(error: registry::Error) -> Self {
        match error {
            registry::Error::Metadata(error) => Self::Metadata(error),
            registry::Error::Period(error) => Self::Period(error),
            other => Self::Registry(other),
        }
    }
}

impl Classify for Error {
    fn code(&self) -> Code {
        match self {
            Self::Name(error) => error.code(),
            Self::Weight(error) => error.code(),
            Self::Metadata(error) => error.code(),
            Self::Period(error) => error.code(),
            Self::Threshold(error) => error.code(),
            Self::Selector(error) => error.code(),
            Self::Argument { .. } => Code::InvalidArgument,
            Self::PersistentUnavailable | Self::ClusterWide { .. } => Code::Unimplemented,
            Self::Registry(error) => error.code(),
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Name(error) => error.field(),
            Self::Weight(error) => error.field(),
            Self::Metadata(error) => error.field(),
            Self::Period(error) => error.field(),
            Self::Threshold(error) => error.field(),
            Self::Selector(error) => error.field(),
            Self::Argument { field, .. } => Some(field),
            Self::PersistentUnavailable => Some("ephemeral"),
            Self::ClusterWide { .. } => None,
            Self::Registry(error) => error.field(),
        }
    }
}
