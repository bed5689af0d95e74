//! Whether this node serves, and if not, why: what every probe answers from.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether this node serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet.
    Starting,
    /// Not yet, or no longer: it is not one of those who serve in its cluster, for this reason.
    Joining(Arc<str>),
    /// It does.
    Ready,
    /// No longer: it ends when its clients have gone elsewhere.
    Draining,
}

impl Readiness {
    /// Why it does not serve; `None` if it does.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Starting => Some("starting"),
            Self::Joining(reason) => Some(reason),
            Self::Ready => None,
            Self::Draining => Some("draining"),
        }
    }
}

/// The present readiness. Written by the node only.
pub type ReadinessWatch = watch::Receiver<Readiness>;
