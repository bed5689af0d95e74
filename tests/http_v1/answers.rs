//! What every answer has in common: paths, methods, status, headers, error forms.

use serde_json::Value;

use super::support::server::Server;

#[track_caller]
fn unknown_api(server: &Server, method: &str, path: &str) {
    let answer = server.call(method, path).send();
    assert_eq!(answer.status, 501, "{method} {path}: {answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let page: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(page["status"], 501);
    assert_eq!(page["error"], "Not Implemented");
    assert_eq!(page["message"], format!("no such api:{method}:{path}"));
    assert_eq!(page["path"], path);
    let time = page["timestamp"].as_str().expect("a timestamp");
    assert!(time.len() >= 20 && time.contains('T'), "{time}");
}

#[test]
fn an_unknown_path_or_method_is_501_with_an_error_page() {
    let server = Server::start();
    for (method, path) in [
        ("GET", "/nacos/v1/ns/instances"),
        ("POST", "/nacos/v1/ns/instance/list"),
        ("PUT", "/nacos/v1/ns/instance/list"),
        ("GET", "/nacos/v1/ns/instance/beat"),
        ("POST", "/nacos/v1/ns/instance/statuses"),
        ("FROBNICATE", "/nacos/v1/ns/instance"),
        ("GET", "/nacos/v1/ns/Instance/list"),
        ("GET", "/nacos/v1/NS/instance/list"),
        ("GET", "/nacos/v1/ns/instance%2Flist"),
        ("GET", "/nacos/v1/ns/instance/list/more"),
    ] {
        unknown_api(&server, method, path);
    }
}

#[test]
fn a_trailing_slash_is_the_same_path() {
    let server = Server::start();
    let register = server.post("/instance/").params(&[("serviceName", "slash"), ("ip", "10.0.0.1"), ("port", "80")]);
    register.send().ok();
    let list = server.get("/instance/list/").param("serviceName", "slash").send().json();
    assert_eq!(list["hosts"][0]["port"], 80);
    let beat = server.put("/instance/beat/").params(&[("serviceName", "slash"), ("ip", "10.0.0.1"), ("port", "80")]);
    assert_eq!(beat.send().json()["code"], 10_200);
}

/// Python and Java compare the body.
#[test]
fn text_answers_are_bare_and_plain() {
    let server = Server::start();
    for accept in [None, Some("*/*"), Some("application/json;q=0.9,*/*")] {
        let call = server.post("/instance").params(&[("serviceName", "bare"), ("ip", "10.0.0.1"), ("port", "80")]);
        let answer = accept.iter().fold(call, |call, accept| call.header("Accept", accept)).send();
        assert_eq!(answer.body, b"ok");
        assert_eq!(answer.header("content-type"), Some("text/plain;charset=UTF-8"));
    }
}

#[test]
fn lists_are_json() {
    let server = Server::start();
    let answer = server.get("/instance/list").param("serviceName", "any").header("Accept", "text/html").send();
    assert!(answer.header("content-type").unwrap().starts_with("application/json"), "{answer:?}");
    answer.json();
}

/// Java sends this header and decodes nothing but a literal `gzip`.
#[test]
fn no_answer_is_encoded_in_a_way_that_the_client_cannot_read() {
    let server = Server::start();
    for port in 1..=200 {
        server.register("large", "10.0.0.1", port, &[]);
    }
    for accept in ["gzip,deflate,sdch", "deflate", "br, zstd", "identity", "*", "gzip;q=0"] {
        let list = server.get("/instance/list").param("serviceName", "large").header("Accept-Encoding", accept).send();
        assert_eq!(list.header("content-encoding"), None, "{accept}");
        assert_eq!(list.json()["hosts"].as_array().unwrap().len(), 200);
    }
}

#[test]
fn a_refusal_is_its_status_and_one_line_of_text() {
    let server = Server::start();
    for answer in [
        server.get("/instance/list").send(),
        server.try_register("x", "10.0.0.1", "abc", &[]),
        server.get("/instance").params(&[("serviceName", "x"), ("ip", "10.0.0.1"), ("port", "80")]).send(),
    ] {
        assert!(matches!(answer.status, 400 | 404), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("text/plain;charset=UTF-8"));
        assert!(!answer.text().is_empty() && answer.text().lines().count() == 1, "{answer:?}");
        assert!(!answer.text().starts_with("caused:"), "{answer:?}");
    }
}

#[test]
fn a_kept_connection_survives_refusals() {
    let server = Server::start();
    let mut connection = server.connect();
    for _ in 0..3 {
        assert_eq!(connection.call(&server.get("/instance/list")).status, 400);
        assert_eq!(connection.call(&server.get("/no/such/path")).status, 501);
        assert_eq!(connection.call(&server.delete("/instance")).status, 400);
        assert_eq!(connection.call(&server.get("/instance/list").param("serviceName", "a")).status, 200);
    }
}

#[test]
fn head_has_no_body_and_keeps_the_connection() {
    let server = Server::start();
    let mut connection = server.connect();
    let head = connection.call(&server.ns("HEAD", "/instance/list").param("serviceName", "a"));
    assert!(matches!(head.status, 200 | 501), "{head:?}");
    assert_eq!(connection.call(&server.get("/instance/list").param("serviceName", "a")).status, 200);
}

#[test]
fn requests_in_one_packet_are_answered_in_order() {
    let server = Server::start();
    let mut connection = server.connect();
    let many: Vec<u8> = (1..=20)
        .flat_map(|port: u16| {
            let port = port.to_string();
            server.post("/instance").params(&[("serviceName", "pipe"), ("ip", "10.0.0.1"), ("port", &port)]).bytes()
        })
        .chain(server.get("/instance/list").param("serviceName", "pipe").bytes())
        .collect();
    connection.send(&many).unwrap();
    for _ in 1..=20 {
        connection.receive(false).unwrap().ok();
    }
    assert_eq!(connection.receive(false).unwrap().json()["hosts"].as_array().unwrap().len(), 20);
}

#[test]
fn a_preflight_lets_in_only_pages_that_the_operator_named() {
    let preflight = |server: &Server, origin: &str| {
        let answer = server
            .ns("OPTIONS", "/instance/list")
            .header("Origin", origin)
            .header("Access-Control-Request-Method", "GET")
            .header("Access-Control-Request-Headers", "x-token")
            .send();
        (matches!(answer.status, 200 | 204), answer.header("access-control-allow-origin").map(str::to_owned))
    };
    assert_eq!(preflight(&Server::start(), "http://console.example"), (false, None));
    let named = Server::with(&[r#"http.web_origins=["http://console.example"]"#]);
    let console = "http://console.example".to_owned();
    assert_eq!(preflight(&named, &console), (true, Some(console)));
    assert_eq!(preflight(&named, "http://other.example"), (true, None));
}

#[test]
fn every_answer_of_a_handler_forbids_foreign_scripts() {
    let server = Server::start();
    let answer = server.get("/instance/list").param("serviceName", "a").send();
    assert_eq!(answer.header("content-security-policy"), Some("script-src 'self'"));
}
