//! Weights.

use crate::support::server::Server;

/// Case 7, alibaba/nacos#139, #9478 (PR#9479), alibaba/spring-cloud-alibaba#3665: weight 0 drains an instance; it must
/// come back as 0, not as the default.
#[test]
fn weights_in_range_come_back_exactly() {
    let server = Server::start();
    for (port, sent, shown) in [
        (1, "0", "0.0"),
        (2, "0.0", "0.0"),
        (3, "-0", "0.0"),
        (4, "0.0001", "0.0001"),
        (5, "0.01", "0.01"),
        (6, "1", "1.0"),
        (7, "3.3333333333333335", "3.3333333333333335"),
        (8, "10000", "10000.0"),
        (9, "1e2", "100.0"),
    ] {
        server.register("w", "10.0.0.1", port, &[("weight", sent)]);
        server.register("w2", "10.0.0.1", port, &[]);
        server.update("w2", "10.0.0.1", port, &[("weight", sent)]);
        for service in ["w", "w2"] {
            let list = server.get("/instance/list").param("serviceName", service).send();
            let host = format!("\"port\":{port},\"weight\":{shown},");
            assert!(list.text().contains(&host), "{sent}: {host} is not in {}", list.text());
        }
    }
}

/// Case 7: a service in which nobody takes traffic is still listed.
#[test]
fn instances_of_weight_zero_are_listed() {
    let server = Server::start();
    server.register("drained", "10.0.0.1", 80, &[("weight", "0")]);
    server.register("drained", "10.0.0.1", 81, &[("weight", "0")]);
    assert_eq!(server.ports("drained", &[]), [80, 81]);
    assert_eq!(server.ports("drained", &[("healthyOnly", "true")]), [80, 81]);
}

/// Case 7 and probe P1: `NaN` passes a test of the form `w > max or w < min`.
#[test]
fn weights_that_are_none_are_refused_on_every_path() {
    let server = Server::start();
    server.register("w", "10.0.0.1", 80, &[("weight", "2")]);
    for bad in ["10000.1", "-1", "-0.1", "1e309", "-1e309", "NaN", "nan", "Infinity", "-inf", "abc", "1,5", "1 2"] {
        server.try_register("w", "10.0.0.1", "81", &[("weight", bad)]).refused(&["weight"]);
        for method in ["POST", "PUT", "PATCH"] {
            server.on_instance(method, "w", "10.0.0.1", 80, &[("weight", bad)]).refused(&["weight"]);
        }
        let beat = format!(r#"{{"ip":"10.0.0.1","port":82,"weight":{bad}}}"#);
        let answer = server.put("/instance/beat").params(&[("serviceName", "w"), ("beat", &beat)]).send();
        assert_eq!(answer.status, 400, "{beat}: {answer:?}");
    }
    assert_eq!(server.ports("w", &[]), [80]);
    let list = server.get("/instance/list").param("serviceName", "w").send();
    assert!(list.text().contains("\"weight\":2.0"));
    assert!(!list.text().contains("NaN") && !list.text().to_lowercase().contains("inf"), "{}", list.text());
}
