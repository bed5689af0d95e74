//! The HTTP gateway: v1 API, console, probes, metrics, and gRPC-Web of the native API.

mod call;
mod cors;
mod fault;
mod gate;
pub mod metrics;
mod refusal;
pub mod server;
mod settings;
mod v1;
mod v3;

use std::{fmt, sync::Arc};

use axum::{Router, routing::get};
use prometheus_client::registry::Registry;

pub use self::settings::Settings;
use crate::{
    machine::Machine,
    naming::{Naming, Roster},
    push::Push,
    readiness::ReadinessWatch,
};

/// What the handlers have at hand, shared by all requests.
pub type State = Arc<Gateway>;

/// What the handlers have at hand. Made once by the node.
#[derive(Debug)]
pub struct Gateway {
    /// The use cases.
    pub naming: Naming,
    /// Who gets pushes.
    pub push: Push,
    /// Whether this node serves.
    pub readiness: ReadinessWatch,
    /// This node's name, `host:port`, and the members of its cluster.
    pub roster: Roster,
    /// The settings of this front end.
    pub settings: Settings,
    /// How busy the machine is.
    pub machine: Machine,
    /// What is logged.
    pub log: Box<dyn LogLevels>,
    /// Every metric of the process.
    pub metrics: Registry,
    /// Counts requests.
    pub requests: metrics::Requests,
}

/// Changes what is logged while the process runs.
pub trait LogLevels: fmt::Debug + Send + Sync {
    /// Logs what comes from `target`, a module of this program, from `level` on; without a target, whatever has no level
    /// of its own.
    ///
    /// # Errors
    /// What is wrong with one of them; then nothing has changed.
    fn set_level(&self, target: Option<&str>, level: &str) -> Result<(), String>;
}

/// Every path of the HTTP listener: those of this gateway, and `web`, the native API as gRPC-Web.
pub fn router(state: &State, web: Router) -> Router {
    let router = Router::new()
        .merge(v1::router())
        .merge(v3::router())
        .route("/metrics", get(metrics::scrape))
        .route("/nacos/actuator/prometheus", get(metrics::scrape))
        .fallback(fault::unknown)
        .method_not_allowed_fallback(fault::unknown)
        .layer(axum::middleware::from_fn_with_state(state.clone(), metrics::count))
        .with_state(state.clone())
        .merge(web);
    match state.settings.web_origins.as_slice() {
        [] => router,
        origins => router.layer(cors::layer(origins)),
    }
}
