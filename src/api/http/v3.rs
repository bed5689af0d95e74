//! The two v3 paths that the Java SDK of version 3 calls beside gRPC. All others are absent, so that it takes those of v1.

use axum::{
    Router,
    response::Response,
    routing::{get, post},
};
use serde_json::json;

use super::{State, call::json, v1::login};

/// The paths.
pub fn router() -> Router<State> {
    Router::new()
        .route("/nacos/v3/auth/user/login", post(login))
        .route("/nacos/v3/admin/core/state/liveness", get(liveness))
}

/// GET: this process answers.
async fn liveness() -> Response {
    json(&json!({"code": 0, "message": "success", "data": "ok"}))
}
