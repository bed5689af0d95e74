//! What stands before every request: which type, on which connection, with which body.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    client::{Sdk, ask, channel, go, instance_request, java, payload, raw_payload, stream},
    server::Server,
};

fn error_of(answer: &(String, Value)) -> (&str, u64) {
    (answer.0.as_str(), answer.1["errorCode"].as_u64().unwrap())
}

#[tokio::test]
async fn before_the_set_up_only_the_server_check_is_answered() {
    let server = Server::start().await;
    let channel = channel(server.grpc).await;
    let (kind, check) = ask(&channel, payload("ServerCheckRequest", &json!({"requestId": "7"}))).await.unwrap();
    assert_eq!(kind, "ServerCheckResponse");
    assert_eq!(check["supportAbilityNegotiation"], true);
    assert_eq!(check["requestId"], "7");
    let id = check["connectionId"].as_str().unwrap();
    assert!(id.contains("_127.0.0.1_") && !id.contains('#'), "{id}");

    let started = Instant::now();
    for (name, code) in [
        ("InstanceRequest", 301),
        ("SubscribeServiceRequest", 301),
        ("ConfigQueryRequest", 301),
        ("HealthCheckRequest", 500),
        ("LockOperationRequest", 302),
        ("instanceRequest", 302),
        ("ConnectionSetupRequest", 302),
        ("", 302),
        ("DistroDataRequest", 502),
        ("ServerReloadRequest", 502),
    ] {
        let answer = ask(&channel, payload(name, &json!({}))).await.unwrap();
        assert_eq!(error_of(&answer), ("ErrorResponse", code), "{name}");
        assert_eq!(answer.1["success"], false);
    }
    assert!(started.elapsed() < Duration::from_millis(900), "nothing is waited for without a stream");
}

#[tokio::test]
async fn the_set_up_is_acknowledged_to_those_who_negotiate() {
    let server = Server::start().await;
    let mut sdk = Sdk::with(server.grpc, &java()).await;
    let (kind, ack) = sdk.next().await;
    assert_eq!(kind, "SetupAckRequest");
    assert_eq!(ack["abilityTable"]["fuzzyWatch"], true);
    assert_eq!(ack["abilityTable"]["supportPersistentInstanceByGrpc"], false);
    assert!(ack.get("requestId").is_none());
    let mut empty_table = go();
    empty_table["abilityTable"] = json!({});
    assert_eq!(Sdk::with(server.grpc, &empty_table).await.next().await.0, "SetupAckRequest");
    let mut silent = Sdk::connect(server.grpc).await;
    assert_eq!(error_of(&silent.ask("HealthCheckRequest", json!({})).await), ("HealthCheckResponse", 0));
    assert_eq!(silent.next_within(Duration::from_millis(100)).await, None);
}

/// Rust opens the stream first and checks the server last; a second set-up changes nothing.
#[tokio::test]
async fn the_order_of_rust_works_and_a_second_set_up_is_passed_over() {
    let server = Server::start().await;
    let mut rust = java();
    rust["clientVersion"] = json!("Nacos-Rust-Client:0.8.0");
    rust.as_object_mut().unwrap().remove("abilityTable");
    let sdk = Sdk::with(server.grpc, &rust).await;
    assert_eq!(error_of(&sdk.ask("HealthCheckRequest", json!({"requestId": null})).await), ("HealthCheckResponse", 0));
    assert_eq!(error_of(&sdk.ask("ServerCheckRequest", json!({})).await), ("ServerCheckResponse", 0));
    sdk.register("orders", 1).await;
    sdk.out.as_ref().unwrap().send(payload("ConnectionSetupRequest", &rust)).unwrap();
    sdk.out.as_ref().unwrap().send(payload("NoSuchRequest", &json!([]))).unwrap();
    sdk.out.as_ref().unwrap().send(raw_payload("PushAckRequest", b"\xff".to_vec())).unwrap();
    let _second = stream(&sdk.channel, vec![payload("ConnectionSetupRequest", &rust)]).await.unwrap();
    sdk.register("orders", 2).await;
    assert_eq!(server.ports("orders").await, [2]);
}

#[tokio::test]
async fn other_modules_are_answered_so_that_sdks_go_on() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    let config = sdk.ask("ConfigQueryRequest", json!({"dataId": "a", "group": "b"})).await;
    assert_eq!(error_of(&config), ("ConfigQueryResponse", 300));
    let (kind, listen) = sdk.ask("ConfigBatchListenRequest", json!({"listen": true})).await;
    assert_eq!((kind.as_str(), &listen["changedConfigs"]), ("ConfigChangeBatchListenResponse", &json!([])));
    assert_eq!(error_of(&sdk.ask("ConfigPublishRequest", json!({})).await), ("ConfigPublishResponse", 501));
    assert_eq!(error_of(&sdk.ask("ConfigRemoveRequest", json!({})).await), ("ConfigRemoveResponse", 501));
    assert_eq!(error_of(&sdk.ask("LockOperationRequest", json!({})).await), ("ErrorResponse", 302));
}

#[tokio::test]
async fn broken_bodies_are_refused_and_harm_nothing() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    for body in
        [&b""[..], b"[]", b"null", b"{", b"\xff\xfe\x00", b"{\"serviceName\":{}}", b"{\"instance\":{\"port\":[]}}"]
    {
        let answer = ask(&sdk.channel, raw_payload("InstanceRequest", body.to_vec())).await.unwrap();
        assert_eq!(error_of(&answer), ("ErrorResponse", 502), "{body:?}");
    }
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let deep = [b"{\"x\":".to_vec(), deep, b"}".to_vec()].concat();
    // What is passed over is passed over without a stack: only the missing type counts.
    assert_eq!(error_of(&ask(&sdk.channel, raw_payload("InstanceRequest", deep)).await.unwrap()).1, 400);
    let mut naked = raw_payload("", Vec::new());
    naked.metadata = None;
    naked.body = None;
    assert_eq!(error_of(&ask(&sdk.channel, naked).await.unwrap()), ("ErrorResponse", 302));
    for (operation, code) in [("", 400), ("updateInstance", 400)] {
        let answer = sdk.ask("InstanceRequest", instance_request(operation, "orders", 1)).await;
        assert_eq!(error_of(&answer), ("ErrorResponse", code));
        assert_eq!(answer.1["resultCode"], 400);
    }
    for operation in ["registerInstance", "deregisterInstance"] {
        let mut request = instance_request(operation, "orders", 1);
        request.as_object_mut().unwrap().remove("instance");
        assert_eq!(error_of(&sdk.ask("InstanceRequest", request).await), ("InstanceResponse", 400));
    }
    sdk.register("orders", 1).await;
    assert_eq!(server.ports("orders").await, [1]);
}
