//! Which web pages of other origins may call the HTTP port: the v1 API, and gRPC-Web.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

/// Answers preflights and marks answers for pages of `origins`; `*` is any page. Not needed without any: browsers keep
/// pages of other origins out by themselves.
///
/// Unlike Nacos no page may send credentials by default: a registry on a developer's machine is not for every page that
/// its browser shows.
pub fn layer(origins: &[String]) -> CorsLayer {
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::from(Any)
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(Any)
        .expose_headers(["grpc-status", "grpc-message", "grpc-status-details-bin"].map(HeaderName::from_static))
        .max_age(Duration::from_secs(18_000))
}
