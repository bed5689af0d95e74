//! `/v1/ns/service/list` and `/v1/ns/service/names`: which services there are.

use std::collections::BTreeMap;

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
    naming::{Page, ServiceFilter},
    registry::{Namespace, service::Service},
    wire::http_v1::{ListSelector, NamePattern},
};

/// GET `/list`: a page of the names of a group's services, in order; with `groupName=*` those of all groups, and then with
/// their groups.
pub async fn list(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let namespace = params.namespace(limits)?;
    let page = params.page(None)?;
    let group = match params.text("groupName") {
        Some("*") => None,
        named => Some(limits.group(named.unwrap_or(""))?),
    };
    let selector = ListSelector::parse(params.text("selector").unwrap_or(""))?;
    let test = |service: &Service| selector.admits(&service.snapshot());
    let filter = ServiceFilter {
        namespace: &namespace,
        group: group.as_ref(),
        test: if selector.is_empty() { None } else { Some(&test) },
    };
    let found = state.naming.services(&filter, page);
    let spelt = |service: &Service| match &group {
        Some(_) => service.key().name.to_string(),
        None => service.key().to_string(),
    };
    let names: Vec<_> = found.services.iter().map(|service| spelt(service)).collect();
    Ok(json(&json!({"doms": names, "count": found.total})))
}

/// GET `/names`: the names of all services whose name with its group passes `expr`, by namespace; of one namespace, or of
/// all if none is named. `count` is the number of services.
pub async fn names(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let namespaces: Vec<Namespace> = match params.text("namespaceId") {
        Some(named) => vec![state.naming.limits().namespace(named)?],
        None => state.naming.namespaces().into_iter().map(|(namespace, _, _)| namespace).collect(),
    };
    let pattern = NamePattern::new(params.text("expr").unwrap_or(""));
    let test = |service: &Service| pattern.admits(&service.key().to_string());
    let everything = Page::new(1, i64::MAX)?;
    let (mut services, mut count) = (BTreeMap::new(), 0);
    for namespace in namespaces {
        let test = if pattern.is_empty() { None } else { Some(&test as &dyn Fn(&Service) -> bool) };
        let filter = ServiceFilter { namespace: &namespace, group: None, test };
        let found = state.naming.services(&filter, everything).services;
        if !found.is_empty() {
            count += found.len();
            let names: Vec<_> = found.iter().map(|service| service.key().name.to_string()).collect();
            services.insert(namespace.to_string(), names);
        }
    }
    Ok(json(&json!({"services": services, "count": count})))
}
