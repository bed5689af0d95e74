//! What a reader asked for is what it gets.

use std::time::Duration;

use crate::support::{server::Server, wait::wait_until};

/// Case 35, alibaba/nacos PR#9019, r-nacos#210, nacos-sdk-rust#85, nacos-sdk-go#761: who asked for some clusters got all.
#[test]
fn only_the_clusters_that_were_asked_for_are_listed() {
    let server = Server::start();
    for (port, cluster) in [(1, "c1"), (2, "c2"), (3, "DEFAULT")] {
        server.register("cl", "10.0.0.1", port, &[("clusterName", cluster)]);
    }
    for (clusters, ports) in [
        ("", &[1, 2, 3][..]),
        ("c1", &[1]),
        ("c1,c2", &[1, 2]),
        ("c2,c1", &[1, 2]),
        ("c1, c2", &[1, 2]),
        ("c1,none", &[1]),
        ("none", &[]),
        ("none,also-none", &[]),
        ("not a name", &[]),
        ("C1", &[]),
        ("c", &[]),
    ] {
        let list = server.list("cl", &[("clusters", clusters)]);
        assert_eq!(list["clusters"], clusters, "echoed to the letter");
        assert_eq!(server.ports("cl", &[("clusters", clusters)]), ports, "{clusters}");
    }
    server.register("cl", "10.0.0.1", 4, &[("clusterName", "c2")]);
    assert_eq!(server.ports("cl", &[("clusters", "c1")]), [1]);
}

/// Case 37, alibaba/nacos PR#8629, #322: a first answer held disabled instances that later ones left out.
#[test]
fn a_disabled_instance_is_in_no_answer_to_clients() {
    let server = Server::start();
    server.register("dis", "10.0.0.1", 1, &[]);
    server.register("dis", "10.0.0.1", 2, &[]);
    server.update("dis", "10.0.0.1", 2, &[("enabled", "false")]);
    for params in [&[][..], &[("clusters", "DEFAULT")], &[("healthyOnly", "true")], &[("healthyOnly", "false")]] {
        assert_eq!(server.ports("dis", params), [1], "{params:?}");
    }
    assert_eq!(server.on_instance("GET", "dis", "10.0.0.1", 2, &[]).json()["enabled"], false, "operators see it");
    server.update("dis", "10.0.0.1", 2, &[("enabled", "true")]);
    wait_until(Duration::from_secs(1), || server.ports("dis", &[]), |ports| *ports == [1, 2]);
}

#[test]
fn a_disabled_instance_is_in_the_catalog() {
    let server = Server::start();
    server.register("dis", "10.0.0.1", 1, &[("enabled", "false"), ("healthy", "false")]);
    let place = [("serviceName", "dis"), ("clusterName", "DEFAULT"), ("pageNo", "1"), ("pageSize", "10")];
    let catalog = server.get("/catalog/instances").params(&place).send().json();
    assert_eq!(catalog["count"], 1);
    assert_eq!(catalog["list"][0]["enabled"], false);
    assert_eq!(catalog["list"][0]["healthy"], false);
}
