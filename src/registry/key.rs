//! The names by which everything is found: namespace, group, service, cluster, address and port.
//!
//! Each type has one way in, a method of [`Limits`] that checks length and characters; past it no bare string is a key.
//! `group@@service` is a spelling of the wire and is taken apart before it gets here.

use std::{
    cmp::Ordering,
    collections::BTreeSet,
    fmt,
    net::Ipv4Addr,
    sync::{Arc, LazyLock},
};

use super::limits::Limits;
use crate::error::{Classify, Code};

/// A name, an address or a number that is not allowed where it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A required name is empty.
    #[error("{field} is required and must not be empty")]
    Empty {
        /// Which name.
        field: &'static str,
    },
    /// The name is longer than the setting allows.
    #[error("{field} is {length} bytes long; at most {limit} are allowed")]
    TooLong {
        /// Which name.
        field: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The bound, a setting.
        limit: usize,
    },
    /// The name holds a character that is not allowed.
    #[error("{field} '{value}' has an illegal character {found:?}; allowed are {allowed}")]
    Character {
        /// Which name.
        field: &'static str,
        /// The name, cut to 128 bytes.
        value: String,
        /// The first character that is not allowed.
        found: char,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// The address is made of digits and dots but is no IPv4 address.
    #[error("ip '{value}' consists of digits and dots but is not an IPv4 address")]
    NotAnAddress {
        /// The address, cut to 128 bytes.
        value: String,
    },
    /// A list names more clusters than one request may.
    #[error(
        "clusters names {count} clusters in {length} bytes; at most {MOST_CLUSTERS} names and {MOST_CLUSTERS_BYTES} bytes are allowed"
    )]
    TooManyClusters {
        /// How many different names it has.
        count: usize,
        /// How long it is.
        length: usize,
    },
    /// The port is no number from 0 to 65535.
    #[error("port '{value}' is not allowed; it must be a whole number from 0 to 65535")]
    Port {
        /// What was given, cut to 128 bytes.
        value: String,
    },
}

impl Classify for NameError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Empty { field } | Self::TooLong { field, .. } | Self::Character { field, .. } => field,
            Self::NotAnAddress { .. } => "ip",
            Self::TooManyClusters { .. } => "clusters",
            Self::Port { .. } => "port",
        })
    }
}

/// `value`, cut to at most 128 bytes at a character boundary, for messages and logs.
#[must_use]
pub fn excerpt(value: &str) -> String {
    if value.len() <= 128 {
        return value.to_owned();
    }
    let mut end = 128;
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &value[..end])
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// This name, but sharing the memory of `other` if both are equal.
            #[must_use]
            pub fn shared_with(self, other: &Self) -> Self {
                if self == *other { other.clone() } else { self }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name_type! {
    /// A namespace id: letters, digits, `_` and `-`. Absent, empty and `public` are one.
    Namespace
}
name_type! {
    /// A group name: letters, digits and `- _ : .`. The default is `DEFAULT_GROUP`.
    Group
}
name_type! {
    /// A service name without its group: anything but white space, control characters, CJK ideographs and `@@`, and
    /// not starting with `@` (Nacos 2.5 parameter check).
    ServiceName
}
name_type! {
    /// A cluster name: letters, digits, `-` and `_`. The default is `DEFAULT`.
    ClusterName
}

static PUBLIC: LazyLock<Namespace> = LazyLock::new(|| Namespace("public".into()));
static DEFAULT_GROUP: LazyLock<Group> = LazyLock::new(|| Group("DEFAULT_GROUP".into()));
static DEFAULT_CLUSTER: LazyLock<ClusterName> = LazyLock::new(|| ClusterName("DEFAULT".into()));

impl Default for Namespace {
    fn default() -> Self {
        PUBLIC.clone()
    }
}

impl Default for Group {
    fn default() -> Self {
        DEFAULT_GROUP.clone()
    }
}

impl Default for ClusterName {
    fn default() -> Self {
        DEFAULT_CLUSTER.clone()
    }
}

/// What a service is found by.
///
/// Ordered by namespace, then group, then name, each by its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: Namespace,
    /// The group.
    pub group: Group,
    /// The name in the group.
    pub name: ServiceName,
}

impl ServiceKey {
    /// The smallest key of `namespace` and `group`, sorting before every service in it: a bound for scans.
    #[must_use]
    pub fn lower_bound(namespace: Namespace, group: Option<Group>) -> Self {
        Self { namespace, group: group.unwrap_or_else(|| Group("".into())), name: ServiceName("".into()) }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@@{}", self.group, self.name)
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@@{}", self.namespace, self.group, self.name)
    }
}

/// Where an instance listens: an IPv4 address, or any other text (IPv6 literal, host name) kept to the letter.
///
/// A host name is never resolved.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IPv4 address in its usual spelling.
    V4(Ipv4Addr),
    /// An IPv6 literal or a host name, as it was given.
    Text(Box<str>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(ip) => fmt::Display::fmt(ip, f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address.
    pub address: Address,
    /// The port; 0 is allowed and stands for itself.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

/// What an instance is found by inside its service: endpoint and cluster. Two clusters may hold one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceKey {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The cluster that it belongs to.
    pub cluster: ClusterName,
}

impl InstanceKey {
    /// Compares this key with the parts of another one that is not at hand as a whole.
    #[must_use]
    pub fn cmp_parts(&self, address: &Address, port: u16, cluster: &ClusterName) -> Ordering {
        self.endpoint
            .address
            .cmp(address)
            .then_with(|| self.endpoint.port.cmp(&port))
            .then_with(|| self.cluster.cmp(cluster))
    }
}

/// Which instance of a service a request means: with a cluster exactly that one; without, the one of that endpoint in
/// `DEFAULT`, else the only one of that endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The cluster, if the request names one.
    pub cluster: Option<ClusterName>,
}

/// Clusters that one list may name.
pub const MOST_CLUSTERS: usize = 256;
/// Bytes that a list of clusters may have.
pub const MOST_CLUSTERS_BYTES: usize = 16 * 1024;

const WORD: &str = "letters, digits, '_' and '-'";
const GROUP: &str = "letters, digits, '-', '_', ':' and '.'";
const SERVICE: &str =
    "all but white space, control characters, CJK ideographs and '@@', and the first one must not be '@'";
const ADDRESS: &str = "all but white space, control characters and CJK ideographs";

impl Limits {
    /// Checks a namespace id; blank means `public`.
    ///
    /// # Errors
    /// [`NameError`] if it is too long or holds a character that is not allowed.
    pub fn namespace(&self, text: &str) -> Result<Namespace, NameError> {
        let text = text.trim();
        if text.is_empty() || text == "public" {
            return Ok(Namespace::default());
        }
        check("namespace", text, self.namespace_bytes, WORD, is_word)?;
        Ok(Namespace(text.into()))
    }

    /// Checks a group name; blank means `DEFAULT_GROUP`.
    ///
    /// # Errors
    /// [`NameError`] if it is too long or holds a character that is not allowed.
    pub fn group(&self, text: &str) -> Result<Group, NameError> {
        let text = text.trim();
        if text.is_empty() || text == "DEFAULT_GROUP" {
            return Ok(Group::default());
        }
        check("group", text, self.group_bytes, GROUP, |c| is_word(c) || matches!(c, ':' | '.'))?;
        Ok(Group(text.into()))
    }

    /// Checks a service name without its group.
    ///
    /// # Errors
    /// [`NameError`] if it is empty, too long or holds a character that is not allowed.
    pub fn service_name(&self, text: &str) -> Result<ServiceName, NameError> {
        let text = text.trim();
        check("service", text, self.service_bytes, SERVICE, is_visible)?;
        if text.starts_with('@') || text.contains("@@") {
            return Err(NameError::Character { field: "service", value: excerpt(text), found: '@', allowed: SERVICE });
        }
        Ok(ServiceName(text.into()))
    }

    /// Checks the three parts of a service's key.
    ///
    /// # Errors
    /// As [`Limits::namespace`], [`Limits::group`] and [`Limits::service_name`].
    pub fn service_key(&self, namespace: &str, group: &str, name: &str) -> Result<ServiceKey, NameError> {
        Ok(ServiceKey {
            namespace: self.namespace(namespace)?,
            group: self.group(group)?,
            name: self.service_name(name)?,
        })
    }

    /// Checks a cluster name; blank is `None`, which stands for "not named".
    ///
    /// # Errors
    /// [`NameError`] if it is too long or holds a character that is not allowed.
    pub fn cluster(&self, text: &str) -> Result<Option<ClusterName>, NameError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if text == "DEFAULT" {
            return Ok(Some(ClusterName::default()));
        }
        check("cluster", text, self.cluster_bytes, WORD, is_word)?;
        Ok(Some(ClusterName(text.into())))
    }

    /// The clusters that a comma list names; `None` if it is blank: all. A name that no cluster can have contributes
    /// nothing, so that it does not turn "these" into "all".
    ///
    /// # Errors
    /// [`NameError::TooManyClusters`] for more than 256 names or 16 KiB: each name is compared with each instance, and
    /// subscribers keep the text.
    pub fn clusters(&self, text: &str) -> Result<Option<Vec<ClusterName>>, NameError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let named: BTreeSet<_> = text.split(',').filter_map(|name| self.cluster(name).ok().flatten()).collect();
        if named.len() > MOST_CLUSTERS || text.len() > MOST_CLUSTERS_BYTES {
            return Err(NameError::TooManyClusters { count: named.len(), length: text.len() });
        }
        Ok(Some(named.into_iter().collect()))
    }

    /// Checks an address.
    ///
    /// # Errors
    /// [`NameError`] if it is empty, too long, holds a character that is not allowed, or looks like an IPv4 address
    /// without being one.
    pub fn address(&self, text: &str) -> Result<Address, NameError> {
        let text = text.trim();
        check("ip", text, self.address_bytes, ADDRESS, is_visible)?;
        if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return text.parse().map(Address::V4).map_err(|_| NameError::NotAnAddress { value: excerpt(text) });
        }
        Ok(Address::Text(text.into()))
    }

    /// Checks an address and a port.
    ///
    /// # Errors
    /// As [`Limits::address`]; [`NameError::Port`] if the port is no number from 0 to 65535.
    pub fn endpoint(&self, address: &str, port: i64) -> Result<Endpoint, NameError> {
        let address = self.address(address)?;
        let port = u16::try_from(port).map_err(|_| NameError::Port { value: port.to_string() })?;
        Ok(Endpoint { address, port })
    }
}

fn check(
    field: &'static str,
    text: &str,
    limit: usize,
    allowed: &'static str,
    fits: impl Fn(char) -> bool,
) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { field });
    }
    if text.len() > limit {
        return Err(NameError::TooLong { field, length: text.len(), limit });
    }
    match text.chars().find(|c| !fits(*c)) {
        Some(found) => Err(NameError::Character { field, value: excerpt(text), found, allowed }),
        None => Ok(()),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn is_visible(c: char) -> bool {
    !(c.is_whitespace() || c.is_control() || ('\u{4E00}'..='\u{9FA5}').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits::default()
    }

    #[test]
    fn blank_namespace_group_and_cluster_have_defaults() {
        for blank in ["", "  "] {
            assert_eq!(limits().namespace(blank).unwrap().as_str(), "public");
            assert_eq!(limits().group(blank).unwrap().as_str(), "DEFAULT_GROUP");
            assert_eq!(limits().cluster(blank).unwrap(), None);
        }
        assert_eq!(limits().namespace("public").unwrap(), Namespace::default());
    }

    #[test]
    fn names_of_rpc_frameworks_are_kept_to_the_letter() {
        for name in [
            "providers:com.acme.Foo:1.0.0:",
            "providers:com.acme.Foo::",
            "consumers:com.acme.Foo:1.0:*",
            "providers:io.acme.Greeter$IGreeter::",
            "{{1}}",
            "<b>",
            "a'b",
        ] {
            assert_eq!(limits().service_name(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn bad_names_are_refused_with_field_and_character() {
        for name in ["", "@x", "a@@b", "a b", "a\u{0}b", "\u{670d}\u{52a1}"] {
            let error = limits().service_name(name).unwrap_err();
            assert_eq!(error.field(), Some("service"), "{name:?}");
        }
        assert_eq!(
            limits().group("a b").unwrap_err(),
            NameError::Character { field: "group", value: "a b".into(), found: ' ', allowed: GROUP }
        );
        let long = "x".repeat(513);
        assert_eq!(
            limits().service_name(&long).unwrap_err(),
            NameError::TooLong { field: "service", length: 513, limit: 512 }
        );
    }

    #[test]
    fn lists_of_clusters_are_bounded_and_never_turn_into_all() {
        let names = |text: &str| {
            limits().clusters(text).unwrap().map(|named| named.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(names(" "), None);
        assert_eq!(names("b,a, b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names("no such,"), Some(vec![]));
        let many = (0..257).map(|number| format!("c{number}")).collect::<Vec<_>>().join(",");
        assert!(limits().clusters(&many).is_err());
        assert!(limits().clusters(&",".repeat(MOST_CLUSTERS_BYTES + 1)).is_err());
    }

    #[test]
    fn host_names_pass_and_broken_ipv4_does_not() {
        for text in ["10.0.0.1", "app-7.cloud.example.internal", "::1", "fe80::1%eth0", "[::1]"] {
            assert_eq!(limits().address(text).unwrap().to_string(), text);
        }
        for text in ["999.1.1.1", "1.2.3", "010.0.0.1", "1", "...", ""] {
            assert_eq!(limits().address(text).unwrap_err().field(), Some("ip"), "{text}");
        }
    }

    #[test]
    fn ports_never_wrap_around() {
        assert_eq!(limits().endpoint("a", 65_535).unwrap().port, 65_535);
        for port in [-1, 65_536, 70_000, i64::MAX] {
            assert_eq!(limits().endpoint("a", port).unwrap_err().field(), Some("port"));
        }
    }

    #[test]
    fn excerpt_cuts_at_a_character() {
        let text = "é".repeat(100);
        assert!(excerpt(&text).len() <= 131);
    }
}
