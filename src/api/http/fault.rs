//! Answers of the error-page form, which the v1 API gives before a request reaches a handler.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode, Uri, header};

use crate::{api, registry::key::excerpt, wire::json::push_string};

/// There is no such path, or not for this method: 501 with an error page in JSON, or in HTML for a browser (Nacos).
pub async fn unknown(State(state): State<api::http::State>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let message = format!("no such api:{}:{}", excerpt(method.as_str()), uri.path());
    let timestamp = timestamp(state.naming.wall_millis());
    let (kind, body) = if wants_html(&headers) {
        ("text/html;charset=UTF-8", html_page(&message, &timestamp))
    } else {
        ("application/json", json_page(&message, uri.path(), &timestamp))
    };
    (StatusCode::NOT_IMPLEMENTED, [(header::CONTENT_TYPE, kind)], body).into_response()
}

fn wants_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

fn json_page(message: &str, path: &str, timestamp: &str) -> String {
    let mut body = String::from("{\"timestamp\":");
    push_string(&mut body, timestamp);
    body.push_str(",\"status\":501,\"error\":\"Not Implemented\",\"message\":");
    push_string(&mut body, message);
    body.push_str(",\"path\":");
    push_string(&mut body, path);
    body.push('}');
    body
}

fn html_page(message: &str, timestamp: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for character in message.chars() {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\'' => text.push_str("&#39;"),
            other => text.push(other),
        }
    }
    format!("<html><body><h1>501 Not Implemented</h1><p>{text}</p><p>{timestamp}</p></body></html>")
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

    #[test]
    fn pages_show_what_was_asked_without_running_it() {
        let json = json_page("no such api:GET:/a\"b", "/a\"b", "T");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value.get("timestamp"), Some(&serde_json::json!("T")));
        assert_eq!(value.get("path"), Some(&serde_json::json!("/a\"b")));
        let html = html_page("no such api:GET:/<script>'&\"", "T");
        assert!(html.contains("/&lt;script&gt;&#39;&amp;&quot;"), "{html}");
    }
}
