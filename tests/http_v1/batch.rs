//! PUT and DELETE `/instance/metadata/batch`.

use serde_json::{Value, json};

use super::support::{http::Answer, server::Server};

fn server() -> Server {
    let server = Server::start();
    server.register("b", "10.0.0.1", 1, &[("metadata", "own=1")]);
    server.register("b", "10.0.0.1", 2, &[]);
    server.register("b", "10.0.0.1", 3, &[("clusterName", "c3")]);
    server
}

fn batch(server: &Server, method: &str, params: &[(&str, &str)]) -> Answer {
    server.ns(method, "/instance/metadata/batch").param("serviceName", "b").params(params).send()
}

fn metadata(server: &Server, port: u16) -> Value {
    server.on_instance("GET", "b", "10.0.0.1", port, &[]).json()["metadata"].clone()
}

const FIRST: &str = r#"[{"ip":"10.0.0.1","port":1,"ephemeral":true,"clusterName":"DEFAULT"}]"#;

#[test]
fn listed_instances_get_the_pairs_and_are_named() {
    let server = server();
    let params = [("consistencyType", ""), ("instances", FIRST), ("metadata", r#"{"zone":"b"}"#)];
    let answer = batch(&server, "PUT", &params).json();
    assert_eq!(answer, json!({"updated": ["10.0.0.1:1:unknown:DEFAULT:ephemeral"]}));
    assert_eq!(metadata(&server, 1), json!({"own": "1", "zone": "b"}));
    assert_eq!(metadata(&server, 2), json!({}));
    let answer = batch(&server, "DELETE", &[("instances", FIRST), ("metadata", r#"{"zone":"","own":""}"#)]).json();
    assert_eq!(answer, json!({"updated": ["10.0.0.1:1:unknown:DEFAULT:ephemeral"]}));
    assert_eq!(metadata(&server, 1), json!({"own": "1"}), "only what a batch or an update set can be taken back");
}

#[test]
fn a_consistency_type_means_all_of_that_kind() {
    let server = server();
    let all = [("consistencyType", "ephemeral"), ("instances", FIRST), ("metadata", "k=v")];
    assert_eq!(batch(&server, "PUT", &all).json()["updated"].as_array().unwrap().len(), 3);
    for port in 1..=3 {
        assert_eq!(metadata(&server, port)["k"], "v");
    }
}

#[test]
fn nothing_is_changed_when_nothing_is_meant() {
    let server = server();
    for params in [
        &[][..],
        &[("consistencyType", "persist")],
        &[("consistencyType", "no-such-type"), ("instances", FIRST)],
        &[("instances", "[]")],
        &[("instances", r#"[{"ip":"10.0.0.9","port":1}]"#)],
        &[("instances", r#"[{"ip":"10.0.0.1","port":1,"ephemeral":false}]"#)],
        &[("instances", r#"[{"ip":"10.0.0.1","port":3,"clusterName":"DEFAULT"}]"#)],
    ] {
        let answer = batch(&server, "PUT", &[params, &[("metadata", "k=v")]].concat());
        assert_eq!(answer.json(), json!({"updated": []}), "{params:?}");
    }
    for port in 1..=3 {
        assert_eq!(metadata(&server, port)["k"], Value::Null);
    }
    let unknown = server.put("/instance/metadata/batch").params(&[("serviceName", "nope"), ("metadata", "k=v")]);
    assert_eq!(unknown.send().json(), json!({"updated": []}));
    assert!(server.hosts("nope", &[]).is_empty());
}

#[test]
fn a_list_that_cannot_be_read_is_refused() {
    let server = server();
    for instances in ["{", "{}", "1", r#"["a"]"#, r#"[{"ip":"10.0.0.1"}]"#, r#"[{"ip":"10.0.0.1","port":"x"}]"#] {
        batch(&server, "PUT", &[("instances", instances), ("metadata", "k=v")]).refused(&["instances"]);
    }
    batch(&server, "PUT", &[("instances", r#"[{"ip":"10.0.0.1","port":70000}]"#), ("metadata", "k=v")])
        .refused(&["port"]);
    for instances in [FIRST, "[]"] {
        batch(&server, "PUT", &[("instances", instances), ("metadata", "{broken")]).refused(&["metadata"]);
    }
}
