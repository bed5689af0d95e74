//! The v1 API (Nacos 1.4 and 2.5), path by path.

mod beat;
mod catalog;
mod cluster;
mod console;
mod core;
mod health;
mod instance;
mod login;
mod metadata_batch;
mod namespaces;
mod operator;
mod push_state;
mod service;
mod service_list;
mod subscribers;
mod switches;

use axum::{
    Router,
    routing::{get, post, put},
};

use super::State;

/// Every path below `/nacos`.
pub fn router() -> Router<State> {
    Router::new()
        .nest("/v1/ns", naming())
        .nest("/v1/ns/operator", operator())
        .nest("/v1/ns/ops", operator())
        .nest("/v1/core/cluster", nodes())
        .nest("/v1/console", console())
        .route("/v1/auth/login", post(login::login))
        .route("/v1/auth/users/login", post(login::login))
}

fn naming() -> Router<State> {
    Router::new()
        .route(
            "/instance",
            post(instance::register)
                .delete(instance::deregister)
                .put(instance::update)
                .patch(instance::patch)
                .get(instance::detail),
        )
        .route("/instance/list", get(instance::list))
        .route("/instance/beat", put(beat::beat))
        .route("/instance/statuses", get(instance::statuses))
        .route("/instance/metadata/batch", put(metadata_batch::set).delete(metadata_batch::unset))
        .route("/service", post(service::create).put(service::update).get(service::detail).delete(service::delete))
        .route("/service/list", get(service_list::list))
        .route("/service/names", get(service_list::names))
        .route("/service/subscribers", get(subscribers::list))
        .route("/service/selector/types", get(service::selector_types))
        .route("/catalog/services", get(catalog::services))
        .route("/catalog/instances", get(catalog::instances))
        .route("/catalog/service", get(catalog::service))
        .route("/cluster", put(cluster::update))
        .route("/health", put(health::set))
        .route("/health/instance", put(health::set))
        .route("/health/checkers", get(health::checkers))
        .route("/health/server", get(health::server))
}

fn operator() -> Router<State> {
    Router::new()
        .route("/switches", get(switches::show).put(switches::turn))
        .route("/metrics", get(operator::metrics))
        .route("/servers", get(operator::servers))
        .route("/push/state", get(push_state::show))
        .route("/distro/server", get(operator::owner_of_service))
        .route("/distro/client", get(operator::owner_of_client))
        .route("/distro/status", get(operator::distro_status))
        .route("/server/status", get(operator::server_status))
        .route("/log", put(operator::log))
}

fn nodes() -> Router<State> {
    Router::new()
        .route("/self", get(core::own))
        .route("/nodes", get(core::nodes))
        .route("/simple/nodes", get(core::names))
        .route("/health", get(core::health))
}

fn console() -> Router<State> {
    Router::new()
        .route(
            "/namespaces",
            get(namespaces::show).post(namespaces::create).put(namespaces::update).delete(namespaces::delete),
        )
        .route("/server/state", get(console::server_state))
        .route("/server/announcement", get(console::nothing))
        .route("/server/guide", get(console::nothing))
        .route("/health/liveness", get(console::liveness))
        .route("/health/readiness", get(console::readiness))
}
