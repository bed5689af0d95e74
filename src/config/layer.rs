//! One source of settings: a dictionary of values and where all of them come from. Later layers win.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt, fs, io,
    path::{Path, PathBuf},
};

use figment::{
    Metadata, Profile, Provider,
    providers::{Format, Toml},
    value::{Dict, Map, Value},
};

use super::{
    Error, Flag,
    catalogue::{self, ENV_PREFIX},
};

/// Where the value of a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// Built in, computed from other settings in the way that the text says.
    Derived(&'static str),
    /// A configuration file, by the path under which it was opened.
    File(PathBuf),
    /// An environment variable, by its name.
    Env(String),
    /// A flag, as typed: `--http`.
    Flag(&'static str),
}

impl Origin {
    /// Whether the operator wrote the value down; false for what is built in.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        match self {
            Self::Default | Self::Derived(_) => false,
            Self::File(_) | Self::Env(_) | Self::Flag(_) => true,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Derived(rule) => write!(f, "default: {rule}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// Values that share one origin.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) origin: Origin,
    values: Dict,
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.to_string())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(BTreeMap::from([(Profile::Default, self.values.clone())]))
    }
}

impl Layer {
    pub(super) fn new(origin: Origin, values: Dict) -> Self {
        Self { origin, values }
    }

    /// A layer that sets the one setting `key` (dotted).
    pub(super) fn one(origin: Origin, key: &str, value: impl Into<Value>) -> Self {
        let value =
            key.rsplit('.').fold(value.into(), |inner, name| Value::from(Dict::from([(name.to_owned(), inner)])));
        Self::new(origin, value.into_dict().unwrap_or_default())
    }

    /// The value that this layer gives to `key` (dotted).
    pub(super) fn find(&self, key: &str) -> Option<&Value> {
        let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
        let value = self.values.get(first)?;
        rest.map_or(Some(value), |rest| value.find_ref(rest))
    }

    /// Reads a configuration file and checks that it holds known settings only.
    pub(super) fn from_file(path: &Path, optional: bool) -> Result<Option<Self>, Error> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|error| Error::Syntax {
                path: path.to_owned(),
                place: String::new(),
                message: format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()),
            })?,
            Err(error) if optional && error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
        };
        // The parser's own display quotes the line, which may hold a secret; its message does not.
        let values = Toml::from_str::<Dict>(&text).map_err(|error| Error::Syntax {
            path: path.to_owned(),
            place: error.span().map(|span| place(&text, span.start)).unwrap_or_default(),
            message: error.message().trim_end().replace('\n', "; "),
        })?;
        let layer = Self::new(Origin::File(path.to_owned()), values);
        layer.check_keys(&layer.values, "")?;
        Ok(Some(layer))
    }

    /// One layer for each `NOMINA_…` variable, in the order of their names.
    pub(super) fn from_env(env: &[(OsString, OsString)], defaults: &Self) -> Result<Vec<Self>, Error> {
        let mut variables: Vec<(String, &OsStr)> = Vec::new();
        for (name, value) in env {
            let name = name.to_string_lossy();
            let ours = name.starts_with(ENV_PREFIX) && name != super::FILE_VARIABLE;
            if ours && !is_service_link(&name, &value.to_string_lossy()) {
                variables.push((name.into_owned(), value));
            }
        }
        variables.sort();
        variables.into_iter().map(|(name, value)| Self::from_variable(name, value, defaults)).collect()
    }

    fn from_variable(name: String, value: &OsStr, defaults: &Self) -> Result<Self, Error> {
        let Some(key) = catalogue::key_of_variable(&name) else {
            let hint = format!("did you mean {}? Such names are in upper case", name.to_ascii_uppercase());
            return Err(Error::Unknown { key: name.clone(), origin: Origin::Env(name), hint });
        };
        let origin = Origin::Env(name);
        let Some(text) = value.to_str() else { return Err(Error::NotUtf8 { origin }) };
        Self::from_text(origin, &key, text, defaults)
    }

    /// The layer of one flag.
    pub(super) fn from_flag(flag: &Flag, defaults: &Self) -> Result<Self, Error> {
        Self::from_text(Origin::Flag(flag.name), &flag.key, &flag.value, defaults)
    }

    /// Text from outside a file. The type of the setting's default says how it is read: for a text it is the text as it
    /// stands, or what is inside if all of it is one TOML string; for everything else it is a TOML value.
    fn from_text(origin: Origin, key: &str, text: &str, defaults: &Self) -> Result<Self, Error> {
        if catalogue::find(key).is_none() {
            return Err(Error::unknown(key, &origin));
        }
        let quoted = text.starts_with(['"', '\'']);
        let is_text = matches!(defaults.find(key), Some(Value::String(..)));
        let value = if is_text && !quoted { None } else { toml_value(text) };
        let value = match value {
            Some(value) if !is_text || value.as_str().is_some() => value,
            Some(_) | None => Value::from(text),
        };
        Ok(Self::one(origin, key, value))
    }

    fn check_keys(&self, values: &Dict, above: &str) -> Result<(), Error> {
        for (name, value) in values {
            let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            let known = !name.contains('.') && catalogue::find(&key).is_some();
            match value {
                _ if known => {}
                Value::Dict(_, inner) if catalogue::is_group(&key) => self.check_keys(inner, &key)?,
                _ => return Err(Error::unknown(&key, &self.origin)),
            }
        }
        Ok(())
    }
}

/// Reads `text` as exactly one TOML value.
fn toml_value(text: &str) -> Option<Value> {
    let mut values = Toml::from_str::<Dict>(&format!("value = {text}")).ok()?;
    let value = values.remove("value")?;
    values.is_empty().then_some(value)
}

/// Line and column of a byte offset, both from 1.
fn place(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!(", line {line}, column {column}")
}

/// Whether Kubernetes made this variable: it sets a few in every pod for each service of the namespace, and those of a
/// service called `nomina` start as ours do (`NOMINA_SERVICE_HOST`, `NOMINA_PORT=tcp://…`, `NOMINA_PORT_8848_TCP_ADDR`).
/// No setting looks like that, since the levels of a setting are joined by two underscores.
fn is_service_link(name: &str, value: &str) -> bool {
    if name.contains("__") {
        return false;
    }
    let is_port_detail = name.split_once("_PORT_").is_some_and(|(_, rest)| {
        let mut parts = rest.split('_');
        parts.next().is_some_and(|port| port.parse::<u16>().is_ok())
            && parts.next().is_some_and(|protocol| ["TCP", "UDP", "SCTP"].contains(&protocol))
    });
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && value.contains("://"))
        || is_port_detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_kubernetes_services_are_told_apart() {
        for (name, value) in [
            ("NOMINA_SERVICE_HOST", "10.0.0.1"),
            ("NOMINA_SERVICE_PORT", "8848"),
            ("NOMINA_SERVICE_PORT_HTTP", "8848"),
            ("NOMINA_PORT", "tcp://10.0.0.1:8848"),
            ("NOMINA_PORT_8848_TCP", "tcp://10.0.0.1:8848"),
            ("NOMINA_PORT_8848_TCP_ADDR", "10.0.0.1"),
            ("NOMINA_HEADLESS_PORT_9848_TCP_PROTO", "tcp"),
        ] {
            assert!(is_service_link(name, value), "{name}");
        }
        for (name, value) in [
            ("NOMINA_SERVER__HTTP", "127.0.0.1:1"),
            ("NOMINA_SERVER_HTTP", "127.0.0.1:1"),
            ("NOMINA_PORT", "8848"),
            ("NOMINA_LOG__SERVICE_HOST", "a"),
        ] {
            assert!(!is_service_link(name, value), "{name}");
        }
    }

    #[test]
    fn a_key_of_any_depth_is_found_again() {
        for key in ["a.b", "a.b.c"] {
            let layer = Layer::one(Origin::Default, key, 7_u64);
            assert_eq!(layer.find(key).and_then(Value::to_u128), Some(7), "{key}");
            assert!(layer.find("a.x").is_none());
        }
    }

    #[test]
    fn a_toml_value_is_one_value() {
        assert_eq!(toml_value("[1, 2]").and_then(|value| value.into_array()).map(|items| items.len()), Some(2));
        assert!(toml_value("1\nother = 2").is_none());
        assert!(toml_value("a:1").is_none());
    }

    #[test]
    fn places_count_from_one() {
        assert_eq!(place("a = 1\nb = ?", 10), ", line 2, column 5");
        assert_eq!(place("", 0), ", line 1, column 1");
    }
}
