//! The native API: decode, call the use cases, encode.

mod beats;
mod catalog;
mod cluster;
mod operator;
mod outbox;
mod registry;
mod watch;

use std::{net::SocketAddr, sync::Arc};

use axum::extract::ConnectInfo;
use tonic::{Request, Status, codec::CompressionEncoding, server::NamedService, service::Routes};

use super::{server::Settings, serving::WhenServing};
use crate::{
    api::reply,
    clock::Clock,
    error::Classify,
    naming::{Naming, Roster},
    push::subscriber::Subscribers,
    readiness::ReadinessWatch,
    registry::lease::BrakeSettings,
    shutdown::Shutdown,
    wire::{
        native::{At, Shape},
        pb::{
            catalog_service_server::CatalogServiceServer, cluster_service_server::ClusterServiceServer,
            operator_service_server::OperatorServiceServer, registry_service_server::RegistryServiceServer,
        },
    },
};

/// The names of the native services, for health.
pub const SERVICES: [&str; 4] = [
    RegistryServiceServer::<NativeApi>::NAME,
    CatalogServiceServer::<NativeApi>::NAME,
    OperatorServiceServer::<NativeApi>::NAME,
    ClusterServiceServer::<NativeApi>::NAME,
];

/// Answers the native API. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NativeApi {
    naming: Naming,
    subscribers: Subscribers,
    settings: Arc<Settings>,
    node: Arc<NodeFacts>,
    shutdown: Shutdown,
}

/// What operators are told of the node itself.
#[derive(Debug)]
pub struct NodeFacts {
    /// Its name, and the members of its cluster.
    pub roster: Roster,
    /// Whether it serves.
    pub readiness: ReadinessWatch,
    /// The brake against mass expiry.
    pub brake: BrakeSettings,
    /// The clock that started with the process.
    pub clock: Clock,
}

impl NativeApi {
    /// The API over `naming`.
    ///
    /// * `subscribers`: where watchers are noted for operators to see.
    #[must_use]
    pub fn new(
        naming: Naming,
        subscribers: Subscribers,
        settings: Settings,
        node: NodeFacts,
        shutdown: Shutdown,
    ) -> Self {
        Self { naming, subscribers, settings: Arc::new(settings), node: Arc::new(node), shutdown }
    }

    /// Adds the native services to `routes`. Operators are answered also while the node does not serve.
    #[must_use]
    pub fn add_to(&self, routes: Routes) -> Routes {
        let limit = self.settings.max_message_bytes;
        // Answers leave as they are: compressing a list costs more than it saves inside a data centre.
        let registry = RegistryServiceServer::new(self.clone())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
            .accept_compressed(CompressionEncoding::Gzip);
        let catalog = CatalogServiceServer::new(self.clone())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
            .accept_compressed(CompressionEncoding::Gzip);
        let operator = OperatorServiceServer::new(self.clone())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
            .accept_compressed(CompressionEncoding::Gzip);
        let cluster = ClusterServiceServer::new(self.clone())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
            .accept_compressed(CompressionEncoding::Gzip);
        let readiness = &self.node.readiness;
        routes
            .add_service(WhenServing::new(registry, readiness.clone()))
            .add_service(WhenServing::new(catalog, readiness.clone()))
            .add_service(operator)
            .add_service(cluster)
    }
}

/// The status of an error in a request of `shape`.
fn refuse<E: Classify>(shape: Shape) -> impl Fn(E) -> Status {
    move |error| reply::status(&At(shape, error))
}

/// Where a connection comes from: to the gRPC port, or by gRPC-Web to the HTTP port.
fn peer<T>(request: &Request<T>) -> Option<SocketAddr> {
    request.remote_addr().or_else(|| request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0))
}
