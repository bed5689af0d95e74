//! Answers of the error-page form, which the v1 API gives before a request reaches a handler.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, Uri, header};

use crate::{api, wire::http_v1::push_string};

/// There is no such path, or not for this method: 501 with an error page in JSON (Nacos).
pub async fn unknown(State(state): State<api::http::State>, method: Method, uri: Uri) -> Response {
    let path = uri.path();
    let mut body = String::from("{\"timestamp\":");
    push_string(&mut body, &timestamp(state.naming.wall_millis()));
    body.push_str(",\"status\":501,\"error\":\"Not Implemented\",\"message\":");
    push_string(&mut body, &format!("no such api:{method}:{path}"));
    body.push_str(",\"path\":");
    push_string(&mut body, path);
    body.push('}');
    (StatusCode::NOT_IMPLEMENTED, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Milliseconds since 1970 as RFC 3339, in UTC.
fn timestamp(millis: u64) -> String {
    let seconds = i64::try_from(millis / 1_000).unwrap_or(i64::MAX);
    let nanos = i32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0);
    prost_types::Timestamp { seconds, nanos }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(timestamp(1_709_258_400_123), "2024-03-01T02:00:00.123Z");
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
    }
}
