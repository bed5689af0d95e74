//! The v1 API (Nacos 1.4 and 2.5), path by path.

mod beat;
mod instance;
mod metadata_batch;

use axum::{
    Router,
    routing::{get, post, put},
};

use super::State;

/// Every path below `/nacos`.
pub fn router() -> Router<State> {
    Router::new()
        .route(
            "/v1/ns/instance",
            post(instance::register)
                .delete(instance::deregister)
                .put(instance::update)
                .patch(instance::patch)
                .get(instance::detail),
        )
        .route("/v1/ns/instance/list", get(instance::list))
        .route("/v1/ns/instance/beat", put(beat::beat))
        .route("/v1/ns/instance/statuses", get(instance::statuses))
        .route("/v1/ns/instance/metadata/batch", put(metadata_batch::set).delete(metadata_batch::unset))
}
