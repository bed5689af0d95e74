//! `/v1/ns/instance/metadata/batch`: an operator's metadata of many instances.

use std::collections::{BTreeMap, BTreeSet};

use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::json;

use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json},
            refusal::Refusal,
        },
    },
    naming,
    registry::{self, Kind, Limits, Selection, Target, overlay::OverlayChange},
    wire::http_v1::{ParamError, Params, metadata_pairs},
};

/// PUT: sets pairs.
pub async fn set(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let set_metadata: BTreeMap<_, _> = metadata_pairs(params.required("metadata")?)?.into_iter().collect();
    change(&state, &params, OverlayChange { origin: call.origin(), set_metadata, ..OverlayChange::default() }).await
}

/// DELETE: forgets the pairs that an operator set under these keys.
pub async fn unset(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let pairs = metadata_pairs(params.required("metadata")?)?;
    let unset_metadata: BTreeSet<_> = pairs.into_iter().map(|(key, _)| key).collect();
    change(&state, &params, OverlayChange { origin: call.origin(), unset_metadata, ..OverlayChange::default() }).await
}

/// Targets as in Nacos 1.4: all of a kind if `consistencyType` names one, else those listed, else none.
async fn change(state: &api::http::State, params: &Params<'_>, change: OverlayChange) -> Result<Response, Refusal> {
    let limits = state.naming.limits();
    let service = params.service(limits)?;
    let selection = match params.text("consistencyType") {
        Some("ephemeral") => Selection::All(Kind::Ephemeral),
        Some("persist") => Selection::All(Kind::Persistent),
        Some(_) => Selection::Listed(Vec::new()),
        None => Selection::Listed(listed(params, limits)?),
    };
    let changed = match state.naming.overlay_many(service, selection, change).await {
        Ok(changed) => changed,
        Err(naming::Error::Registry(registry::Error::ServiceUnknown(_))) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let updated: Vec<_> = changed
        .iter()
        .map(|instance| {
            let kind = match instance.kind() {
                Kind::Ephemeral => "ephemeral",
                Kind::Persistent => "persist",
            };
            let port = if instance.port() > 0 { format!(":{}", instance.port()) } else { String::new() };
            format!("{}{port}:unknown:{}:{kind}", instance.address(), instance.cluster())
        })
        .collect();
    Ok(json(&json!({ "updated": updated })))
}

#[derive(Deserialize)]
struct Listed {
    ip: String,
    port: i64,
    #[serde(default = "ephemeral")]
    ephemeral: bool,
    #[serde(rename = "clusterName")]
    cluster: Option<String>,
}

const fn ephemeral() -> bool {
    true
}

fn listed(params: &Params<'_>, limits: &Limits) -> Result<Vec<(Target, Kind)>, Refusal> {
    let Some(text) = params.text("instances") else { return Ok(Vec::new()) };
    let listed: Vec<Listed> = serde_json::from_str(text).map_err(|error| ParamError::Json {
        name: "instances",
        allowed: "a JSON array of objects with ip and port",
        problem: error.to_string(),
    })?;
    listed
        .into_iter()
        .map(|one| {
            let endpoint = limits.endpoint(&one.ip, one.port)?;
            let cluster = limits.cluster(one.cluster.as_deref().unwrap_or(""))?;
            let kind = if one.ephemeral { Kind::Ephemeral } else { Kind::Persistent };
            Ok((Target { endpoint, cluster }, kind))
        })
        .collect()
}
