//! The protocol of the Nacos SDKs (2.x, 3.x): one unary service for their questions, one stream that makes a connection.
//!
//! Both are written by hand where tonic would generate them, so that what is pushed leaves without being copied.

mod counters;
mod envelope;
mod instance;
mod names;
mod service;
mod stream;
mod unary;

use std::sync::Arc;

use tonic::service::Routes;

pub use self::counters::RequestFigures;
use self::{counters::Counters, stream::StreamService, unary::UnaryService};
use super::{connection::Connections, server::Settings};
use crate::{naming::Naming, push::sdk::SdkPush, readiness::ReadinessWatch, shutdown::Shutdown};

/// The names of the services, for health.
pub const SERVICES: [&str; 2] = ["Request", "BiRequestStream"];

/// Answers SDKs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SdkApi {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    naming: Naming,
    connections: Connections,
    readiness: ReadinessWatch,
    counters: Counters,
    shutdown: Shutdown,
    max_message_bytes: usize,
}

impl SdkApi {
    /// The protocol over `naming`, with pushes by `push`.
    #[must_use]
    pub fn new(
        naming: Naming,
        push: SdkPush,
        settings: &Settings,
        readiness: ReadinessWatch,
        shutdown: Shutdown,
    ) -> Self {
        let connections = Connections::start(naming.clone(), push, &shutdown);
        let inner = Inner {
            naming,
            connections,
            readiness,
            counters: Counters::default(),
            shutdown,
            max_message_bytes: settings.max_message_bytes,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Adds the services to `routes`.
    #[must_use]
    pub fn add_to(&self, routes: Routes) -> Routes {
        routes.add_service(UnaryService::new(self.clone())).add_service(StreamService::new(self.clone()))
    }

    /// The connections.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.inner.connections
    }

    /// How many requests there were since the process started, by type and code; those that were never made are left out.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestFigures> {
        self.inner.counters.figures()
    }
}
