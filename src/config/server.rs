//! `[server]`: where the node listens, where it keeps its files, how long it drains.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::setting::{Problem, Section, Setting, duration};

/// How far the gRPC port lies above the HTTP port when it is not written down; SDKs compute the same.
pub const GRPC_PORT_OFFSET: u16 = 1000;
/// How far the port for peers lies above the HTTP port when it is not written down.
pub const PEER_PORT_OFFSET: u16 = 1001;

const HTTP_PORT: u16 = 8848;
/// More is surely a slip of the unit: whoever stops the process kills it long before.
const MAX_DRAIN: Duration = Duration::from_secs(3_600);

/// Listeners, data directory and drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Listener of the HTTP API; port 0 lets the system choose one.
    pub http: SocketAddr,
    /// Listener of the gRPC API; port 0 lets the system choose one.
    pub grpc: SocketAddr,
    /// Listener for the other nodes; opened only in a cluster.
    pub peer: SocketAddr,
    /// Directory of everything that survives a restart; created if missing, used by one process at a time.
    pub data_dir: PathBuf,
    /// Longest time from SIGTERM to exit. Lower cuts off streams that are still being moved; higher makes a stuck client
    /// hold up a restart.
    #[serde(with = "duration")]
    pub drain_timeout: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            http: local(HTTP_PORT),
            grpc: local(HTTP_PORT + GRPC_PORT_OFFSET),
            peer: local(HTTP_PORT + PEER_PORT_OFFSET),
            data_dir: PathBuf::from("data"),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// The address `offset` ports above `http`, on the same IP; port 0 stays 0. `None` if there is no such port.
#[must_use]
pub fn port_above(http: SocketAddr, offset: u16) -> Option<SocketAddr> {
    let port = match http.port() {
        0 => 0,
        port => port.checked_add(offset)?,
    };
    let mut address = http;
    address.set_port(port);
    Some(address)
}

impl Section for ServerSettings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "http",
            r#"IP:PORT, such as "127.0.0.1:8848" or "[::]:8848"; port 0 takes a free one"#,
            r#""127.0.0.1:8848""#,
            "Listener of the HTTP API.",
        ),
        Setting::new(
            "grpc",
            "IP:PORT; port 0 takes a free one",
            r#""127.0.0.1:9848""#,
            "Listener of the gRPC API. Follows `server.http`: its port + 1000.",
        ),
        Setting::new(
            "peer",
            "IP:PORT",
            r#""127.0.0.1:9849""#,
            "Listener for the other nodes, opened only in a cluster. Follows `server.http`: its port + 1001.",
        ),
        Setting::new(
            "data_dir",
            "a path that is not empty",
            r#""data""#,
            "Directory of what survives a restart; created if missing, used by one process at a time.",
        ),
        Setting::new(
            "drain_timeout",
            r#"a duration from "0s" to "1h", such as "500ms", "10s", "1m""#,
            r#""10s""#,
            "Longest time from SIGTERM to exit.",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        let same = |a: SocketAddr, b: SocketAddr| a == b && a.port() != 0;
        Problem::unless(!same(self.grpc, self.http), "grpc", "server.http listens there already")?;
        Problem::unless(!same(self.peer, self.http), "peer", "server.http listens there already")?;
        Problem::unless(!same(self.peer, self.grpc), "peer", "server.grpc listens there already")?;
        Problem::unless(!self.data_dir.as_os_str().is_empty(), "data_dir", "the path is empty")?;
        Problem::unless(self.drain_timeout <= MAX_DRAIN, "drain_timeout", "longer than an hour")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_http_and_zero_stays_zero() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert_eq!(port_above(at("10.0.0.1:7000"), 1000), Some(at("10.0.0.1:8000")));
        assert_eq!(port_above(at("[::1]:7000"), 1001), Some(at("[::1]:8001")));
        assert_eq!(port_above(at("127.0.0.1:0"), 1000), Some(at("127.0.0.1:0")));
        assert_eq!(port_above(at("127.0.0.1:64535"), 1000), Some(at("127.0.0.1:65535")));
        assert_eq!(port_above(at("127.0.0.1:64536"), 1000), None);
    }

    #[test]
    fn two_listeners_cannot_share_an_address() {
        let mut settings = ServerSettings::default();
        settings.grpc = settings.http;
        assert_eq!(settings.check().map_err(|problem| problem.key), Err("grpc"));
        settings.http.set_port(0);
        settings.grpc.set_port(0);
        assert_eq!(settings.check(), Ok(()));
    }
}
