//! Names of members.

use std::{fmt, sync::Arc};

/// A member's name, `host:port`, as every node of the cluster writes it: lower case, no dot at the end of the host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName(Arc<str>);

/// Why a text is not a member's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not of the form HOST:PORT")]
pub struct NameError {
    /// The text.
    pub text: String,
}

impl MemberName {
    /// The name that `text` is.
    ///
    /// # Errors
    /// [`NameError`] if it is not `host:port`, or if the host is longer than 253 bytes.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let error = || NameError { text: text.chars().take(128).collect() };
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let host = host.strip_suffix('.').unwrap_or(host);
        let port: u16 = port.parse().map_err(|_| error())?;
        if host.is_empty() || host.len() > 253 || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(error());
        }
        Ok(Self(format!("{}:{port}", host.to_ascii_lowercase()).into()))
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host: a DNS name, an IPv4 literal or an IPv6 literal, the last without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.0.rsplit_once(':').map_or("", |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0)
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
