//! `/v1/ns/operator`, `/v1/core/cluster` and the metrics, through the real binary.

#![allow(clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use std::{net::UdpSocket, time::Duration};

use serde_json::{Value, json};
use support::{
    http::Answer,
    server::Server,
    wait::{SOON, wait_until},
};

fn turn(server: &Server, entry: &str, value: &str) -> Answer {
    server.put("/operator/switches").params(&[("entry", entry), ("value", value)]).send()
}

fn switches(server: &Server) -> Value {
    server.get("/ops/switches").send().json()
}

#[track_caller]
fn is(answer: &Answer, status: u16, text: &str) {
    assert_eq!((answer.status, answer.text()), (status, text));
}

#[test]
fn switches_are_shown_with_their_defaults_and_turned() {
    let server = Server::start();
    let shown = switches(&server);
    for (key, value) in [
        ("name", json!("00-00---000-NACOS_SWITCH_DOMAIN-000---00-00")),
        ("masters", json!(null)),
        ("defaultPushCacheMillis", json!(10_000)),
        ("distroThreshold", json!(0.7)),
        ("tcpHealthParams", json!({"max": 5000, "min": 1000, "factor": 0.75})),
        ("pushCSharpVersion", json!("0.9.0")),
        ("overriddenServerStatus", json!(null)),
        ("limitedUrlMap", json!({})),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
    for (entry, value, key, now) in [
        ("pushEnabled", "false", "pushEnabled", json!(false)),
        ("clientBeatInterval", "6000", "clientBeatInterval", json!(6000)),
        ("lightBeatEnabled", "off", "lightBeatEnabled", json!(false)),
        ("defaultCacheMillis", "4000", "defaultCacheMillis", json!(4000)),
        ("pushVersion", "go:2.0.1", "pushGoVersion", json!("2.0.1")),
        ("masters", "a,b", "masters", json!(["a", "b"])),
        ("masters", "", "masters", json!(null)),
        ("batch", r#"{"checkTimes":7,"distroEnabled":false}"#, "checkTimes", json!(7)),
    ] {
        turn(&server, entry, value).ok();
        assert_eq!(switches(&server)[key], now, "{entry}");
    }
    let beat = server.beat("any", &[("ip", "10.0.0.1"), ("port", "1")]);
    assert_eq!((&beat["clientBeatInterval"], &beat["lightBeatEnabled"]), (&json!(6000), &json!(false)));
    assert_eq!(server.list("any", &[])["cacheMillis"], 4000);
    let form = server.put("/ops/switches").form(&[("entry", "pushEnabled"), ("value", "true"), ("debug", "true")]);
    form.send().ok();
    let kept = switches(&server);
    assert_eq!((&kept["pushEnabled"], &kept["distroEnabled"]), (&json!(true), &json!(false)));
}

#[test]
fn switches_refuse_what_they_cannot_be() {
    let server = Server::start();
    let before = switches(&server);
    is(&turn(&server, "pushCacheMillis", "9999"), 400, "min cache time for http or tcp is too small(<10000)");
    is(&turn(&server, "defaultCacheMillis", "1"), 400, "min default cache time  is too small(<1000)");
    is(&turn(&server, "limitedUrlMap", "/a:0"), 400, "illegal normal status code: 0");
    turn(&server, "pushEnable", "true").refused(&["unknown switch entry 'pushEnable'", "pushEnabled, pushVersion"]);
    turn(&server, "check", "").refused(&["check", "true or false"]);
    turn(&server, "batch", r#"{"checkTimes":7,"pushEnabled":"x"}"#).refused(&["pushEnabled"]);
    is(&server.put("/operator/switches").param("value", "x").send(), 400, "Parameter 'entry' is missing");
    is(&server.put("/operator/switches").param("entry", "check").send(), 400, "Parameter 'value' is missing");
    let debug = [("entry", "check"), ("value", "false"), ("debug", "so-so")];
    server.put("/operator/switches").params(&debug).send().refused(&["debug"]);
    assert_eq!(switches(&server), before);
}

#[test]
fn a_status_and_a_limit_can_be_taken_back() {
    let server = Server::start();
    turn(&server, "overriddenServerStatus", "READ_ONLY").ok();
    assert_eq!(server.get("/operator/metrics").send().json()["status"], "READ_ONLY");
    let answer = server.try_register("s", "10.0.0.1", "80", &[]);
    is(&answer, 503, "server is READ_ONLYnow, please try again later!");
    turn(&server, "overriddenServerStatus", "null").ok();
    server.register("s", "10.0.0.1", 80, &[]);
    turn(&server, "limitedUrlMap", "/nacos/v1/ns/instance/list?serviceName=s:429,/nacos/v1/ns/op:403").ok();
    let limited = server.get("/instance/list").param("serviceName", "s").send();
    is(&limited, 429, "");
    assert_eq!(server.get("/instance/list").param("serviceName", "other").send().status, 200);
    is(&server.get("/operator/metrics").send(), 403, "");
    turn(&server, "limitedUrlMap", "").ok();
    assert_eq!(server.ports("s", &[]), [80]);
}

#[test]
fn metrics_count_what_is_there() {
    let server = Server::start();
    assert_eq!(server.get("/operator/metrics").param("onlyStatus", "true").send().json(), json!({"status": "UP"}));
    server.register("a", "10.0.0.1", 80, &[]);
    server.register("a", "10.0.0.1", 81, &[("healthy", "false")]);
    server.register("b", "10.0.0.1", 80, &[]);
    let metrics = server.get("/ops/metrics").send().json();
    for (key, value) in [
        ("status", json!("UP")),
        ("serviceCount", json!(2)),
        ("instanceCount", json!(3)),
        ("responsibleInstanceCount", json!(3)),
        ("ephemeralIpPortClientCount", json!(3)),
        ("connectionBasedClientCount", json!(0)),
        ("raftNotifyTaskCount", json!(0)),
        ("leasesLate", json!(1)),
        ("freezes", json!(0)),
        ("brakeHolding", json!(false)),
    ] {
        assert_eq!(metrics[key], value, "{key}");
    }
    for (key, most) in [("cpu", 1.0), ("mem", 1.0), ("load", f64::MAX)] {
        let value = metrics[key].as_f64().unwrap();
        assert!((0.0..=most).contains(&value), "{key} {value}");
    }
    server.get("/operator/metrics").param("onlyStatus", "x").send().refused(&["onlyStatus"]);
}

#[test]
fn the_brake_shows_while_it_holds() {
    let server = Server::with(&[
        "registry.brake=true",
        "registry.brake_min_leases=1",
        "registry.brake_share=0.4",
        "registry.expiry_scan=50ms",
    ]);
    let short = support::naming::periods(100, 200, 400);
    server.register("s", "10.0.0.1", 80, &[("metadata", &short)]);
    let metrics = || server.get("/operator/metrics").send().json();
    let held = wait_until(SOON, metrics, |metrics| metrics["brakeHolding"] == json!(true));
    assert_eq!((&held["brakeEngagements"], &held["leasesLate"]), (&json!(1), &json!(1)));
    let text = scrape(&server, "/metrics");
    assert_eq!(value(&text, "nomina_registry_brake_holding"), "1");
    assert_eq!(value(&text, "nomina_registry_lapsed_total"), "1");
}

#[test]
fn this_node_is_the_cluster() {
    let server = Server::start();
    let name = server.http().to_string();
    let mut member = server.call("GET", "/nacos/v1/core/cluster/self").send().json();
    assert_eq!((&member["code"], &member["message"]), (&json!(200), &json!(null)));
    let info = member["data"]["extendInfo"].take();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let shown = json!({
        "ip": "127.0.0.1", "port": server.http().port(), "state": "UP", "address": name, "failAccessCnt": 0,
        "extendInfo": null
    });
    assert_eq!(member["data"], shown);
    let core = |path: &str| server.call("GET", &format!("/nacos/v1/core/cluster{path}")).send().json()["data"].clone();
    assert_eq!(core("/nodes")[0]["address"], name);
    assert_eq!(core("/nodes?keyword=127.")[0]["address"], name);
    assert_eq!(core("/nodes?keyword=10."), json!([]));
    assert_eq!(core("/simple/nodes"), json!([name]));
    assert_eq!(core("/health"), json!("UP"));
    for path in ["/servers", "/servers?healthy=true"] {
        assert_eq!(server.get(&format!("/operator{path}")).send().json()["servers"][0]["address"], name);
    }
    server.register("s", "10.0.0.1", 80, &[]);
    let owner = json!({ "responsibleServer": name });
    assert_eq!(server.get("/operator/distro/server").param("serviceName", "s").send().json(), owner);
    is(&server.get("/operator/distro/server").param("serviceName", "no").send(), 400, "service not found");
    let client = server.get("/operator/distro/client").params(&[("ip", "10.0.0.1"), ("port", "80")]);
    assert_eq!(client.send().json(), owner);
    server.get("/operator/distro/client").param("ip", "10.0.0.1").send().refused(&["port"]);
    let status = server.get("/operator/distro/status").param("action", "view").send().json();
    assert_eq!(status["status"][0]["address"], name);
    assert_eq!(server.get("/operator/distro/status").param("action", "x").send().json(), json!({}));
    server.get("/operator/server/status").send().ok();
    let list = server.call("GET", "/nacos/serverlist?namespace=public").send();
    assert_eq!((list.status, list.text().to_owned()), (200, format!("{name}\r\n")));
    let v2 = |path: &str| server.call("GET", &format!("/nacos/v2/core/cluster/node{path}")).send();
    assert_eq!(v2("/self").json()["data"]["address"], name);
    assert_eq!(v2("/self/health").json(), json!({"code": 0, "message": "success", "data": "UP"}));
    assert_eq!(v2("/list?address=127.&state=up").json()["data"][0]["state"], "UP");
    assert_eq!(v2("/list?state=DOWN").json()["data"], json!([]));
    v2("/list?state=x").refused(&["Illegal state: x"]);
    for (method, path) in [
        ("POST", "/nacos/v1/core/cluster/report"),
        ("GET", "/nacos/v1/ns/raft/leader"),
        ("GET", "/nacos/v1/ns/operator/cluster/state"),
        ("GET", "/nacos/v1/ns/distro/datums"),
        ("PUT", "/nacos/v1/ns/distro/datum"),
        ("PUT", "/nacos/v1/ns/distro/checksum"),
        ("POST", "/nacos/v1/core/cluster/server/leave"),
        ("PUT", "/nacos/v2/core/cluster/node/list"),
        ("POST", "/nacos/v1/ns/operator/metrics"),
    ] {
        assert_eq!(server.call(method, path).send().status, 501, "{method} {path}");
    }
}

#[test]
fn the_log_level_changes_while_the_server_runs() {
    let server = Server::with(&["log.level=warn,nomina=info"]);
    let set =
        |name: &str, level: &str| server.put("/operator/log").params(&[("logName", name), ("logLevel", level)]).send();
    set("nomina::registry", "ERROR").ok();
    wait_until(SOON, || server.log(), |log| log.contains("nomina::registry=error"));
    turn(&server, "check", "true").ok();
    set("root", "info").ok();
    wait_until(SOON, || server.log(), |log| log.contains("warn,nomina=info,info,"));
    assert!(!server.log().contains("switch changed"));
    set("nomina::registry", "info").ok();
    turn(&server, "check", "true").ok();
    wait_until(SOON, || server.log(), |log| log.contains("switch changed"));
    set("naming-push", "info").refused(&["naming-push", "root"]);
    set("root", "loud").refused(&["loud"]);
    is(&server.put("/operator/log").send(), 400, "Parameter 'logName' is missing");
}

fn scrape(server: &Server, path: &str) -> String {
    let answer = server.call("GET", path).send();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.text().to_owned()
}

#[track_caller]
fn value(text: &str, name: &str) -> String {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    assert!(found.is_some(), "{name} is not in\n{text}");
    found.unwrap_or_default().to_owned()
}

#[test]
fn prometheus_reads_figures_and_requests() {
    let server = Server::start();
    server.register("a", "10.0.0.1", 80, &[]);
    server.register("a", "10.0.0.1", 81, &[]);
    server.try_register("a", "10.0.0.1", "x", &[]).refused(&["port"]);
    server.call("BREW", "/nacos/v1/ns/whatever").send();
    for path in ["/metrics", "/nacos/actuator/prometheus"] {
        let text = scrape(&server, path);
        for (name, number) in [
            ("nomina_registry_services", "1"),
            ("nomina_registry_instances", "2"),
            ("nomina_registry_leases", "2"),
            ("nomina_registry_leases_late", "0"),
            ("nomina_registry_queue_length", "0"),
            ("nomina_registry_queue_capacity", "16384"),
            ("nomina_registry_changes_total", "2"),
            ("nomina_registry_expired_total", "0"),
            ("nomina_registry_freezes_total", "0"),
            ("nomina_registry_watched_services", "0"),
            ("nomina_cluster_members{standing=\"up\"}", "1"),
            ("nomina_cluster_members{standing=\"dead\"}", "0"),
            ("nomina_cluster_stage{stage=\"ready\"}", "1"),
            ("nomina_cluster_majority", "1"),
            ("nomina_cluster_orphans", "0"),
            ("nomina_cluster_handovers_total", "0"),
            (&format!("nomina_cluster_records{{member=\"{}\"}}", server.http()), "2"),
            ("nacos_monitor{module=\"naming\",name=\"ipCount\"}", "2"),
            ("nacos_monitor{module=\"naming\",name=\"serviceCount\"}", "1"),
            ("nomina_http_requests_total{method=\"POST\",route=\"/nacos/v1/ns/instance\",status=\"200\"}", "2"),
            ("nomina_http_requests_total{method=\"POST\",route=\"/nacos/v1/ns/instance\",status=\"400\"}", "1"),
            ("nomina_http_requests_total{method=\"other\",route=\"none\",status=\"501\"}", "1"),
        ] {
            assert_eq!(value(&text, name), number, "{name}");
        }
    }
}

#[test]
fn pushes_and_subscribers_are_counted() {
    let server = Server::with(&["push.merge_delay=50ms"]);
    let state = |more: &[(&str, &str)]| server.get("/operator/push/state").params(more).send().json();
    assert_eq!(state(&[]), json!({"succeed": 0, "total": 0, "ratio": 0.0, "reset": false}));
    assert_eq!(state(&[("detail", "true")])["detail"], json!({"avgPushCost": -1, "maxPushCost": -1}));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    let list =
        server.get("/instance/list").params(&[("serviceName", "s"), ("udpPort", &port), ("clientIP", "127.0.0.1")]);
    list.header("User-Agent", "Nacos-Java-Client:v1.4.6").send().json();
    server.register("s", "10.0.0.1", 80, &[]);
    let mut buffer = [0; 64 * 1024];
    let (length, from) = socket.recv_from(&mut buffer).unwrap();
    let push: Value = serde_json::from_slice(&buffer[..length]).unwrap();
    let ack = json!({"type": "push-ack", "lastRefTime": push["lastRefTime"].to_string(), "data": ""});
    socket.send_to(ack.to_string().as_bytes(), from).unwrap();
    let done = wait_until(SOON, || state(&[("detail", "true")]), |state| state["succeed"] == 1);
    assert_eq!((&done["total"], &done["ratio"]), (&json!(1), &json!(1.0)));
    let cost = done["detail"]["avgPushCost"].as_i64().unwrap();
    assert!((0..i64::try_from(Duration::from_secs(60).as_millis()).unwrap()).contains(&cost), "{cost}");
    assert_eq!(server.get("/operator/metrics").send().json()["subscribeCount"], 1);
    let text = scrape(&server, "/metrics");
    for (name, number) in [
        ("nomina_push_sent_total", "1"),
        ("nomina_push_acknowledged_total", "1"),
        ("nomina_push_subscribers{protocol=\"udp\"}", "1"),
        ("nacos_monitor{module=\"naming\",name=\"totalPush\"}", "1"),
    ] {
        assert_eq!(value(&text, name), number, "{name}");
    }
    assert_eq!(state(&[("reset", "true")])["reset"], true);
    assert_eq!(state(&[])["total"], 0);
    server.get("/operator/push/state").param("reset", "perhaps").send().refused(&["reset"]);
}
