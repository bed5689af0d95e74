//! Bytes on the port that are no request, or not one that HTTP/1.1 allows.

use std::{io, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};

use super::support::{http::Answer, server::Server};

/// What comes back for bytes: an answer, or the end of the connection.
fn exchange(server: &Server, bytes: &[u8]) -> io::Result<Answer> {
    let mut connection = server.connect();
    connection.send(bytes)?;
    connection.receive(false)
}

#[track_caller]
fn serves(server: &Server) {
    assert_eq!(server.get("/instance/list").param("serviceName", "any").send().status, 200);
}

#[test]
fn what_is_no_request_is_answered_400_and_cut_off() {
    let server = Server::start();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello \r\n\r\n"[..],
        b"\x00\x00\x00\x00\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA\x00B: c\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: nonsense\r\n\r\n",
    ] {
        let answer = exchange(&server, bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"));
        assert_eq!(answer.status, 400, "{answer:?}");
        serves(&server);
    }
}

#[test]
fn chunks_that_are_none_are_refused() {
    let server = Server::start();
    for body in ["zz\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5\r\nabcdefghij\r\n"] {
        let head = "POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answer = exchange(&server, format!("{head}{body}").as_bytes()).unwrap();
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        serves(&server);
    }
}

#[test]
fn heads_that_are_too_large_are_refused_as_such() {
    let server = Server::start();
    let line = format!("GET /nacos/v1/ns/instance/list?serviceName={} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(70_000));
    assert_eq!(exchange(&server, line.as_bytes()).unwrap().status, 414);
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(1_000));
    assert_eq!(exchange(&server, many.as_bytes()).unwrap().status, 431);
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "b".repeat(600_000));
    assert_eq!(exchange(&server, long.as_bytes()).unwrap().status, 431);
    serves(&server);
}

#[test]
fn odd_but_allowed_requests_are_served() {
    let server = Server::start();
    for request in [
        "GET http://elsewhere.example/nacos/v1/ns/instance/list?serviceName=a HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /nacos/v1/ns/instance/list?serviceName=a HTTP/1.0\r\n\r\n",
        "GET /nacos/v1/ns/instance/list?serviceName=a HTTP/1.1\r\n\r\n",
        "GET /nacos/v1/ns/instance/list?serviceName=a&&=&a&=b HTTP/1.1\r\nhOsT: x\r\n\r\n",
        "GET /nacos/v1/ns/instance/list?serviceName=a?b=c#x HTTP/1.1\r\nHost: x\r\n\r\n",
        "\r\n\r\nGET /nacos/v1/ns/instance/list?serviceName=a HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let answer = exchange(&server, request.as_bytes()).unwrap_or_else(|error| panic!("{error}: {request}"));
        assert_eq!(answer.status, 200, "{request}: {answer:?}");
    }
}

/// Bytes from a generator with a fixed seed: each run sends the same.
#[test]
fn random_bytes_do_no_harm() {
    let server = Server::start();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u8::try_from(state >> 56).unwrap()
    };
    let request = server.post("/instance").params(&[("serviceName", "r"), ("ip", "10.0.0.1"), ("port", "80")]);
    let request = request.form(&[("metadata", r#"{"a":"b"}"#)]).bytes();
    for round in 0..300 {
        let bytes: Vec<u8> = if round % 2 == 0 {
            (0..512).map(|_| byte()).chain(*b"\r\n\r\n").collect()
        } else {
            // A good request with a few bytes of it changed.
            let mut bytes = request.clone();
            for _ in 0..3 {
                let at = (usize::from(byte()) << 8 | usize::from(byte())) % bytes.len();
                bytes[at] = byte();
            }
            bytes
        };
        let mut connection = server.connect();
        connection.send(&bytes).unwrap();
        connection.finish();
        if let Ok(answer) = connection.receive(false) {
            assert!(answer.status != 500 && answer.status < 504, "{bytes:?}: {answer:?}");
        }
    }
    serves(&server);
}

#[test]
fn a_request_cut_off_anywhere_leaves_nothing() {
    let server = Server::start();
    let call = server.post("/instance").form(&[("serviceName", "cut"), ("ip", "10.0.0.1"), ("port", "80")]);
    let bytes = call.bytes();
    for end in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        let mut connection = server.connect();
        connection.send(&bytes[..end]).unwrap();
        connection.finish();
        if let Ok(answer) = connection.receive(false) {
            assert_eq!(answer.status, 400, "cut at {end}: {answer:?}");
        }
    }
    assert!(server.hosts("cut", &[]).is_empty());
    assert_eq!(server.on_instance("PUT", "cut", "10.0.0.1", 80, &[]).status, 400, "the service must not exist");
}

#[test]
fn http_2_without_an_upgrade_is_served() {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client: Client<_, Full<::bytes::Bytes>> =
            Client::builder(TokioExecutor::new()).http2_only(true).timer(TokioTimer::new()).build_http();
        let call = |method: &str, path: &str, body: &'static str| {
            let request = http::Request::builder().method(method).uri(format!("http://{}{path}", server.http()));
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            let answer = client.request(request.body(Full::from(body)).unwrap());
            async {
                let answer = answer.await.unwrap();
                let status = answer.status().as_u16();
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                (status, String::from_utf8(body.to_vec()).unwrap())
            }
        };
        let form = "serviceName=h2&ip=10.0.0.1&port=80";
        assert_eq!(call("POST", "/nacos/v1/ns/instance", form).await, (200, "ok".to_owned()));
        assert_eq!(call("POST", "/nacos/v1/ns/instance", "serviceName=h2").await.0, 400);
        assert_eq!(call("GET", "/nacos/v1/ns/no-such-path", "").await.0, 501);
        let (status, list) = call("GET", "/nacos/v1/ns/instance/list?serviceName=h2", "").await;
        assert!(status == 200 && list.contains("10.0.0.1"), "{list}");
    });
    let mut broken = server.connect();
    broken.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").unwrap();
    assert!(broken.is_closed(Duration::from_secs(20)));
    serves(&server);
}
