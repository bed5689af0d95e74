//! `/v1/ns/health`: the health that an operator sets, and what the server says of itself.

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json, ok},
            refusal::Refusal,
        },
    },
    naming, registry,
    wire::http_v1::{ParamError, checkers_json},
};

/// PUT: sets the health of an instance whose cluster has the checker `NONE`. An instance that does not exist is `ok` too.
pub async fn set(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let (service, target) = (params.service(limits)?, params.target(limits)?);
    let healthy = match params.boolean("healthy")? {
        Some(healthy) => healthy,
        None => params.boolean("valid")?.ok_or(ParamError::Missing("healthy"))?,
    };
    match state.naming.set_health(service, target, healthy).await {
        Ok(_) | Err(naming::Error::Registry(registry::Error::InstanceUnknown { .. })) => Ok(ok()),
        Err(error) => Err(error.into()),
    }
}

/// GET `/checkers`: every health checker with its defaults.
pub async fn checkers() -> Response {
    json(&checkers_json())
}

/// GET `/server`: a greeting with the number of services.
pub async fn server(State(state): State<api::http::State>) -> Response {
    let services = state.naming.figures().services;
    let port = state.roster.name().rsplit(':').next().unwrap_or_default();
    let greeting = format!("Hello! I am Nacos-Naming and healthy! total services: {services}, local port:{port}");
    json(&json!({ "msg": greeting }))
}
