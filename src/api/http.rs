//! The HTTP gateway: v1 API, console, probes, metrics, and gRPC-Web of the native API.

mod call;
mod fault;
mod gate;
mod refusal;
pub mod server;
mod settings;
mod v1;

use std::sync::Arc;

use axum::Router;

pub use self::settings::Settings;
use crate::{naming::Naming, readiness::ReadinessWatch};

/// What the handlers have at hand. Made once by the node.
#[derive(Debug, Clone)]
pub struct State {
    /// The use cases.
    pub naming: Naming,
    /// Whether this node serves.
    pub readiness: ReadinessWatch,
    /// This node's name, `host:port`.
    pub name: Arc<str>,
    /// The settings of this front end.
    pub settings: Arc<Settings>,
}

/// Every path below `/nacos`.
pub fn router(state: &State) -> Router {
    let v1 = v1::router().layer(axum::middleware::from_fn_with_state(state.clone(), gate::admit));
    Router::new()
        .nest("/nacos", v1)
        .fallback(fault::unknown)
        .method_not_allowed_fallback(fault::unknown)
        .with_state(state.clone())
}
