//! PUT and PATCH `/instance`.

use serde_json::{Value, json};

use super::support::server::Server;

fn host(server: &Server) -> Value {
    server.on_instance("GET", "u", "10.0.0.1", 80, &[]).json()
}

#[test]
fn an_update_changes_only_what_it_sends() {
    let server = Server::start();
    for method in ["PUT", "PATCH"] {
        server.register("u", "10.0.0.1", 80, &[("weight", "2"), ("metadata", "a=1")]);
        let before = host(&server);
        server.on_instance(method, "u", "10.0.0.1", 80, &[]).ok();
        assert_eq!(host(&server), before, "{method}");
        server.on_instance(method, "u", "10.0.0.1", 80, &[("weight", "7")]).ok();
        assert_eq!((&host(&server)["weight"], &host(&server)["metadata"]), (&json!(7.0), &json!({"a": "1"})));
        server.on_instance(method, "u", "10.0.0.1", 80, &[("enabled", "false")]).ok();
        assert!(server.hosts("u", &[]).is_empty(), "{method}");
        assert_eq!(host(&server)["enabled"], false);
        server.on_instance(method, "u", "10.0.0.1", 80, &[("enabled", "true"), ("metadata", "b=2")]).ok();
        assert_eq!(server.host("u", &[])["weight"], 7.0, "{method}");
        assert_eq!(server.host("u", &[])["metadata"]["b"], "2", "{method}");
        server.deregister("u", "10.0.0.1", 80, &[]);
    }
}

#[test]
fn an_update_lays_metadata_over_what_was_registered() {
    let server = Server::start();
    server.register("u", "10.0.0.1", 80, &[("metadata", "a=1,b=1")]);
    server.update("u", "10.0.0.1", 80, &[("metadata", r#"{"b":"2","c":"2"}"#)]);
    assert_eq!(host(&server)["metadata"], json!({"a": "1", "b": "2", "c": "2"}));
    server.update("u", "10.0.0.1", 80, &[("metadata", "{}")]);
    assert_eq!(host(&server)["metadata"], json!({"a": "1", "b": "2", "c": "2"}));
}

#[test]
fn health_and_kind_are_not_an_update() {
    let server = Server::start();
    server.register("u", "10.0.0.1", 80, &[]);
    server.update("u", "10.0.0.1", 80, &[("healthy", "false"), ("ephemeral", "false"), ("weight", "2")]);
    let host = host(&server);
    assert_eq!((&host["healthy"], &host["ephemeral"]), (&json!(true), &json!(true)));
    assert_eq!(host["weight"], 2.0);
}

#[test]
fn put_reads_both_spellings_of_enabled_and_patch_only_the_long_one() {
    let server = Server::start();
    server.register("u", "10.0.0.1", 80, &[]);
    server.on_instance("PATCH", "u", "10.0.0.1", 80, &[("enable", "false")]).ok();
    assert_eq!(host(&server)["enabled"], true);
    server.update("u", "10.0.0.1", 80, &[("enable", "False")]);
    assert_eq!(host(&server)["enabled"], false);
}

#[test]
fn an_update_of_what_is_unknown_is_refused_and_leaves_nothing() {
    let server = Server::start();
    for agent in ["Nacos-Java-Client:v1.4.6", "Nacos-Python-Client:v1.0.0", "Nacos-Server", ""] {
        for method in ["PUT", "PATCH"] {
            let update = |service: &str| {
                let call = server.ns(method, "/instance").header("User-Agent", agent).param("weight", "2");
                call.params(&[("serviceName", service), ("ip", "10.0.0.9"), ("port", "80")]).send()
            };
            update("nope").refused(&["service not found, namespace: public, service: ", "nope"]);
            server.register("known", "10.0.0.1", 80, &[]);
            update("known").refused(&["instance not exist: 10.0.0.9:80"]);
            assert!(server.hosts("nope", &[]).is_empty());
            assert_eq!(server.ports("known", &[]), [80]);
        }
    }
    server.register("known", "10.0.0.9", 80, &[]);
    let late = server.on_instance("GET", "known", "10.0.0.9", 80, &[]).json();
    assert_eq!(late["weight"], 1.0, "nothing waited for it");
}

#[test]
fn a_bad_update_changes_nothing() {
    let server = Server::start();
    server.register("u", "10.0.0.1", 80, &[("weight", "2")]);
    let before = host(&server);
    for (method, params, word) in [
        ("PUT", &[("weight", "10000.1"), ("enabled", "false")][..], "weight"),
        ("PUT", &[("weight", "5"), ("enabled", "perhaps")], "enabled"),
        ("PATCH", &[("weight", "5"), ("metadata", "{broken")], "metadata"),
        ("PUT", &[("weight", "5"), ("metadata", "preserved.heart.beat.timeout=x")], "preserved.heart.beat.timeout"),
        ("PATCH", &[("weight", "5"), ("metadata", "preserved.heart.beat.timeout=0")], "preserved.heart.beat.timeout"),
    ] {
        server.on_instance(method, "u", "10.0.0.1", 80, params).refused(&[word]);
        assert_eq!(host(&server), before, "{params:?}");
    }
}
