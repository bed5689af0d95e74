//! `[log]`, and the subscriber that it sets up: one line for each event on standard error, as text or as JSON.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::info;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, Registry, fmt, layer::SubscriberExt, reload, util::SubscriberInitExt};

use crate::{
    api::http::LogLevels,
    registry::key::excerpt,
    setting::{Problem, Section, Setting},
};

/// Lines that may wait for whoever reads standard error; beyond it lines are dropped, because a reader that has stopped
/// must not stop the server.
const MOST_WAITING: usize = 16_384;

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

/// Starts logging for the whole process. The filter can be changed through what is returned.
///
/// # Errors
/// [`Error`] if the filter is bad (never after [`LogSettings::check`]) or logging runs already.
pub fn start(settings: &LogSettings) -> Result<LogControl, Error> {
    let (filter, handle) = reload::Layer::new(filter(&settings.level)?);
    let registry = tracing_subscriber::registry().with(filter);
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MOST_WAITING).finish(io::stderr());
    let started = match settings.format {
        LogFormat::Text => {
            let colour =
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            registry.with(fmt::layer().with_writer(writer).with_ansi(colour)).try_init()
        }
        LogFormat::Json => registry.with(fmt::layer().json().flatten_event(true).with_writer(writer)).try_init(),
    };
    started.map_err(|_| Error::AlreadyStarted)?;
    let levels = Arc::new(Mutex::new(Levels::new(&settings.level)));
    Ok(LogControl { handle, levels, _writer: Arc::new(guard) })
}

/// Changes what is logged while the process runs. Cheap to clone; all clones change the same.
#[derive(Debug, Clone)]
pub struct LogControl {
    handle: reload::Handle<EnvFilter, Registry>,
    levels: Arc<Mutex<Levels>>,
    /// Writes out what waits when the last clone goes, for at most about a second.
    _writer: Arc<WorkerGuard>,
}

/// Why a level was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// The level is not known.
    #[error("log level '{0}' is not allowed; it must be off, error, warn, info, debug or trace")]
    Level(String),
    /// The target is none of this program.
    #[error("log name '{0}' is not allowed; it must be root, or a module of this program such as nomina::registry")]
    Target(String),
    /// Too many targets have a level of their own.
    #[error("{MOST_TARGETS} modules have a log level of their own, no more are allowed")]
    TooMany,
    /// Logging has ended.
    #[error("logging is not running")]
    Ended,
}

/// Most targets that get a level of their own. The program has fewer modules than that.
const MOST_TARGETS: usize = 128;

impl LogLevels for LogControl {
    fn set_level(&self, target: Option<&str>, level: &str) -> Result<(), String> {
        self.set(target, level).map_err(|error| error.to_string())
    }
}

impl LogControl {
    /// Logs what comes from `target`, a module of this program, from `level` on; without a target, whatever has no level
    /// of its own.
    ///
    /// # Errors
    /// [`LevelError`]; then nothing has changed.
    pub fn set(&self, target: Option<&str>, level: &str) -> Result<(), LevelError> {
        let mut levels = self.levels.lock();
        let next = levels.with(target, level)?;
        let text = next.to_text();
        let filter = filter(&text).map_err(|_| LevelError::Level(excerpt(level)))?;
        self.handle.reload(filter).map_err(|_| LevelError::Ended)?;
        *levels = next;
        info!(filter = text, "log filter changed");
        Ok(())
    }
}

/// The filter of the settings, and the levels set after it; the later win.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Levels {
    settings: String,
    root: Option<String>,
    targets: BTreeMap<String, String>,
}

impl Levels {
    fn new(settings: &str) -> Self {
        Self { settings: settings.to_owned(), root: None, targets: BTreeMap::new() }
    }

    fn with(&self, target: Option<&str>, level: &str) -> Result<Self, LevelError> {
        let level = level.to_ascii_lowercase();
        if !LEVELS.contains(&level.as_str()) {
            return Err(LevelError::Level(excerpt(&level)));
        }
        let mut next = self.clone();
        match target {
            None => next.root = Some(level),
            Some(target) if is_own_target(target) => {
                next.targets.insert(target.to_owned(), level);
            }
            Some(target) => return Err(LevelError::Target(excerpt(target))),
        }
        if next.targets.len() > MOST_TARGETS { Err(LevelError::TooMany) } else { Ok(next) }
    }

    fn to_text(&self) -> String {
        let targets = self.targets.iter().map(|(target, level)| format!("{target}={level}"));
        std::iter::once(self.settings.clone()).chain(self.root.clone()).chain(targets).collect::<Vec<_>>().join(",")
    }
}

fn is_own_target(target: &str) -> bool {
    let own = target == "nomina" || target.starts_with("nomina::");
    own && target.len() <= 128 && target.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':'))
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
    fn levels_set_later_win_and_only_own_modules_have_one() {
        let levels = Levels::new("info,nomina::push=debug").with(Some("nomina::push"), "TRACE").unwrap();
        let levels = levels.with(None, "warn").unwrap().with(Some("nomina"), "error").unwrap();
        assert_eq!(levels.to_text(), "info,nomina::push=debug,warn,nomina=error,nomina::push=trace");
        let mut parts: Vec<_> = filter(&levels.to_text()).unwrap().to_string().split(',').map(str::to_owned).collect();
        parts.sort();
        assert_eq!(parts, ["nomina::push=trace", "nomina=error", "warn"]);
        for target in ["naming-push", "nomina2", "nomina=trace,x", "nomina::a=b", ""] {
            assert_eq!(levels.with(Some(target), "info"), Err(LevelError::Target(target.to_owned())));
        }
        assert_eq!(levels.with(None, "loud"), Err(LevelError::Level("loud".to_owned())));
    }

    #[test]
    fn targets_are_bounded() {
        let mut levels = Levels::new("info");
        for number in 0..MOST_TARGETS {
            levels = levels.with(Some(&format!("nomina::m{number}")), "info").unwrap();
        }
        assert_eq!(levels.with(Some("nomina::more"), "info"), Err(LevelError::TooMany));
        assert!(levels.with(Some("nomina::m0"), "warn").is_ok());
    }

    #[test]
    fn what_only_the_parser_sees_is_an_error_too() {
        assert!(filter("a=b=info").is_err());
    }
}
