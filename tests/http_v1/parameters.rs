//! How parameters arrive: query and form, encodings, blanks, truth values, numbers.

use serde_json::json;

use super::support::server::Server;

const INSTANCE: [(&str, &str); 3] = [("serviceName", "p"), ("ip", "10.0.0.1"), ("port", "80")];

#[test]
fn query_and_form_are_read_alike_for_every_method() {
    let server = Server::start();
    for (port, query) in [("81", true), ("82", false)] {
        let send = |method: &str, path: &str, more: &[(&str, &str)]| {
            let mut params = vec![("serviceName", "p"), ("ip", "10.0.0.1"), ("port", port)];
            params.extend_from_slice(more);
            let call = server.ns(method, path);
            if query { call.params(&params).send() } else { call.form(&params).send() }
        };
        send("POST", "/instance", &[]).ok();
        send("PUT", "/instance", &[("weight", "3")]).ok();
        assert_eq!(send("GET", "/instance", &[]).json()["weight"], 3.0);
        send("PATCH", "/instance", &[("weight", "4")]).ok();
        assert_eq!(send("GET", "/instance", &[]).json()["weight"], 4.0);
        assert_eq!(send("PUT", "/instance/beat", &[]).json()["code"], 10_200);
        assert_eq!(send("GET", "/instance/list", &[]).json()["hosts"].as_array().unwrap().len(), 1);
        send("DELETE", "/instance", &[]).ok();
        assert_eq!(send("GET", "/instance", &[]).status, 404);
    }
}

#[test]
fn query_and_form_add_up_and_the_query_wins() {
    let server = Server::start();
    let call = server.post("/instance").params(&[("serviceName", "both"), ("port", "81")]);
    call.form(&[("ip", "10.0.0.1"), ("port", "82"), ("serviceName", "other")]).send().ok();
    assert_eq!(server.ports("both", &[]), [81]);
    assert!(server.hosts("other", &[]).is_empty());
}

#[test]
fn the_first_of_equal_names_counts() {
    let server = Server::start();
    server.post("/instance").params(&INSTANCE).param("port", "81").send().ok();
    assert_eq!(server.ports("p", &[]), [80]);
}

/// Python and npm send POST, PUT and DELETE without a body; others leave the type of a form out.
#[test]
fn no_content_type_is_needed() {
    let server = Server::start();
    server.post("/instance").params(&INSTANCE).header("Content-Length", "0").send().ok();
    server.put("/instance").body(b"serviceName=p&ip=10.0.0.1&port=80&weight=2").send().ok();
    assert_eq!(server.host("p", &[])["weight"], 2.0);
    let form = "Application/X-WWW-Form-Urlencoded ; charset=utf-8";
    server
        .put("/instance")
        .header("Content-Type", form)
        .body(b"serviceName=p&ip=10.0.0.1&port=80&weight=3")
        .send()
        .ok();
    assert_eq!(server.host("p", &[])["weight"], 3.0);
}

#[test]
fn a_body_of_another_type_is_not_read() {
    let server = Server::start();
    for kind in ["application/json", "multipart/form-data; boundary=x", "text/plain"] {
        let body = br#"{"serviceName":"p","ip":"10.0.0.1","port":80}"#;
        let answer = server.post("/instance").header("Content-Type", kind).body(body).send();
        answer.refused(&["Param 'serviceName' is required."]);
        server.post("/instance").params(&INSTANCE).header("Content-Type", kind).body(body).send().ok();
    }
}

#[test]
fn a_form_in_chunks_is_read() {
    let server = Server::start();
    let mut connection = server.connect();
    let head = "POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
                Content-Type: application/x-www-form-urlencoded\r\n\r\n";
    let body = "1a\r\nserviceName=chunks&ip=10.0\r\nc\r\n.0.1&port=80\r\n0\r\n\r\n";
    connection.send(format!("{head}{body}").as_bytes()).unwrap();
    connection.receive(false).unwrap().ok();
    assert_eq!(server.ports("chunks", &[]), [80]);
}

#[test]
fn a_client_that_waits_for_continue_gets_it() {
    let server = Server::start();
    let mut connection = server.connect();
    let body = b"serviceName=wait&ip=10.0.0.1&port=80";
    let head = format!(
        "POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.send(head.as_bytes()).unwrap();
    connection.send(body).unwrap();
    connection.receive(false).unwrap().ok();
    assert_eq!(server.ports("wait", &[]), [80]);
}

/// The PUT of the Go SDK is a form that is not encoded at all; Java's beat ends in `&`.
#[test]
fn forms_may_be_unencoded_and_may_end_in_an_ampersand() {
    let server = Server::start();
    let beat = br#"beat={"ip":"10.0.0.7","port":8080,"weight":1,"metadata":{"p":"100%","q":"a=b"}}&serviceName=raw&"#;
    let answer = server.put("/instance/beat").raw_form(beat).send().json();
    assert_eq!(answer["code"], 10_200);
    assert_eq!(server.host("raw", &[])["metadata"], json!({"p": "100%", "q": "a=b"}));
}

#[test]
fn blank_is_absent_and_values_are_trimmed() {
    let server = Server::start();
    let blank = [
        ("namespaceId", ""),
        ("groupName", " "),
        ("clusterName", ""),
        ("weight", ""),
        ("enabled", " "),
        ("healthy", ""),
        ("ephemeral", ""),
        ("metadata", ""),
        ("app", ""),
    ];
    server
        .post("/instance")
        .params(&[("serviceName", " t "), ("ip", " 10.0.0.1\t"), ("port", " 80 ")])
        .params(&blank)
        .send()
        .ok();
    let host = server.host("t", &[]);
    assert_eq!(host["instanceId"], "10.0.0.1#80#DEFAULT#DEFAULT_GROUP@@t");
    assert_eq!(host["weight"], 1.0);
    assert_eq!(host["metadata"], json!({}));
    for flag in ["enabled", "healthy", "ephemeral"] {
        assert_eq!(host[flag], true, "{flag}");
    }
}

#[test]
fn what_is_required_must_not_be_blank() {
    let server = Server::start();
    for missing in ["serviceName", "ip", "port"] {
        for blank in [None, Some(""), Some("  ")] {
            let given = INSTANCE.iter().filter(|(name, _)| *name != missing).copied();
            let params: Vec<_> = given.chain(blank.map(|value| (missing, value))).collect();
            for method in ["POST", "DELETE", "PUT", "PATCH", "GET"] {
                let answer = server.ns(method, "/instance").params(&params).send();
                answer.refused(&[&format!("Param '{missing}' is required.")]);
            }
        }
    }
    server.get("/instance/list").send().refused(&["Param 'serviceName' is required."]);
    server.get("/instance/statuses").send().refused(&["Param 'key' is required."]);
    server.put("/instance/beat").send().refused(&["Param 'serviceName' is required."]);
    let batch = server.put("/instance/metadata/batch").param("serviceName", "p").send();
    batch.refused(&["Param 'metadata' is required."]);
}

#[test]
fn truth_has_many_spellings() {
    let server = Server::start();
    for (word, truth) in [
        ("true", true),
        ("True", true),
        ("TRUE", true),
        ("on", true),
        ("yes", true),
        ("y", true),
        ("t", true),
        ("false", false),
        ("False", false),
        ("off", false),
        ("no", false),
    ] {
        server.register("words", "10.0.0.1", 80, &[("healthy", word)]);
        assert_eq!(server.host("words", &[])["healthy"], truth, "{word}");
        let answer = server.on_instance("GET", "words", "10.0.0.1", 80, &[]).json();
        assert_eq!(answer["healthy"], truth, "{word}");
    }
    server.register("words", "10.0.0.1", 81, &[("healthy", "false")]);
    server.register("words", "10.0.0.1", 80, &[("healthy", "true")]);
    for (word, ports) in [("True", &[80][..]), ("true", &[80]), ("False", &[80, 81]), ("false", &[80, 81])] {
        assert_eq!(server.ports("words", &[("healthyOnly", word)]), ports, "{word}");
    }
}

#[test]
fn a_bad_number_is_named_with_its_value() {
    let server = Server::start();
    server.try_register("n", "10.0.0.1", "abc", &[]).refused(&["port", "For input string: \"abc\""]);
    server.try_register("n", "10.0.0.1", "80", &[("weight", "abc")]).refused(&["weight", "For input string: \"abc\""]);
    assert!(server.hosts("n", &[]).is_empty());
}

/// What SDKs add to every call: credentials, signatures, the name of the application, an encoding.
#[test]
fn parameters_that_are_not_for_this_call_are_passed_over() {
    let server = Server::start();
    let extra = [
        ("accessToken", "x.y.z"),
        ("username", "nacos"),
        ("password", "p@ss&word"),
        ("app", "unknown"),
        ("ak", "key"),
        ("data", "d"),
        ("signature", "s="),
        ("nofix", "1"),
        ("encoding", "GBK"),
        ("instanceId", "mine"),
        ("no-such-parameter", "\u{1F600}"),
    ];
    server.register("extra", "10.0.0.1", 80, &extra);
    let host = server.host("extra", &extra);
    assert_eq!(host["instanceId"], "10.0.0.1#80#DEFAULT#DEFAULT_GROUP@@extra");
    assert_eq!(server.beat("extra", &[&[("ip", "10.0.0.1"), ("port", "80")][..], &extra].concat())["code"], 10_200);
    server.deregister("extra", "10.0.0.1", 80, &extra);
}
