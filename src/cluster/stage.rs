//! The stages of a node's life, as the other nodes hear of them.

use std::fmt;

/// Where a node stands in its life. Only a ready one owns beat sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stage {
    /// It loads what the others hold, and serves no client yet. Also what is assumed of a node that was not heard.
    #[default]
    Joining,
    /// It serves.
    Ready,
    /// It hands over what it keeps, and ends.
    Draining,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joining => "joining",
            Self::Ready => "ready",
            Self::Draining => "draining",
        })
    }
}
