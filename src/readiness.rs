//! Whether this node serves, and if not, why: what every probe answers from.

use tokio::sync::watch;

/// Whether this node serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet.
    Starting,
    /// It does.
    Ready,
    /// No longer: it ends when its clients have gone elsewhere.
    Draining,
}

impl Readiness {
    /// Why it does not serve; `None` if it does.
    #[must_use]
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Starting => Some("starting"),
            Self::Ready => None,
            Self::Draining => Some("draining"),
        }
    }
}

/// The present readiness. Written by the node only.
pub type ReadinessWatch = watch::Receiver<Readiness>;
