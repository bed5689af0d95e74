//! `/v1/ns/service`: create, update, show and delete a service.

use axum::{extract::State, response::Response};
use serde_json::json;

use super::instance::metadata;
use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json, ok},
            refusal::Refusal,
        },
    },
    naming,
    registry::{
        self, ServiceChange,
        selector::Selector,
        service::{ServiceSettings, Threshold},
    },
    wire::http_v1::{ParamError, Params, selector, service_body},
};

/// POST: creates a service, which stays until it is deleted. It is neither ephemeral nor persistent until its first
/// instance comes. Without `protectThreshold` it is never protected.
pub async fn create(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    params.declared("serviceName")?;
    let limits = state.naming.limits();
    let key = params.service(limits)?;
    let settings = ServiceSettings {
        protect_threshold: threshold(&params)?,
        metadata: metadata(&params, limits)?.unwrap_or_default(),
        selector: own_selector(&params)?,
        ..ServiceSettings::default()
    };
    match state.naming.create_service(key, settings).await {
        Ok(_) => Ok(ok()),
        Err(naming::Error::Registry(registry::Error::ServiceExists(key))) => {
            Err(Refusal::bad(format!("specified service {key} already exists!")))
        }
        Err(error) => Err(error.into()),
    }
}

/// PUT: replaces what an operator says of a service. Metadata and selector that are not sent are reset (Nacos).
pub async fn update(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let key = params.service(limits)?;
    let change = ServiceChange {
        protect_threshold: Some(Some(threshold(&params)?.ok_or(ParamError::Missing("protectThreshold"))?)),
        metadata: Some(metadata(&params, limits)?.unwrap_or_default()),
        selector: Some(own_selector(&params)?),
    };
    match state.naming.update_service(key, change).await {
        Ok(_) => Ok(ok()),
        Err(naming::Error::Registry(registry::Error::ServiceUnknown(key))) => {
            Err(Refusal::bad(format!("service {key} not found!")))
        }
        Err(error) => Err(error.into()),
    }
}

/// DELETE: removes a service without instances.
pub async fn delete(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    params.declared("serviceName")?;
    match state.naming.delete_service(params.service(state.naming.limits())?).await {
        Ok(()) => Ok(ok()),
        Err(naming::Error::Registry(registry::Error::ServiceUnknown(key))) => {
            Err(Refusal::bad(format!("service {key} not found!")))
        }
        Err(naming::Error::Registry(registry::Error::ServiceNotEmpty { service, .. })) => Err(Refusal::bad(format!(
            "Service {service} is not empty, can't be delete. Please unregister instance first"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// GET: what an operator says of a service, and its clusters.
pub async fn detail(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    params.declared("serviceName")?;
    let key = params.service(state.naming.limits())?;
    let snapshot = state.naming.service(&key).map_err(unknown)?;
    Ok(json(&service_body(&key, &snapshot)))
}

/// GET `/selector/types`.
pub async fn selector_types() -> Response {
    json(&json!({"code": 200, "message": null, "data": ["none", "label"]}))
}

/// A service that does not exist, in the words of the paths that show one.
pub(super) fn unknown(error: naming::Error) -> Refusal {
    match error {
        naming::Error::Registry(registry::Error::ServiceUnknown(key)) => {
            Refusal::new(404, format!("service {key} is not found!"))
        }
        other => other.into(),
    }
}

fn threshold(params: &Params<'_>) -> Result<Option<Threshold>, Refusal> {
    Ok(params.float("protectThreshold")?.map(Threshold::new).transpose()?)
}

fn own_selector(params: &Params<'_>) -> Result<Selector, Refusal> {
    Ok(selector(params.text("selector").unwrap_or(""))?)
}
