//! `/v1/ns/instance`: register, deregister, update, detail, list.

use std::collections::BTreeMap;

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json, json_bytes, ok, split_service},
            refusal::Refusal,
        },
    },
    naming::{self, Registration},
    push::{Subscribed, UdpSubscription},
    registry::{
        self, InstanceKey, Kind, Limits, Metadata, Publication, ServiceKey, Target, Weight, overlay::OverlayChange,
    },
    wire::http_v1::{Frame, Params, list_body, metadata_pairs},
};

/// POST: lists an instance.
pub async fn register(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let service = params.service(limits)?;
    let target = params.target(limits)?;
    let publication = Publication {
        weight: weight(&params)?.unwrap_or_default(),
        enabled: enabled(&params)?.unwrap_or(true),
        healthy: params.boolean("healthy")?.unwrap_or(true),
        metadata: metadata(&params, limits)?.unwrap_or_default(),
        app: app(&params),
    };
    let kind = kind(&state, &params)?;
    let instance = InstanceKey { endpoint: target.endpoint, cluster: target.cluster.unwrap_or_default() };
    state.naming.register(Registration { service, instance, kind, publication }).await?;
    Ok(ok())
}

/// DELETE: removes an instance. One that does not exist, or not in this kind, is `ok` too: SDKs compare.
pub async fn deregister(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let (service, target) = (params.service(limits)?, params.target(limits)?);
    weight(&params)?;
    match state.naming.deregister(service, target, kind(&state, &params)?).await {
        Ok(_)
        | Err(naming::Error::Registry(
            registry::Error::InstanceUnknown { .. }
            | registry::Error::OtherKind { .. }
            | registry::Error::HeldByConnection { .. },
        )) => Ok(ok()),
        Err(error) => Err(error.into()),
    }
}

/// PUT: lays weight, enabled and metadata over an instance; what is not sent stays.
pub async fn update(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    overlay(&state, &call, &params, enabled(&params)?).await
}

/// PATCH: as PUT, but only `enabled` is read (Nacos).
pub async fn patch(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    overlay(&state, &call, &params, params.boolean("enabled")?).await
}

async fn overlay(
    state: &api::http::State,
    call: &Call,
    params: &Params<'_>,
    enabled: Option<bool>,
) -> Result<Response, Refusal> {
    let limits = state.naming.limits();
    let (service, target) = (params.service(limits)?, params.target(limits)?);
    let set_metadata: BTreeMap<_, _> = match params.text("metadata") {
        Some(text) => metadata_pairs(text)?.into_iter().collect(),
        None => BTreeMap::new(),
    };
    let change = OverlayChange {
        origin: call.origin(),
        weight: weight(params)?,
        enabled,
        set_metadata,
        ..OverlayChange::default()
    };
    match state.naming.overlay(service, target, change).await {
        Ok(_) => Ok(ok()),
        Err(naming::Error::Registry(registry::Error::ServiceUnknown(key))) => {
            Err(Refusal::bad(format!("service not found, namespace: {}, service: {key}", key.namespace)))
        }
        Err(naming::Error::Registry(registry::Error::InstanceUnknown { target, .. })) => {
            Err(Refusal::bad(format!("instance not exist: {}:{}", target.endpoint, cluster_of(&target))))
        }
        Err(error) => Err(error.into()),
    }
}

/// GET: one instance as it is, disabled and unhealthy ones too.
pub async fn detail(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let (service, target) = (params.service(limits)?, params.target(limits)?);
    let (instance, _) = state.naming.instance(&service, &target).map_err(|error| match error {
        naming::Error::Registry(registry::Error::ServiceUnknown(key)) => {
            Refusal::new(404, format!("no ips found for cluster {} in service {key}", cluster_of(&target)))
        }
        naming::Error::Registry(registry::Error::InstanceUnknown { .. }) => Refusal::new(404, "no matched ip found!"),
        other => other.into(),
    })?;
    let metadata: BTreeMap<_, _> = instance.metadata().iter().collect();
    Ok(json(&json!({
        "service": service.to_string(),
        "ip": instance.address().to_string(),
        "port": instance.port(),
        "clusterName": instance.cluster().as_str(),
        "weight": instance.weight().value(),
        "healthy": instance.healthy(),
        "enabled": instance.enabled(),
        "ephemeral": instance.kind() == Kind::Ephemeral,
        "instanceId": instance.id(&service),
        "metadata": metadata,
    })))
}

/// GET `/list`: the instances that a client may use; with `udpPort` it gets pushes from now on.
pub async fn list(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let service = params.service(limits)?;
    let query = params.list_query(limits)?;
    let clusters = params.raw("clusters").unwrap_or("");
    let udp_port = params.whole("udpPort", 0..=65_535_i64)?.unwrap_or(0);
    let subscribed = udp_port > 0
        && matches!(
            state.push.subscribe(&UdpSubscription {
                service: &service,
                clusters_text: clusters,
                clusters: query.clusters.as_deref(),
                peer: call.peer,
                client_ip: params.text("clientIP").unwrap_or(""),
                udp_port,
                agent: call.agent(),
                app: params.text("app").unwrap_or(""),
            }),
            Subscribed::Yes
        );
    let switches = state.naming.switches();
    let frame = Frame {
        clusters,
        cache_millis: if subscribed { switches.push_cache_millis } else { switches.cache_millis },
        env: params.raw("env").unwrap_or(""),
        now: state.naming.wall_millis(),
    };
    Ok(json_bytes(list_body(&service, &state.naming.snapshot(&service), &query, &frame)))
}

/// GET `/statuses`: `ip:port_healthy` of every instance of a service named as `namespace##group@@service`.
pub async fn statuses(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let key = params.required("key")?;
    let (namespace, grouped) = key.split_once("##").unwrap_or(("", key));
    if !grouped.contains("@@") {
        return Err(Refusal::bad("Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"));
    }
    let (group, name) = split_service(grouped, "")?;
    let service: ServiceKey = limits.service_key(namespace, group, name)?;
    let snapshot = state.naming.snapshot(&service);
    let ips: Vec<_> = snapshot
        .instances()
        .iter()
        .map(|instance| format!("{}:{}_{}", instance.address(), instance.port(), instance.healthy()))
        .collect();
    Ok(json(&json!({ "ips": ips })))
}

/// `weight`, if it is sent.
pub(super) fn weight(params: &Params<'_>) -> Result<Option<Weight>, Refusal> {
    Ok(params.float("weight")?.map(Weight::new).transpose()?)
}

/// `metadata`, if it is sent.
pub(super) fn metadata(params: &Params<'_>, limits: &Limits) -> Result<Option<Metadata>, Refusal> {
    match params.text("metadata") {
        Some(text) => Ok(Some(limits.metadata(metadata_pairs(text)?)?)),
        None => Ok(None),
    }
}

/// `enabled`, or `enable` if that is blank.
fn enabled(params: &Params<'_>) -> Result<Option<bool>, Refusal> {
    Ok(match params.boolean("enabled")? {
        Some(enabled) => Some(enabled),
        None => params.boolean("enable")?,
    })
}

/// `app`; the words by which clients say that they have none are not kept.
fn app(params: &Params<'_>) -> Option<Box<str>> {
    params.text("app").filter(|app| !matches!(*app, "DEFAULT" | "unknown")).map(Into::into)
}

/// `ephemeral`, or what the switch says.
fn kind(state: &api::http::State, params: &Params<'_>) -> Result<Kind, Refusal> {
    params.kind(if state.naming.switches().default_instance_ephemeral { Kind::Ephemeral } else { Kind::Persistent })
}

fn cluster_of(target: &Target) -> &str {
    target.cluster.as_ref().map_or("DEFAULT", |cluster| cluster.as_str())
}
