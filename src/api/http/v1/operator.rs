//! `/v1/ns/operator`: metrics, servers, owners, log levels.

use axum::{extract::State, response::Response};
use serde_json::{Map, Value, json};

use super::core::members;
use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json, ok},
            gate::naming_status,
            refusal::Refusal,
        },
    },
    registry::{Endpoint, ServiceKey},
};

/// GET `/metrics`: the naming status, which is all that clients read; unless `onlyStatus=true`, all that Nacos 1.4 and 2.5
/// show of their naming, and the queue, freezes and brake of this server. Every beat-kept instance counts as a client.
pub async fn metrics(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let only_status = params.boolean("onlyStatus")?.unwrap_or(false);
    let switches = state.naming.switches();
    let readiness = state.readiness.borrow().clone();
    let (status, _) = naming_status(&readiness, switches.overridden_server_status.as_deref());
    if only_status {
        return Ok(json(&json!({ "status": status })));
    }
    let (figures, load) = (state.naming.figures(), state.machine.load());
    let mut body = json!({
        "status": status,
        "serviceCount": figures.services,
        "instanceCount": figures.instances,
        "subscribeCount": state.push.subscribers().count(),
        "responsibleServiceCount": state.roster.owned_services(),
        "responsibleInstanceCount": state.roster.owned_instances(),
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
    let mut servers = members(&state, "");
    servers.retain(|member| !healthy_only || member.get("state") == Some(&json!("UP")));
    Ok(json(&json!({ "servers": servers })))
}

/// GET `/distro/server`: who answers for a service. Every node does: owners are those of beat sources, so with `ip` and
/// `port` it is the owner of that one.
pub async fn owner_of_service(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let service = params.service(limits)?;
    state.naming.service(&service).map_err(|_| Refusal::bad("service not found"))?;
    if params.text("ip").is_none() {
        return Ok(json(&json!({ "responsibleServer": state.roster.name() })));
    }
    owner(&state, &service, &params.endpoint(limits)?)
}

/// GET `/distro/client`: the owner of the beat source at `ip` and `port`. In a cluster it also depends on the service.
pub async fn owner_of_client(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let endpoint = params.endpoint(limits)?;
    if !state.roster.is_clustered() && params.text("serviceName").is_none() {
        return Ok(json(&json!({ "responsibleServer": state.roster.name() })));
    }
    owner(&state, &params.service(limits)?, &endpoint)
}

fn owner(state: &api::http::State, service: &ServiceKey, endpoint: &Endpoint) -> Result<Response, Refusal> {
    match state.roster.owner(service, endpoint) {
        Some(owner) => Ok(json(&json!({ "responsibleServer": owner }))),
        None => Err(Refusal::new(503, "no node is known to serve")),
    }
}

/// GET `/distro/status`: with `action=view` the nodes, else nothing.
pub async fn distro_status(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let view = call.params()?.text("action") == Some("view");
    Ok(json(&if view { json!({ "status": members(&state, "") }) } else { json!({}) }))
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
