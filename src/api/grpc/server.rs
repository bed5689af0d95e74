//! The gRPC listener: which services stand on it, its limits, and how it ends.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, sync::watch};
use tonic::{
    service::Routes,
    transport::{Server, server::TcpIncoming},
};
use tonic_health::pb::health_server::HealthServer;
use tonic_web::GrpcWebLayer;
use tower::util::MapResponseLayer;

use super::{drain::EndOnDrain, health::HealthService};
use crate::{api::reply, shutdown::Shutdown, wire::pb};

/// Limits of the gRPC listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Largest message that is read or written, in bytes after decompression. 65,536 to 1,073,741,824. Raised: one
    /// client may make the server hold that much; lowered: large lists must be paged and large batches cut.
    pub max_message_bytes: usize,
    /// Most calls that one connection may have open at once, streams included. 1 to 1,000,000. The bound for what one
    /// connection can make the server hold; a client beyond it waits.
    pub max_streams: u32,
    /// Silence of a connection after which the server pings it. 1 s to 1 h. Raised: a dead client holds its streams
    /// longer; lowered: more traffic of idle connections.
    #[serde(with = "crate::duration_text")]
    pub ping_interval: Duration,
    /// How long the answer to a ping may take before the connection is closed. 1 s to 1 h.
    #[serde(with = "crate::duration_text")]
    pub ping_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_message_bytes: 10 * 1024 * 1024,
            max_streams: 1_024,
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// Checks the bounds themselves.
    ///
    /// # Errors
    /// The first setting that is out of its range: its key below `grpc`, and what is allowed.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if !(65_536..=1_073_741_824).contains(&self.max_message_bytes) {
            let seen = self.max_message_bytes;
            return Err(("max_message_bytes", format!("{seen} is out of range; allowed are 65536 to 1073741824")));
        }
        if !(1..=1_000_000).contains(&self.max_streams) {
            let seen = self.max_streams;
            return Err(("max_streams", format!("{seen} is out of range; allowed are 1 to 1000000")));
        }
        for (key, value) in [("ping_interval", self.ping_interval), ("ping_timeout", self.ping_timeout)] {
            if !(Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&value) {
                let seen = crate::duration_text::print(value);
                return Err((key, format!("{seen} is out of range; allowed are 1s to 1h")));
            }
        }
        Ok(())
    }
}

/// Adds health and reflection (v1 and v1alpha) to `routes`.
///
/// * `services`: the names for which health is answered, beside "" for the whole server.
/// * `ready`: whether this node serves.
///
/// # Errors
/// If the descriptors that were compiled in cannot be read: a fault of the build.
pub fn with_standard_services(
    routes: Routes,
    services: &[&'static str],
    ready: watch::Receiver<bool>,
    shutdown: &Shutdown,
) -> Result<Routes, tonic_reflection::server::Error> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(pb::CLIENT_API)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let health = HealthServer::new(HealthService::new(ready, services, shutdown.clone()));
    Ok(routes
        .add_service(health)
        .add_service(EndOnDrain::new(reflection().build_v1()?, shutdown.token()))
        .add_service(EndOnDrain::new(reflection().build_v1alpha()?, shutdown.token())))
}

/// Serves `routes` on `listener` until the drain starts, and then until every open call has ended.
///
/// # Errors
/// Those of the listener.
pub async fn serve(
    routes: Routes,
    listener: TcpListener,
    settings: &Settings,
    shutdown: &Shutdown,
) -> Result<(), tonic::transport::Error> {
    Server::builder()
        .max_concurrent_streams(settings.max_streams)
        .http2_keepalive_interval(Some(settings.ping_interval))
        .http2_keepalive_timeout(Some(settings.ping_timeout))
        .layer(MapResponseLayer::new(reply::complete::<tonic::body::Body>))
        .add_routes(routes.prepare())
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), shutdown.draining())
        .await
}

/// The same services for browsers: gRPC-Web, to be merged into the router of the HTTP port.
pub fn web(routes: Routes) -> axum::Router {
    routes
        .into_axum_router()
        .reset_fallback()
        .layer(MapResponseLayer::new(reply::complete::<axum::body::Body>))
        .layer(GrpcWebLayer::new())
}
