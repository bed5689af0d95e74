//! Settings: where they come from, who wins, and what is wrong with them.
//!
//! Built-in defaults < the configuration file < environment `NOMINA_…` < flags. Each section belongs to a layer of the
//! crate and is described there ([`Section`]); this module only composes them. Everything that the operator wrote is
//! checked before anything is started: an unknown key or a bad value is an [`Error`] that names key, value, origin and
//! what is allowed.

mod auth;
mod catalogue;
mod error;
mod layer;
mod print;
mod server;

use std::{
    env,
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use figment::{Figment, value::Value};
use serde::{Deserialize, Serialize};

use self::layer::Layer;
pub use self::{
    auth::{AuthMode, AuthSettings},
    catalogue::{Entry, all, markdown},
    error::Error,
    layer::Origin,
    server::{GRPC_PORT_OFFSET, PEER_PORT_OFFSET, ServerSettings},
};
use crate::{
    setting::{MASK, Problem, Section, Setting},
    telemetry::LogSettings,
};

/// The file that is read from the working directory when none is named; it may be missing.
pub const DEFAULT_FILE: &str = "nomina.toml";
/// The environment variable that names the configuration file; the flag wins over it.
pub const FILE_VARIABLE: &str = "NOMINA_CONFIG";

/// Makes [`Settings`] out of the sections: a field, its table and its check for each line.
macro_rules! sections {
    ($($name:ident: $settings:ty,)+) => {
        /// All settings of a process, checked.
        #[derive(Debug, Clone, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $(#[doc = concat!("The section `[", stringify!($name), "]`.")] pub $name: $settings,)+
        }

        /// Name and table of each section.
        const SECTIONS: &[(&str, &[Setting])] = &[$((stringify!($name), <$settings as Section>::SETTINGS),)+];

        impl Settings {
            /// Lets each section check itself; the first problem, with the name of its section.
            fn check(&self) -> Result<(), (&'static str, Problem)> {
                $(Section::check(&self.$name).map_err(|problem| (stringify!($name), problem))?;)+
                Ok(())
            }
        }
    };
}

sections! {
    server: ServerSettings,
    cluster: crate::cluster::Settings,
    auth: AuthSettings,
    log: LogSettings,
    registry: crate::registry::Settings,
    limits: crate::registry::Limits,
    grpc: crate::api::grpc::server::Settings,
    sdk: crate::push::sdk::Settings,
    http: crate::api::http::Settings,
    push: crate::push::Settings,
}

/// A value that was given on the command line.
#[derive(Clone, PartialEq, Eq)]
pub struct Flag {
    /// The flag as typed: `--http`, `--set`.
    pub name: &'static str,
    /// The dotted key of the setting.
    pub key: String,
    /// The value as typed.
    pub value: String,
}

/// Everything that settings are read from.
#[derive(Clone, Default)]
pub struct Sources {
    /// The file named on the command line. It must exist; without it [`FILE_VARIABLE`] and [`DEFAULT_FILE`] are tried.
    pub file: Option<PathBuf>,
    /// The environment; only names that start with `NOMINA_` are looked at.
    pub env: Vec<(OsString, OsString)>,
    /// Values from the command line; a later one wins over an earlier one.
    pub flags: Vec<Flag>,
}

impl Sources {
    /// The environment of this process, and what was given on its command line.
    #[must_use]
    pub fn of_process(file: Option<PathBuf>, flags: Vec<Flag>) -> Self {
        Self { file, env: env::vars_os().collect(), flags }
    }
}

/// Settings that were read and checked, and where each comes from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    lines: Vec<Line>,
}

/// One effective setting.
#[derive(Debug, Clone)]
struct Line {
    entry: Entry,
    /// As TOML; masked if it is a secret.
    value: String,
    origin: Origin,
}

/// Reads, merges and checks all settings.
///
/// # Errors
/// [`Error`]: the first thing that is wrong, with its origin.
pub fn load(sources: &Sources) -> Result<Loaded, Error> {
    let defaults = Layer::new(Origin::Default, dictionary(&Settings::default())?);
    let mut written = Vec::from_iter(file_layer(sources)?);
    written.extend(Layer::from_env(&sources.env, &defaults)?);
    for flag in &sources.flags {
        written.push(Layer::from_flag(flag, &defaults)?);
    }
    let mut layers = vec![defaults];
    let derived = derived(&layers, &written)?;
    layers.extend(derived);
    layers.extend(written);

    let figment = layers.iter().fold(Figment::new(), |figment, layer| figment.merge(layer));
    let settings: Settings = figment.extract().map_err(|error| refused(&error, &layers))?;
    settings.check().map_err(|(section, problem)| {
        let key = format!("{section}.{}", problem.key);
        bad_value(&key, problem.reason, &layers)
    })?;
    let loaded = Loaded { lines: lines(&settings, &layers)?, settings };
    loaded.check_listeners()?;
    Ok(loaded)
}

impl Loaded {
    /// Where the setting with this dotted key comes from; `None` if there is no such setting.
    #[must_use]
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.lines.iter().find(|line| line.entry.key() == key).map(|line| &line.origin)
    }

    /// The effective settings as TOML, each line with its origin as a trailing comment; secrets are masked.
    #[must_use]
    pub fn to_toml(&self) -> String {
        print::document(self)
    }

    /// A listener that others can reach needs somebody's decision. The one for peers is guarded by the cluster's secret.
    fn check_listeners(&self) -> Result<(), Error> {
        let server = &self.settings.server;
        let decided = self.origin("auth.mode").is_some_and(Origin::is_written);
        for (key, address) in [("server.http", server.http), ("server.grpc", server.grpc)] {
            if !decided && !address.ip().to_canonical().is_loopback() {
                let origin = self.origin(key).cloned().unwrap_or(Origin::Default);
                return Err(Error::Open { key, address, origin });
            }
        }
        Ok(())
    }
}

fn dictionary(settings: &Settings) -> Result<figment::value::Dict, Error> {
    Value::serialize(settings)
        .map_err(|error| Error::Inconsistent(error.to_string()))?
        .into_dict()
        .ok_or_else(|| Error::Inconsistent("not a table".to_owned()))
}

fn file_layer(sources: &Sources) -> Result<Option<Layer>, Error> {
    let from_env = || {
        let (_, path) = sources.env.iter().find(|(name, path)| name == FILE_VARIABLE && !path.is_empty())?;
        Some(Path::new(path))
    };
    match sources.file.as_deref().or_else(from_env) {
        Some(path) => Layer::from_file(path, false),
        None => Layer::from_file(Path::new(DEFAULT_FILE), true),
    }
}

/// The defaults that follow `server.http`. An address that does not parse is left for the extraction to refuse.
fn derived(defaults: &[Layer], written: &[Layer]) -> Result<Vec<Layer>, Error> {
    let all = || defaults.iter().chain(written);
    let Some((http, origin)) = all().rev().find_map(|layer| Some((layer.find("server.http")?, &layer.origin))) else {
        return Ok(Vec::new());
    };
    let Some(Ok(address)) = http.as_str().map(str::parse::<SocketAddr>) else { return Ok(Vec::new()) };
    let udp = SocketAddr::new(address.ip(), 0).to_string();
    let mut layers = vec![Layer::one(Origin::Derived("ip of server.http, any free port"), "push.udp", udp)];
    for (key, rule, offset) in [
        ("server.grpc", "port of server.http + 1000", GRPC_PORT_OFFSET),
        ("server.peer", "port of server.http + 1001", PEER_PORT_OFFSET),
        ("cluster.advertise", "server.http", 0),
    ] {
        match server::port_above(address, offset) {
            Some(address) => layers.push(Layer::one(Origin::Derived(rule), key, address.to_string())),
            None if written.iter().any(|layer| layer.find(key).is_some()) => {}
            None => {
                return Err(Error::Value {
                    key: "server.http".to_owned(),
                    value: print::toml(http).unwrap_or_default(),
                    origin: origin.clone(),
                    reason: format!(
                        "`{key}` is its port + {offset}, and there is no port {}",
                        u32::from(address.port()) + u32::from(offset)
                    ),
                    allowed: "a port up to 64534, or any port if server.grpc and server.peer are written down too",
                });
            }
        }
    }
    Ok(layers)
}

/// Turns what figment says into an error that names value, origin and what is allowed.
fn refused(error: &figment::Error, layers: &[Layer]) -> Error {
    match catalogue::find_above(&error.path) {
        Some(entry) => bad_value(&entry.key(), error.kind.to_string(), layers),
        None => Error::Inconsistent(error.to_string()),
    }
}

/// The last layer that has `key`, and the value there.
fn effective<'a>(key: &str, layers: &'a [Layer]) -> Option<(&'a Value, &'a Origin)> {
    layers.iter().rev().find_map(|layer| Some((layer.find(key)?, &layer.origin)))
}

fn bad_value(key: &str, reason: String, layers: &[Layer]) -> Error {
    let Some((entry, (value, origin))) = catalogue::find(key).zip(effective(key, layers)) else {
        return Error::Inconsistent(format!("{key}: {reason}"));
    };
    let secret = entry.setting.secret;
    Error::Value {
        key: key.to_owned(),
        value: if secret { MASK.to_owned() } else { print::toml(value).unwrap_or_default() },
        origin: origin.clone(),
        reason,
        allowed: entry.setting.allowed,
    }
}

fn lines(settings: &Settings, layers: &[Layer]) -> Result<Vec<Line>, Error> {
    let values = Layer::new(Origin::Default, dictionary(settings)?);
    let line = |entry: Entry| {
        let key = entry.key();
        let value = print::toml(values.find(&key)?)?;
        let (_, origin) = effective(&key, layers)?;
        Some(Line { entry, value, origin: origin.clone() })
    };
    all()
        .map(|entry| line(entry).ok_or_else(|| Error::Inconsistent(format!("`{}` cannot be printed", entry.key()))))
        .collect()
}

#[cfg(test)]
mod tests;
