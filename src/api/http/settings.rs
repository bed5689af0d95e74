//! The operator's settings of the HTTP gateway.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::setting::{Problem, Section, Setting, duration};

/// Limits of the HTTP listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Connections that may be open at once; beyond it new ones wait in the system's queue. Each costs about 10 KiB.
    pub max_connections: usize,
    /// Largest request body, in bytes. Beyond it the request is refused with 413.
    pub max_body_bytes: usize,
    /// How long a client may take to send the head of a request, on a new connection and on a kept one; to send its body;
    /// and to take something of an answer (Linux only). Raised, idlers hold their places longer; lowered, clients on slow
    /// lines are cut off.
    #[serde(with = "duration")]
    pub header_timeout: Duration,
    /// Origins of web pages that may call the HTTP port, gRPC-Web included; `*` is any. None: only programs outside of
    /// browsers, and pages of this server itself.
    pub web_origins: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_connections: 65_536,
            max_body_bytes: 2 * 1024 * 1024,
            header_timeout: Duration::from_secs(90),
            web_origins: Vec::new(),
        }
    }
}

impl Section for Settings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "max_connections",
            "a whole number from 1 to 1000000",
            "65536",
            "connections that may be open at once; further ones wait",
        ),
        Setting::new(
            "max_body_bytes",
            "a whole number from 1024 to 1073741824",
            "2097152",
            "largest request body, in bytes",
        ),
        Setting::new(
            "header_timeout",
            "a duration from 1s to 1h",
            r#""90s""#,
            "time for a client to send the head of a request, to send its body, and to begin to read an answer; also how \
             long an idle connection is kept",
        ),
        Setting::new(
            "web_origins",
            r#"a list of origins, such as ["https://console.example.com"], or ["*"]"#,
            "[]",
            "origins of web pages that may call the HTTP port, gRPC-Web included",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        let range = "it is out of range";
        Problem::unless((1..=1_000_000).contains(&self.max_connections), "max_connections", range)?;
        Problem::unless((1_024..=1_073_741_824).contains(&self.max_body_bytes), "max_body_bytes", range)?;
        let allowed = Duration::from_secs(1)..=Duration::from_secs(3_600);
        Problem::unless(allowed.contains(&self.header_timeout), "header_timeout", range)?;
        for origin in &self.web_origins {
            let good = origin == "*" || (origin.contains("://") && http::HeaderValue::from_str(origin).is_ok());
            Problem::unless(good, "web_origins", "one of them is no origin")?;
        }
        Ok(())
    }
}
