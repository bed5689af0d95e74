//! The process: start, stop, and what it leaves behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time")]

mod support;

use std::{
    io::{BufRead, BufReader},
    net::TcpStream,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use support::{
    server::{Server, command},
    wait::{SOON, wait_until},
};

/// Far below the drain timeout of 10 s: nobody is to be waited for.
const AT_ONCE: Duration = Duration::from_secs(4);

fn serves(server: &Server) -> bool {
    server.get("/instance/list").param("serviceName", "any").send().status == 200
}

/// Runs a second process in the directory of `server`; returns its exit code and its last line.
fn second(server: &Server, settings: &[&str]) -> (Option<i32>, String) {
    let mut command = command(server.dir().path());
    let output = command.args(settings.iter().flat_map(|s| ["--set", *s])).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn a_node_is_ready_in_well_under_a_second_and_small() {
    let fastest = (0..3)
        .map(|_| {
            let begun = Instant::now();
            let server = Server::start();
            let ready = begun.elapsed();
            assert!(server.resident_kib() < 32 * 1024, "{} KiB", server.resident_kib());
            ready
        })
        .min();
    assert!(fastest.unwrap() < Duration::from_millis(800), "{fastest:?}");
}

#[test]
fn told_to_stop_it_ends_with_0_though_connections_are_open() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start();
        let mut used: Vec<_> = (0..20).map(|_| server.connect()).collect();
        let list = server.get("/instance/list").param("serviceName", "any");
        used.iter_mut().for_each(|connection| assert_eq!(connection.call(&list).status, 200));
        let mut unused: Vec<_> = (0..20).map(|_| server.connect()).collect();
        server.signal(signal);
        assert_eq!(server.ended(AT_ONCE).code(), Some(0), "{signal:?}");
        for connection in used.iter_mut().chain(&mut unused) {
            assert!(connection.is_closed(SOON));
        }
        let log = server.log();
        assert!(log.contains("node draining") && log.contains("node stopped"), "{log}");
        assert!(TcpStream::connect(server.http()).is_err());
    }
}

#[test]
fn a_request_that_was_begun_is_answered_before_the_end() {
    let mut server = Server::start();
    let call = server.post("/instance").header("Expect", "100-continue");
    let bytes = call.form(&[("serviceName", "begun"), ("ip", "10.0.0.1"), ("port", "80")]).bytes();
    let mut connection = server.connect();
    connection.send(&bytes[..bytes.len() - 5]).unwrap();
    connection.continued().unwrap();
    server.signal(Signal::TERM);
    wait_until(SOON, || server.log(), |log| log.contains("node draining"));
    connection.send(&bytes[bytes.len() - 5..]).unwrap();
    connection.receive(false).unwrap().ok();
    assert_eq!(server.ended(AT_ONCE).code(), Some(0));
}

#[test]
fn who_never_finishes_is_waited_for_no_longer_than_the_drain_timeout() {
    let mut server = Server::with(&["server.drain_timeout=1s"]);
    let mut half_body = server.connect();
    half_body.send(b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na=").unwrap();
    let mut half_head = server.connect();
    half_head.send(b"GET / HTTP/1.1\r\nHost").unwrap();
    let mut http2 = server.connect();
    http2.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").unwrap();
    assert!(serves(&server));
    server.signal(Signal::TERM);
    assert_eq!(server.ended(AT_ONCE).code(), Some(0));
}

#[test]
fn told_a_second_time_it_ends_at_once() {
    let mut server = Server::with(&["server.drain_timeout=1m"]);
    let mut half_body = server.connect();
    let head = b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    half_body.send(head).unwrap();
    half_body.continued().unwrap();
    server.signal(Signal::TERM);
    wait_until(SOON, || server.log(), |log| log.contains("node draining"));
    assert_eq!(server.child_status(), None, "it waits for the request");
    server.signal(Signal::TERM);
    server.ended(AT_ONCE);
    assert!(server.log().contains("told to stop again"), "{}", server.log());
}

#[test]
fn a_second_process_on_the_same_data_or_port_says_so_and_leaves_the_first_alone() {
    let server = Server::start();
    server.register("first", "10.0.0.1", 80, &[]);
    let (code, message) = second(&server, &[]);
    assert_eq!(code, Some(1));
    let holder = format!("process {}", server.pid());
    for part in ["server.data_dir", "in use", &holder] {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    let (code, message) = second(
        &server,
        &["server.data_dir=other", &format!("server.http={}", server.http()), "server.peer=127.0.0.1:0"],
    );
    assert_eq!(code, Some(1));
    for part in ["server.http", "in use", &server.http().to_string()] {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    assert_eq!(server.ports("first", &[]), [80]);
}

#[test]
fn after_a_kill_it_starts_again_on_the_same_data_and_port() {
    let mut server = Server::start();
    server.register("before", "10.0.0.1", 80, &[]);
    let connection = server.connect();
    let (dir, http) = (server.dir(), server.http());
    for signal in [Signal::KILL, Signal::KILL, Signal::TERM] {
        server.signal(signal);
        server.ended(SOON);
        server = Server::again(dir.clone(), &[&format!("server.http={http}"), "server.peer=127.0.0.1:0"]);
        assert_eq!(server.http(), http);
        server.register("after", "10.0.0.1", 80, &[]);
        assert_eq!(server.light_beat("before", "10.0.0.1", 80), 20_404, "its publisher is told to register again");
    }
    drop(connection);
}

#[test]
fn who_reads_its_log_may_go_away() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(dir.path()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("node started"), "{line}");
    drop(stderr);
    let address = line.split_whitespace().find_map(|word| word.strip_prefix("http=")).unwrap().parse().unwrap();
    let list = support::http::Call::new(address, "GET", "/nacos/v1/ns/instance/list").param("serviceName", "any");
    wait_until(SOON, || list.send().status, |status| *status == 200);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = wait_until(SOON, || child.try_wait().unwrap(), Option::is_some).unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn running_out_of_descriptors_is_survived() {
    let server = Server::start();
    let limit = Rlimit { current: Some(64), maximum: Some(64) };
    prlimit(Some(Pid::from_raw(server.pid().cast_signed()).unwrap()), Resource::Nofile, limit).unwrap();
    let many: Vec<_> = (0..100).map(|_| server.connect()).collect();
    wait_until(SOON, || server.log(), |log| log.contains("could not be accepted"));
    drop(many);
    assert!(serves(&server));
}
