//! Clients that take their time, or never come to the point: their connection ends after the time that is set, and
//! others are served meanwhile.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::support::{
    server::Server,
    wait::{SOON, wait_until},
};

fn server() -> Server {
    Server::with(&["http.header_timeout=1s", "http.max_connections=64"])
}

/// Sends `start` and then one byte at a time; fails if that goes on for much longer than the time that is set.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
fn is_cut_off(server: &Server, start: &[u8], drip: Option<u8>) {
    let mut connection = server.connect();
    let begun = Instant::now();
    let mut sent = connection.send(start);
    while sent.is_ok() && begun.elapsed() < SOON {
        match drip {
            Some(byte) => {
                thread::sleep(Duration::from_millis(50));
                sent = connection.send(&[byte]);
            }
            None => {
                assert!(connection.is_closed(SOON), "still open after {SOON:?}");
                return;
            }
        }
    }
    assert!(sent.is_err(), "still open after {SOON:?}");
    assert_eq!(server.get("/instance/list").param("serviceName", "a").send().status, 200);
}

#[test]
fn a_head_that_never_ends() {
    is_cut_off(&server(), b"GET / HTTP/1.1\r\nHost: x\r\nA: ", Some(b'a'));
}

#[test]
fn a_head_that_stops() {
    is_cut_off(&server(), b"GET / HTTP/1.1\r\nHost: x\r\n", None);
}

#[test]
fn a_connection_on_which_nothing_comes() {
    is_cut_off(&server(), b"", None);
}

#[test]
fn half_a_preface_of_http_2() {
    is_cut_off(&server(), b"PRI * HT", None);
}

#[test]
fn a_kept_connection_that_is_idle() {
    let server = server();
    let mut connection = server.connect();
    assert_eq!(connection.call(&server.get("/instance/list").param("serviceName", "a")).status, 200);
    assert!(connection.is_closed(SOON));
}

#[test]
fn a_body_that_stops() {
    let server = server();
    let mut connection = server.connect();
    let head = b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nserviceName=a&";
    connection.send(head).unwrap();
    let answer = connection.receive(false).unwrap();
    assert_eq!(answer.status, 408);
    assert!(answer.text().contains("http.header_timeout"), "{answer:?}");
    assert!(connection.is_closed(SOON));
}

#[test]
fn a_body_that_never_ends() {
    let head = b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nserviceName=";
    is_cut_off(&server(), head, Some(b'a'));
}

#[test]
fn an_answer_that_is_never_read() {
    let server = server();
    let metadata = "v".repeat(4_000);
    for port in 1..=200 {
        server.register("large", "10.0.0.1", port, &[("metadata", &format!("k={metadata}"))]);
    }
    let list = server.get("/instance/list").param("serviceName", "large").bytes();
    let mut connection = server.connect();
    for _ in 0..20 {
        connection.send(&list).unwrap();
    }
    wait_until(SOON, || server.open_sockets(), |open| *open == 0);
    drop(connection);
}

#[test]
fn all_places_taken_by_idlers_are_free_again_when_their_time_is_up() {
    let server = server();
    let idlers: Vec<_> = (0..64).map(|_| server.connect()).collect();
    assert_eq!(server.get("/instance/list").param("serviceName", "a").send().status, 200);
    drop(idlers);
}
