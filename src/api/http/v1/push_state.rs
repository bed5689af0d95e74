//! `/v1/ns/operator/push/state`: what became of the pushes by UDP.

use std::time::Duration;

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::api::{
    self,
    http::{
        call::{Call, json},
        refusal::Refusal,
    },
};

/// GET: the pushes since the last reset; with `detail=true` the milliseconds from push to ack, -1 without any; with
/// `reset=true` the counts begin anew after this answer.
pub async fn show(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let detail = params.boolean("detail")?.unwrap_or(false);
    let reset = params.boolean("reset")?.unwrap_or(false);
    let pushes = state.push.state();
    if reset {
        state.push.reset();
    }
    let mut body = json!({
        "succeed": pushes.succeeded,
        "total": pushes.total,
        "ratio": ratio(pushes.succeeded, pushes.total),
        "reset": reset,
    });
    if let (true, Some(body)) = (detail, body.as_object_mut()) {
        let costs = json!({"avgPushCost": cost(pushes.average_cost), "maxPushCost": cost(pushes.most_cost)});
        body.insert("detail".to_owned(), costs);
    }
    Ok(json(&body))
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn cost(time: Option<Duration>) -> i64 {
    time.map_or(-1, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_pushed_is_no_division() {
        assert_eq!((ratio(0, 0), ratio(9, 10)), (0.0, 0.9));
        assert_eq!((cost(None), cost(Some(Duration::from_millis(7)))), (-1, 7));
    }
}
