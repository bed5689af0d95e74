//! `[cluster]`: this node's name, the other nodes, and what they share.

use serde::{Deserialize, Serialize};

use crate::setting::{MASK, Problem, Secret, Section, Setting};

/// Name of this node, members and the shared secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSettings {
    /// This node's name, `host:port`, as the other nodes write it.
    pub advertise: String,
    /// Names of all nodes, this one included; empty means that the node runs alone.
    pub members: Vec<String>,
    /// What all nodes share to know each other.
    pub secret: Secret,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self { advertise: "127.0.0.1:8848".to_owned(), members: Vec::new(), secret: Secret::default() }
    }
}

impl Section for ClusterSettings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "advertise",
            r#"HOST:PORT, such as "nomina-0.nomina:8848""#,
            r#""127.0.0.1:8848""#,
            "This node's name, as the other nodes write it. Follows `server.http`.",
        ),
        Setting::new(
            "members",
            "the empty list in this version: a node runs alone",
            "[]",
            "Names of all nodes, this one included; empty: the node runs alone.",
        ),
        Setting::new(
            "secret",
            "a text without white space at its ends",
            r#""""#,
            "What all nodes share to know each other; never shown.",
        )
        .hidden(),
    ];

    fn check(&self) -> Result<(), Problem> {
        Problem::unless(is_host_port(&self.advertise), "advertise", "not of the form HOST:PORT")?;
        let secret = self.secret.reveal();
        Problem::unless(
            secret.trim() == secret,
            "secret",
            "there is white space at its start or end, most often a line end that came along from a file",
        )?;
        Problem::unless(
            secret != MASK,
            "secret",
            "this is the mask that `nomina config` prints, not the secret itself",
        )?;
        Problem::unless(self.members.is_empty(), "members", "clusters are not available in this version")
    }
}

fn is_host_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
        let plain = !host.is_empty() && !host.contains([':', '[', ']', '/', '@']);
        (bracketed || plain)
            && !host.contains(char::is_whitespace)
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_host_and_port() {
        for good in ["a:1", "nomina-0.nomina.svc:8848", "[::1]:8848", "127.0.0.1:0"] {
            assert!(is_host_port(good), "{good}");
        }
        for bad in ["", "a", ":1", "a:", "a:x", "a:+1", "a:70000", "::1:8848", "http://a:1", "a b:1", "[]:1"] {
            assert!(!is_host_port(bad), "{bad}");
        }
    }

    #[test]
    fn members_are_refused_clearly() {
        let settings = ClusterSettings { members: vec!["a:1".to_owned()], ..ClusterSettings::default() };
        let problem = settings.check().expect_err("not built");
        assert_eq!(problem.key, "members");
        assert!(problem.reason.contains("not available in this version"));
    }

    #[test]
    fn a_line_end_in_the_secret_is_found_and_not_shown() {
        let settings = ClusterSettings { secret: Secret::new("sesame\n"), ..ClusterSettings::default() };
        let problem = settings.check().expect_err("white space");
        assert_eq!(problem.key, "secret");
        assert!(!problem.reason.contains("sesame"));
    }
}
