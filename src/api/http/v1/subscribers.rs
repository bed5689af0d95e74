//! `/v1/ns/service/subscribers`: who is told of the changes of a service.

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json},
            refusal::Refusal,
        },
    },
    registry::ServiceKey,
    wire::http_v1::{SubscriberRow, subscriber_json},
};

/// Number and size of a page that is not asked for (Nacos).
const FIRST_PAGE: (i64, i64) = (1, 1_000);

/// GET: a page of the subscribers, by whatever protocol, of the services of the namespace whose group and name hold those
/// that are named (Nacos). Clients that only poll are none. `aggregation` asks all nodes, of which there is one.
pub async fn list(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    params.boolean("aggregation")?;
    let page = params.page(Some(FIRST_PAGE))?;
    let wanted = params.service(state.naming.limits())?;
    let fits = |key: &ServiceKey| {
        key.namespace == wanted.namespace
            && key.group.as_str().contains(wanted.group.as_str())
            && key.name.as_str().contains(wanted.name.as_str())
    };
    let found = state.push.subscribers().list(fits);
    let (rows, total) = page.of(found.iter());
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(service, subscriber)| {
            subscriber_json(&SubscriberRow {
                service,
                address: &subscriber.address,
                agent: &subscriber.agent,
                app: &subscriber.app,
                clusters: &subscriber.clusters,
            })
        })
        .collect();
    Ok(json(&json!({"subscribers": rows, "count": total})))
}
