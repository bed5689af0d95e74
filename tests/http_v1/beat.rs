//! PUT `/instance/beat`.

use serde_json::json;

use super::support::{naming::code, server::Server};

const ADDRESS: [(&str, &str); 2] = [("ip", "10.0.0.7"), ("port", "8080")];

#[test]
fn the_answer_has_its_three_keys_whatever_it_says() {
    let server = Server::start();
    let unknown = server.beat("b", &ADDRESS);
    assert_eq!(unknown, json!({"clientBeatInterval": 5000, "code": 20_404, "lightBeatEnabled": true}));
    server.register("b", "10.0.0.7", 8080, &[]);
    let known = server.beat("b", &ADDRESS);
    assert_eq!(known, json!({"clientBeatInterval": 5000, "code": 10_200, "lightBeatEnabled": true}));
}

#[test]
fn a_light_beat_of_the_unknown_creates_nothing() {
    let server = Server::start();
    for cluster in ["", "c1"] {
        let beat = server.beat("ghost", &[&ADDRESS[..], &[("clusterName", cluster)]].concat());
        assert_eq!(code(&beat), 20_404);
    }
    assert!(server.hosts("ghost", &[]).is_empty());
    assert_eq!(server.on_instance("PUT", "ghost", "10.0.0.7", 8080, &[]).status, 400, "there is no such service");
}

#[test]
fn a_full_beat_lists_the_unknown_as_it_describes_it() {
    let server = Server::start();
    let beat = json!({
        "ip": "10.0.0.7", "port": 8080, "weight": 2.5, "serviceName": "DEFAULT_GROUP@@full", "cluster": "c1",
        "metadata": {"zone": "a", "preserved.heart.beat.interval": "1000"}, "scheduled": false, "period": 5000,
        "stopped": false, "load": 0.5, "cpu": 0.1, "rt": 1.0, "qps": 2.0, "mem": 0.3, "ak": "x"
    });
    let answer = server.beat("full", &[("beat", &beat.to_string())]);
    assert_eq!(answer, json!({"clientBeatInterval": 1000, "code": 10_200, "lightBeatEnabled": true}));
    let host = server.host("full", &[]);
    assert_eq!(host["instanceId"], "10.0.0.7#8080#c1#DEFAULT_GROUP@@full");
    assert_eq!(host["weight"], 2.5);
    assert_eq!(host["metadata"], json!({"zone": "a", "preserved.heart.beat.interval": "1000"}));
    for flag in ["healthy", "enabled", "ephemeral"] {
        assert_eq!(host[flag], true, "{flag}");
    }
}

#[test]
fn a_full_beat_with_little_in_it_uses_defaults() {
    let server = Server::start();
    assert_eq!(code(&server.beat("little", &[("beat", r#"{"ip":"10.0.0.1","port":80}"#)])), 10_200);
    let host = server.host("little", &[]);
    assert_eq!(
        (&host["weight"], &host["metadata"], &host["clusterName"]),
        (&json!(1.0), &json!({}), &json!("DEFAULT"))
    );
    let nulls = r#"{"ip":"10.0.0.2","port":80,"weight":null,"metadata":null,"cluster":null,"serviceName":null}"#;
    assert_eq!(code(&server.beat("little", &[("beat", nulls)])), 10_200);
    assert_eq!(server.hosts("little", &[]).len(), 2);
}

#[test]
fn address_of_the_beat_wins_over_the_parameters() {
    let server = Server::start();
    let beat = [("ip", "10.0.0.1"), ("port", "1"), ("beat", r#"{"ip":"10.0.0.2","port":2}"#)];
    assert_eq!(code(&server.beat("address", &beat)), 10_200);
    assert_eq!(server.host("address", &[])["instanceId"], "10.0.0.2#2#DEFAULT#DEFAULT_GROUP@@address");
}

#[test]
fn a_beat_makes_the_unhealthy_healthy() {
    let server = Server::start();
    server.register("sick", "10.0.0.7", 8080, &[("healthy", "false")]);
    assert!(server.hosts("sick", &[("healthyOnly", "true")]).is_empty());
    assert_eq!(code(&server.beat("sick", &ADDRESS)), 10_200);
    assert_eq!(server.host("sick", &[("healthyOnly", "true")])["healthy"], true);
}

#[test]
fn a_beat_never_moves_or_changes_a_live_instance() {
    let server = Server::start();
    server.register("still", "10.0.0.7", 8080, &[("weight", "2"), ("metadata", "v=1"), ("enabled", "false")]);
    let before = server.on_instance("GET", "still", "10.0.0.7", 8080, &[]).json();
    let beat = r#"{"ip":"10.0.0.7","port":8080,"weight":9,"metadata":{"v":"9"},"cluster":"DEFAULT"}"#;
    for params in [&[("beat", beat)][..], &[("beat", beat), ("clusterName", "DEFAULT")]] {
        assert_eq!(code(&server.beat("still", params)), 10_200);
        assert_eq!(server.on_instance("GET", "still", "10.0.0.7", 8080, &[]).json(), before);
    }
    let elsewhere = r#"{"ip":"10.0.0.7","port":8080,"cluster":"c9"}"#;
    assert_eq!(code(&server.beat("still", &[("beat", elsewhere), ("clusterName", "DEFAULT")])), 10_200);
    assert!(server.hosts("still", &[]).is_empty(), "the parameter wins, and the instance is still disabled");
}

#[test]
fn a_beat_that_cannot_be_read_is_refused_and_leaves_nothing() {
    let server = Server::start();
    for beat in [
        "{",
        "[]",
        "1",
        "\"x\"",
        "null",
        "{\"ip\":",
        r#"{"ip":"10.0.0.1","port":"x"}"#,
        r#"{"ip":1,"port":80}"#,
        r#"{"ip":"10.0.0.1","port":80.5}"#,
        r#"{"ip":"10.0.0.1","port":80,"weight":"x"}"#,
        r#"{"ip":"10.0.0.1","port":80,"weight":NaN}"#,
        r#"{"ip":"10.0.0.1","port":80,"metadata":[]}"#,
        r#"{"ip":"10.0.0.1","port":80,"cluster":7}"#,
    ] {
        server.put("/instance/beat").params(&[("serviceName", "bad"), ("beat", beat)]).send().refused(&["beat"]);
    }
    for (beat, word) in [
        (r#"{"ip":"10.0.0.1","port":65536}"#, "port"),
        (r#"{"ip":"10.0.0.1","port":-1}"#, "port"),
        (r#"{"ip":"999.0.0.1","port":80}"#, "ip"),
        (r#"{"ip":"10.0.0.1","port":80,"weight":10001}"#, "weight"),
        (r#"{"ip":"10.0.0.1","port":80,"weight":-1}"#, "weight"),
        (r#"{"ip":"10.0.0.1","port":80,"metadata":{"a":{}}}"#, "metadata"),
        (r#"{"ip":"10.0.0.1","port":80,"cluster":"a b"}"#, "cluster"),
        (r#"{"port":80}"#, "ip"),
        (r#"{"ip":"10.0.0.1"}"#, "port"),
    ] {
        server.put("/instance/beat").params(&[("serviceName", "bad"), ("beat", beat)]).send().refused(&[word]);
    }
    assert!(server.hosts("bad", &[]).is_empty());
}
