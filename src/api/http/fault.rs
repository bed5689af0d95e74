//! Answers of the error-page form, which the v1 API gives before a request reaches a handler.

use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, Uri, header};

use crate::wire::http_v1::push_string;

/// There is no such path, or not for this method: 501 with an error page in JSON (Nacos).
pub async fn unknown(method: Method, uri: Uri) -> Response {
    let path = uri.path();
    let mut body = String::from("{\"status\":501,\"error\":\"Not Implemented\",\"message\":");
    push_string(&mut body, &format!("no such api:{method}:{path}"));
    body.push_str(",\"path\":");
    push_string(&mut body, path);
    body.push('}');
    (StatusCode::NOT_IMPLEMENTED, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
