//! Values that no parameter may have, one by one over every route.

use super::{
    routes::{INSTANCE_ROUTES, METHODS, PARAMETERS, PATHS, Route},
    support::{
        http::{Answer, Call},
        server::Server,
    },
};

/// Values that are wrong for a parameter, and the word by which a refusal must name it.
fn bad(name: &str) -> (&'static str, Vec<String>) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let with_long = |length: usize, more: &[&str]| [texts(more), vec!["x".repeat(length)]].concat();
    match name {
        "serviceName" => ("serviceName", with_long(513, &["a b", "a\u{0}b", "@a", "@@", "g@@", "@@s", "\u{4e00}"])),
        "key" => ("serviceName", texts(&["bare", "##", "a##b", "@@", "g@@", "@@s", "public##g@@a b"])),
        "groupName" => ("group", with_long(129, &["a b", "a@b", "\u{0}", "\u{202e}"])),
        "namespaceId" => ("namespaceId", with_long(65, &["a b", "../..", "\u{0}", "a##b"])),
        "clusterName" | "cluster" => ("cluster", with_long(65, &["a b", "a,b", "\u{0}"])),
        "ip" => ("ip", with_long(129, &["999.1.1.1", "1.2.3", "1", "a b", "10.0.0.1\u{0}", "..."])),
        "port" => (
            "port",
            texts(&["-1", "65536", "70000", "abc", "1.5", "0x50", "NaN", "99999999999999999999999", "80 80", "8\u{0}"]),
        ),
        "weight" => {
            ("weight", texts(&["NaN", "nan", "inf", "-inf", "Infinity", "-1", "10000.1", "1e309", "abc", "1,5", "0x1"]))
        }
        "enabled" | "enable" | "healthy" | "ephemeral" | "healthyOnly" => {
            let word = PARAMETERS.iter().find(|known| **known == name).unwrap();
            (*word, with_long(100_000, &["ture", "2", "-1", "\u{0}", "nul"]))
        }
        "metadata" => (
            "metadata",
            vec![
                "{".into(),
                "abc".into(),
                "=v".into(),
                r#"{"version", "stable"}"#.into(),
                r#"{"a":{"b":1}}"#.into(),
                r#"{"a":[1]}"#.into(),
                "[1,2]".into(),
                r#"{"a":"\ud800"}"#.into(),
                r#"{"a":NaN}"#.into(),
                "[".repeat(100_000),
                format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000)),
            ],
        ),
        "beat" => (
            "beat",
            vec![
                "{".into(),
                "[]".into(),
                "null".into(),
                "\u{0}".into(),
                r#"{"ip":{},"port":80}"#.into(),
                r#"{"ip":"10.0.0.1","port":[]}"#.into(),
                r#"{"ip":"10.0.0.1","port":1e400}"#.into(),
                "{\"a\":".repeat(100_000),
                "[".repeat(100_000),
            ],
        ),
        "instances" => (
            "instances",
            vec![
                "{".into(),
                "{}".into(),
                "[1]".into(),
                "[{}]".into(),
                r#"[{"ip":1,"port":1}]"#.into(),
                "[".repeat(100_000),
            ],
        ),
        other => panic!("no bad values of {other}"),
    }
}

fn with(server: &Server, route: &Route, name: &str, value: Option<&str>) -> Call {
    let others = route.valid.iter().filter(|(other, _)| *other != name);
    let params: Vec<_> = others.copied().chain(value.map(|value| (name, value))).collect();
    let call = server.ns(route.method, route.path);
    // What is too long for a request line goes into a form.
    if value.is_some_and(|value| value.len() > 4_096) { call.form(&params) } else { call.params(&params) }
}

#[track_caller]
fn refused(answer: &Answer, word: &str, call: &Call) {
    let shown: String = format!("{call:?}").chars().take(500).collect();
    assert_eq!(answer.status, 400, "{shown}: {answer:?}");
    assert!(answer.text().to_lowercase().contains(&word.to_lowercase()), "{word} is not named: {shown}: {answer:?}");
    assert!(answer.body.len() < 2_000, "the refusal repeats too much of the request: {shown}");
}

#[test]
fn every_bad_value_of_every_parameter_is_refused_by_name_and_nothing_is_stored() {
    let server = Server::start();
    server.register("bystander", "10.0.0.1", 80, &[]);
    let mut connection = server.connect();
    for route in INSTANCE_ROUTES {
        for name in route.valid.iter().map(|(name, _)| *name).chain(route.optional.iter().copied()) {
            let (word, values) = bad(name);
            for value in &values {
                let call = with(&server, route, name, Some(value));
                refused(&connection.call(&call), word, &call);
            }
        }
        for (name, _) in route.valid.iter().filter(|(name, _)| *name != "instances") {
            for value in [None, Some(""), Some(" \t ")] {
                let call = with(&server, route, name, value);
                refused(&connection.call(&call), &format!("Param '{name}' is required."), &call);
            }
        }
    }
    assert!(server.hosts("victim", &[]).is_empty());
    assert_eq!(server.on_instance("PUT", "victim", "10.0.0.1", 80, &[]).status, 400, "the service must not exist");
    assert_eq!(server.ports("bystander", &[]), [80]);
}

#[test]
fn broken_encodings_are_refused_with_the_place_where_they_stand() {
    let server = Server::start();
    let mut connection = server.connect();
    for route in INSTANCE_ROUTES {
        for (text, word) in [
            ("x=%", "query string"),
            ("x=%2", "query string"),
            ("x=%zz", "query string"),
            ("%=x", "query string"),
            ("x=%ff%fe", "query string"),
            ("x=%c3%28", "query string"),
            ("x=%ed%a0%80", "query string"),
            ("%ff=x", "query string"),
        ] {
            let call = server.ns(route.method, route.path).params(route.valid).raw_query(text);
            refused(&connection.call(&call), word, &call);
        }
        for body in [&b"x=\xff"[..], b"x=%ff", b"\xc3\x28=1", b"\xff", b"a=1&\xed\xa0\x80"] {
            let call = server.ns(route.method, route.path).params(route.valid).raw_form(body);
            refused(&connection.call(&call), "form", &call);
        }
        let many: Vec<_> = (0..10_000).map(|at| format!("p{at}=")).collect();
        let call = server.ns(route.method, route.path).params(route.valid).raw_form(many.join("&").as_bytes());
        refused(&connection.call(&call), "256 parameters", &call);
        let call = server.ns(route.method, route.path).params(route.valid).raw_query(&many[..1_000].join("&"));
        refused(&connection.call(&call), "256 parameters", &call);
    }
    assert!(server.hosts("victim", &[]).is_empty());
}

#[test]
fn too_much_metadata_is_refused_with_limit_and_size() {
    let server = Server::start();
    server.register("fat", "10.0.0.1", 80, &[]);
    let big = format!("k={}", "v".repeat(65_536));
    for (method, path, name, value) in [
        ("POST", "/instance", "metadata", big.clone()),
        ("PUT", "/instance", "metadata", big.clone()),
        ("PATCH", "/instance", "metadata", big.clone()),
        ("PUT", "/instance/metadata/batch", "metadata", big.clone()),
        (
            "PUT",
            "/instance/beat",
            "beat",
            format!(r#"{{"ip":"10.0.0.9","port":1,"metadata":{{"k":"{}"}}}}"#, "v".repeat(65_536)),
        ),
    ] {
        let place = [("serviceName", "fat"), ("ip", "10.0.0.1"), ("port", "80"), ("consistencyType", "ephemeral")];
        let answer = server.ns(method, path).params(&place).form(&[(name, value.as_str())]).send();
        answer.refused(&["etadata", "65536", "65537"]);
    }
    assert_eq!(server.host("fat", &[])["metadata"], serde_json::json!({}));
}

#[test]
fn a_body_over_the_limit_is_413_even_if_it_has_been_sent_whole() {
    let server = Server::with(&["http.max_body_bytes=4096"]);
    for size in [4_097, 100_000, 1_500_000] {
        let body = vec![b'a'; size];
        for method in ["POST", "PUT", "DELETE", "PATCH", "GET"] {
            let answer = server.ns(method, "/instance").raw_form(&body).send();
            assert_eq!(answer.status, 413, "{answer:?}");
            assert!(answer.text().contains("4096") && answer.text().contains("http.max_body_bytes"), "{answer:?}");
        }
    }
    let fits = format!("serviceName=fits&ip=10.0.0.1&port=80&pad={}", "a".repeat(4_000));
    server.post("/instance").raw_form(fits.as_bytes()).send().ok();
}

#[test]
fn a_list_of_very_many_targets_is_answered() {
    let server = Server::start();
    server.register("b", "10.0.0.1", 80, &[]);
    let one = r#"{"ip":"10.0.0.1","port":80}"#;
    let many = format!("[{}]", vec![one; 5_000].join(","));
    let params = [("serviceName", "b"), ("metadata", "k=v"), ("instances", many.as_str())];
    let answer = server.put("/instance/metadata/batch").form(&params).send();
    assert!(matches!(answer.status, 200 | 400), "{}", answer.status);
}

#[test]
fn a_list_of_very_many_clusters_is_refused() {
    let server = Server::start();
    server.register("c", "10.0.0.1", 80, &[]);
    let names = |count: usize| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>().join(",");
    let list =
        |clusters: &str| server.get("/instance/list").form(&[("serviceName", "c"), ("clusters", clusters)]).send();
    list(&names(257)).refused(&["clusters", "257", "256"]);
    list(&names(50_000)).refused(&["clusters", "50000", "256"]);
    list(&names(256)).json();
    let same = format!("{}DEFAULT", "DEFAULT,".repeat(1_000));
    assert_eq!(list(&same).json()["clusters"], same, "what is named twice counts once");
    list(&"DEFAULT,".repeat(100_000)).refused(&["clusters", "800000", "16384"]);
}

/// Knows nothing of what is behind a path: whatever comes, the answer is no 500, and the server goes on.
#[test]
fn no_path_with_any_method_and_any_junk_is_a_fault_of_the_server() {
    let server = Server::start();
    let junk = [
        "",
        "\u{0}",
        "-1",
        "NaN",
        "1e309",
        "9223372036854775808",
        "2147483647",
        "{",
        "{\"type\":\"label\",\"expression\":\"((((\"}",
        "(",
        "a@@b@@c",
        "%",
        "\u{1F600}",
        "../../etc/passwd",
        "'; DROP TABLE x; --",
    ];
    let mut connection = server.connect();
    for path in PATHS {
        for (at, method) in METHODS.iter().enumerate() {
            for (nth, value) in junk.iter().enumerate() {
                let all: Vec<_> = PARAMETERS.iter().map(|name| (*name, *value)).collect();
                let call = server.call(method, path);
                // Every value goes the one way or the other; over all methods it goes both.
                let calls = if (at + nth) % 2 == 0 { [call.params(&all)] } else { [call.form(&all)] };
                for call in calls {
                    connection.send(&call.bytes()).unwrap();
                    let answer =
                        connection.receive(*method == "HEAD").unwrap_or_else(|error| panic!("{error}: {call:?}"));
                    assert!(answer.status != 500 && answer.status < 504, "{call:?}: {answer:?}");
                    if answer.header("connection") == Some("close") {
                        connection = server.connect();
                    }
                }
            }
        }
    }
    // Junk may have turned a switch; the process itself must be well.
    assert!(matches!(server.call("GET", "/nacos/v1/ns/instance/list?serviceName=a").send().status, 200 | 503));
}
