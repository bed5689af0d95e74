//! GET `/instance` and GET `/instance/statuses`.

use serde_json::json;

use super::support::server::Server;

#[test]
fn the_detail_has_what_clients_read() {
    let server = Server::start();
    server.register("demo", "10.0.0.7", 8080, &[("weight", "2"), ("metadata", r#"{"zone":"a"}"#)]);
    let detail = server.on_instance("GET", "demo", "10.0.0.7", 8080, &[]).json();
    for (key, value) in [
        ("service", json!("DEFAULT_GROUP@@demo")),
        ("ip", json!("10.0.0.7")),
        ("port", json!(8080)),
        ("clusterName", json!("DEFAULT")),
        ("weight", json!(2.0)),
        ("healthy", json!(true)),
        ("instanceId", json!("10.0.0.7#8080#DEFAULT#DEFAULT_GROUP@@demo")),
        ("metadata", json!({"zone": "a"})),
    ] {
        assert_eq!(detail[key], value, "{key}");
    }
    assert!(detail["weight"].is_f64());
}

#[test]
fn disabled_and_unhealthy_instances_are_shown_as_they_are() {
    let server = Server::start();
    server.register("raw", "10.0.0.1", 80, &[("enabled", "false"), ("healthy", "false")]);
    assert_eq!(server.on_instance("GET", "raw", "10.0.0.1", 80, &[]).json()["healthy"], false);
}

/// Python tells 404 from 500 and would try the other servers for the latter.
#[test]
fn what_is_not_there_is_404() {
    let server = Server::start();
    let unknown = server.on_instance("GET", "nope", "10.0.0.1", 80, &[]);
    assert_eq!(
        (unknown.status, unknown.text()),
        (404, "no ips found for cluster DEFAULT in service DEFAULT_GROUP@@nope")
    );
    server.register("some", "10.0.0.1", 80, &[]);
    for (ip, port, more) in
        [("10.0.0.1", 81, &[][..]), ("10.0.0.2", 80, &[]), ("10.0.0.1", 80, &[("clusterName", "other")])]
    {
        let answer = server.on_instance("GET", "some", ip, port, more);
        assert_eq!((answer.status, answer.text()), (404, "no matched ip found!"), "{more:?}");
    }
}

#[test]
fn statuses_name_every_instance_with_its_health() {
    let server = Server::start();
    server.register("st", "10.0.0.7", 8080, &[("namespaceId", "dev")]);
    server.register("st", "10.0.0.8", 8080, &[("namespaceId", "dev"), ("healthy", "false"), ("enabled", "false")]);
    let statuses = |key: &str| server.get("/instance/statuses").param("key", key).send().json();
    let mut ips = statuses("dev##DEFAULT_GROUP@@st")["ips"].as_array().unwrap().clone();
    ips.sort_by_key(ToString::to_string);
    assert_eq!(ips, ["10.0.0.7:8080_true", "10.0.0.8:8080_false"]);
    assert_eq!(statuses("DEFAULT_GROUP@@st"), json!({"ips": []}));
    assert_eq!(statuses("public##DEFAULT_GROUP@@nope"), json!({"ips": []}));
    server.register("st", "10.0.0.9", 8080, &[]);
    for key in ["DEFAULT_GROUP@@st", "public##DEFAULT_GROUP@@st", "##DEFAULT_GROUP@@st"] {
        assert_eq!(statuses(key), json!({"ips": ["10.0.0.9:8080_true"]}), "{key}");
    }
}
