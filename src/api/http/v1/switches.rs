//! `/v1/ns/operator/switches`: what an operator can switch while the server runs.

use axum::{extract::State, response::Response};

use crate::{
    api::{
        self,
        http::{
            call::{Call, json, ok},
            refusal::Refusal,
        },
    },
    wire::http_v1::{switch_change, switches_json},
};

/// GET: the position of every switch.
pub async fn show(State(state): State<api::http::State>) -> Response {
    json(&switches_json(&state.naming.switches()))
}

/// PUT: turns the switch `entry` to `value`. `debug=true` means this node only, which is all that there is of a node that
/// stands alone. Nacos answers `ok` to an entry that it does not know; here the mistake is told.
pub async fn turn(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let (entry, value) = (params.declared("entry")?, params.declared("value")?);
    params.boolean("debug")?;
    let change = switch_change(entry, value, &state.naming.switches())?;
    state.naming.turn_switch(change).await?;
    Ok(ok())
}
