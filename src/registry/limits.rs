//! How large a name, an address or a piece of metadata may be. Written by the operator; read by every validator.

use serde::{Deserialize, Serialize};

use crate::setting::{Problem, Section, Setting};

/// Upper bounds of what a client may send. A refusal names the bound and the size seen.
///
/// The defaults are those of Nacos 2.5, but for metadata, where its 1,024 characters refused registrations that had
/// worked for years.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Longest namespace id, in bytes. 1 to 65,535.
    pub namespace_bytes: usize,
    /// Longest group name, in bytes. 1 to 65,535.
    pub group_bytes: usize,
    /// Longest service name without its group, in bytes. 1 to 65,535.
    pub service_bytes: usize,
    /// Longest cluster name, in bytes. 1 to 65,535.
    pub cluster_bytes: usize,
    /// Longest address (IP literal or host name), in bytes. 1 to 65,535.
    pub address_bytes: usize,
    /// Most metadata of one instance, service or cluster: keys and values together, in bytes. 0 to 16,777,215.
    pub metadata_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            namespace_bytes: 64,
            group_bytes: 128,
            service_bytes: 512,
            cluster_bytes: 64,
            address_bytes: 128,
            metadata_bytes: 64 * 1024,
        }
    }
}

impl Limits {
    /// Limits that no setting passes: for what another member, which has limits of its own, has taken.
    #[must_use]
    pub const fn of_peers() -> Self {
        const LONGEST: usize = 65_535;
        Self {
            namespace_bytes: LONGEST,
            group_bytes: LONGEST,
            service_bytes: LONGEST,
            cluster_bytes: LONGEST,
            address_bytes: LONGEST,
            metadata_bytes: 16_777_215,
        }
    }
}

impl Section for Limits {
    const SETTINGS: &'static [Setting] = &[
        Setting::new("namespace_bytes", "a whole number from 1 to 65535", "64", "longest namespace id, in bytes"),
        Setting::new("group_bytes", "a whole number from 1 to 65535", "128", "longest group name, in bytes"),
        Setting::new(
            "service_bytes",
            "a whole number from 1 to 65535",
            "512",
            "longest service name without its group, in bytes",
        ),
        Setting::new("cluster_bytes", "a whole number from 1 to 65535", "64", "longest cluster name, in bytes"),
        Setting::new(
            "address_bytes",
            "a whole number from 1 to 65535",
            "128",
            "longest IP literal or host name, in bytes",
        ),
        Setting::new(
            "metadata_bytes",
            "a whole number from 0 to 16777215",
            "65536",
            "most metadata of one instance, service or cluster: keys and values together, in bytes",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        for (key, value) in [
            ("namespace_bytes", self.namespace_bytes),
            ("group_bytes", self.group_bytes),
            ("service_bytes", self.service_bytes),
            ("cluster_bytes", self.cluster_bytes),
            ("address_bytes", self.address_bytes),
        ] {
            Problem::unless((1..=65_535).contains(&value), key, "it is out of range")?;
        }
        Problem::unless(self.metadata_bytes <= 16_777_215, "metadata_bytes", "it is out of range")
    }
}
