//! POST and DELETE `/instance`.

use serde_json::json;

use super::support::server::Server;

#[test]
fn an_instance_is_found_by_the_next_request_and_gone_after_its_removal() {
    let server = Server::start();
    let mut connection = server.connect();
    for round in 0..200_u16 {
        let port = (round + 1).to_string();
        let instance = [("serviceName", "ryw"), ("ip", "10.0.0.1"), ("port", port.as_str())];
        connection.call(&server.post("/instance").params(&instance)).ok();
        let list = server.get("/instance/list").param("serviceName", "ryw");
        assert_eq!(connection.call(&list).json()["hosts"][0]["port"], round + 1);
        let beat = server.put("/instance/beat").params(&instance);
        assert_eq!(connection.call(&beat).json()["code"], 10_200);
        connection.call(&server.delete("/instance").params(&instance)).ok();
        assert_eq!(connection.call(&list).json()["hosts"], json!([]));
        assert_eq!(connection.call(&beat).json()["code"], 20_404);
    }
}

#[test]
fn what_was_registered_is_what_is_listed() {
    let server = Server::start();
    let params = [
        ("weight", "2.5"),
        ("enable", "true"),
        ("healthy", "true"),
        ("ephemeral", "true"),
        ("clusterName", "c1"),
        ("groupName", "g"),
        ("namespaceId", "dev"),
        ("metadata", r#"{"zone":"a"}"#),
    ];
    server.register("demo", "10.0.0.7", 8080, &params);
    assert_eq!(
        server.host("g@@demo", &[("namespaceId", "dev")]),
        json!({
            "instanceId": "10.0.0.7#8080#c1#g@@demo", "ip": "10.0.0.7", "port": 8080, "weight": 2.5, "healthy": true,
            "valid": true, "marked": false, "enabled": true, "ephemeral": true, "clusterName": "c1",
            "serviceName": "g@@demo", "metadata": {"zone": "a"}, "instanceHeartBeatInterval": 5000,
            "instanceHeartBeatTimeOut": 15000, "ipDeleteTimeout": 30000
        })
    );
    assert!(server.hosts("g@@demo", &[]).is_empty());
}

#[test]
fn registering_again_replaces_what_was_said_and_takes_the_new_health() {
    let server = Server::start();
    server.register("again", "10.0.0.1", 80, &[("weight", "3"), ("metadata", "a=1,b=2"), ("healthy", "false")]);
    assert_eq!(server.host("again", &[])["healthy"], false);
    server.register("again", "10.0.0.1", 80, &[("metadata", "c=3")]);
    let host = server.host("again", &[]);
    assert_eq!(host["weight"], 1.0);
    assert_eq!(host["metadata"], json!({"c": "3"}));
    assert_eq!(host["healthy"], true);
    server.register("again", "10.0.0.1", 80, &[("enabled", "false")]);
    assert!(server.hosts("again", &[]).is_empty());
    server.register("again", "10.0.0.1", 80, &[]);
    assert_eq!(server.ports("again", &[]), [80]);
}

/// Java, Go and npm register with `enable`, Java updates with `enabled`.
#[test]
fn both_spellings_of_enabled_are_read_and_the_long_one_wins() {
    let server = Server::start();
    for (port, params, listed) in [
        (1, &[("enable", "false")][..], false),
        (2, &[("enabled", "false")], false),
        (3, &[("enabled", ""), ("enable", "false")], false),
        (4, &[("enabled", "true"), ("enable", "false")], true),
        (5, &[("enabled", "false"), ("enable", "true")], false),
        (6, &[("enable", "true")], true),
        (7, &[], true),
    ] {
        server.register("e", "10.0.0.1", port, params);
        assert_eq!(server.ports("e", &[]).contains(&u64::from(port)), listed, "{params:?}");
    }
}

#[test]
fn metadata_of_other_types_becomes_text_and_null_is_none() {
    let server = Server::start();
    let given = r#"{"n":1,"f":1.5,"t":true,"s":"x","e":"","u":"é✓"}"#;
    server.register("types", "10.0.0.1", 80, &[("metadata", given)]);
    let metadata = server.host("types", &[])["metadata"].clone();
    assert_eq!(metadata, json!({"n": "1", "f": "1.5", "t": "true", "s": "x", "e": "", "u": "é✓"}));
    for nothing in ["null", "{}", ""] {
        server.register("types", "10.0.0.1", 80, &[("metadata", nothing)]);
        assert_eq!(server.host("types", &[])["metadata"], json!({}), "{nothing}");
    }
}

#[test]
fn reserved_metadata_sets_the_periods_and_is_shown() {
    let server = Server::start();
    let metadata = "preserved.heart.beat.interval=1000,preserved.heart.beat.timeout=3000,\
                    preserved.ip.delete.timeout=9000,preserved.register.source=SPRING_CLOUD";
    server.register("periods", "10.0.0.1", 80, &[("metadata", metadata)]);
    let host = server.host("periods", &[]);
    assert_eq!(host["instanceHeartBeatInterval"], 1_000);
    assert_eq!(host["instanceHeartBeatTimeOut"], 3_000);
    assert_eq!(host["ipDeleteTimeout"], 9_000);
    assert_eq!(host["metadata"]["preserved.register.source"], "SPRING_CLOUD");
    let beat = server.beat("periods", &[("ip", "10.0.0.1"), ("port", "80")]);
    assert_eq!(beat["clientBeatInterval"], 1_000);
}

#[test]
fn ids_are_simple_unless_a_snowflake_is_asked_for() {
    let server = Server::start();
    let id = |port: u16, metadata: &str| {
        server.register("ids", "10.0.0.1", port, &[("metadata", metadata)]);
        let hosts = server.hosts("ids", &[]);
        let host = hosts.into_iter().find(|host| host["port"] == port).unwrap();
        (host["instanceId"].as_str().unwrap().to_owned(), host["instanceIdGenerator"].clone())
    };
    assert_eq!(id(1, ""), ("10.0.0.1#1#DEFAULT#DEFAULT_GROUP@@ids".to_owned(), json!("simple")));
    assert_eq!(id(2, "a=b"), ("10.0.0.1#2#DEFAULT#DEFAULT_GROUP@@ids".to_owned(), json!(null)));
    let unknown = "preserved.instance.id.generator=unheard-of";
    assert_eq!(id(3, unknown).0, "10.0.0.1#3#DEFAULT#DEFAULT_GROUP@@ids");
    let snowflake = "preserved.instance.id.generator=snowflake";
    let (first, generator) = id(4, snowflake);
    assert_eq!(generator, "snowflake");
    let (number, rest) = first.split_once('#').unwrap();
    assert!(number.parse::<u64>().is_ok(), "{first}");
    assert_eq!(rest, "DEFAULT#DEFAULT_GROUP@@ids");
    assert_eq!(id(4, snowflake).0, first, "the same instance keeps its id");
    assert_ne!(id(5, snowflake).0, first);
}

#[test]
fn removing_what_is_not_there_is_ok() {
    let server = Server::start();
    server.deregister("nowhere", "10.0.0.1", 80, &[]);
    server.register("there", "10.0.0.1", 80, &[]);
    server.deregister("there", "10.0.0.1", 81, &[]);
    server.deregister("there", "10.0.0.2", 80, &[]);
    server.deregister("there", "10.0.0.1", 80, &[("namespaceId", "other")]);
    server.deregister("there", "10.0.0.1", 80, &[("groupName", "other")]);
    assert_eq!(server.ports("there", &[]), [80]);
    server.deregister("there", "10.0.0.1", 80, &[]);
    server.deregister("there", "10.0.0.1", 80, &[]);
    assert!(server.hosts("there", &[]).is_empty());
}

#[test]
fn a_removal_that_names_the_other_kind_removes_nothing() {
    let server = Server::start();
    server.register("kind", "10.0.0.1", 80, &[]);
    server.deregister("kind", "10.0.0.1", 80, &[("ephemeral", "false")]);
    assert_eq!(server.ports("kind", &[]), [80]);
}

#[test]
fn a_removal_checks_its_weight_as_a_registration_does() {
    let server = Server::start();
    server.register("w", "10.0.0.1", 80, &[]);
    server.on_instance("DELETE", "w", "10.0.0.1", 80, &[("weight", "-1")]).refused(&["weight"]);
    assert_eq!(server.ports("w", &[]), [80]);
    server.deregister("w", "10.0.0.1", 80, &[("weight", "1.0")]);
}
