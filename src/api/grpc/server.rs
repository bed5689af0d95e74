//! The gRPC port: its limits, the standard services on it, and the same services as gRPC-Web on the HTTP port.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tonic_web::GrpcWebLayer;
use tower::util::MapResponseLayer;

use super::{drain::EndOnDrain, health::HealthService};
use crate::{
    api::reply,
    readiness::ReadinessWatch,
    setting::{Problem, Section, Setting, duration},
    shutdown::Shutdown,
    wire::pb,
};

/// Limits of the gRPC listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Largest message that is read or written, in bytes after decompression. Raised: one client may make the server hold
    /// that much; lowered: large lists come in more pages and large batches must be cut.
    pub max_message_bytes: usize,
    /// Most calls that one connection may have open at once, streams included: the bound for what one connection can make
    /// the server hold. A client beyond it waits.
    pub max_streams: u32,
    /// Connections that may be open at once; further ones are closed at once. Each costs about 15 KiB, and
    /// one of an SDK twice that.
    pub max_connections: usize,
    /// Connections that may be open at once from one address; further ones are closed at once. Lower it where no proxy
    /// stands before many clients.
    pub max_connections_per_address: usize,
    /// Most handles that one stream of beats may declare. Each costs about 100 bytes; one more is answered with INVALID.
    pub max_beat_handles: usize,
    /// Silence of a connection after which the server pings it. Raised: a dead client holds its streams longer; lowered:
    /// more traffic of idle connections.
    #[serde(with = "duration")]
    pub ping_interval: Duration,
    /// How long the answer to a ping may take before the connection is closed.
    #[serde(with = "duration")]
    pub ping_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_message_bytes: 10 * 1024 * 1024,
            max_streams: 1_024,
            max_connections: 65_536,
            max_connections_per_address: 65_536,
            max_beat_handles: 1_048_576,
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(10),
        }
    }
}

impl Section for Settings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "max_message_bytes",
            "a whole number from 65536 to 1073741824",
            "10485760",
            "largest message that is read or written, in bytes after decompression",
        ),
        Setting::new(
            "max_streams",
            "a whole number from 1 to 1000000",
            "1024",
            "most calls that one connection may have open at once",
        ),
        Setting::new(
            "max_connections",
            "a whole number from 1 to 1000000",
            "65536",
            "connections that may be open at once; further ones are closed",
        ),
        Setting::new(
            "max_connections_per_address",
            "a whole number from 1 to 1000000",
            "65536",
            "connections that may be open at once from one address; further ones are closed",
        ),
        Setting::new(
            "max_beat_handles",
            "a whole number from 0 to 16777216",
            "1048576",
            "most handles that one stream of beats may declare",
        ),
        Setting::new(
            "ping_interval",
            "a duration from 1s to 1h",
            r#""20s""#,
            "silence of a connection after which the server pings it",
        ),
        Setting::new(
            "ping_timeout",
            "a duration from 1s to 1h",
            r#""10s""#,
            "time for the answer to a ping before the connection is closed",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        let range = "it is out of range";
        Problem::unless((65_536..=1_073_741_824).contains(&self.max_message_bytes), "max_message_bytes", range)?;
        Problem::unless((1..=1_000_000).contains(&self.max_streams), "max_streams", range)?;
        Problem::unless((1..=1_000_000).contains(&self.max_connections), "max_connections", range)?;
        let each = self.max_connections_per_address;
        Problem::unless((1..=1_000_000).contains(&each), "max_connections_per_address", range)?;
        Problem::unless(self.max_beat_handles <= 16_777_216, "max_beat_handles", range)?;
        for (key, value) in [("ping_interval", self.ping_interval), ("ping_timeout", self.ping_timeout)] {
            Problem::unless((Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&value), key, range)?;
        }
        Ok(())
    }
}

/// Adds health and reflection (v1 and v1alpha) to `routes`.
///
/// * `services`: the names for which health is answered, beside "" for the whole server.
///
/// # Errors
/// If the descriptors that were compiled in cannot be read: a fault of the build.
pub fn with_standard_services(
    routes: Routes,
    services: &[&'static str],
    readiness: ReadinessWatch,
    shutdown: &Shutdown,
) -> Result<Routes, tonic_reflection::server::Error> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(pb::CLIENT_API)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // So that tools can print the details of our errors.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    let health = HealthServer::new(HealthService::new(readiness, services, shutdown.clone()));
    Ok(routes
        .add_service(health)
        .add_service(EndOnDrain::new(reflection().build_v1()?, shutdown.token()))
        .add_service(EndOnDrain::new(reflection().build_v1alpha()?, shutdown.token())))
}

/// The same services as gRPC-Web, to be merged into the router of the HTTP port.
pub fn web(routes: Routes) -> axum::Router {
    routes
        .into_axum_router()
        .reset_fallback()
        .layer(MapResponseLayer::new(reply::complete::<axum::body::Body>))
        .layer(GrpcWebLayer::new())
}
