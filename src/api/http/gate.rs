//! What stands before every path: operators' limits, and whether this node serves.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, header};

use super::refusal::Refusal;
use crate::readiness::Readiness;

/// Lets a request pass, or answers in its place.
///
/// * A path that an operator limited (`limitedUrlMap`) is answered with the status set for it, and nothing else; the
///   switches themselves never are.
/// * What a handler answers forbids scripts of others (Nacos).
/// * Naming paths are answered 503 unless the naming status is `UP`, or is one that admits the method.
pub(super) async fn admit(state: &super::State, request: Request, next: Next) -> Response {
    let switches = state.naming.switches();
    let uri = request.uri();
    // An operator must be able to take a status or a limit back.
    let path = uri.path().trim_end_matches('/');
    let turns_switches = path.ends_with("/operator/switches") || path.ends_with("/ops/switches");
    if !switches.limited_urls.is_empty() && !turns_switches {
        let whole = format!("{}?{}", uri.path(), uri.query().unwrap_or("null"));
        if let Some((_, code)) = switches.limited_urls.iter().find(|(prefix, _)| whole.starts_with(prefix.as_str())) {
            return StatusCode::from_u16(*code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE).into_response();
        }
    }
    if uri.path().starts_with("/nacos/v1/ns/") {
        let readiness = state.readiness.borrow().clone();
        let (status, detail) = naming_status(&readiness, switches.overridden_server_status.as_deref());
        let passes = match status {
            "UP" => true,
            "WRITE_ONLY" => request.method() != Method::GET,
            "READ_ONLY" => request.method() == Method::GET,
            _ => false,
        };
        if !(passes || (detail.is_none() && turns_switches)) {
            let text = match detail {
                Some(detail) => format!("server is {status}now, detailed error message: {detail}"),
                None => format!("server is {status}now, please try again later!"),
            };
            return Refusal::new(503, text).into_response();
        }
    }
    let is_v1 = uri.path().starts_with("/nacos/v1/");
    let mut response = next.run(request).await;
    if is_v1 && response.status() != StatusCode::NOT_IMPLEMENTED {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("script-src 'self'"));
    }
    response
}

/// The naming status that v1 shows, and why it is so if this node itself says so.
#[must_use]
pub fn naming_status<'a>(readiness: &'a Readiness, overridden: Option<&'a str>) -> (&'a str, Option<&'a str>) {
    match (readiness, overridden) {
        (Readiness::Ready, Some(status)) => (status, None),
        (Readiness::Ready, None) => ("UP", None),
        (Readiness::Starting, _) => ("STARTING", Some("this node is starting")),
        (Readiness::Joining(reason), _) => ("STARTING", Some(reason)),
        (Readiness::Draining, _) => ("DOWN", Some("this node is shutting down; go on at another one")),
    }
}
