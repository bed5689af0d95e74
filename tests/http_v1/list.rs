//! GET `/instance/list`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::support::server::Server;

#[expect(clippy::disallowed_methods, reason = "what the server says is compared with the time of day")]
fn millis() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Every key that some client reads, with the type that it needs.
#[track_caller]
fn has_the_envelope(list: &Value, name: &str, clusters: &str) {
    let (group, _) = name.split_once("@@").unwrap();
    assert_eq!(list["name"], name);
    assert_eq!(list["groupName"], group);
    assert_eq!(list["dom"], name);
    assert_eq!(list["clusters"], clusters);
    assert!(list["hosts"].is_array(), "{list}");
    assert!(list["cacheMillis"].as_u64().is_some_and(|millis| millis > 0), "{list}");
    assert!(list["lastRefTime"].as_u64().is_some_and(|millis| millis > 1_600_000_000_000), "{list}");
    assert_eq!(list["checksum"], "");
    assert_eq!(list["allIPs"], false);
    assert_eq!(list["valid"], true);
    assert_eq!(list["useSpecifiedURL"], false);
    assert_eq!(list["env"], "");
    assert_eq!(list["reachProtectionThreshold"], false);
    assert!(list["metadata"].is_object(), "{list}");
}

#[test]
fn the_envelope_is_full_for_full_empty_and_unknown_services() {
    let server = Server::start();
    server.register("full", "10.0.0.1", 80, &[]);
    server.register("empty", "10.0.0.1", 80, &[]);
    server.deregister("empty", "10.0.0.1", 80, &[]);
    for (service, hosts) in [("full", 1), ("empty", 0), ("unknown", 0)] {
        for params in [&[][..], &[("clusters", "DEFAULT")], &[("healthyOnly", "true")]] {
            let list = server.list(service, params);
            let clusters = params.iter().find(|(name, _)| *name == "clusters").map_or("", |(_, value)| value);
            has_the_envelope(&list, &format!("DEFAULT_GROUP@@{service}"), clusters);
            assert_eq!(list["hosts"].as_array().unwrap().len(), hosts, "{service} {params:?}");
        }
    }
}

#[test]
fn hosts_have_the_types_that_clients_need() {
    let server = Server::start();
    server.register("typed", "10.0.0.1", 80, &[("weight", "1"), ("metadata", r#"{"n":1}"#)]);
    let answer = server.get("/instance/list").param("serviceName", "typed").send();
    assert!(answer.text().contains("\"weight\":1.0"), "a float, as Java prints it: {answer:?}");
    let host = server.host("typed", &[]);
    for key in ["instanceId", "ip", "clusterName", "serviceName"] {
        assert!(host[key].is_string(), "{key}");
    }
    for key in ["healthy", "enabled", "ephemeral", "valid", "marked"] {
        assert!(host[key].is_boolean(), "{key}");
    }
    for key in ["port", "instanceHeartBeatInterval", "instanceHeartBeatTimeOut", "ipDeleteTimeout"] {
        assert!(host[key].is_u64(), "{key}");
    }
    assert_eq!(host["metadata"], json!({"n": "1"}));
    assert_eq!(host["serviceName"], "DEFAULT_GROUP@@typed");
}

/// The echo is part of the key under which Java and npm keep the answer.
#[test]
fn clusters_are_echoed_to_the_letter() {
    let server = Server::start();
    server.register("echo", "10.0.0.1", 80, &[("clusterName", "c1")]);
    for clusters in ["", "c1", "c1,c2", "c2,c1", ",", "c1,", "none", "c1,c1", "C1"] {
        assert_eq!(server.list("echo", &[("clusters", clusters)])["clusters"], clusters);
    }
}

#[test]
fn without_push_clients_poll_every_three_seconds() {
    let server = Server::start();
    assert_eq!(server.list("any", &[])["cacheMillis"], 3_000);
    assert_eq!(server.list("any", &[("udpPort", "0")])["cacheMillis"], 3_000);
}

#[test]
fn with_push_clients_poll_every_ten_seconds() {
    let server = Server::start();
    let list = |agent: &str, params: &[(&str, &str)]| {
        let call = server.get("/instance/list").param("serviceName", "any").params(params).header("User-Agent", agent);
        call.send().json()["cacheMillis"].clone()
    };
    let push = [("udpPort", "55123"), ("clientIP", "127.0.0.1")];
    for agent in ["Nacos-Java-Client:v1.4.6", "Nacos-Go-Client:v2.3.5", "Nacos-Java-Client:v1.0.0"] {
        assert_eq!(list(agent, &push), 10_000, "{agent}");
    }
    for agent in ["Nacos-Python-Client:v1.0.0", "", "curl/8", "Nacos-Java-Client"] {
        assert_eq!(list(agent, &push), 3_000, "{agent}");
    }
}

#[test]
fn the_time_of_the_data_never_runs_backwards() {
    let server = Server::start();
    let mut last = millis() - 1_000;
    for port in 1..50 {
        server.register("time", "10.0.0.1", port, &[]);
        let time = server.list("time", &[])["lastRefTime"].as_u64().unwrap();
        assert!((last..=millis() + 1_000).contains(&time), "{last} then {time}");
        last = time;
    }
    server.deregister("time", "10.0.0.1", 1, &[]);
    assert!(server.list("time", &[])["lastRefTime"].as_u64().unwrap() >= last);
}

/// Python compares the whole answer, and calls the listener if anything differs.
#[test]
fn beats_do_not_change_the_answer() {
    let server = Server::start();
    server.register("same", "10.0.0.1", 80, &[("metadata", "b=1,a=2,c=3")]);
    server.register("same", "10.0.0.2", 80, &[]);
    let hosts = || {
        let answer = server.get("/instance/list").param("serviceName", "same").send();
        answer.text().split("\"lastRefTime\"").next().unwrap().to_owned()
    };
    let first = hosts();
    for _ in 0..20 {
        assert_eq!(server.light_beat("same", "10.0.0.1", 80), 10_200);
        assert_eq!(hosts(), first);
    }
}

#[test]
fn healthy_only_leaves_the_unhealthy_out() {
    let server = Server::start();
    server.register("h", "10.0.0.1", 1, &[]);
    server.register("h", "10.0.0.1", 2, &[("healthy", "false")]);
    server.register("h", "10.0.0.1", 3, &[("enabled", "false")]);
    assert_eq!(server.ports("h", &[]), [1, 2]);
    assert_eq!(server.ports("h", &[("healthyOnly", "false")]), [1, 2]);
    assert_eq!(server.ports("h", &[("healthyOnly", "true")]), [1]);
}

#[test]
fn nobody_healthy_is_shown_as_it_is_when_no_threshold_was_set() {
    let server = Server::start();
    server.register("sick", "10.0.0.1", 1, &[("healthy", "false")]);
    server.register("sick", "10.0.0.1", 2, &[("healthy", "false")]);
    let list = server.list("sick", &[]);
    assert_eq!(list["reachProtectionThreshold"], false);
    assert!(list["hosts"].as_array().unwrap().iter().all(|host| host["healthy"] == false && host["valid"] == false));
    assert!(server.hosts("sick", &[("healthyOnly", "true")]).is_empty());
}

#[test]
fn at_the_threshold_all_are_shown_as_healthy() {
    let server = Server::start();
    let create = server.post("/service").params(&[("serviceName", "guard"), ("protectThreshold", "0.5")]);
    create.send().ok();
    server.register("guard", "10.0.0.1", 1, &[]);
    server.register("guard", "10.0.0.1", 2, &[("healthy", "false")]);
    for params in [&[][..], &[("healthyOnly", "true")]] {
        let list = server.list("guard", params);
        assert_eq!(list["reachProtectionThreshold"], true);
        assert_eq!(server.ports("guard", params), [1, 2]);
        assert!(list["hosts"].as_array().unwrap().iter().all(|host| host["healthy"] == true && host["valid"] == true));
    }
    server.register("guard", "10.0.0.1", 3, &[]);
    assert_eq!(server.list("guard", &[])["reachProtectionThreshold"], false);
    assert_eq!(server.ports("guard", &[("healthyOnly", "true")]), [1, 3]);
}

#[test]
fn other_parameters_of_a_poll_do_no_harm() {
    let server = Server::start();
    server.register("poll", "10.0.0.1", 80, &[]);
    let params = [
        ("clientIP", "10.0.0.9"),
        ("app", "shop"),
        ("tid", "t"),
        ("env", "prod"),
        ("isCheck", "false"),
        ("pid", "123"),
        ("healthyOnly", "false"),
        ("clusters", ""),
    ];
    let list = server.list("poll", &params);
    assert_eq!(list["env"], "prod");
    assert_eq!(list["hosts"][0]["port"], 80);
}
