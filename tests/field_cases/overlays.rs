//! What an operator set, and what the publisher says.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    beater::Beater,
    naming::{code, periods},
    server::Server,
    wait::{SOON, wait_until},
};

/// Case 22, alibaba/nacos#14606, #12713, #13131, #12192: overrides outlived their instance, so a new program on a reused
/// address inherited weight 0 and old labels.
#[test]
fn an_explicit_removal_forgets_what_an_operator_set() {
    let server = Server::start();
    server.register("re", "10.0.0.1", 80, &[("metadata", "v=1")]);
    server.update(
        "re",
        "10.0.0.1",
        80,
        &[("weight", "0"), ("enabled", "false"), ("metadata", r#"{"v":"old","x":"y"}"#)],
    );
    server.deregister("re", "10.0.0.1", 80, &[]);
    server.register("re", "10.0.0.1", 80, &[("metadata", "v=2")]);
    let host = server.host("re", &[]);
    assert_eq!((&host["weight"], &host["metadata"]), (&json!(1.0), &json!({"v": "2"})));
}

/// Case 22: after an unclean end the operator's word is kept for the time that is set, and no longer.
#[test]
fn after_an_expiry_the_operators_word_is_kept_for_a_stated_time() {
    let server = Server::with(&["registry.expiry_scan=50ms", "registry.overlay_retention=2s"]);
    let metadata = periods(100, 200, 300);
    let register = |port: u16| server.register("kept", "10.0.0.1", port, &[("metadata", &metadata)]);
    for port in [80, 81] {
        register(port);
        server.update("kept", "10.0.0.1", port, &[("weight", "0")]);
    }
    wait_until(SOON, || server.ports("kept", &[]), Vec::is_empty);
    server.register("kept", "10.0.0.1", 80, &[]);
    assert_eq!(server.host("kept", &[])["weight"], 0.0, "within the time");
    // Both had gone by now, so two seconds from now the other one is past its time.
    std::thread::sleep(Duration::from_millis(2_200));
    register(81);
    assert_eq!(server.on_instance("GET", "kept", "10.0.0.1", 81, &[]).json()["weight"], 1.0, "past the time");
}

/// Case 23, alibaba/nacos#5058, #6042, #6358: beats put back what an update had changed. The operator's word wins over
/// beats and registrations until the instance is removed.
#[test]
fn beats_and_registrations_do_not_undo_an_operators_update() {
    let server = Server::start();
    let v = |version: u8| format!(r#"{{"v":"{version}","own":"{version}"}}"#);
    server.register("v", "10.0.0.1", 80, &[("metadata", &v(1)), ("weight", "1")]);
    server.update("v", "10.0.0.1", 80, &[("metadata", r#"{"v":"2"}"#), ("weight", "2")]);
    let beat = format!(r#"{{"ip":"10.0.0.1","port":80,"weight":1,"cluster":"DEFAULT","metadata":{}}}"#, v(1));
    for _ in 0..20 {
        assert_eq!(code(&server.beat("v", &[("beat", &beat)])), 10_200);
        let host = server.host("v", &[]);
        assert_eq!((&host["metadata"], &host["weight"]), (&json!({"v": "2", "own": "1"}), &json!(2.0)));
    }
    server.register("v", "10.0.0.1", 80, &[("metadata", &v(3)), ("weight", "3")]);
    let host = server.host("v", &[]);
    assert_eq!((&host["metadata"], &host["weight"]), (&json!({"v": "2", "own": "3"}), &json!(2.0)));
}

/// Case 62, Netflix/eureka#955, #389, #1116: after an out-of-service mark was lifted the instance stayed unknown.
#[test]
fn an_instance_that_is_enabled_again_is_on_line_with_its_own_health() {
    let server = Server::with(&["registry.expiry_scan=50ms"]);
    let metadata = periods(500, 2_000, 60_000);
    server.register("oos", "10.0.0.1", 80, &[("metadata", &metadata)]);
    let beater =
        Beater::start(&server, Duration::from_millis(250), vec![Beater::light(&server, "oos", "10.0.0.1", 80, &[])]);
    server.update("oos", "10.0.0.1", 80, &[("enabled", "false")]);
    crate::support::wait::holds_for(
        Duration::from_secs(3),
        || (server.hosts("oos", &[]), server.on_instance("GET", "oos", "10.0.0.1", 80, &[]).json()["healthy"].clone()),
        |(hosts, healthy)| hosts.is_empty() && *healthy == true,
    );
    server.update("oos", "10.0.0.1", 80, &[("enabled", "true")]);
    assert_eq!(server.host("oos", &[])["healthy"], true);
    beater.stop();
}

/// Case 62: the same with an expiry between the two updates.
#[test]
fn a_mark_set_before_an_expiry_can_be_lifted_after_it() {
    let server = Server::with(&["registry.expiry_scan=50ms"]);
    let metadata = periods(100, 200, 300);
    server.register("oos", "10.0.0.1", 80, &[("metadata", &metadata)]);
    server.update("oos", "10.0.0.1", 80, &[("enabled", "false")]);
    wait_until(SOON, || server.on_instance("GET", "oos", "10.0.0.1", 80, &[]).status, |status| *status == 404);
    assert_eq!(server.light_beat("oos", "10.0.0.1", 80), 20_404);
    server.register("oos", "10.0.0.1", 80, &[]);
    assert!(server.hosts("oos", &[]).is_empty(), "the mark outlives the expiry");
    assert_eq!(server.light_beat("oos", "10.0.0.1", 80), 10_200);
    server.update("oos", "10.0.0.1", 80, &[("enabled", "true")]);
    assert_eq!(server.host("oos", &[])["healthy"], true);
}
