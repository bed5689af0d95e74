//! `/v1/core/cluster`, `/nacos/serverlist`, and what v2 has of them: the nodes.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    api::{
        self,
        http::{
            call::{Call, json, text},
            refusal::Refusal,
        },
    },
    naming::{MemberView, Stage, Standing},
    readiness::Readiness,
    wire::http_v1::{Member, envelope, member_json},
};

/// GET `/self`.
pub async fn own(State(state): State<api::http::State>) -> Response {
    json(&envelope(&own_member(&state)))
}

/// GET `/nodes`: the nodes whose name begins with `keyword`, in the order of their names.
pub async fn nodes(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    Ok(json(&envelope(&json!(members(&state, params.text("keyword").unwrap_or(""))))))
}

/// GET `/simple/nodes`: their names.
pub async fn names(State(state): State<api::http::State>) -> Response {
    let names: Vec<_> = state.roster.view().members.into_iter().map(|member| member.name).collect();
    json(&envelope(&json!(names)))
}

/// GET `/health`: the state of this node.
pub async fn health(State(state): State<api::http::State>) -> Response {
    json(&envelope(&json!(own_state(&state))))
}

/// GET `/nacos/serverlist`: the names of the nodes that serve, one a line. Clients with an `endpoint` ask for it; those that
/// get an error go on with the list that they have.
pub async fn server_list(State(state): State<api::http::State>) -> Response {
    let lines: String = state.roster.view().serving().map(|member| format!("{}\r\n", member.name)).collect();
    if lines.is_empty() {
        return Refusal::new(503, "no node is known to serve").into_response();
    }
    text(lines)
}

/// GET `/v2/core/cluster/node/self`.
pub async fn own_v2(State(state): State<api::http::State>) -> Response {
    json(&result(&own_member(&state)))
}

/// GET `/v2/core/cluster/node/list`: the nodes whose name begins with `address` and whose state is `state`, by default all.
pub async fn nodes_v2(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    const STATES: [&str; 5] = ["STARTING", "UP", "SUSPICIOUS", "DOWN", "ISOLATION"];
    let params = call.params()?;
    let mut members = members(&state, params.text("address").unwrap_or(""));
    if let Some(wanted) = params.text("state") {
        let known = STATES.iter().find(|known| known.eq_ignore_ascii_case(wanted));
        let Some(known) = known else { return Err(Refusal::bad(format!("Illegal state: {wanted}"))) };
        members.retain(|member| member.get("state") == Some(&json!(known)));
    }
    Ok(json(&result(&json!(members))))
}

/// GET `/v2/core/cluster/node/self/health`.
pub async fn health_v2(State(state): State<api::http::State>) -> Response {
    json(&result(&json!(own_state(&state))))
}

/// The wrapping of v2 answers.
fn result(data: &Value) -> Value {
    json!({"code": 0, "message": "success", "data": data})
}

/// The nodes whose name begins with `prefix`, as all paths show them.
pub(super) fn members(state: &api::http::State, prefix: &str) -> Vec<Value> {
    let members = state.roster.view().members;
    members.iter().filter(|member| member.name.starts_with(prefix)).map(|member| shown(state, member)).collect()
}

/// This node.
fn own_member(state: &api::http::State) -> Value {
    let view = state.roster.view();
    let own = view.members.iter().find(|member| member.own);
    own.map_or(Value::Null, |own| shown(state, own))
}

fn shown(state: &api::http::State, member: &MemberView) -> Value {
    let silent = u64::try_from(member.silence.as_millis()).unwrap_or(u64::MAX);
    member_json(&Member {
        name: &member.name,
        state: if member.own { own_state(state) } else { peer_state(member) },
        // Members do not tell each other.
        version: member.own.then_some(env!("CARGO_PKG_VERSION")),
        heard_at: state.naming.wall_millis().saturating_sub(silent),
    })
}

fn own_state(state: &api::http::State) -> &'static str {
    match *state.readiness.borrow() {
        Readiness::Starting | Readiness::Joining(_) => "STARTING",
        Readiness::Ready => "UP",
        Readiness::Draining => "DOWN",
    }
}

fn peer_state(member: &MemberView) -> &'static str {
    match (member.standing, member.stage) {
        (Standing::Up, Stage::Joining) => "STARTING",
        (Standing::Up, Stage::Ready) => "UP",
        (Standing::Suspect, Stage::Joining | Stage::Ready) => "SUSPICIOUS",
        (Standing::Up | Standing::Suspect, Stage::Draining)
        | (Standing::Unreachable | Standing::Dead | Standing::Departed, _) => "DOWN",
    }
}
