//! `/v1/console`: the state of the server, and whether it lives and serves.

use axum::{extract::State, response::Response};
use serde_json::{Value, json};

use crate::{
    api::{
        self,
        http::{
            call::{json, text},
            refusal::Refusal,
        },
    },
    wire::http_v1::envelope,
};

/// GET `/server/state`: what the server is. All values are text or null (Nacos).
pub async fn server_state(State(state): State<api::http::State>) -> Response {
    let mode = if state.roster.is_clustered() { "cluster" } else { "standalone" };
    json(&json!({
        "standalone_mode": mode,
        "startup_mode": mode,
        "function_mode": "naming",
        "version": env!("CARGO_PKG_VERSION"),
        "auth_enabled": "false",
        "login_page_enabled": "false",
        "server_port": state.roster.name().rsplit(':').next(),
    }))
}

/// GET `/server/announcement` and `/server/guide`: nothing to tell.
pub async fn nothing() -> Response {
    json(&envelope(&Value::Null))
}

/// GET `/health/liveness`: the process answers.
pub async fn liveness() -> Response {
    text("OK")
}

/// GET `/health/readiness`: whether this node serves; if not, 500 with the reason.
pub async fn readiness(State(state): State<api::http::State>) -> Result<Response, Refusal> {
    match state.readiness.borrow().reason() {
        None => Ok(text("OK")),
        Some(reason) => Err(Refusal::new(500, format!("Naming is not in readiness: {reason}"))),
    }
}
