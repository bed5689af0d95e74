//! `/v1/console/namespaces`: the list of namespaces. Services can live in one that is not on it; such a one is not shown.

use axum::{extract::State, response::Response};
use serde_json::{Value, json};

use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json},
            refusal::Refusal,
        },
    },
    naming,
    registry::{self, Namespace, NamespaceInfo},
    wire::http_v1::{ParamError, Params, envelope},
};

/// Longest name of a namespace, in bytes (Nacos).
const NAME_BYTES: usize = 128;
/// Longest description of a namespace, in bytes. Nacos keeps 256 characters.
const DESCRIPTION_BYTES: usize = 1_024;
/// What a name must not hold (Nacos 2.5).
const NOT_IN_NAMES: [char; 7] = ['@', '#', '$', '%', '^', '&', '*'];

/// GET: the list; with `show=all` one namespace; with `checkNamespaceIdExist=true` whether `customNamespaceId` is taken.
pub async fn show(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    if params.boolean("checkNamespaceIdExist")?.unwrap_or(false) {
        let taken = match params.text("customNamespaceId") {
            Some(id) => limits.namespace(id).is_ok_and(|namespace| find(&state, &namespace).is_some()),
            None => false,
        };
        return Ok(json(&json!(taken)));
    }
    if params.text("show") == Some("all") {
        let namespace = params.namespace(limits)?;
        return match find(&state, &namespace) {
            Some(info) => Ok(json(&shown(&namespace, &info))),
            None => Err(Refusal::new(404, format!("namespaceId [ {namespace} ] not exist"))),
        };
    }
    let all: Vec<_> = state
        .naming
        .namespaces()
        .into_iter()
        .filter_map(|(namespace, info, _)| Some(shown(&namespace, &info.or_else(|| built_in(&namespace))?)))
        .collect();
    Ok(json(&envelope(&json!(all))))
}

/// POST: adds a namespace; with a blank `customNamespaceId` under an id of our choice. `false` if the id is taken or not
/// allowed, or the name is not allowed (Nacos).
pub async fn create(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let id = match params.declared("customNamespaceId")? {
        "" => uuid::Uuid::new_v4().to_string(),
        id => id.to_owned(),
    };
    params.declared("namespaceName")?;
    let info = info(&params, "namespaceName")?;
    let Ok(namespace) = state.naming.limits().namespace(&id) else { return Ok(json(&json!(false))) };
    if namespace == Namespace::default() || info.name.contains(NOT_IN_NAMES) {
        return Ok(json(&json!(false)));
    }
    match state.naming.create_namespace(namespace, info).await {
        Ok(()) => Ok(json(&json!(true))),
        Err(naming::Error::Registry(registry::Error::NamespaceExists(_))) => Ok(json(&json!(false))),
        Err(error) => Err(error.into()),
    }
}

/// PUT: changes what is said of a namespace; `true` too if it is not on the list (Nacos).
pub async fn update(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    params.declared("namespaceShowName")?;
    let namespace = state.naming.limits().namespace(params.declared("namespace")?)?;
    let info = info(&params, "namespaceShowName")?;
    if info.name.contains(NOT_IN_NAMES) {
        return Ok(json(&json!(false)));
    }
    done(state.naming.update_namespace(namespace, info).await)
}

/// DELETE: takes a namespace off the list; `true` too if it is not on it (Nacos). Services in it are not touched.
pub async fn delete(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let namespace = state.naming.limits().namespace(params.declared("namespaceId")?)?;
    done(state.naming.delete_namespace(namespace).await)
}

fn done(result: Result<(), naming::Error>) -> Result<Response, Refusal> {
    match result {
        Ok(()) | Err(naming::Error::Registry(registry::Error::NamespaceUnknown(_))) => Ok(json(&json!(true))),
        Err(error) => Err(error.into()),
    }
}

/// What is said of a namespace that is on the list.
fn find(state: &api::http::State, namespace: &Namespace) -> Option<NamespaceInfo> {
    let listed = state.naming.namespaces().into_iter().find(|(listed, _, _)| listed == namespace)?;
    listed.1.or_else(|| built_in(namespace))
}

fn built_in(namespace: &Namespace) -> Option<NamespaceInfo> {
    let info = || NamespaceInfo { name: "public".to_owned(), description: "Default Namespace".to_owned() };
    (*namespace == Namespace::default()).then(info)
}

/// Type 0 is `public`, whose id is shown blank; type 2 is one that was created.
fn shown(namespace: &Namespace, info: &NamespaceInfo) -> Value {
    let public = *namespace == Namespace::default();
    json!({
        "namespace": if public { "" } else { namespace.as_str() },
        "namespaceShowName": info.name,
        "namespaceDesc": info.description,
        "quota": 200,
        "configCount": 0,
        "type": if public { 0 } else { 2 },
    })
}

fn info(params: &Params<'_>, name_param: &'static str) -> Result<NamespaceInfo, Refusal> {
    let name = params.text(name_param).ok_or(ParamError::Missing(name_param))?;
    let description = params.text("namespaceDesc").unwrap_or("");
    for (param, text, limit) in [(name_param, name, NAME_BYTES), ("namespaceDesc", description, DESCRIPTION_BYTES)] {
        if text.len() > limit {
            let length = text.len();
            return Err(Refusal::bad(format!(
                "Param '{param}' is illegal, the param length should not exceed {limit}. (it has {length} bytes)"
            )));
        }
    }
    Ok(NamespaceInfo { name: name.to_owned(), description: description.to_owned() })
}
