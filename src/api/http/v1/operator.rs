//! `/v1/ns/operator`: metrics, servers, owners, log levels.

use axum::{extract::State, response::Response};
use serde_json::{Map, Value, json};

use super::core::own_member;
use crate::api::{
    self,
    http::{
        call::{Call, Names, json, ok},
        gate::naming_status,
        refusal::Refusal,
    },
};

/// GET `/metrics`: the naming status, which is all that clients read; unless `onlyStatus=true`, all that Nacos 1.4 and 2.5
/// show of their naming, and the queue, freezes and brake of this server. Every beat-kept instance counts as a client.
pub async fn metrics(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let only_status = params.boolean("onlyStatus")?.unwrap_or(false);
    let switches = state.naming.switches();
    let (status, _) = naming_status(*state.readiness.borrow(), switches.overridden_server_status.as_deref());
    if only_status {
        return Ok(json(&json!({ "status": status })));
    }
    let (figures, load) = (state.naming.figures(), state.machine.load());
    let mut body = json!({
        "status": status,
        "serviceCount": figures.services,
        "instanceCount": figures.instances,
        "subscribeCount": state.push.subscribers().count(),
        "responsibleServiceCount": figures.services,
        "responsibleInstanceCount": figures.instances,
        "raftNotifyTaskCount": 0,
        "clientCount": figures.leases + figures.connections,
        "connectionBasedClientCount": figures.connections,
        "ephemeralIpPortClientCount": figures.leases,
        "persistentIpPortClientCount": 0,
        "responsibleClientCount": figures.leases + figures.connections,
        "cpu": load.cpu,
        "load": load.load,
        "mem": load.memory,
    });
    if let Value::Object(body) = &mut body {
        body.extend(own_figures(&figures));
    }
    Ok(json(&body))
}

fn own_figures(figures: &crate::registry::Figures) -> Map<String, Value> {
    let own = [
        ("leases", json!(figures.leases)),
        ("leasesLate", json!(figures.late)),
        ("lapsed", json!(figures.lapsed)),
        ("expired", json!(figures.expired)),
        ("changes", json!(figures.published)),
        ("queueLength", json!(figures.queued)),
        ("queueCapacity", json!(figures.queue_capacity)),
        ("watchedServices", json!(figures.watched)),
        ("freezes", json!(figures.freezes)),
        ("brakeHolding", json!(figures.brake_holding)),
        ("brakeEngagements", json!(figures.brake_engagements)),
    ];
    own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// GET `/servers`: the nodes; with `healthy=true` those that are `UP`.
pub async fn servers(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let healthy_only = call.params()?.boolean("healthy")?.unwrap_or(false);
    let own = own_member(&state);
    let shown: Vec<_> =
        Some(own).filter(|own| !healthy_only || own.get("state") == Some(&json!("UP"))).into_iter().collect();
    Ok(json(&json!({ "servers": shown })))
}

/// GET `/distro/server`: the owner of a service, which is this node.
pub async fn owner_of_service(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let key = call.params()?.service(state.naming.limits())?;
    state.naming.service(&key).map_err(|_| Refusal::bad("service not found"))?;
    Ok(json(&json!({ "responsibleServer": &*state.name })))
}

/// GET `/distro/client`: the owner of the beat source at `ip` and `port`, which is this node.
pub async fn owner_of_client(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    call.params()?.endpoint(state.naming.limits())?;
    Ok(json(&json!({ "responsibleServer": &*state.name })))
}

/// GET `/distro/status`: with `action=view` the nodes, else nothing.
pub async fn distro_status(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let view = call.params()?.text("action") == Some("view");
    Ok(json(&if view { json!({ "status": [own_member(&state)] }) } else { json!({}) }))
}

/// GET `/server/status`: that this server answers.
pub async fn server_status() -> Response {
    ok()
}

/// PUT `/log`: logs what comes from `logName`, a module of this program or `root`, from `logLevel` on, until the process ends.
pub async fn log(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let (name, level) = (params.declared("logName")?, params.declared("logLevel")?);
    let target = Some(name).filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("root"));
    state.log.set_level(target, level).map_err(Refusal::bad)?;
    Ok(ok())
}
