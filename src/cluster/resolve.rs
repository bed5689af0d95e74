//! Addresses of a member's peer port: looked up anew at each connect, so that a member may move.
//!
//! The system's own resolver is asked (hosts file, search list, DNS); nothing is kept from one connect to the next.

use std::{io, net::SocketAddr};

use super::member::MemberName;

/// How far the peer port lies above the HTTP port where this node's own ports do not say it.
pub const DEFAULT_OFFSET: i32 = 1001;

/// What `getaddrinfo` says of a name that nobody has, on the systems of note (glibc, musl, macOS, Windows).
const NOBODY: [&str; 5] = [
    "Name or service not known",
    "No address associated with hostname",
    "Name does not resolve",
    "nodename nor servname provided",
    "No such host is known",
];

/// Why a member cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// There is no such port.
    #[error("member {member} has no peer port: {offset:+} from its port is outside of 1 to 65535")]
    NoPort {
        /// The member.
        member: MemberName,
        /// The distance from its HTTP port.
        offset: i32,
    },
    /// The name exists nowhere: as a refused connection, a sign that the member does not run.
    #[error("nobody has the name of member {member}")]
    Unknown {
        /// The member.
        member: MemberName,
    },
    /// The resolver cannot say; the member may well run.
    #[error("cannot look up member {member}")]
    Failed {
        /// The member.
        member: MemberName,
        /// What the system says.
        source: io::Error,
    },
}

/// Finds the peer ports of members. Cheap to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolve {
    offset: i32,
}

impl Resolve {
    /// For members whose peer port lies as far from their HTTP port as `peer` lies from `http` on this node. If the
    /// system is to choose one of them (port 0): [`DEFAULT_OFFSET`].
    #[must_use]
    pub fn like(http: SocketAddr, peer: SocketAddr) -> Self {
        let chosen = http.port() == 0 || peer.port() == 0;
        Self { offset: if chosen { DEFAULT_OFFSET } else { i32::from(peer.port()) - i32::from(http.port()) } }
    }

    /// The peer port of `member`.
    ///
    /// # Errors
    /// [`ResolveError::NoPort`].
    pub fn peer_port(self, member: &MemberName) -> Result<u16, ResolveError> {
        let port = i32::from(member.port()) + self.offset;
        let no_port = || ResolveError::NoPort { member: member.clone(), offset: self.offset };
        u16::try_from(port).ok().filter(|port| *port != 0).ok_or_else(no_port)
    }

    /// All addresses of the peer port of `member` now, in the order in which they should be tried; at least one. Takes as
    /// long as the system's resolver does: bound it.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub async fn addresses(self, member: &MemberName) -> Result<Vec<SocketAddr>, ResolveError> {
        let port = self.peer_port(member)?;
        match tokio::net::lookup_host((member.host(), port)).await {
            Ok(found) => {
                let found: Vec<SocketAddr> = found.collect();
                if found.is_empty() { Err(ResolveError::Unknown { member: member.clone() }) } else { Ok(found) }
            }
            Err(error) if is_nobody(&error) => Err(ResolveError::Unknown { member: member.clone() }),
            Err(source) => Err(ResolveError::Failed { member: member.clone(), source }),
        }
    }
}

/// The standard library gives the resolver's verdict as text only.
fn is_nobody(error: &io::Error) -> bool {
    let text = error.to_string();
    NOBODY.iter().any(|known| text.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> MemberName {
        MemberName::parse(text).expect(text)
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect(text)
    }

    #[test]
    fn the_distance_is_that_of_the_own_ports() {
        let like = |http, peer| Resolve::like(address(http), address(peer));
        let port = |resolve: Resolve, member| resolve.peer_port(&name(member)).ok();
        assert_eq!(port(like("127.0.0.1:8848", "127.0.0.1:9849"), "a"), Some(9849));
        assert_eq!(port(like("127.0.0.1:8848", "127.0.0.1:8800"), "a:7000"), Some(6952));
        assert_eq!(port(like("127.0.0.1:0", "127.0.0.1:8800"), "a:7000"), Some(8001));
        assert_eq!(port(like("127.0.0.1:8848", "127.0.0.1:9849"), "a:65000"), None);
        assert_eq!(port(like("127.0.0.1:8848", "127.0.0.1:1"), "a:8847"), None);
    }

    #[test]
    fn a_port_that_does_not_exist_is_said_with_the_distance() {
        let error = Resolve { offset: 1001 }.peer_port(&name("a:65000")).expect_err("none").to_string();
        assert!(error.contains("a:65000") && error.contains("+1001"), "{error}");
    }

    #[tokio::test]
    async fn addresses_are_found_as_they_are() {
        let resolve = Resolve { offset: 1001 };
        assert_eq!(resolve.addresses(&name("127.0.0.10:80")).await.expect("found"), [address("127.0.0.10:1081")]);
        assert_eq!(resolve.addresses(&name("[::1]:80")).await.expect("found"), [address("[::1]:1081")]);
        let local = resolve.addresses(&name("localhost:80")).await.expect("in every hosts file");
        assert!(local.iter().all(|address| address.ip().is_loopback() && address.port() == 1081), "{local:?}");
    }

    #[test]
    fn only_a_clear_verdict_says_that_nobody_has_a_name() {
        let lookup = |text: &str| io::Error::other(format!("failed to lookup address information: {text}"));
        assert!(is_nobody(&lookup("Name or service not known")));
        assert!(!is_nobody(&lookup("Temporary failure in name resolution")));
        assert!(!is_nobody(&io::Error::from(io::ErrorKind::PermissionDenied)));
    }
}
