//! `/v1/ns/catalog`: services and instances as they are, for consoles and scripts of operators.

use axum::{extract::State, response::Response};

use super::service::unknown;
use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json, json_bytes},
            refusal::Refusal,
        },
    },
    naming::ServiceFilter,
    registry::service::Service,
    wire::http_v1::{
        NamePattern, catalog_service_body, clusters, instance_row, service_row, service_row_with_instances,
    },
};

/// Number and size of a page that is not asked for.
const FIRST_PAGE: (i64, i64) = (1, 10);

/// GET `/services`: a page of the services of a namespace, in order, with counts; with `withInstances=true` a page of them
/// with their instances, and without a total.
pub async fn services(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let namespace = params.namespace(state.naming.limits())?;
    let page = params.page(Some(FIRST_PAGE))?;
    let with_instances = params.boolean("withInstances")?.unwrap_or(false);
    let group = NamePattern::new(params.text("groupNameParam").unwrap_or(""));
    let name = NamePattern::new(params.text("serviceNameParam").unwrap_or(""));
    let used_only = params.boolean("hasIpCount")?.unwrap_or(false) && !with_instances;
    let endpoint = params.text("instance").filter(|_| !with_instances);
    let test = |service: &Service| {
        group.admits(service.key().group.as_str())
            && name.admits(service.key().name.as_str())
            && (!used_only || !service.snapshot().instances().is_empty())
            && endpoint.is_none_or(|endpoint| holds(service, endpoint))
    };
    let filters = used_only || endpoint.is_some() || !group.is_empty() || !name.is_empty();
    let filter = ServiceFilter { namespace: &namespace, group: None, test: if filters { Some(&test) } else { None } };
    let found = state.naming.services(&filter, page);
    let row = if with_instances { service_row_with_instances } else { service_row };
    let rows: Vec<_> = found.services.iter().map(|service| row(service.key(), &service.snapshot())).collect();
    Ok(json(&if with_instances {
        serde_json::json!(rows)
    } else {
        serde_json::json!({"serviceList": rows, "count": found.total})
    }))
}

/// GET `/instances`: a page of the instances of a cluster, disabled ones too, with their real health.
pub async fn instances(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    params.declared("serviceName")?;
    params.declared("clusterName")?;
    let limits = state.naming.limits();
    let key = params.service(limits)?;
    let cluster = params.cluster(limits)?.unwrap_or_default();
    let page = params.page(Some(FIRST_PAGE))?;
    let snapshot = state.naming.service(&key).map_err(unknown)?;
    if !clusters(&snapshot).contains_key(&cluster) {
        return Err(Refusal::new(404, format!("cluster {cluster} is not found!")));
    }
    let (rows, total) = page.of(snapshot.instances().iter().filter(|instance| *instance.cluster() == cluster));
    let now = state.naming.wall_millis();
    let mut body = String::with_capacity(64 + 512 * rows.len());
    body.push_str("{\"list\":[");
    for (position, instance) in rows.into_iter().enumerate() {
        if position > 0 {
            body.push(',');
        }
        let silence = state.naming.silence(instance).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let last_beat = silence.map_or(0, |silence| now.saturating_sub(silence));
        instance_row(&mut body, &key, instance, last_beat, state.naming.overlay_age(instance));
    }
    body.push_str("],\"count\":");
    body.push_str(&total.to_string());
    body.push('}');
    Ok(json_bytes(body))
}

/// GET `/service`: what an operator says of a service, and how its clusters are set up.
pub async fn service(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    params.declared("serviceName")?;
    let key = params.service(state.naming.limits())?;
    let snapshot = state.naming.service(&key).map_err(unknown)?;
    Ok(json(&catalog_service_body(&key, &snapshot)))
}

/// Whether `service` has an instance at `endpoint`, an address or an address with a port.
fn holds(service: &Service, endpoint: &str) -> bool {
    let snapshot = service.snapshot();
    snapshot.instances().iter().any(|instance| {
        let address = instance.address().to_string();
        let rest = endpoint.strip_prefix(address.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':') == Some(&instance.port().to_string()))
    })
}
