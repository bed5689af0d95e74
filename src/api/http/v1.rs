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

pub(super) use self::login::login;
use super::State;

/// Every path of the v1 API. The paths stand in one flat router: a nested one costs each request a copy of its URI.
pub fn router() -> Router<State> {
    Router::new()
        .merge(naming("/nacos/v1/ns"))
        .merge(operator("/nacos/v1/ns/operator"))
        .merge(operator("/nacos/v1/ns/ops"))
        .merge(nodes("/nacos/v1/core/cluster"))
        .merge(console("/nacos/v1/console"))
        .merge(nodes_v2("/nacos/v2/core/cluster/node"))
        .route("/nacos/serverlist", get(core::server_list))
        .route("/nacos/v1/auth/login", post(login::login))
        .route("/nacos/v1/auth/users/login", post(login::login))
}

fn naming(prefix: &str) -> Router<State> {
    let at = |path: &str| format!("{prefix}{path}");
    Router::new()
        .route(
            &at("/instance"),
            post(instance::register)
                .delete(instance::deregister)
                .put(instance::update)
                .patch(instance::patch)
                .get(instance::detail),
        )
        .route(&at("/instance/list"), get(instance::list))
        .route(&at("/instance/beat"), put(beat::beat))
        .route(&at("/instance/statuses"), get(instance::statuses))
        .route(&at("/instance/metadata/batch"), put(metadata_batch::set).delete(metadata_batch::unset))
        .route(&at("/service"), post(service::create).put(service::update).get(service::detail).delete(service::delete))
        .route(&at("/service/list"), get(service_list::list))
        .route(&at("/service/names"), get(service_list::names))
        .route(&at("/service/subscribers"), get(subscribers::list))
        .route(&at("/service/selector/types"), get(service::selector_types))
        .route(&at("/catalog/services"), get(catalog::services))
        .route(&at("/catalog/instances"), get(catalog::instances))
        .route(&at("/catalog/service"), get(catalog::service))
        .route(&at("/cluster"), put(cluster::update))
        .route(&at("/health"), put(health::set))
        .route(&at("/health/instance"), put(health::set))
        .route(&at("/health/checkers"), get(health::checkers))
        .route(&at("/health/server"), get(health::server))
}

fn operator(prefix: &str) -> Router<State> {
    let at = |path: &str| format!("{prefix}{path}");
    Router::new()
        .route(&at("/switches"), get(switches::show).put(switches::turn))
        .route(&at("/metrics"), get(operator::metrics))
        .route(&at("/servers"), get(operator::servers))
        .route(&at("/push/state"), get(push_state::show))
        .route(&at("/distro/server"), get(operator::owner_of_service))
        .route(&at("/distro/client"), get(operator::owner_of_client))
        .route(&at("/distro/status"), get(operator::distro_status))
        .route(&at("/server/status"), get(operator::server_status))
        .route(&at("/log"), put(operator::log))
}

fn nodes(prefix: &str) -> Router<State> {
    let at = |path: &str| format!("{prefix}{path}");
    Router::new()
        .route(&at("/self"), get(core::own))
        .route(&at("/nodes"), get(core::nodes))
        .route(&at("/simple/nodes"), get(core::names))
        .route(&at("/health"), get(core::health))
}

/// The only paths of v2, for the tools that show the nodes of a cluster.
fn nodes_v2(prefix: &str) -> Router<State> {
    let at = |path: &str| format!("{prefix}{path}");
    Router::new()
        .route(&at("/self"), get(core::own_v2))
        .route(&at("/self/health"), get(core::health_v2))
        .route(&at("/list"), get(core::nodes_v2))
}

fn console(prefix: &str) -> Router<State> {
    let at = |path: &str| format!("{prefix}{path}");
    Router::new()
        .route(
            &at("/namespaces"),
            get(namespaces::show).post(namespaces::create).put(namespaces::update).delete(namespaces::delete),
        )
        .route(&at("/server/state"), get(console::server_state))
        .route(&at("/server/announcement"), get(console::nothing))
        .route(&at("/server/guide"), get(console::nothing))
        .route(&at("/health/liveness"), get(console::liveness))
        .route(&at("/health/readiness"), get(console::readiness))
}
