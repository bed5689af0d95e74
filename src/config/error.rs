//! What can be wrong with the settings, in words that an operator can act on.

use std::{io, net::SocketAddr, path::PathBuf};

use super::{catalogue, layer::Origin};

/// Why the settings cannot be used. The text is all that the operator needs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that was named, or that exists, cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is not TOML.
    #[error("the configuration file {}{place} is not valid TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// `, line 1, column 2`, or nothing.
        place: String,
        /// What the parser says.
        message: String,
    },
    /// A value from the environment is not text.
    #[error("{origin} is not valid UTF-8; allowed: text in UTF-8")]
    NotUtf8 {
        /// Where it comes from.
        origin: Origin,
    },
    /// There is no such setting.
    #[error("there is no setting `{key}` ({origin}); {hint}")]
    Unknown {
        /// The key, dotted.
        key: String,
        /// Where it comes from.
        origin: Origin,
        /// What may have been meant, or what is allowed.
        hint: String,
    },
    /// A setting has a value that cannot be used.
    #[error("bad value for `{key}`: {value} ({origin}): {reason}; allowed: {allowed}")]
    Value {
        /// The key, dotted.
        key: String,
        /// The value as TOML; masked if it is a secret.
        value: String,
        /// Where it comes from.
        origin: Origin,
        /// What is wrong with it.
        reason: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A listener that others can reach, and nobody said that this is meant.
    #[error(
        "`{key}` = \"{address}\" ({origin}) can be reached from other machines, and `auth.mode` is not written down; \
         this version cannot make callers sign in, so whoever reaches it may change everything. If that is meant, \
         write it down: mode = \"off\" under [auth] in the configuration file, or NOMINA_AUTH__MODE=off in the \
         environment, or --set auth.mode=off; otherwise listen on 127.0.0.1"
    )]
    Open {
        /// The key of the listener, dotted.
        key: &'static str,
        /// Its address.
        address: SocketAddr,
        /// Where it comes from.
        origin: Origin,
    },
    /// A section that does not fit its own table or cannot be written as TOML: a fault of this program.
    #[error("the settings are inconsistent in themselves (a fault of this program): {0}")]
    Inconsistent(String),
}

impl Error {
    /// There is no setting `key`, which `origin` sets.
    pub(super) fn unknown(key: &str, origin: &Origin) -> Self {
        Self::Unknown { key: key.to_owned(), origin: origin.clone(), hint: catalogue::hint(key) }
    }
}
