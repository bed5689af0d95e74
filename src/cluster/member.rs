//! Names of members, and lists of them.
//!
//! A member is known by the name that the list gives it. Names are normalised once, here, and from then on compared
//! whole: two spellings of one name are one member, and `10.0.0.1` is not `10.0.0.10`.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use crate::registry::key::excerpt;

/// The port of a name that gives none: the HTTP port of Nacos.
pub const DEFAULT_PORT: u16 = 8848;
/// Members of one list. 256: owner ids are 12 bits, so that each member has room for 16 incarnations; a longer list is
/// refused.
pub const MOST_MEMBERS: usize = 256;

/// Bytes of a host name, and of one of its labels (RFC 1035, section 2.3.4).
const MOST_HOST_BYTES: usize = 253;
const MOST_LABEL_BYTES: usize = 63;

/// Why a text names no member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// The host is no host name and no address.
    #[error(
        "member '{value}': {reason}; allowed: HOST[:PORT], where HOST is a name, an IPv4 address or an IPv6 address in brackets"
    )]
    Host {
        /// The text, cut to 128 bytes.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The port is no number that a listener can have.
    #[error("member '{value}' has the port '{port}'; allowed: a whole number from 1 to 65535")]
    Port {
        /// The text, cut to 128 bytes.
        value: String,
        /// Its port, cut to 128 bytes.
        port: String,
    },
}

/// The name of a member: `host:port`, normalised. The port is that of its HTTP listener.
///
/// Lower case, no trailing dot, always with a port; IP addresses in their canonical spelling, IPv6 in brackets, and an
/// IPv4 address written as IPv6 (`::ffff:10.0.0.1`) as the IPv4 address that it is. Ordered by the bytes of the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName {
    text: Arc<str>,
    port: u16,
}

impl MemberName {
    /// Reads and normalises `host`, `host:port`, `[v6]` or `[v6]:port`.
    ///
    /// # Errors
    /// [`MemberError`], which names the text and what is allowed. White space is an error: who reads a file trims.
    pub fn parse(text: &str) -> Result<Self, MemberError> {
        let refused = |reason| MemberError::Host { value: excerpt(text), reason };
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (inside, after) = rest.split_once(']').ok_or_else(|| refused("the bracket is not closed"))?;
            let ip: Ipv6Addr = inside.parse().map_err(|_| refused("no IPv6 address stands in the brackets"))?;
            let port = match after.strip_prefix(':') {
                Some(port) => Some(port),
                None if after.is_empty() => None,
                None => return Err(refused("something stands between the bracket and the port")),
            };
            (spelling(ip.to_canonical()), port)
        } else {
            let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
            if port.is_some_and(|port| port.contains(':')) {
                return Err(refused("it has more than one colon, and an IPv6 address needs brackets"));
            }
            (normal_host(host).map_err(refused)?, port)
        };
        let port = port.map_or(Ok(DEFAULT_PORT), |port| {
            parse_port(port).ok_or_else(|| MemberError::Port { value: excerpt(text), port: excerpt(port) })
        })?;
        Ok(Self { text: format!("{host}:{port}").into(), port })
    }

    /// The member that listens at `ip` and `port`; `None` for port 0.
    #[must_use]
    pub fn of_address(ip: IpAddr, port: u16) -> Option<Self> {
        (port != 0).then(|| Self { text: format!("{}:{port}", spelling(ip.to_canonical())).into(), port })
    }

    /// The host without brackets: a name or an address, as a resolver takes it.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.text.rsplit_once(':').map_or(&*self.text, |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port of its HTTP listener; never 0.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn spelling(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// A host outside of brackets in its normal spelling, or what is wrong with it.
fn normal_host(host: &str) -> Result<String, &'static str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err("the host is empty");
    }
    // A name whose last label is a number can be no name: resolvers take it for an address in some old spelling.
    if host.rsplit('.').next().is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit())) {
        let ip: Ipv4Addr = host.parse().map_err(|_| "it ends in a number but is not an IPv4 address")?;
        return Ok(ip.to_string());
    }
    if host.len() > MOST_HOST_BYTES {
        return Err("the host is longer than 253 bytes");
    }
    for label in host.split('.') {
        if label.is_empty() || label.len() > MOST_LABEL_BYTES {
            return Err("a part of the host between dots is empty or longer than 63 bytes");
        }
        if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
            return Err("the host holds something else than letters, digits, '-', '_' and '.'");
        }
    }
    Ok(host.to_ascii_lowercase())
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

/// One entry of a list that names no member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {error}")]
pub struct BadLine {
    /// The line, counted from 1.
    pub number: usize,
    /// What is wrong with its entry.
    pub error: MemberError,
}

/// Why a text is no list of members.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// Lines that cannot be read: all of them, in order.
    #[error("{}{}", first(.0), more(.0))]
    Lines(Vec<BadLine>),
    /// No member at all.
    #[error("it names no member")]
    Empty,
    /// More members than owner ids can tell apart.
    #[error("it names {count} members; at most {MOST_MEMBERS} are allowed")]
    TooMany {
        /// How many different ones it names.
        count: usize,
    },
}

fn first(lines: &[BadLine]) -> String {
    lines.first().map(ToString::to_string).unwrap_or_default()
}

fn more(lines: &[BadLine]) -> String {
    match lines.get(1..) {
        Some(rest) if !rest.is_empty() => {
            let numbers: Vec<String> = rest.iter().take(8).map(|line| line.number.to_string()).collect();
            format!(" (also wrong: line {}{})", numbers.join(", "), if rest.len() > 8 { ", …" } else { "" })
        }
        Some(_) | None => String::new(),
    }
}

/// The members of a cluster: sorted, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberList(Vec<MemberName>);

/// What changed from one list to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// In the newer list only, sorted.
    pub joined: Vec<MemberName>,
    /// In the older list only, sorted.
    pub left: Vec<MemberName>,
}

impl MemberList {
    /// The list of `names`, sorted and with duplicates merged.
    ///
    /// # Errors
    /// [`ListError::Empty`] and [`ListError::TooMany`].
    pub fn new(names: impl IntoIterator<Item = MemberName>) -> Result<Self, ListError> {
        let mut names: Vec<MemberName> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        match names.len() {
            0 => Err(ListError::Empty),
            1..=MOST_MEMBERS => Ok(Self(names)),
            count => Err(ListError::TooMany { count }),
        }
    }

    /// Reads the format of `cluster.conf`: one or more members a line, separated by commas; `#` starts a comment.
    ///
    /// # Errors
    /// [`ListError`]; one bad entry makes the whole text unusable, since a list that lacks a member is a wrong list.
    ///
    /// Source: Nacos 2.5, `MemberUtil.readServerConf`: entries without a port get 8848.
    pub fn parse_lines(text: &str) -> Result<Self, ListError> {
        let (mut names, mut bad) = (Vec::new(), Vec::new());
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for entry in line.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
                match MemberName::parse(entry) {
                    Ok(name) => names.push(name),
                    Err(error) => bad.push(BadLine { number: index + 1, error }),
                }
            }
        }
        if bad.is_empty() { Self::new(names) } else { Err(ListError::Lines(bad)) }
    }

    /// Whether `name` is a member.
    #[must_use]
    pub fn contains(&self, name: &MemberName) -> bool {
        self.0.binary_search(name).is_ok()
    }

    /// The members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &MemberName> {
        self.0.iter()
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none; only the default list is so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who joined and who left from this list to `newer`.
    #[must_use]
    pub fn difference(&self, newer: &Self) -> Difference {
        let without = |some: &Self, others: &Self| some.iter().filter(|name| !others.contains(name)).cloned().collect();
        Difference { joined: without(newer, self), left: without(self, newer) }
    }
}

impl fmt::Display for MemberList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
