//! `[log]`, and the subscriber that it sets up: one line for each event on standard error, as text or as JSON.

use std::io::{self, IsTerminal};

use serde::{Deserialize, Serialize};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::setting::{Problem, Section, Setting};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
const LEVEL_ALLOWED: &str =
    r#"off, error, warn, info, debug, trace, or TARGET=LEVEL, several with commas: "info,nomina::push=debug""#;

/// How an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people; coloured on a terminal unless `NO_COLOR` is set.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Filter of events: a level, or `target=level` pairs. `debug` logs each request.
    pub level: String,
    /// How an event is written.
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::default() }
    }
}

impl Section for LogSettings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new("level", LEVEL_ALLOWED, r#""info""#, "What is logged: a level, or a filter of targets."),
        Setting::new("format", r#""text" or "json""#, r#""text""#, "How an event is written to standard error."),
    ];

    fn check(&self) -> Result<(), Problem> {
        filter(&self.level).map(drop).map_err(|error| Problem::new("level", error.to_string()))
    }
}

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part of the filter is neither a level nor `target=level`.
    #[error("`{part}` is neither a level nor TARGET=LEVEL")]
    NotALevel {
        /// The part, as written.
        part: String,
    },
    /// The filter has a fault that only its parser sees.
    #[error("not a filter: {0}")]
    Filter(String),
    /// Logging was started twice in one process.
    #[error("logging is set up already")]
    AlreadyStarted,
}

/// Starts logging for the whole process.
///
/// # Errors
/// [`Error`] if the filter is bad (never after [`LogSettings::check`]) or logging runs already.
pub fn start(settings: &LogSettings) -> Result<(), Error> {
    let registry = tracing_subscriber::registry().with(filter(&settings.level)?);
    let started = match settings.format {
        LogFormat::Text => {
            let colour =
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            registry.with(fmt::layer().with_writer(io::stderr).with_ansi(colour)).try_init()
        }
        LogFormat::Json => registry.with(fmt::layer().json().flatten_event(true).with_writer(io::stderr)).try_init(),
    };
    started.map_err(|_| Error::AlreadyStarted)
}

/// Reads a filter. `EnvFilter` alone takes a misspelt level (`inof`) for the name of a target and then logs nothing;
/// so a target without a level is refused here. Blanks around a comma, which it refuses, are taken away.
fn filter(text: &str) -> Result<EnvFilter, Error> {
    let mut directives = Vec::new();
    for part in text.split(',').map(str::trim) {
        let level = part.rsplit_once([']', '=']).map_or(part, |(_, level)| level);
        if !LEVELS.iter().any(|name| name.eq_ignore_ascii_case(level)) {
            return Err(Error::NotALevel { part: part.to_owned() });
        }
        directives.push(part);
    }
    EnvFilter::builder().parse(directives.join(",")).map_err(|error| Error::Filter(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_with_a_level_in_each_part_are_taken() {
        for good in ["info", "WARN", "off", "info,nomina::push=debug", "warn, tower=off", "info,[span{a=1}]=trace"] {
            assert!(filter(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_misspelt_level_is_named() {
        for (bad, part) in [
            ("inof", "inof"),
            ("info,nomina", "nomina"),
            ("info,a=loud", "a=loud"),
            ("", ""),
            ("info,", ""),
            ("[a]", "[a]"),
        ] {
            let error = filter(bad).expect_err(bad).to_string();
            assert!(error.starts_with(&format!("`{part}` is neither")), "{bad}: {error}");
        }
    }

    #[test]
    fn what_only_the_parser_sees_is_an_error_too() {
        assert!(filter("a=b=info").is_err());
    }
}
