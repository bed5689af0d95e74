//! Beats and their periods.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    naming::{code, periods},
    server::Server,
    wait::{SOON, wait_until},
};

/// Case 25, alibaba/nacos#3404, #3572, #8470, r-nacos#85, hyperf PR#3897: a late beat brought an instance back without
/// its metadata, and a beat without an address made clients register for ever.
#[test]
fn an_expired_instance_comes_back_only_by_a_beat_that_describes_it() {
    let server = Server::with(&["registry.expiry_scan=50ms"]);
    let metadata = format!("zone=a,{}", periods(100, 200, 300));
    server.register("late", "10.0.0.1", 80, &[("metadata", &metadata)]);
    wait_until(SOON, || server.hosts("late", &[]), Vec::is_empty);
    let light = server.beat("late", &[("ip", "10.0.0.1"), ("port", "80")]);
    assert_eq!(light, json!({"clientBeatInterval": 5000, "code": 20_404, "lightBeatEnabled": true}));
    assert!(server.hosts("late", &[]).is_empty());
    let full = r#"{"ip":"10.0.0.1","port":80,"weight":1,"cluster":"DEFAULT","metadata":{"zone":"a"}}"#;
    assert_eq!(code(&server.beat("late", &[("beat", full)])), 10_200);
    assert_eq!(server.host("late", &[])["metadata"], json!({"zone": "a"}));
    server.put("/instance/beat").param("serviceName", "late").send().refused(&["Param 'ip' is required."]);
    let no_port = server.put("/instance/beat").params(&[("serviceName", "late"), ("ip", "10.0.0.1")]);
    no_port.send().refused(&["Param 'port' is required."]);
}

/// Case 26, alibaba/nacos#4513, #5216: a timeout below the beat interval made an instance flap for ever.
#[test]
fn periods_that_cannot_be_kept_are_refused() {
    let server = Server::start();
    for (interval, timeout, delete) in [(10_000, 5_000, 5_000), (10_000, 5_000, 20_000), (10_000, 20_000, 5_000)] {
        let metadata = periods(interval, timeout, delete);
        let answer = server.try_register("flap", "10.0.0.1", "80", &[("metadata", &metadata)]);
        answer.refused(&["heart beat interval", &interval.to_string(), &timeout.to_string(), &delete.to_string()]);
    }
    for key in ["preserved.heart.beat.interval", "preserved.heart.beat.timeout", "preserved.ip.delete.timeout"] {
        for value in ["0", "-1", "abc", "1000000000000", "1.5", "5s", ""] {
            let metadata = format!("{key}={value}");
            server.try_register("flap", "10.0.0.1", "80", &[("metadata", &metadata)]).refused(&[key]);
        }
    }
    server
        .try_register("flap", "10.0.0.1", "80", &[("metadata", "preserved.heart.beat.timeout=4000")])
        .refused(&["5000"]);
    assert!(server.hosts("flap", &[]).is_empty());
}

/// Case 26: the rule holds for what is in force, the publisher's and the operator's metadata together.
#[test]
fn an_update_cannot_bring_periods_about_that_cannot_be_kept() {
    let server = Server::start();
    server.register("flap", "10.0.0.1", 80, &[("metadata", &periods(10_000, 15_000, 30_000))]);
    for (method, path) in [("PUT", "/instance"), ("PATCH", "/instance"), ("PUT", "/instance/metadata/batch")] {
        let params = [("serviceName", "flap"), ("ip", "10.0.0.1"), ("port", "80"), ("consistencyType", "ephemeral")];
        let metadata = ("metadata", "preserved.heart.beat.timeout=6000");
        let answer = server.ns(method, path).params(&params).params(&[metadata]).send();
        answer.refused(&["10000", "6000"]);
        assert_eq!(server.host("flap", &[])["instanceHeartBeatTimeOut"], 15_000, "{method} {path}");
    }
}

/// Case 26: an update that fits the publisher's periods is no fault.
#[test]
fn an_update_of_one_period_is_judged_with_the_others_in_force() {
    let server = Server::start();
    server.register("fit", "10.0.0.1", 80, &[("metadata", &periods(1_000, 60_000, 90_000))]);
    server.update("fit", "10.0.0.1", 80, &[("metadata", "preserved.heart.beat.interval=20000")]);
    assert_eq!(server.host("fit", &[])["instanceHeartBeatInterval"], 20_000);
    server.update("fit", "10.0.0.1", 80, &[("metadata", "preserved.heart.beat.interval=1000")]);
    server.update("fit", "10.0.0.1", 80, &[("metadata", "preserved.heart.beat.timeout=3000")]);
    assert_eq!(server.host("fit", &[])["instanceHeartBeatTimeOut"], 3_000);
}

/// Case 26: valid periods are honoured within a second.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
fn periods_are_honoured_within_a_second() {
    let server = Server::start();
    let (timeout, delete) = (Duration::from_millis(1_500), Duration::from_millis(3_500));
    let begun = Instant::now();
    server.register("own", "10.0.0.1", 80, &[("metadata", &periods(500, 1_500, 3_500))]);
    let answered = begun.elapsed();
    wait_until(SOON, || server.host("own", &[])["healthy"].clone(), |healthy| *healthy == false);
    let late = begun.elapsed();
    assert!(late >= timeout && late < timeout + answered + Duration::from_secs(1), "unhealthy after {late:?}");
    wait_until(SOON, || server.hosts("own", &[]), Vec::is_empty);
    let gone = begun.elapsed();
    assert!(gone >= delete && gone < delete + answered + Duration::from_secs(1), "removed after {gone:?}");
}

/// Case 61, polarismesh/polaris#974: the first beat after a registration read a cache that lagged behind.
#[test]
fn the_first_beat_after_a_registration_finds_its_instance() {
    let server = Server::start();
    let mut connection = server.connect();
    for port in 1..=500_u16 {
        let port = port.to_string();
        let instance = [("serviceName", "first"), ("ip", "10.0.0.1"), ("port", port.as_str())];
        // Both requests in one packet: no time in between.
        let mut bytes = server.post("/instance").params(&instance).bytes();
        bytes.extend(server.put("/instance/beat").params(&instance).bytes());
        connection.send(&bytes).unwrap();
        connection.receive(false).unwrap().ok();
        assert_eq!(code(&connection.receive(false).unwrap().json()), 10_200, "port {port}");
    }
    assert_eq!(server.hosts("first", &[]).len(), 500);
}
