//! Names that real programs make.

use crate::support::server::Server;

/// Case 8, alibaba/nacos#5119, #2555, apache/dubbo#7129, #10393: RPC frameworks make names with `:`, `*`, `$` and empty
/// segments; they were refused, or lost their last `::`.
const RPC_NAMES: [&str; 6] = [
    "providers:com.acme.Foo:1.0.0:",
    "providers:com.acme.Foo::",
    "providers:com.acme.Foo:",
    "providers:com.acme.Foo",
    "consumers:com.acme.Foo:1.0:*",
    "providers:io.acme.Greeter$IGreeter::",
];

#[test]
fn names_of_rpc_frameworks_are_kept_apart_and_to_the_letter() {
    let server = Server::start();
    for (port, name) in (1_u16..).zip(RPC_NAMES) {
        server.register(name, "10.0.0.1", port, &[]);
    }
    for (port, name) in (1_u64..).zip(RPC_NAMES) {
        let list = server.list(name, &[]);
        assert_eq!(list["name"], format!("DEFAULT_GROUP@@{name}"));
        assert_eq!(server.ports(name, &[]), [port], "{name}");
        assert_eq!(server.ports(&format!("DEFAULT_GROUP@@{name}"), &[]), [port], "{name}");
    }
}

#[test]
fn names_of_rpc_frameworks_are_listed_to_the_letter() {
    let server = Server::start();
    for name in RPC_NAMES {
        server.register(name, "10.0.0.1", 80, &[]);
    }
    let list = server.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "100")]).send().json();
    let mut listed: Vec<_> = list["doms"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    listed.sort_unstable();
    let mut expected = RPC_NAMES.to_vec();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    assert_eq!(list["count"], RPC_NAMES.len());
}

const ODD_NAMES: [&str; 5] = ["{{1}}", "<b>", "a'b", "a\"b\\c", "a/b?c=d&e#f%2F+g"];

/// Case 10, alibaba/nacos#13267, #11951: a name was escaped on one path and not on the other.
#[test]
fn odd_names_are_found_and_removed_by_the_name_under_which_they_came() {
    let server = Server::start();
    for name in ODD_NAMES {
        server.register(name, "10.0.0.1", 80, &[]);
        assert_eq!(server.list(name, &[])["name"], format!("DEFAULT_GROUP@@{name}"));
        assert_eq!(server.host(name, &[])["serviceName"], format!("DEFAULT_GROUP@@{name}"));
        server.deregister(&format!("DEFAULT_GROUP@@{name}"), "10.0.0.1", 80, &[]);
        assert!(server.hosts(name, &[]).is_empty(), "{name}");
    }
}

#[test]
fn a_service_with_an_odd_name_can_be_created_read_and_deleted() {
    let server = Server::start();
    for name in ODD_NAMES {
        server.post("/service").param("serviceName", name).send().ok();
        let grouped = format!("DEFAULT_GROUP@@{name}");
        assert_eq!(server.get("/service").param("serviceName", &grouped).send().json()["name"], name);
        server.delete("/service").param("serviceName", &grouped).send().ok();
        assert_eq!(server.get("/service").param("serviceName", name).send().status, 404);
    }
    let list = server.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "100")]).send().json();
    assert_eq!(list["count"], 0);
}

/// Case 38, alibaba/nacos#6535, #1367, #6703: asking for what does not exist invented a record, or failed.
#[test]
fn a_list_of_an_unknown_service_is_empty_and_invents_nothing() {
    let server = Server::start();
    for params in [&[][..], &[("udpPort", "50000"), ("clientIP", "127.0.0.1")]] {
        let list = server.list("nope", params);
        assert_eq!(list["hosts"].as_array().map(Vec::len), Some(0));
        assert_eq!(list["name"], "DEFAULT_GROUP@@nope");
    }
    server.on_instance("PUT", "nope", "10.0.0.1", 80, &[]).refused(&["service not found"]);
    server.register("nope", "10.0.0.1", 80, &[]);
    assert_eq!(server.ports("nope", &[]), [80]);
}

#[test]
fn detail_and_removal_of_an_unknown_service_fail_and_invent_nothing() {
    let server = Server::start();
    server.list("nope", &[("udpPort", "50000"), ("clientIP", "127.0.0.1")]);
    let detail = server.get("/service").param("serviceName", "nope").send();
    assert_eq!((detail.status, detail.text()), (404, "service DEFAULT_GROUP@@nope is not found!"));
    let removal = server.delete("/service").param("serviceName", "nope").send();
    removal.refused(&["service DEFAULT_GROUP@@nope not found!"]);
    let list = server.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "10")]).send().json();
    assert_eq!(list, serde_json::json!({"count": 0, "doms": []}));
}
