//! Switches as `/operator/switches` shows and takes them.

use std::{collections::BTreeMap, fmt::Display, ops::RangeInclusive, str::FromStr};

use serde_json::{Map, Value, json};

use super::value::truth;
use crate::{
    error::{Classify, Code},
    registry::{
        key::excerpt,
        switches::{ProbeTiming, PushVersions, SwitchChange, Switches, Version},
    },
};

/// The entries that can be turned, in the order of the alphabet.
pub const ENTRIES: [&str; 25] = [
    "autoChangeHealthCheckEnabled",
    "batch",
    "check",
    "clientBeatInterval",
    "defaultCacheMillis",
    "defaultInstanceEphemeral",
    "disableAddIP",
    "distro",
    "distroServerExpiredMillis",
    "distroThreshold",
    "enableStandalone",
    "healthCheckTimes",
    "httpHealthParams",
    "lightBeatEnabled",
    "limitedUrlMap",
    "masters",
    "mysqlHealthParams",
    "overriddenServerStatus",
    "pushCacheMillis",
    "pushEnabled",
    "pushVersion",
    "sendBeatOnly",
    "serverStatusSynchronizationPeriodMillis",
    "serviceStatusSynchronizationPeriodMillis",
    "tcpHealthParams",
];

/// Keys of the JSON form whose entry has another name.
const RENAMED: [(&str, &str); 4] = [
    ("defaultPushCacheMillis", "pushCacheMillis"),
    ("healthCheckEnabled", "check"),
    ("distroEnabled", "distro"),
    ("checkTimes", "healthCheckTimes"),
];

/// Keys of the JSON form that show something and cannot be turned.
const FIXED: [&str; 6] =
    ["name", "adWeightMap", "incrementalList", "enableAuthentication", "healthCheckWhiteList", "checksum"];

/// Keys of the JSON form that are client types of the entry `pushVersion`.
const VERSIONS: [(&str, &str); 5] = [
    ("pushGoVersion", "go"),
    ("pushJavaVersion", "java"),
    ("pushPythonVersion", "python"),
    ("pushCVersion", "c"),
    ("pushCSharpVersion", "csharp"),
];

const STATUSES: [&str; 6] = ["UP", "DOWN", "STARTING", "PAUSED", "WRITE_ONLY", "READ_ONLY"];

/// Longest time that a switch takes: a day.
const DAY: u64 = 86_400_000;

/// A switch that cannot be turned so. Texts that Nacos has are kept to the letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum SwitchError {
    #[error("unknown switch entry '{entry}'; known entries: {}", ENTRIES.join(", "))]
    Entry { entry: String },
    #[error("value '{value}' of switch entry '{entry}' is not allowed; it must be {allowed}")]
    Value { entry: String, value: String, allowed: String },
    #[error("distroThreshold can not be zero or negative: {0}")]
    DistroThreshold(String),
    #[error(r"illegal version, must match: [0-9]+\.[0-9]+\.[0-9]+")]
    Version,
    #[error("unsupported client type: {0}")]
    ClientType(String),
    #[error("min cache time for http or tcp is too small(<10000)")]
    PushCache,
    #[error("min default cache time  is too small(<1000)")]
    DefaultCache,
    #[error("serviceStatusSynchronizationPeriodMillis is too small(<5000)")]
    ServicePeriod,
    #[error("serverStatusSynchronizationPeriodMillis is too small(<15000)")]
    ServerPeriod,
    #[error("invalid input for limited urls")]
    LimitedUrls,
    #[error("url can not be empty, url: ")]
    LimitedUrlEmpty,
    #[error("illegal normal status code: {0}")]
    StatusCode(i64),
    #[error("json param invalid.")]
    Json,
    #[error("min check time for http or tcp is too small(<500)")]
    MinCheck,
    #[error("max check time for http or tcp is too small(<3000)")]
    MaxCheck,
    #[error("malformed factor")]
    Factor,
}

impl Classify for SwitchError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some(if matches!(self, Self::Entry { .. }) { "entry" } else { "value" })
    }
}

/// Reads what `entry` is to be turned to. `present` are the switches as they are.
///
/// # Errors
/// [`SwitchError`]; then nothing is to be turned.
pub fn switch_change(entry: &str, value: &str, present: &Switches) -> Result<SwitchChange, SwitchError> {
    let value = value.trim();
    let boolean = || truth(value).ok_or_else(|| bad(entry, value, "true or false"));
    Ok(match entry {
        "batch" => return batch(value, present),
        "autoChangeHealthCheckEnabled" => SwitchChange::AutoChangeHealthCheckEnabled(boolean()?),
        "check" => SwitchChange::HealthCheckEnabled(boolean()?),
        "clientBeatInterval" => SwitchChange::ClientBeatInterval(whole(entry, value, 100..=15_000)?),
        "defaultCacheMillis" => SwitchChange::CacheMillis(at_least(entry, value, 1_000, SwitchError::DefaultCache)?),
        "defaultInstanceEphemeral" => SwitchChange::DefaultInstanceEphemeral(boolean()?),
        "disableAddIP" => SwitchChange::DisableAddIp(boolean()?),
        "distro" => SwitchChange::DistroEnabled(boolean()?),
        "distroServerExpiredMillis" => SwitchChange::DistroServerExpiredMillis(whole(entry, value, 0..=DAY)?),
        "distroThreshold" => SwitchChange::DistroThreshold(distro_threshold(entry, value)?),
        "enableStandalone" => SwitchChange::EnableStandalone(boolean()?),
        "healthCheckTimes" => SwitchChange::CheckTimes(whole(entry, value, 1..=1_000)?),
        "httpHealthParams" => SwitchChange::HttpHealth(timing(value, 500)?),
        "tcpHealthParams" => SwitchChange::TcpHealth(timing(value, 500)?),
        "mysqlHealthParams" => SwitchChange::MysqlHealth(timing(value, 0)?),
        "lightBeatEnabled" => SwitchChange::LightBeatEnabled(boolean()?),
        "limitedUrlMap" => SwitchChange::LimitedUrls(limited_urls(value)?),
        "masters" => SwitchChange::Masters(masters(value)),
        "overriddenServerStatus" => SwitchChange::OverriddenServerStatus(status(entry, value)?),
        "pushCacheMillis" => SwitchChange::PushCacheMillis(at_least(entry, value, 10_000, SwitchError::PushCache)?),
        "pushEnabled" => SwitchChange::PushEnabled(boolean()?),
        "pushVersion" => SwitchChange::PushVersions(push_version(value, &present.push_versions)?),
        "sendBeatOnly" => SwitchChange::SendBeatOnly(boolean()?),
        "serverStatusSynchronizationPeriodMillis" => {
            SwitchChange::ServerStatusPeriodMillis(at_least(entry, value, 1_000, SwitchError::ServerPeriod)?)
        }
        "serviceStatusSynchronizationPeriodMillis" => {
            SwitchChange::ServiceStatusPeriodMillis(at_least(entry, value, 5_000, SwitchError::ServicePeriod)?)
        }
        _ => return Err(SwitchError::Entry { entry: excerpt(entry) }),
    })
}

/// Reads the JSON form, whole or in part; what is absent stays as it is. All of it is turned, or nothing.
fn batch(text: &str, present: &Switches) -> Result<SwitchChange, SwitchError> {
    let object: Map<String, Value> = serde_json::from_str(text).map_err(|_| SwitchError::Json)?;
    let (mut changes, mut switches) = (Vec::new(), present.clone());
    for (key, value) in object {
        let key = key.as_str();
        let change = if FIXED.contains(&key) {
            continue;
        } else if let (Some((_, client)), Value::String(version)) =
            (VERSIONS.iter().find(|(name, _)| *name == key), &value)
        {
            switch_change("pushVersion", &format!("{client}:{version}"), &switches)?
        } else if let ("limitedUrlMap", Value::Object(urls)) = (key, &value) {
            let urls = urls.iter().map(|(url, code)| limited_url(url, code.as_i64().ok_or(SwitchError::LimitedUrls)?));
            SwitchChange::LimitedUrls(urls.collect::<Result<_, _>>()?)
        } else if let ("masters", Value::Array(masters)) = (key, &value) {
            let names = masters.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>();
            SwitchChange::Masters(Some(names.ok_or_else(|| bad(key, &value.to_string(), "a list of texts"))?))
        } else {
            let entry = RENAMED.iter().find(|(name, _)| *name == key).map_or(key, |(_, entry)| entry);
            if entry == "batch" {
                return Err(SwitchError::Entry { entry: entry.to_owned() });
            }
            let text = match &value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            switch_change(entry, &text, &switches)?
        };
        switches = switches.with(change.clone());
        changes.push(change);
    }
    Ok(SwitchChange::All(changes))
}

/// The switches in the JSON form.
#[must_use]
pub fn switches_json(switches: &Switches) -> Value {
    let versions = &switches.push_versions;
    json!({
        "name": "00-00---000-NACOS_SWITCH_DOMAIN-000---00-00",
        "masters": switches.masters,
        "adWeightMap": {},
        "defaultPushCacheMillis": switches.push_cache_millis,
        "clientBeatInterval": switches.client_beat_interval,
        "defaultCacheMillis": switches.cache_millis,
        "distroThreshold": switches.distro_threshold,
        "healthCheckEnabled": switches.health_check_enabled,
        "autoChangeHealthCheckEnabled": switches.auto_change_health_check_enabled,
        "distroEnabled": switches.distro_enabled,
        "enableStandalone": switches.enable_standalone,
        "pushEnabled": switches.push_enabled,
        "checkTimes": switches.check_times,
        "httpHealthParams": timing_json(switches.http_health),
        "tcpHealthParams": timing_json(switches.tcp_health),
        "mysqlHealthParams": timing_json(switches.mysql_health),
        "incrementalList": [],
        "serverStatusSynchronizationPeriodMillis": switches.server_status_period_millis,
        "serviceStatusSynchronizationPeriodMillis": switches.service_status_period_millis,
        "disableAddIP": switches.disable_add_ip,
        "sendBeatOnly": switches.send_beat_only,
        "lightBeatEnabled": switches.light_beat_enabled,
        "limitedUrlMap": switches.limited_urls,
        "distroServerExpiredMillis": switches.distro_server_expired_millis,
        "pushGoVersion": versions.go.to_string(),
        "pushJavaVersion": versions.java.to_string(),
        "pushPythonVersion": versions.python.to_string(),
        "pushCVersion": versions.c.to_string(),
        "pushCSharpVersion": versions.csharp.to_string(),
        "enableAuthentication": false,
        "overriddenServerStatus": switches.overridden_server_status,
        "defaultInstanceEphemeral": switches.default_instance_ephemeral,
        "healthCheckWhiteList": [],
        "checksum": null,
    })
}

fn timing_json(timing: ProbeTiming) -> Value {
    json!({"max": timing.max, "min": timing.min, "factor": timing.factor})
}

fn bad(entry: &str, value: &str, allowed: impl Into<String>) -> SwitchError {
    SwitchError::Value { entry: entry.to_owned(), value: excerpt(value), allowed: allowed.into() }
}

fn whole<T>(entry: &str, value: &str, range: RangeInclusive<T>) -> Result<T, SwitchError>
where
    T: FromStr + PartialOrd + Display,
{
    value
        .parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| bad(entry, value, format!("a whole number from {} to {}", range.start(), range.end())))
}

/// A time from `least` milliseconds to a day; `small` if it is a number, but too small.
fn at_least(entry: &str, value: &str, least: u64, small: SwitchError) -> Result<u64, SwitchError> {
    if value.parse::<i128>().is_ok_and(|number| number < i128::from(least)) {
        return Err(small);
    }
    whole(entry, value, least..=DAY)
}

fn distro_threshold(entry: &str, value: &str) -> Result<f64, SwitchError> {
    let number: f64 = value.parse().map_err(|_| bad(entry, value, "a number above 0"))?;
    if number <= 0.0 {
        return Err(SwitchError::DistroThreshold(excerpt(value)));
    }
    if number.is_finite() { Ok(number) } else { Err(bad(entry, value, "a finite number above 0")) }
}

/// `{"max":…,"min":…,"factor":…}`.
fn timing(text: &str, least_min: u64) -> Result<ProbeTiming, SwitchError> {
    let object: Map<String, Value> = serde_json::from_str(text).map_err(|_| SwitchError::Json)?;
    let millis = |key| object.get(key).and_then(Value::as_u64).ok_or(SwitchError::Json);
    let factor = object.get("factor").and_then(Value::as_f64).ok_or(SwitchError::Json)?;
    let timing = ProbeTiming { max: millis("max")?, min: millis("min")?, factor };
    if timing.min < least_min {
        return Err(SwitchError::MinCheck);
    }
    if timing.max < 3_000 {
        return Err(SwitchError::MaxCheck);
    }
    if !(0.0..=1.0).contains(&timing.factor) {
        return Err(SwitchError::Factor);
    }
    if timing.min > timing.max || timing.max > DAY {
        return Err(SwitchError::Json);
    }
    Ok(timing)
}

/// `url:code,url2:code`; blank limits none.
fn limited_urls(value: &str) -> Result<BTreeMap<String, u16>, SwitchError> {
    let limits = value.split(',').filter(|_| !value.is_empty()).map(|limit| {
        let (url, code) = limit.rsplit_once(':').ok_or(SwitchError::LimitedUrls)?;
        limited_url(url, code.trim().parse().map_err(|_| SwitchError::LimitedUrls)?)
    });
    limits.collect()
}

/// A status of 1xx would leave the client waiting for the answer proper.
fn limited_url(url: &str, code: i64) -> Result<(String, u16), SwitchError> {
    let url = url.trim();
    if url.is_empty() {
        return Err(SwitchError::LimitedUrlEmpty);
    }
    let status = u16::try_from(code).ok().filter(|status| (200..=599).contains(status));
    Ok((url.to_owned(), status.ok_or(SwitchError::StatusCode(code))?))
}

fn masters(value: &str) -> Option<Vec<String>> {
    let names: Vec<_> = value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (!names.is_empty()).then_some(names)
}

/// The status to show in place of the real one; blank and `null` show the real one.
fn status(entry: &str, value: &str) -> Result<Option<String>, SwitchError> {
    if value.is_empty() || value == "null" {
        return Ok(None);
    }
    if STATUSES.contains(&value) {
        return Ok(Some(value.to_owned()));
    }
    Err(bad(entry, value, format!("{}, or null", STATUSES.join(", "))))
}

/// `client:x.y.z`.
fn push_version(value: &str, present: &PushVersions) -> Result<PushVersions, SwitchError> {
    let (client, version) = value.split_once(':').ok_or(SwitchError::Version)?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !version.split('.').all(digits) {
        return Err(SwitchError::Version);
    }
    let version: Version = version.parse().map_err(|()| SwitchError::Version)?;
    let mut versions = present.clone();
    match client {
        "go" => versions.go = version,
        "java" => versions.java = version,
        "python" => versions.python = version,
        "c" => versions.c = version,
        "csharp" => versions.csharp = version,
        other => return Err(SwitchError::ClientType(excerpt(other))),
    }
    Ok(versions)
}

#[cfg(test)]
mod tests;
