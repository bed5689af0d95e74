//! `/v1/ns/service`, `/catalog`, `/cluster` and `/health`, through the real binary.

mod support;

use serde_json::{Value, json};
use support::{http::Answer, server::Server};

/// Names that have broken other servers, on one path or another.
const ODD_NAMES: [&str; 9] = [
    "{{1}}",
    "<b>",
    "a'b",
    "a\"b\\c",
    "a&b=c+d%20e",
    "providers:com.acme.Foo:1.0.0:",
    "providers:io.acme.Greeter$IGreeter::",
    "consumers:com.acme.Foo:1.0:*",
    "üñí/../x",
];

#[track_caller]
fn is(answer: &Answer, status: u16, text: &str) {
    assert_eq!((answer.status, answer.text()), (status, text));
}

#[track_caller]
fn detail(server: &Server, name: &str) -> Value {
    server.get("/service").param("serviceName", name).send().json()
}

#[test]
fn a_service_is_created_shown_updated_and_deleted() {
    let server = Server::start();
    let named = [("serviceName", "pay"), ("groupName", "g1")];
    let create = server.post("/service").params(&named).params(&[
        ("protectThreshold", "0.3"),
        ("metadata", r#"{"owner":"x","n":1}"#),
        ("selector", r#"{"type":"label","expression":"CONSUMER.label.zone = PROVIDER.label.zone"}"#),
    ]);
    create.send().ok();
    is(&create.send(), 400, "specified service g1@@pay already exists!");
    assert_eq!(
        server.get("/service").params(&named).send().json(),
        json!({
            "name": "pay", "groupName": "g1", "namespaceId": "public", "protectThreshold": 0.3,
            "metadata": {"owner": "x", "n": "1"}, "clusters": [],
            "selector": {
                "type": "label", "contextType": "CMDB", "labels": ["zone"],
                "expression": "CONSUMER.label.zone = PROVIDER.label.zone"
            }
        })
    );
    server.put("/service").params(&named).form(&[("protectThreshold", "0.5")]).send().ok();
    let after = detail(&server, "g1@@pay");
    assert_eq!(after["protectThreshold"], 0.5);
    assert_eq!((&after["metadata"], &after["selector"]["type"]), (&json!({}), &json!("none")));
    server.put("/service").params(&named).params(&[("protectThreshold", "1"), ("metadata", "owner=y")]).send().ok();
    assert_eq!(detail(&server, "g1@@pay")["metadata"], json!({"owner": "y"}));
    server.register("g1@@pay", "10.0.0.1", 80, &[]);
    let delete = server.delete("/service").params(&named);
    is(&delete.send(), 400, "Service g1@@pay is not empty, can't be delete. Please unregister instance first");
    assert_eq!(server.ports("g1@@pay", &[]), [80]);
    server.deregister("g1@@pay", "10.0.0.1", 80, &[]);
    delete.send().ok();
    is(&delete.send(), 400, "service g1@@pay not found!");
    is(&server.get("/service").params(&named).send(), 404, "service g1@@pay is not found!");
    is(&server.put("/service").params(&named).param("protectThreshold", "0").send(), 400, "service g1@@pay not found!");
}

#[test]
fn an_empty_service_of_either_kind_takes_ephemeral_instances() {
    let server = Server::start();
    server.post("/service").param("serviceName", "neutral").send().ok();
    server.register("neutral", "10.0.0.1", 80, &[("ephemeral", "true")]);
    assert_eq!(detail(&server, "neutral")["clusters"][0]["name"], "DEFAULT");
}

#[test]
fn without_a_threshold_nothing_is_protected_and_with_one_it_is() {
    let server = Server::start();
    for (name, threshold, protected) in [("never", None, false), ("half", Some("0.5"), true)] {
        let create = server.post("/service").param("serviceName", name);
        threshold.iter().fold(create, |call, value| call.param("protectThreshold", value)).send().ok();
        server.register(name, "10.0.0.1", 80, &[("healthy", "false")]);
        assert_eq!(server.list(name, &[])["reachProtectionThreshold"], protected);
        assert_eq!(server.host(name, &[])["healthy"], protected);
        let row = catalog(&server, &[("serviceNameParam", name)]);
        assert_eq!(row["serviceList"][0]["triggerFlag"], protected.to_string());
        assert_eq!(row["serviceList"][0]["healthyInstanceCount"], 0);
    }
}

#[test]
fn odd_names_are_kept_to_the_letter_on_every_path() {
    let server = Server::start();
    for name in ODD_NAMES {
        server.post("/service").param("serviceName", name).param("metadata", r#"{"<k>":"a'b&amp;"}"#).send().ok();
        let shown = detail(&server, &format!("DEFAULT_GROUP@@{name}"));
        assert_eq!((&shown["name"], &shown["metadata"]), (&json!(name), &json!({"<k>": "a'b&amp;"})));
        server.register(name, "10.0.0.1", 80, &[]);
        let rows = catalog(&server, &[("serviceNameParam", name)]);
        assert_eq!((&rows["count"], &rows["serviceList"][0]["name"]), (&json!(1), &json!(name)));
        let one = [("serviceName", name), ("clusterName", "DEFAULT")];
        let rows = server.get("/catalog/instances").params(&one).send().json();
        assert_eq!(rows["list"][0]["serviceName"], format!("DEFAULT_GROUP@@{name}"));
        server.deregister(name, "10.0.0.1", 80, &[]);
    }
    let list = server.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "100")]).send().json();
    assert_eq!(list["count"], ODD_NAMES.len());
    for name in ODD_NAMES {
        assert!(list["doms"].as_array().unwrap().contains(&json!(name)), "{name}");
        server.delete("/service").param("serviceName", &format!("DEFAULT_GROUP@@{name}")).send().ok();
    }
    let list = server.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "100")]).send().json();
    assert_eq!(list, json!({"doms": [], "count": 0}));
}

#[test]
fn bad_services_are_refused_and_not_created() {
    let server = Server::start();
    is(&server.post("/service").send(), 400, "Parameter 'serviceName' is missing");
    server.post("/service").param("serviceName", " ").send().refused(&["Param 'serviceName' is required."]);
    for (more, part) in [
        (("serviceName", "a b"), "serviceName"),
        (("groupName", "a b"), "group"),
        (("namespaceId", "a b"), "namespaceId"),
        (("protectThreshold", "abc"), "Param 'protectThreshold' is illegal, For input string: \"abc\""),
        (("protectThreshold", "1.1"), "Param 'protectThreshold' is illegal"),
        (("protectThreshold", "-0.1"), "Param 'protectThreshold' is illegal"),
        (("protectThreshold", "NaN"), "Param 'protectThreshold' is illegal"),
        (("protectThreshold", "1e309"), "Param 'protectThreshold' is illegal"),
        (("metadata", r#"{"a", "b"}"#), "metadata format incorrect"),
        (("selector", "{"), "Param 'selector' is illegal"),
        (("selector", r#"{"type":"other"}"#), "not match any type of selector!"),
        (("selector", r#"{"type":"label","expression":"x"}"#), "parse expression failed!"),
    ] {
        let call = if more.0 == "serviceName" {
            server.post("/service")
        } else {
            server.post("/service").param("serviceName", "bad")
        };
        call.params(&[more]).send().refused(&[part]);
    }
    is(&server.put("/service").param("serviceName", "bad").send(), 400, "Param 'protectThreshold' is required.");
    let large = format!("k={}", "v".repeat(65_536));
    server.post("/service").form(&[("serviceName", "bad"), ("metadata", &large)]).send().refused(&["65537", "65536"]);
    assert_eq!(server.ns("PATCH", "/service").send().status, 501);
    let list = server.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "10")]).send().json();
    assert_eq!(list["count"], 0);
}

#[test]
fn services_are_listed_by_group_in_order_and_in_pages() {
    let server = Server::start();
    for name in ["b", "a", "g2@@c", "d", "g2@@a"] {
        server.register(name, "10.0.0.1", 80, &[("metadata", "zone=z")]);
    }
    server.register("only", "10.0.0.1", 80, &[("namespaceId", "dev")]);
    let list = |more: &[(&str, &str)]| server.get("/service/list").params(more).send();
    for (number, size, group, doms, count) in [
        ("1", "10", "", json!(["a", "b", "d"]), 3),
        ("1", "2", "DEFAULT_GROUP", json!(["a", "b"]), 3),
        ("2", "2", "", json!(["d"]), 3),
        ("3", "2", "", json!([]), 3),
        ("0", "2", "", json!(["a", "b"]), 3),
        ("-1", "1", "", json!(["a"]), 3),
        ("0", "2147483647", "g2", json!(["a", "c"]), 2),
        ("2147483647", "2147483647", "", json!([]), 3),
        ("9223372036854775807", "9223372036854775807", "", json!([]), 3),
        ("1", "10", "none", json!([]), 0),
        ("1", "10", "*", json!(["DEFAULT_GROUP@@a", "DEFAULT_GROUP@@b", "DEFAULT_GROUP@@d", "g2@@a", "g2@@c"]), 5),
    ] {
        let answer = list(&[("pageNo", number), ("pageSize", size), ("groupName", group)]).json();
        assert_eq!(answer, json!({"doms": doms, "count": count}), "{number} {size} {group}");
    }
    let dev = list(&[("pageNo", "1"), ("pageSize", "10"), ("namespaceId", "dev")]).json();
    assert_eq!(dev, json!({"doms": ["only"], "count": 1}));
    is(&list(&[("pageSize", "10")]), 400, "Param 'pageNo' is required.");
    is(&list(&[("pageNo", "1")]), 400, "Param 'pageSize' is required.");
    for (number, size, part) in
        [("1", "0", "pageSize"), ("1", "-1", "pageSize"), ("x", "1", "pageNo"), ("1", "1.5", "pageSize")]
    {
        list(&[("pageNo", number), ("pageSize", size)]).refused(&[part]);
    }
}

#[test]
fn a_list_can_be_selected_by_metadata() {
    let server = Server::start();
    server.register("a", "10.0.0.1", 80, &[("metadata", "zone=x")]);
    server.register("b", "10.0.0.1", 80, &[("metadata", "zone=y")]);
    server.post("/service").params(&[("serviceName", "c"), ("metadata", "team=blue")]).send().ok();
    let list = |selector: &str| {
        server.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "10"), ("selector", selector)]).send()
    };
    let label = |expression: &str| json!({"type": "label", "expression": expression}).to_string();
    for (selector, doms) in [
        (r#"{"type":"none"}"#.to_owned(), json!(["a", "b", "c"])),
        (label("INSTANCE.metadata.zone = 'x'"), json!(["a"])),
        (label("SERVICE.metadata.team='blue'"), json!(["c"])),
        (label("SERVICE.metadata.team='red'"), json!([])),
    ] {
        assert_eq!(list(&selector).json()["doms"], doms, "{selector}");
    }
    list(&label("CONSUMER.label.a = PROVIDER.label.a")).refused(&["parse expression failed!"]);
    list("nonsense").refused(&["Param 'selector' is illegal"]);
}

#[test]
fn names_of_all_namespaces_are_found_by_expression() {
    let server = Server::start();
    server.register("demo", "10.0.0.1", 80, &[]);
    server.register("g2@@order", "10.0.0.1", 80, &[]);
    server.register("decoy", "10.0.0.1", 80, &[("namespaceId", "dev")]);
    let names = |more: &[(&str, &str)]| server.get("/service/names").params(more).send().json();
    assert_eq!(names(&[]), json!({"services": {"public": ["demo", "order"], "dev": ["decoy"]}, "count": 3}));
    assert_eq!(names(&[("expr", "de.o")]), json!({"services": {"public": ["demo"], "dev": ["decoy"]}, "count": 2}));
    assert_eq!(names(&[("expr", "^g2@@")]), json!({"services": {"public": ["order"]}, "count": 1}));
    assert_eq!(names(&[("namespaceId", "dev")]), json!({"services": {"dev": ["decoy"]}, "count": 1}));
    assert_eq!(names(&[("namespaceId", "nope"), ("expr", "((")]), json!({"services": {}, "count": 0}));
    let types = server.get("/service/selector/types").send().json();
    assert_eq!(types, json!({"code": 200, "message": null, "data": ["none", "label"]}));
}

fn catalog(server: &Server, more: &[(&str, &str)]) -> Value {
    server.get("/catalog/services").params(more).send().json()
}

#[test]
fn the_catalog_shows_services_in_both_shapes() {
    let server = Server::start();
    server.register("demo", "10.0.0.7", 8080, &[("metadata", "zone=a"), ("weight", "2")]);
    server.register("demo", "10.0.0.8", 8080, &[("healthy", "false"), ("clusterName", "c2"), ("enabled", "false")]);
    server.post("/service").param("serviceName", "empty").send().ok();
    let demo = json!({
        "name": "demo", "groupName": "DEFAULT_GROUP", "clusterCount": 2, "ipCount": 2, "healthyInstanceCount": 1,
        "triggerFlag": "false"
    });
    let empty = json!({
        "name": "empty", "groupName": "DEFAULT_GROUP", "clusterCount": 0, "ipCount": 0, "healthyInstanceCount": 0,
        "triggerFlag": "false"
    });
    assert_eq!(catalog(&server, &[("namespaceId", "")]), json!({"serviceList": [demo, empty], "count": 2}));
    for more in [
        ("hasIpCount", "true"),
        ("instance", "10.0.0.7"),
        ("instance", "10.0.0.8:8080"),
        ("serviceNameParam", "d.m"),
        ("serviceNameParam", "em"),
        ("groupNameParam", "DEFAULT"),
    ] {
        let found = catalog(&server, &[("withInstances", "false"), more]);
        let count = if matches!(more.1, "em" | "DEFAULT") { 2 } else { 1 };
        assert_eq!((&found["count"], &found["serviceList"][0]), (&json!(count), &demo), "{more:?}");
    }
    for more in
        [("instance", "10.0.0.7:80"), ("instance", "10.0.0"), ("serviceNameParam", "DEMO"), ("groupNameParam", "g")]
    {
        assert_eq!(catalog(&server, &[more]), json!({"serviceList": [], "count": 0}), "{more:?}");
    }
    let whole = catalog(&server, &[("withInstances", "true"), ("pageNo", "1"), ("pageSize", "1")]);
    assert_eq!(
        whole,
        json!([{
            "serviceName": "demo", "groupName": "DEFAULT_GROUP", "metadata": {}, "clusterMap": {
                "DEFAULT": {"hosts": [{
                    "ip": "10.0.0.7", "port": 8080, "valid": true, "healthy": true, "weight": 2.0, "enabled": true,
                    "metadata": {"zone": "a"}
                }]},
                "c2": {"hosts": [{
                    "ip": "10.0.0.8", "port": 8080, "valid": false, "healthy": false, "weight": 1.0, "enabled": false,
                    "metadata": {}
                }]}
            }
        }])
    );
}

#[test]
fn catalog_pages_never_overflow() {
    let server = Server::start();
    for number in 0..12 {
        server.register(&format!("s{number:02}"), "10.0.0.1", 80, &[]);
    }
    for (number, size, rows) in [
        (None, None, 10),
        (Some("2"), None, 2),
        (Some("0"), Some("2147483647"), 12),
        (Some("-1"), Some("5"), 5),
        (Some("2147483647"), Some("2147483647"), 0),
        (Some("3"), Some("5"), 2),
    ] {
        let pages = [("pageNo", number), ("pageSize", size)];
        let params: Vec<_> = pages.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        let found = catalog(&server, &params);
        assert_eq!((found["serviceList"].as_array().unwrap().len(), &found["count"]), (rows, &json!(12)), "{params:?}");
    }
    for bad in [("pageSize", "0"), ("pageNo", "x"), ("pageSize", "99999999999999999999"), ("withInstances", "maybe")] {
        server.get("/catalog/services").params(&[bad]).send().refused(&[bad.0]);
    }
}

#[test]
fn catalog_instances_are_shown_as_they_are() {
    let server = Server::start();
    server.register("demo", "10.0.0.7", 8080, &[("metadata", "zone=a"), ("weight", "2"), ("app", "shop")]);
    server.register("demo", "10.0.0.8", 8080, &[("healthy", "false"), ("enabled", "false")]);
    server.update("demo", "10.0.0.7", 8080, &[("weight", "0")]);
    let page = [("serviceName", "demo"), ("clusterName", "DEFAULT"), ("pageNo", "1"), ("pageSize", "10")];
    let mut answer = server.get("/catalog/instances").params(&page).send().json();
    assert_eq!(answer["count"], 2);
    let heard = answer["list"][0]["lastBeat"].take().as_u64().unwrap();
    assert!(heard > 1_600_000_000_000, "{heard}");
    let age = answer["list"][0]["overlay"]["ageMillis"].take().as_u64().unwrap();
    assert!(age < 60_000, "{age}");
    assert_eq!(
        answer["list"][0],
        json!({
            "instanceId": "10.0.0.7#8080#DEFAULT#DEFAULT_GROUP@@demo", "ip": "10.0.0.7", "port": 8080, "weight": 0.0,
            "healthy": true, "valid": true, "enabled": true, "ephemeral": true, "clusterName": "DEFAULT",
            "serviceName": "DEFAULT_GROUP@@demo", "metadata": {"zone": "a"}, "lastBeat": null, "marked": false,
            "app": "shop", "instanceHeartBeatInterval": 5000, "instanceHeartBeatTimeOut": 15000,
            "ipDeleteTimeout": 30000, "overlay": {
                "weight": 0.0, "enabled": null, "metadata": {}, "origin": "http 127.0.0.1", "ageMillis": null
            }
        })
    );
    assert_eq!((&answer["list"][1]["healthy"], &answer["list"][1]["enabled"]), (&json!(false), &json!(false)));
    let second = [("serviceName", "demo"), ("clusterName", "DEFAULT"), ("pageNo", "2"), ("pageSize", "1")];
    let answer = server.get("/catalog/instances").params(&second).send().json();
    assert_eq!((&answer["list"][0]["ip"], &answer["count"]), (&json!("10.0.0.8"), &json!(2)));
    let get = |more: &[(&str, &str)]| server.get("/catalog/instances").params(more).send();
    is(&get(&[("serviceName", "no"), ("clusterName", "c")]), 404, "service DEFAULT_GROUP@@no is not found!");
    is(&get(&[("serviceName", "demo"), ("clusterName", "c")]), 404, "cluster c is not found!");
    is(&get(&[("clusterName", "c")]), 400, "Parameter 'serviceName' is missing");
    is(&get(&[("serviceName", "demo")]), 400, "Parameter 'clusterName' is missing");
}

#[test]
fn a_cluster_is_set_up_and_its_health_is_an_operators_to_set() {
    let server = Server::start();
    server.register("demo", "10.0.0.7", 8080, &[]);
    let set = [("serviceName", "demo"), ("ip", "10.0.0.7"), ("port", "8080"), ("healthy", "false")];
    is(
        &server.put("/health/instance").params(&set).send(),
        400,
        "health check is still working, service: DEFAULT_GROUP@@demo, cluster: DEFAULT",
    );
    let cluster =
        [("serviceName", "demo"), ("clusterName", "DEFAULT"), ("checkPort", "8081"), ("useInstancePort4Check", "no")];
    let update = server.put("/cluster").params(&cluster);
    update.clone().params(&[("healthChecker", r#"{"type":"NONE"}"#), ("metadata", "a=b")]).send().ok();
    let shown = server.get("/catalog/service").param("serviceName", "demo").send().json();
    assert_eq!(shown["service"]["name"], "demo");
    assert_eq!(shown["service"]["selector"]["type"], "none");
    let shown = &shown["clusters"][0];
    assert_eq!(
        (&shown["healthChecker"], &shown["defaultCheckPort"], &shown["useIPPort4Check"], &shown["metadata"]),
        (&json!({"type": "NONE"}), &json!(8081), &json!(false), &json!({"a": "b"}))
    );
    for (path, parameter, healthy) in
        [("/health/instance", "healthy", false), ("/health", "valid", true), ("/health", "healthy", false)]
    {
        let one = [
            ("serviceName", "demo"),
            ("ip", "10.0.0.7"),
            ("port", "8080"),
            (parameter, if healthy { "true" } else { "false" }),
        ];
        server.put(path).params(&one).send().ok();
        assert_eq!(server.host("demo", &[])["healthy"], healthy, "{path} {parameter}");
    }
    let unknown = [("serviceName", "demo"), ("ip", "10.0.0.9"), ("port", "8080"), ("healthy", "false")];
    server.put("/health").params(&unknown).send().ok();
    is(&server.put("/health").params(&unknown[..3]).send(), 400, "Param 'healthy' is required.");
    is(&server.put("/health").params(&unknown[..2]).send(), 400, "Param 'port' is required.");

    update.clone().send().refused(&["Param 'healthChecker' is required."]);
    update.clone().param("healthChecker", "TCP").send().refused(&["Param 'healthChecker' is illegal"]);
    for bad in
        [("checkPort", "65536"), ("checkPort", "x"), ("clusterName", "a b"), ("useInstancePort4Check", "perhaps")]
    {
        let call = server.put("/cluster").params(&[bad]).params(&cluster).param("healthChecker", r#"{"type":"TCP"}"#);
        call.send().refused(&[if bad.0 == "clusterName" { "cluster" } else { bad.0 }]);
    }
    let nowhere = server.put("/cluster").param("serviceName", "no").params(&cluster[1..]);
    is(&nowhere.param("healthChecker", "{}").send(), 400, "service not found:DEFAULT_GROUP@@no");
    is(
        &server.get("/catalog/service").param("serviceName", "no").send(),
        404,
        "service DEFAULT_GROUP@@no is not found!",
    );
}

#[test]
fn checkers_and_the_greeting_are_shown() {
    let server = Server::start();
    let checkers = server.get("/health/checkers").send().json();
    assert_eq!(checkers["HTTP"], json!({"type": "HTTP", "path": "", "headers": "", "expectedResponseCode": 200}));
    assert_eq!(checkers["MYSQL"], json!({"type": "MYSQL", "user": null, "pwd": null, "cmd": null}));
    let port = server.http().port();
    assert_eq!(
        server.get("/health/server").send().json(),
        json!({"msg": format!("Hello! I am Nacos-Naming and healthy! total services: 0, local port:{port}")})
    );
}

#[test]
fn a_secret_of_a_checker_is_never_shown() {
    let server = Server::start();
    server.register("db", "10.0.0.7", 3306, &[]);
    let cluster = [
        ("serviceName", "db"),
        ("clusterName", "DEFAULT"),
        ("checkPort", "3306"),
        ("useInstancePort4Check", "true"),
        ("healthChecker", r#"{"type":"MYSQL","user":"u","pwd":"open-sesame","cmd":"select 1"}"#),
    ];
    server.put("/cluster").params(&cluster).send().ok();
    for path in ["/service", "/catalog/service"] {
        let answer = server.get(path).param("serviceName", "db").send();
        assert!(answer.text().contains("select 1") && !answer.text().contains("sesame"), "{path}: {answer:?}");
    }
    assert!(!server.log().contains("sesame"));
}

#[test]
fn subscribers_are_listed_by_parts_of_names_and_in_pages() {
    let server = Server::start();
    let subscribe = |port: &str, more: &[(&str, &str)]| {
        let list = server.get("/instance/list").params(&[("udpPort", port), ("clientIP", "127.0.0.1")]).params(more);
        list.header("User-Agent", "Nacos-Java-Client:v1.4.6").send().json();
    };
    subscribe("40001", &[("serviceName", "demo"), ("clusters", "c1,c2"), ("app", "shop")]);
    subscribe("40002", &[("serviceName", "g2@@demo-two")]);
    subscribe("40003", &[("serviceName", "demo"), ("namespaceId", "dev")]);
    subscribe("0", &[("serviceName", "demo")]);
    let get = |more: &[(&str, &str)]| server.get("/service/subscribers").params(more).send();
    assert_eq!(
        get(&[("serviceName", "demo"), ("pageNo", "1"), ("pageSize", "10")]).json(),
        json!({
            "subscribers": [{
                "addrStr": "127.0.0.1:40001", "ip": "127.0.0.1", "port": 40001, "agent": "Nacos-Java-Client:v1.4.6",
                "app": "shop", "namespaceId": "public", "serviceName": "DEFAULT_GROUP@@demo", "cluster": "c1,c2"
            }],
            "count": 1
        })
    );
    let two = get(&[("serviceName", "mo-t"), ("groupName", "2")]).json();
    assert_eq!((&two["count"], &two["subscribers"][0]["app"]), (&json!(1), &json!("unknown")));
    let dev = get(&[("serviceName", "demo"), ("namespaceId", "dev"), ("aggregation", "false")]).json();
    assert_eq!(dev["subscribers"][0]["port"], 40_003);
    assert_eq!(get(&[("serviceName", "demo"), ("pageNo", "2")]).json(), json!({"subscribers": [], "count": 1}));
    assert_eq!(get(&[("serviceName", "no")]).json(), json!({"subscribers": [], "count": 0}));
    is(&get(&[]), 400, "Param 'serviceName' is required.");
    get(&[("serviceName", "demo"), ("pageSize", "0")]).refused(&["pageSize"]);
}
