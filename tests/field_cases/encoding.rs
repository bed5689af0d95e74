//! Metadata arrives as it was sent.

use serde_json::json;

use crate::support::{naming::code, server::Server};

const TRICKY: &str = r#"{"k":"1+,2","p":"100%","q":"a%2Fb","u":"\u00e9 \u4e2d \"x\" \\ /","e":""}"#;

/// Case 1, alibaba/nacos#3710 (PR#4019): a `+` came back as a blank, because a value was decoded twice.
#[test]
fn metadata_is_decoded_exactly_once_on_every_path() {
    let server = Server::start();
    let expected = json!({"k": "1+,2", "p": "100%", "q": "a%2Fb", "u": "\u{e9} \u{4e2d} \"x\" \\ /", "e": ""});
    let place = [("serviceName", "t1"), ("ip", "10.0.0.1"), ("port", "80")];
    let check = |path: &str| {
        assert_eq!(server.host("t1", &[])["metadata"], expected, "{path}");
        assert_eq!(server.on_instance("GET", "t1", "10.0.0.1", 80, &[]).json()["metadata"], expected, "{path}");
        server.deregister("t1", "10.0.0.1", 80, &[]);
    };
    server.post("/instance").form(&place).form(&[&place[..], &[("metadata", TRICKY)]].concat()).send().ok();
    check("form");
    let body = b"serviceName=t1&ip=10.0.0.1&port=80&metadata=%7B%22k%22%3A%221%2B%2C2%22%2C%22p%22%3A%22100%25%22%2C\
                 %22q%22%3A%22a%252Fb%22%2C%22u%22%3A%22%C3%A9+%E4%B8%AD+%5C%22x%5C%22+%5C%5C+%2F%22%2C%22e%22%3A%22%22%7D";
    server.post("/instance").raw_form(body).send().ok();
    check("form with + for blanks");
    server.register("t1", "10.0.0.1", 80, &[("metadata", TRICKY)]);
    check("query");
    server.register("t1", "10.0.0.1", 80, &[]);
    server.update("t1", "10.0.0.1", 80, &[("metadata", TRICKY)]);
    check("PUT");
    server.register("t1", "10.0.0.1", 80, &[]);
    server.on_instance("PATCH", "t1", "10.0.0.1", 80, &[("metadata", TRICKY)]).ok();
    check("PATCH");
    server.register("t1", "10.0.0.1", 80, &[]);
    let instances = r#"[{"ip":"10.0.0.1","port":80}]"#;
    let batch = server.put("/instance/metadata/batch").param("serviceName", "t1");
    batch.params(&[("metadata", TRICKY), ("instances", instances)]).send().json();
    check("batch");
    let beat = format!(r#"{{"ip":"10.0.0.1","port":80,"metadata":{TRICKY}}}"#);
    assert_eq!(code(&server.beat("t1", &[("beat", &beat)])), 10_200);
    check("beat in the query");
    let form = [("serviceName", "t1"), ("beat", &beat)];
    assert_eq!(code(&server.put("/instance/beat").form(&form).send().json()), 10_200);
    check("beat in a form");
}

/// Case 2, nacos-group/r-nacos#121, alibaba/nacos#3868, #4604: one server knew one of the two forms only, and a
/// malformed value gave no usable message.
#[test]
fn both_forms_of_metadata_are_read_and_a_third_is_refused() {
    let server = Server::start();
    server.register("forms", "10.0.0.1", 1, &[("metadata", "a=1,b=2")]);
    server.register("forms", "10.0.0.1", 2, &[("metadata", r#"{"a":"x, \"q\" y"}"#)]);
    for broken in
        [r#"{"version", "stable"}"#, "just text", r#"{"a":"b""#, "a=1,b", r#"["a=b"]"#, r#""a=b""#, r#"{"a=b"}"#, "12"]
    {
        server.try_register("forms", "10.0.0.1", "3", &[("metadata", broken)]).refused(&["metadata"]);
    }
    let hosts = server.hosts("forms", &[]);
    let metadata: Vec<_> = hosts.iter().map(|host| &host["metadata"]).collect();
    assert_eq!(metadata, [&json!({"a": "1", "b": "2"}), &json!({"a": "x, \"q\" y"})]);
}

/// Probe P4: the fallback parser split on each `=` and dropped empty parts, so the padding of base64 vanished.
#[test]
fn a_value_keeps_its_equals_signs() {
    let server = Server::start();
    server.register("pad", "10.0.0.1", 80, &[("metadata", "token=YWJj==,empty=,q=a=b")]);
    assert_eq!(server.host("pad", &[])["metadata"], json!({"token": "YWJj==", "empty": "", "q": "a=b"}));
}

/// Case 11, alibaba/nacos#11475, #11588, #12466, #13206; nacos-sdk-go#669: a fixed cap of 1024 characters refused
/// registrations that had worked for years.
#[test]
fn metadata_has_a_generous_limit_that_is_a_setting() {
    let server = Server::start();
    let register = |server: &Server, size: usize| {
        let metadata = json!({"k": "v".repeat(size - 1)}).to_string();
        let form = [("serviceName", "size"), ("ip", "10.0.0.1"), ("port", "80"), ("metadata", metadata.as_str())];
        server.post("/instance").form(&form).send()
    };
    for size in [900, 1_100, 8_192, 65_536] {
        register(&server, size).ok();
        let stored = server.host("size", &[])["metadata"]["k"].as_str().unwrap().len();
        assert_eq!(stored, size - 1, "nothing is cut");
    }
    for size in [65_537, 204_800] {
        register(&server, size).refused(&["etadata", "65536", &size.to_string()]);
        assert_eq!(server.host("size", &[])["metadata"]["k"].as_str().unwrap().len(), 65_535, "nothing is changed");
    }
    let generous = Server::with(&["limits.metadata_bytes=300000"]);
    register(&generous, 204_800).ok();
    let strict = Server::with(&["limits.metadata_bytes=1024"]);
    register(&strict, 1_024).ok();
    register(&strict, 1_025).refused(&["etadata", "1024", "1025"]);
}

/// Case 11: the limit holds for what is listed, the publisher's and the operator's pairs together, so that updates
/// cannot grow an instance without bound.
#[test]
fn the_limit_of_metadata_holds_for_publisher_and_operator_together() {
    let server = Server::with(&["limits.metadata_bytes=1024"]);
    server.register("sum", "10.0.0.1", 80, &[("metadata", &format!("a={}", "v".repeat(700)))]);
    let before = server.host("sum", &[]);
    for (method, path, key) in
        [("PUT", "/instance", "b"), ("PATCH", "/instance", "c"), ("PUT", "/instance/metadata/batch", "d")]
    {
        let params = [("serviceName", "sum"), ("ip", "10.0.0.1"), ("port", "80"), ("consistencyType", "ephemeral")];
        let metadata = format!("{key}={}", "v".repeat(700));
        let answer = server.ns(method, path).params(&params).param("metadata", &metadata).send();
        answer.refused(&["etadata", "1024", "1402"]);
        assert_eq!(server.host("sum", &[]), before, "{method} {path}");
    }
}
