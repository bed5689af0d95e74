//! How a connection begins, is found to be dead, and ends.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    client::{Sdk, Stream, ask, channel, go, instance_request, payload, stream},
    server::{Server, wait_until},
};

/// Row 43: a request in the same millisecond as the set-up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_right_behind_the_set_up_always_succeeds() {
    let server = Server::start().await;
    for round in 0..1_000_u64 {
        let channel = channel(server.grpc).await;
        let set_up = vec![payload("ConnectionSetupRequest", &go())];
        let open = stream(&channel, set_up);
        let health = ask(&channel, payload("HealthCheckRequest", &json!({})));
        let request = payload("InstanceRequest", &instance_request("registerInstance", "orders", round));
        let register = ask(&channel, request);
        // The stream is begun first; nobody waits for anybody.
        let (open, health, register) = tokio::join!(biased; open, health, register);
        let _stream = open.unwrap();
        assert_eq!(health.unwrap().0, "HealthCheckResponse", "round {round}");
        assert_eq!(register.unwrap().0, "InstanceResponse", "round {round}");
    }
}

/// Without a set-up on an open stream the wait is bounded.
#[tokio::test]
async fn a_stream_that_says_nothing_is_not_waited_for_long() {
    let server = Server::with(&["sdk.setup_wait=200ms"]).await;
    let channel = channel(server.grpc).await;
    let stream = stream(&channel, vec![payload("Nonsense", &json!({}))]).await.unwrap();
    let started = Instant::now();
    let (kind, body) = ask(&channel, payload("ServiceQueryRequest", &json!({"serviceName": "a"}))).await.unwrap();
    assert_eq!((kind.as_str(), &body["errorCode"]), ("ErrorResponse", &json!(301)));
    assert!(started.elapsed() >= Duration::from_millis(200));
    drop(stream);
}

#[tokio::test]
async fn the_end_of_tcp_or_of_the_stream_ends_what_was_published() {
    let server = Server::start().await;
    let mut watcher = Sdk::connect(server.grpc).await;
    watcher.subscribe("orders", "").await;

    let first = Sdk::connect(server.grpc).await;
    first.register("orders", 1).await;
    assert_eq!(watcher.next_ports().await, [1]);
    first.cut().await;
    assert_eq!(watcher.next_ports().await, [0; 0]);

    let mut second = Sdk::connect(server.grpc).await;
    second.register("orders", 2).await;
    assert_eq!(watcher.next_ports().await, [2]);
    second.half_close();
    assert_eq!(watcher.next_ports().await, [0; 0]);
    let status = second.end().await;
    assert_ne!(status.code(), tonic::Code::Ok, "Python does not notice a stream that ends well");
}

/// Row 44: a success is never said of a connection that is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_success_on_a_connection_that_has_ended() {
    let server = Server::start().await;
    for round in 0..1_000_u64 {
        let channel = channel(server.grpc).await;
        let Stream { out, from } = stream(&channel, vec![payload("ConnectionSetupRequest", &go())]).await.unwrap();
        let delay = Duration::from_micros(round * 37 % 3_000);
        let service = format!("s{round}");
        let request = payload("InstanceRequest", &instance_request("registerInstance", &service, 1));
        let (answer, ()) = tokio::join!(ask(&channel, request), async {
            tokio::time::sleep(delay).await;
            // Half are closed by half, half are reset.
            if round % 2 == 0 { drop(out) } else { drop(from) }
        });
        if let Ok((kind, body)) = &answer {
            assert!(
                (kind == "InstanceResponse" && body["success"] == true) || body["errorCode"] == 301,
                "round {round}: {kind} {body}"
            );
        }
        let ports = wait_until(async || server.ports(&service).await, Vec::is_empty).await;
        assert!(ports.is_empty());
        // And it stays so: nothing is listed after the end.
        let late = ask(&channel, payload("InstanceRequest", &instance_request("registerInstance", &service, 1))).await;
        assert!(late.is_err() || late.is_ok_and(|(kind, _)| kind == "ErrorResponse"), "round {round}");
    }
}

/// Row 46: a client that is silent is asked, and goes if it does not answer; one that answers in time stays.
#[tokio::test]
async fn silent_clients_are_asked_and_then_dropped() {
    let server = Server::with(&["sdk.idle_timeout=400ms", "sdk.detection_timeout=400ms", "sdk.sweep=50ms"]).await;
    let mut dead = Sdk::connect(server.grpc).await;
    let mut slow = Sdk::connect(server.grpc).await;
    dead.answer(false);
    dead.register("orders", 1).await;
    slow.register("orders", 2).await;
    let started = Instant::now();
    let (kind, question) = dead.next().await;
    assert_eq!(kind, "ClientDetectionRequest");
    assert!(question["requestId"].is_string());
    assert_eq!(dead.end().await.code(), tonic::Code::Unavailable);
    let bound = started.elapsed();
    assert!((Duration::from_millis(700)..Duration::from_millis(1_500)).contains(&bound), "{bound:?}");
    wait_until(async || server.ports("orders").await, |ports| ports == &[2]).await;
    for _ in 0..3 {
        assert_eq!(slow.next().await.0, "ClientDetectionRequest");
    }
    assert_eq!(server.ports("orders").await, [2]);
}

/// A freeze of the server is not taken for silence of its clients.
#[tokio::test]
async fn a_frozen_server_drops_nobody() {
    let server = Server::with(&["sdk.idle_timeout=2s", "sdk.detection_timeout=500ms", "sdk.sweep=100ms"]).await;
    let mut sdk = Sdk::connect(server.grpc).await;
    sdk.answer(false);
    sdk.register("orders", 1).await;
    server.signal("-STOP");
    tokio::time::sleep(Duration::from_secs(4)).await;
    server.signal("-CONT");
    let health = sdk.ask("HealthCheckRequest", json!({})).await;
    assert_eq!(health.0, "HealthCheckResponse");
    assert_eq!(sdk.next_within(Duration::from_millis(300)).await, None);
    assert_eq!(server.ports("orders").await, [1]);
}

#[tokio::test]
async fn a_drain_asks_clients_to_move_and_then_ends_their_streams() {
    let mut server = Server::with(&["sdk.drain_wait=500ms"]).await;
    let mut leaves = Sdk::connect(server.grpc).await;
    let mut stays = Sdk::connect(server.grpc).await;
    stays.register("orders", 1).await;
    server.signal("-TERM");
    for sdk in [&mut leaves, &mut stays] {
        let (kind, reset) = sdk.next().await;
        assert_eq!(kind, "ConnectResetRequest");
        assert!(reset["serverPort"].is_string());
        assert!(reset["connectionId"].as_str().unwrap().contains("_127.0.0.1_"));
    }
    // Meanwhile probes are told why, and HTTP clients to go elsewhere.
    let (status, reason) = server.call("GET", "/nacos/v1/console/health/readiness").await;
    assert!(status == 500 && reason.contains("draining"), "{status} {reason}");
    assert_eq!(server.call("GET", "/nacos/v1/ns/instance/list?serviceName=orders").await.0, 503);
    // Who still is here is served, but not told that all is well.
    let (kind, health) = stays.ask("HealthCheckRequest", json!({})).await;
    assert_eq!((kind.as_str(), &health["errorCode"]), ("ErrorResponse", &json!(500)));
    stays.register("orders", 2).await;
    leaves.cut().await;
    assert_eq!(stays.end().await.code(), tonic::Code::Unavailable);
    server.ended().await;
    assert!(!server.log().contains("drain timeout passed"), "{}", server.log());
}
