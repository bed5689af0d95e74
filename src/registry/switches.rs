//! What an operator can switch while the server runs.

use std::collections::BTreeMap;

/// The present position of every switch. Written by the apply loop only; read by anyone.
///
/// Names, defaults and meaning are those of Nacos 1.4/2.5 (`/operator/switches`). What is marked inert is kept and shown
/// for operators' tools, and has no effect there either.
#[derive(Debug, Clone, PartialEq)]
pub struct Switches {
    /// Whether silent instances become unhealthy and are removed.
    pub health_check_enabled: bool,
    /// Told to clients: beats may leave the instance out.
    pub light_beat_enabled: bool,
    /// Told to clients: milliseconds between beats, unless the instance asks for another period.
    pub client_beat_interval: u64,
    /// Told to clients that get pushes: milliseconds between polls.
    pub push_cache_millis: u64,
    /// Told to clients that get no pushes: milliseconds between polls.
    pub cache_millis: u64,
    /// Whether changes are pushed.
    pub push_enabled: bool,
    /// Whether a registration that does not say so is ephemeral.
    pub default_instance_ephemeral: bool,
    /// Equal probe results that flip the health of a persistent instance.
    pub check_times: u64,
    /// Timing of HTTP probes.
    pub http_health: ProbeTiming,
    /// Timing of TCP probes.
    pub tcp_health: ProbeTiming,
    /// Timing of MYSQL probes.
    pub mysql_health: ProbeTiming,
    /// The status that the server shows instead of its own.
    pub overridden_server_status: Option<String>,
    /// Paths with a status that is answered in place of their own answer.
    pub limited_urls: BTreeMap<String, u16>,
    /// The least client version that gets UDP pushes, by client type.
    pub push_versions: PushVersions,
    /// Whether writes go to the owner of an instance. Without effect on a node that stands alone.
    pub distro_enabled: bool,
    /// Inert.
    pub distro_threshold: f64,
    /// Inert.
    pub distro_server_expired_millis: u64,
    /// Inert.
    pub auto_change_health_check_enabled: bool,
    /// Inert.
    pub enable_standalone: bool,
    /// Inert.
    pub disable_add_ip: bool,
    /// Inert.
    pub send_beat_only: bool,
    /// Inert.
    pub masters: Option<Vec<String>>,
    /// Inert.
    pub server_status_period_millis: u64,
    /// Inert.
    pub service_status_period_millis: u64,
}

/// How often to probe: between `min` and `max` milliseconds, following the measured time by `factor`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeTiming {
    /// Longest period in milliseconds.
    pub max: u64,
    /// Shortest period in milliseconds.
    pub min: u64,
    /// Weight of the past, 0.0 to 1.0.
    pub factor: f64,
}

/// Least client versions, each as major, minor and patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushVersions {
    /// Go clients.
    pub go: Version,
    /// Java clients, and those that call themselves so.
    pub java: Version,
    /// Nacos-DNS.
    pub python: Version,
    /// C and C++ clients.
    pub c: Version,
    /// C# clients.
    pub csharp: Version,
}

/// A client version: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl std::str::FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.').map(str::parse);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => Ok(Self(major, minor, patch)),
            _ => Err(()),
        }
    }
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            health_check_enabled: true,
            light_beat_enabled: true,
            client_beat_interval: 5_000,
            push_cache_millis: 10_000,
            cache_millis: 3_000,
            push_enabled: true,
            default_instance_ephemeral: true,
            check_times: 3,
            http_health: ProbeTiming { max: 5_000, min: 500, factor: 0.85 },
            tcp_health: ProbeTiming { max: 5_000, min: 1_000, factor: 0.75 },
            mysql_health: ProbeTiming { max: 3_000, min: 2_000, factor: 0.65 },
            overridden_server_status: None,
            limited_urls: BTreeMap::new(),
            push_versions: PushVersions {
                go: Version(0, 1, 0),
                java: Version(0, 1, 0),
                python: Version(0, 4, 3),
                c: Version(1, 0, 12),
                csharp: Version(0, 9, 0),
            },
            distro_enabled: true,
            distro_threshold: 0.7,
            distro_server_expired_millis: 10_000,
            auto_change_health_check_enabled: true,
            enable_standalone: true,
            disable_add_ip: false,
            send_beat_only: false,
            masters: None,
            server_status_period_millis: 2_000,
            service_status_period_millis: 5_000,
        }
    }
}

/// One switch in a new position.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant sets the switch of its name")]
pub enum SwitchChange {
    HealthCheckEnabled(bool),
    LightBeatEnabled(bool),
    ClientBeatInterval(u64),
    PushCacheMillis(u64),
    CacheMillis(u64),
    PushEnabled(bool),
    DefaultInstanceEphemeral(bool),
    CheckTimes(u64),
    HttpHealth(ProbeTiming),
    TcpHealth(ProbeTiming),
    MysqlHealth(ProbeTiming),
    OverriddenServerStatus(Option<String>),
    LimitedUrls(BTreeMap<String, u16>),
    PushVersions(PushVersions),
    DistroEnabled(bool),
    DistroThreshold(f64),
    DistroServerExpiredMillis(u64),
    AutoChangeHealthCheckEnabled(bool),
    EnableStandalone(bool),
    DisableAddIp(bool),
    SendBeatOnly(bool),
    Masters(Option<Vec<String>>),
    ServerStatusPeriodMillis(u64),
    ServiceStatusPeriodMillis(u64),
    /// Several at once, in this order.
    All(Vec<Self>),
}

impl Switches {
    /// These switches with one in its new position.
    #[must_use]
    pub fn with(mut self, change: SwitchChange) -> Self {
        match change {
            SwitchChange::HealthCheckEnabled(on) => self.health_check_enabled = on,
            SwitchChange::LightBeatEnabled(on) => self.light_beat_enabled = on,
            SwitchChange::ClientBeatInterval(millis) => self.client_beat_interval = millis,
            SwitchChange::PushCacheMillis(millis) => self.push_cache_millis = millis,
            SwitchChange::CacheMillis(millis) => self.cache_millis = millis,
            SwitchChange::PushEnabled(on) => self.push_enabled = on,
            SwitchChange::DefaultInstanceEphemeral(on) => self.default_instance_ephemeral = on,
            SwitchChange::CheckTimes(times) => self.check_times = times,
            SwitchChange::HttpHealth(timing) => self.http_health = timing,
            SwitchChange::TcpHealth(timing) => self.tcp_health = timing,
            SwitchChange::MysqlHealth(timing) => self.mysql_health = timing,
            SwitchChange::OverriddenServerStatus(status) => self.overridden_server_status = status,
            SwitchChange::LimitedUrls(urls) => self.limited_urls = urls,
            SwitchChange::PushVersions(versions) => self.push_versions = versions,
            SwitchChange::DistroEnabled(on) => self.distro_enabled = on,
            SwitchChange::DistroThreshold(share) => self.distro_threshold = share,
            SwitchChange::DistroServerExpiredMillis(millis) => self.distro_server_expired_millis = millis,
            SwitchChange::AutoChangeHealthCheckEnabled(on) => self.auto_change_health_check_enabled = on,
            SwitchChange::EnableStandalone(on) => self.enable_standalone = on,
            SwitchChange::DisableAddIp(on) => self.disable_add_ip = on,
            SwitchChange::SendBeatOnly(on) => self.send_beat_only = on,
            SwitchChange::Masters(masters) => self.masters = masters,
            SwitchChange::ServerStatusPeriodMillis(millis) => self.server_status_period_millis = millis,
            SwitchChange::ServiceStatusPeriodMillis(millis) => self.service_status_period_millis = millis,
            SwitchChange::All(changes) => return changes.into_iter().fold(self, Self::with),
        }
        self
    }
}
