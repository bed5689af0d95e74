//! The HTTP gateway: v1 API, console, probes, metrics, and gRPC-Web of the native API.

mod call;
mod fault;
mod gate;
pub mod metrics;
mod refusal;
pub mod server;
mod settings;
mod v1;

use std::{fmt, sync::Arc};

use axum::{Router, routing::get};
use prometheus_client::registry::Registry;

pub use self::settings::Settings;
use crate::{machine::Machine, naming::Naming, push::Push, readiness::ReadinessWatch};

/// What the handlers have at hand. Made once by the node.
#[derive(Debug, Clone)]
pub struct State {
    /// The use cases.
    pub naming: Naming,
    /// Who gets pushes.
    pub push: Push,
    /// Whether this node serves.
    pub readiness: ReadinessWatch,
    /// This node's name, `host:port`.
    pub name: Arc<str>,
    /// The settings of this front end.
    pub settings: Arc<Settings>,
    /// How busy the machine is.
    pub machine: Arc<Machine>,
    /// What is logged.
    pub log: Arc<dyn LogLevels>,
    /// Every metric of the process.
    pub metrics: Arc<Registry>,
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

/// Every path of the HTTP listener.
pub fn router(state: &State) -> Router {
    let v1 = v1::router().layer(axum::middleware::from_fn_with_state(state.clone(), gate::admit));
    Router::new()
        .nest("/nacos", v1)
        .route("/metrics", get(metrics::scrape))
        .route("/nacos/actuator/prometheus", get(metrics::scrape))
        .fallback(fault::unknown)
        .method_not_allowed_fallback(fault::unknown)
        .layer(axum::middleware::from_fn_with_state(state.clone(), metrics::count))
        .with_state(state.clone())
}
