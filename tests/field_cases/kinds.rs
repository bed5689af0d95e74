//! Ephemeral and persistent.

use crate::support::server::Server;

/// Case 16, alibaba/nacos#10920, #7773, hyperf/hyperf#4586: clients that mix the kinds got unclear failures.
#[test]
fn the_other_kind_is_refused_with_the_kind_of_the_service() {
    let server = Server::start();
    server.register("kind", "10.0.0.1", 80, &[("ephemeral", "true")]);
    server.try_register("kind", "10.0.0.1", "81", &[("ephemeral", "false")]).refused(&["ephemeral", "persistent"]);
    server.try_register("kind", "10.0.0.1", "80", &[("ephemeral", "false")]).refused(&["ephemeral", "persistent"]);
    assert_eq!(server.ports("kind", &[]), [80]);
    assert_eq!(server.host("kind", &[])["ephemeral"], true);
}

/// Case 16: until they exist, persistent instances are refused with a message that says so.
#[test]
fn persistent_instances_are_refused_as_not_available_yet() {
    let server = Server::start();
    let answer = server.try_register("later", "10.0.0.1", "80", &[("ephemeral", "false")]);
    assert_eq!(answer.status, 501, "{answer:?}");
    assert!(answer.text().contains("persistent") && answer.text().contains("yet"), "{answer:?}");
    assert!(server.hosts("later", &[]).is_empty());
    server.register("later", "10.0.0.1", 80, &[]);
    server.deregister("later", "10.0.0.1", 80, &[]);
    let answer = server.try_register("later", "10.0.0.1", "80", &[("ephemeral", "false")]);
    assert_eq!(answer.status, 501, "an empty service has no kind: {answer:?}");
}

/// Case 17, alibaba/nacos#6846, #8516: a change of weight or `enabled` turned an instance into one of the other kind.
#[test]
fn an_update_never_changes_the_kind() {
    let server = Server::start();
    server.register("kind", "10.0.0.1", 80, &[]);
    for flag in [&[][..], &[("ephemeral", "true")], &[("ephemeral", "false")]] {
        for method in ["PUT", "PATCH"] {
            server.on_instance(method, "kind", "10.0.0.1", 80, &[flag, &[("weight", "2")]].concat()).ok();
            assert_eq!(server.host("kind", &[])["ephemeral"], true, "{method} {flag:?}");
        }
    }
}
