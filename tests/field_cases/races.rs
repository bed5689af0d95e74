//! Many at once.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use crate::support::{
    http::Call,
    naming::code,
    server::Server,
    wait::{SOON, holds_for, wait_until},
};

/// Sends all calls, spread over `lanes` connections; each must be `ok`.
fn all_ok(server: &Server, lanes: usize, calls: &[Call]) {
    thread::scope(|scope| {
        for lane in calls.chunks(calls.len().div_ceil(lanes)) {
            let mut connection = server.connect();
            scope.spawn(move || lane.iter().for_each(|call| connection.call(call).ok()));
        }
    });
}

fn registration(server: &Server, service: &str, port: u16) -> Call {
    let port = port.to_string();
    server.post("/instance").params(&[("serviceName", service), ("ip", "10.0.0.1"), ("port", &port)])
}

/// Case 31, alibaba/nacos#1916, #4316: parallel first registrations answered `service not found`, or lost an instance.
#[test]
fn parallel_first_registrations_are_all_ok_and_all_listed() {
    let server = Server::start();
    let new = (0..200).map(|number| registration(&server, &format!("new-{number}"), 80));
    let one = (1..=200).map(|port| registration(&server, "one", port));
    let calls: Vec<_> = new.zip(one).flat_map(|(a, b)| [a, b]).collect();
    all_ok(&server, 16, &calls);
    assert_eq!(server.ports("one", &[]), (1..=200).collect::<Vec<_>>());
    for number in 0..200 {
        assert_eq!(server.ports(&format!("new-{number}"), &[]), [80]);
    }
}

/// Case 31: registrations and removals of the same instances at once leave each where its last request put it.
#[test]
fn the_last_word_of_each_publisher_counts() {
    let server = Server::start();
    let removal = |port: u16| {
        let port = port.to_string();
        server.delete("/instance").params(&[("serviceName", "busy"), ("ip", "10.0.0.1"), ("port", &port)])
    };
    thread::scope(|scope| {
        for lane in 0..8_u16 {
            let (server, removal) = (&server, &removal);
            let mut connection = server.connect();
            scope.spawn(move || {
                for round in 0..30 {
                    for port in lane * 10 + 1..=lane * 10 + 10 {
                        connection.call(&registration(server, "busy", port)).ok();
                        if round < 29 || port % 2 == 0 {
                            connection.call(&removal(port)).ok();
                        }
                    }
                }
            });
        }
    });
    assert_eq!(server.ports("busy", &[]), (1..=80).filter(|port| port % 2 == 1).collect::<Vec<_>>());
}

/// A list is of one moment: of two instances that change places there is always at least one, and no answer is torn.
#[test]
fn every_answer_is_of_one_moment() {
    let server = Server::start();
    registration(&server, "swap", 1).send().ok();
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = server.connect();
            for round in 0..300_u16 {
                let (next, last) = ((round + 1) % 2 + 1, round % 2 + 1);
                connection.call(&registration(&server, "swap", next)).ok();
                let last = last.to_string();
                let place = [("serviceName", "swap"), ("ip", "10.0.0.1"), ("port", last.as_str())];
                connection.call(&server.delete("/instance").params(&place)).ok();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut connection = server.connect();
        let list = server.get("/instance/list").param("serviceName", "swap");
        let mut last = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let answer = connection.call(&list).json();
            assert!(matches!(answer["hosts"].as_array().unwrap().len(), 1 | 2), "{answer}");
            let time = answer["lastRefTime"].as_u64().unwrap();
            assert!(time >= last, "{last} then {time}");
            last = time;
        }
    });
}

/// Case 32, alibaba/nacos#9586, #11835: the cleaner of empty services removed one that had just come back.
///
/// A hundred services fall empty; each comes back at another moment around the time at which the cleaner takes it.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test aims at a moment")]
fn a_service_that_comes_back_when_its_cleaning_is_due_is_kept() {
    let server = Server::with(&["registry.empty_service_ttl=1s", "registry.expiry_scan=10ms"]);
    let names: Vec<_> = (0..100).map(|number| format!("clean-{number}")).collect();
    thread::scope(|scope| {
        for (lane, names) in (0_u64..).zip(names.chunks(25)) {
            let server = &server;
            scope.spawn(move || {
                let mut connection = server.connect();
                let mut due = Vec::new();
                for (nth, name) in (0_u64..).zip(names) {
                    connection.call(&registration(server, name, 80)).ok();
                    let place = [("serviceName", name.as_str()), ("ip", "10.0.0.1"), ("port", "80")];
                    connection.call(&server.delete("/instance").params(&place)).ok();
                    // 25 moments from 100 ms before to 100 ms after, shifted a little from lane to lane.
                    due.push(Instant::now() + Duration::from_millis(900 + nth * 8 + lane * 2));
                }
                for (name, due) in names.iter().zip(due) {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    connection.call(&registration(server, name, 80)).ok();
                }
            });
        }
    });
    let listed = || names.iter().filter(|name| server.ports(name, &[]) == [80]).count();
    holds_for(Duration::from_millis(2_500), listed, |count| *count == 100);
    for name in &names {
        assert_eq!(server.light_beat(name, "10.0.0.1", 80), 10_200);
        server.deregister(name, "10.0.0.1", 80, &[]);
    }
    // An update tells a service that is empty from one that is gone.
    let update = |name: &String| server.on_instance("PUT", name, "10.0.0.1", 80, &[]).text().to_owned();
    wait_until(
        SOON,
        || names.iter().map(update).collect::<BTreeSet<_>>(),
        |texts| texts.iter().all(|text| text.starts_with("service not found")),
    );
}

#[test]
fn a_service_that_was_created_keeps_its_metadata_and_threshold() {
    let server = Server::with(&["registry.empty_service_ttl=1s", "registry.expiry_scan=10ms"]);
    let create = [("serviceName", "kept"), ("protectThreshold", "0.6"), ("metadata", "owner=x")];
    server.post("/service").params(&create).send().ok();
    server.register("kept", "10.0.0.1", 80, &[]);
    server.deregister("kept", "10.0.0.1", 80, &[]);
    let service = || server.get("/service").param("serviceName", "kept").send();
    let same = |answer: &crate::support::http::Answer| {
        let json = answer.json();
        json["metadata"]["owner"] == "x" && (json["protectThreshold"].as_f64().unwrap() - 0.6).abs() < 1e-6
    };
    holds_for(Duration::from_secs(3), service, same);
    server.register("kept", "10.0.0.1", 80, &[]);
    assert!(same(&service()));
    server.deregister("kept", "10.0.0.1", 80, &[]);
    assert!(server.hosts("kept", &[]).is_empty());
}

/// A flood beyond what the server can hold is refused as such, and what was answered `ok` is listed.
#[test]
fn what_was_answered_ok_is_listed_even_in_a_flood() {
    let server = Server::with(&["registry.queue=1"]);
    let accepted: Vec<u64> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..16_u16)
            .map(|lane| {
                let server = &server;
                let mut connection = server.connect();
                scope.spawn(move || {
                    let mut accepted = Vec::new();
                    for port in lane * 50 + 1..=lane * 50 + 50 {
                        let answer = connection.call(&registration(server, "flood", port));
                        match answer.status {
                            200 => accepted.push(u64::from(port)),
                            503 => {
                                assert!(answer.text().contains("registry.queue"), "{answer:?}");
                                assert!(answer.header("retry-after").is_some(), "{answer:?}");
                            }
                            _ => panic!("{answer:?}"),
                        }
                    }
                    accepted
                })
            })
            .collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    assert_eq!(server.ports("flood", &[]), accepted);
    assert_eq!(code(&server.beat("flood", &[("ip", "10.0.0.1"), ("port", &accepted[0].to_string())])), 10_200);
}
