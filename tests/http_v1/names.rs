//! Namespaces, groups, services and clusters.

use super::support::server::Server;

#[test]
fn a_missing_an_empty_and_the_public_namespace_are_one() {
    let server = Server::start();
    server.register("n", "10.0.0.1", 1, &[]);
    server.register("n", "10.0.0.1", 2, &[("namespaceId", "")]);
    server.register("n", "10.0.0.1", 3, &[("namespaceId", "public")]);
    for namespace in [&[][..], &[("namespaceId", "")], &[("namespaceId", "public")]] {
        assert_eq!(server.ports("n", namespace), [1, 2, 3]);
    }
    for other in ["null", "PUBLIC", "dev_1-x"] {
        server.register("n", "10.0.0.1", 9, &[("namespaceId", other)]);
        assert_eq!(server.ports("n", &[("namespaceId", other)]), [9], "{other}");
    }
    assert_eq!(server.ports("n", &[]), [1, 2, 3]);
}

/// Java and npm send the grouped name, with or without the group; Python and Go the bare name beside the group.
#[test]
fn a_grouped_name_and_a_name_with_its_group_are_one() {
    let server = Server::start();
    server.register("g1@@s", "10.0.0.1", 1, &[]);
    server.register("g1@@s", "10.0.0.1", 2, &[("groupName", "g1")]);
    server.register("s", "10.0.0.1", 3, &[("groupName", "g1")]);
    server.register("g1@@s", "10.0.0.1", 4, &[("groupName", "another")]);
    server.register("DEFAULT_GROUP@@s", "10.0.0.1", 5, &[]);
    for (service, params) in [("g1@@s", &[][..]), ("s", &[("groupName", "g1")]), ("g1@@s", &[("groupName", "x")])] {
        assert_eq!(server.ports(service, params), [1, 2, 3, 4]);
        let list = server.list(service, params);
        assert_eq!((list["name"].as_str(), list["groupName"].as_str()), (Some("g1@@s"), Some("g1")));
        assert_eq!(list["hosts"][0]["serviceName"], "g1@@s");
    }
    for params in [&[][..], &[("groupName", "")], &[("groupName", "DEFAULT_GROUP")]] {
        assert_eq!(server.ports("s", params), [5]);
    }
    assert!(server.hosts("s", &[("groupName", "another")]).is_empty());
    server.deregister("g1@@s", "10.0.0.1", 3, &[]);
    assert_eq!(server.ports("s", &[("groupName", "g1")]), [1, 2, 4]);
}

#[test]
fn a_name_with_half_a_group_is_refused() {
    let server = Server::start();
    let form = "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'";
    let group = "Param 'serviceName' is illegal, groupName can't be empty";
    for (name, text) in [("g@@", form), ("@@s", group)] {
        server.try_register(name, "10.0.0.1", "80", &[]).refused(&[text]);
        server.get("/instance/list").param("serviceName", name).send().refused(&[text]);
        server.put("/instance/beat").param("serviceName", name).send().refused(&[text]);
    }
    server.get("/instance/statuses").param("key", "public##bare").send().refused(&[form]);
    for name in ["g@@a@@b", "@@", "@@@@", "@s", "g@@@s"] {
        server.try_register(name, "10.0.0.1", "80", &[]).refused(&["serviceName"]);
    }
}

#[test]
fn a_name_that_is_too_long_is_refused_with_its_limit() {
    let server = Server::start();
    for (param, limit, word) in [
        ("serviceName", 512, "serviceName"),
        ("groupName", 128, "group"),
        ("namespaceId", 64, "namespaceId/tenant"),
        ("clusterName", 64, "cluster"),
        ("ip", 128, "ip"),
    ] {
        let register = |length: usize| {
            let long = "x".repeat(length);
            let given = [("serviceName", "s"), ("ip", "10.0.0.1"), ("port", "80")].into_iter();
            let params: Vec<_> = given.filter(|(name, _)| *name != param).chain([(param, long.as_str())]).collect();
            server.post("/instance").params(&params).send()
        };
        register(limit).ok();
        let start = format!("Param '{word}' is illegal, the param length should not exceed {limit}.");
        register(limit + 1).refused(&[&start, &(limit + 1).to_string()]);
    }
}

#[test]
fn illegal_characters_are_refused_with_the_parameter() {
    let server = Server::start();
    for (param, word, values) in [
        ("serviceName", "serviceName", &["a b", "a\tb", "a\u{0}b", "\u{670d}\u{52a1}", "a\nb", "\u{7f}"][..]),
        ("groupName", "group", &["a b", "a@b", "a/b", "g#1", "\u{e9}"]),
        ("namespaceId", "namespaceId/tenant", &["a b", "a.b", "a/b", "a##b", "../x"]),
        ("clusterName", "cluster", &["a b", "a,b", "a.b", "a/b", "c1;c2"]),
        ("ip", "ip", &["10.0.0.1 10.0.0.2", "10.0.0.1\u{0}", "\u{5730}\u{5740}"]),
    ] {
        for value in values {
            let given = [("serviceName", "s"), ("ip", "10.0.0.1"), ("port", "80")].into_iter();
            let params: Vec<_> = given.filter(|(name, _)| *name != param).chain([(param, *value)]).collect();
            let text = format!("Param '{word}' is illegal, illegal characters should not appear in the param.");
            server.post("/instance").params(&params).send().refused(&[&text]);
        }
    }
    assert!(server.hosts("s", &[]).is_empty());
}

#[test]
fn clusters_with_an_underscore_are_allowed() {
    let server = Server::start();
    server.register("c", "10.0.0.1", 80, &[("clusterName", "zone_1-a")]);
    assert_eq!(server.ports("c", &[("clusters", "zone_1-a")]), [80]);
}

#[test]
fn the_old_name_of_the_cluster_parameter_counts_if_the_new_one_is_blank() {
    let server = Server::start();
    server.register("c", "10.0.0.1", 1, &[("cluster", "old")]);
    server.register("c", "10.0.0.1", 2, &[("cluster", "old"), ("clusterName", "new")]);
    server.register("c", "10.0.0.1", 3, &[("cluster", "old"), ("clusterName", " ")]);
    server.register("c", "10.0.0.1", 4, &[]);
    assert_eq!(server.ports("c", &[("clusters", "old")]), [1, 3]);
    assert_eq!(server.ports("c", &[("clusters", "new")]), [2]);
    assert_eq!(server.ports("c", &[("clusters", "DEFAULT")]), [4]);
}
