//! Which clients understand UDP pushes, told by what they call themselves.
//!
//! Source: Nacos 1.4 `PushService.canEnablePush` and `ClientInfo`; the table is in the v1 specification, 8.2.

use crate::registry::switches::{PushVersions, Version};

/// What kind of client a `User-Agent` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientKind {
    /// Java, and those that call themselves so (npm).
    Java,
    /// Go.
    Go,
    /// Nacos-DNS.
    Dns,
    /// C and C++.
    C,
    /// C#.
    CSharp,
    /// Anything else: it has no socket for pushes.
    Other,
}

/// What a client says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent {
    /// The kind of client.
    pub kind: ClientKind,
    /// Its version; `None` if there is none that can be read.
    pub version: Option<Version>,
}

const PREFIXES: [(&str, ClientKind); 6] = [
    ("Nacos-Java-Client", ClientKind::Java),
    ("Nacos-Go-Client", ClientKind::Go),
    ("Nacos-DNS", ClientKind::Dns),
    ("Nacos-C-Client", ClientKind::C),
    ("vip-client4cpp", ClientKind::C),
    ("Nacos-CSharp-Client", ClientKind::CSharp),
];

impl Agent {
    /// Reads a header such as `Nacos-Java-Client:v1.4.6`.
    #[must_use]
    pub fn parse(header: &str) -> Self {
        let kind = PREFIXES
            .into_iter()
            .find_map(|(prefix, kind)| header.starts_with(prefix).then_some(kind))
            .unwrap_or(ClientKind::Other);
        let version = header.split_once(":v").and_then(|(_, text)| version(text));
        Self { kind, version }
    }

    /// Whether the client gets pushes when these are the least versions that do.
    #[must_use]
    pub fn pushable(&self, least: &PushVersions) -> bool {
        let least = match self.kind {
            ClientKind::Java => least.java,
            ClientKind::Go => least.go,
            ClientKind::Dns => least.python,
            ClientKind::C => least.c,
            ClientKind::CSharp => least.csharp,
            ClientKind::Other => return false,
        };
        self.version.is_some_and(|version| version >= least)
    }
}

/// Major, minor and patch, of which only the first must be there; what follows a part's digits does not count
/// (`1.4.6-SNAPSHOT`).
fn version(text: &str) -> Option<Version> {
    let mut parts = text.split(['.', '-', '_', ';', ':', '/']).map(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse::<u32>().ok()
    });
    let major = parts.next().flatten()?;
    let minor = parts.next().flatten().unwrap_or(0);
    let patch = parts.next().flatten().unwrap_or(0);
    Some(Version(major, minor, patch)).filter(|version| *version > Version(0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::switches::Switches;

    fn pushable(header: &str) -> bool {
        Agent::parse(header).pushable(&Switches::default().push_versions)
    }

    #[test]
    fn known_clients_from_their_least_version_on() {
        for header in [
            "Nacos-Java-Client:v1.4.6",
            "Nacos-Java-Client:v1.0.0",
            "Nacos-Java-Client:v0.1.0",
            "Nacos-Java-Client:v1.4.6-SNAPSHOT",
            "Nacos-Java-Client:v2",
            "Nacos-Go-Client:v2.3.5",
            "Nacos-DNS:v0.4.10",
            "Nacos-C-Client:v1.0.12",
            "vip-client4cpp:v1.0.12",
            "Nacos-CSharp-Client:v0.9.0",
        ] {
            assert!(pushable(header), "{header}");
        }
    }

    #[test]
    fn old_unknown_and_garbled_ones_are_not() {
        for header in [
            "",
            "1.4.6",
            "Nacos-Java-Client",
            "Nacos-Java-Client:1.4.6",
            "Nacos-Java-Client:v",
            "Nacos-Java-Client:vx.y",
            "Nacos-Java-Client:v0.0.9",
            "Nacos-Java-Client:v99999999999.0.0",
            "Nacos-DNS:v0.4.2",
            "Nacos-C-Client:v1.0.2",
            "Nacos-CSharp-Client:v0.8.99",
            "Nacos-SDK-Java:v1.4.6",
            "Nacos-Server:v1.4.6",
            "Nacos-Python-Client:v1.0.0",
            "Nacos-Php-Client:v1.0.0",
            "unit-nginx:v1.0.0",
            "nacos-java-client:v1.4.6",
        ] {
            assert!(!pushable(header), "{header}");
        }
    }

    #[test]
    fn the_least_version_can_be_switched() {
        let mut least = Switches::default().push_versions;
        least.java = Version(1, 10, 0);
        assert!(!Agent::parse("Nacos-Java-Client:v1.9.9").pushable(&least));
        assert!(Agent::parse("Nacos-Java-Client:v1.10.0").pushable(&least));
        least.go = Version(0, 0, 0);
        assert!(!Agent::parse("Nacos-Go-Client:vx").pushable(&least));
    }
}
