//! `/v1/core/cluster`: the nodes, which are this one.

use axum::{extract::State, response::Response};
use serde_json::{Value, json};

use crate::{
    api::{
        self,
        http::{
            call::{Call, json},
            refusal::Refusal,
        },
    },
    readiness::Readiness,
    wire::http_v1::{Member, envelope, member_json},
};

/// GET `/self`.
pub async fn own(State(state): State<api::http::State>) -> Response {
    json(&envelope(&own_member(&state)))
}

/// GET `/nodes`: the nodes whose name begins with `keyword`.
pub async fn nodes(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let wanted = state.name.starts_with(params.text("keyword").unwrap_or(""));
    let nodes: Vec<_> = wanted.then(|| own_member(&state)).into_iter().collect();
    Ok(json(&envelope(&json!(nodes))))
}

/// GET `/simple/nodes`: their names.
pub async fn names(State(state): State<api::http::State>) -> Response {
    json(&envelope(&json!([&*state.name])))
}

/// GET `/health`: the state of this node.
pub async fn health(State(state): State<api::http::State>) -> Response {
    json(&envelope(&json!(own_state(&state))))
}

/// This node as the cluster paths show it.
pub(super) fn own_member(state: &api::http::State) -> Value {
    member_json(&Member {
        name: &state.name,
        state: own_state(state),
        version: env!("CARGO_PKG_VERSION"),
        heard_at: state.naming.wall_millis(),
    })
}

fn own_state(state: &api::http::State) -> &'static str {
    match *state.readiness.borrow() {
        Readiness::Starting => "STARTING",
        Readiness::Ready => "UP",
        Readiness::Draining => "DOWN",
    }
}
