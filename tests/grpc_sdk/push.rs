//! Subscriptions and what is pushed.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    client::{Sdk, instance, ports, subscribe_request},
    server::{Server, wait_until},
};

#[tokio::test]
async fn every_change_is_pushed_soon_and_in_order() {
    let server = Server::start().await;
    let (publisher, mut subscriber) = (Sdk::connect(server.grpc).await, Sdk::connect(server.grpc).await);
    let answer = subscriber.subscribe("orders", "").await;
    assert_eq!(answer["message"], "success");
    let mut last = answer["serviceInfo"]["lastRefTime"].as_u64().unwrap();
    for port in 1..=5 {
        publisher.register("orders", port).await;
        let changed = Instant::now();
        let (_, push) = subscriber.next().await;
        // Generous: the machine may be busy. The server's own part is a millisecond.
        assert!(changed.elapsed() < Duration::from_millis(500), "{:?}", changed.elapsed());
        assert_eq!(ports(&push), [port]);
        let time = push["serviceInfo"]["lastRefTime"].as_u64().unwrap();
        assert!(time > last);
        last = time;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    let (_, answer) = subscriber.ask("SubscribeServiceRequest", subscribe_request("orders", "", false)).await;
    assert_eq!(ports(&answer), [5]);
    assert!(answer["serviceInfo"]["lastRefTime"].as_u64().unwrap() > last);
    publisher.register("orders", 6).await;
    assert_eq!(subscriber.next_within(Duration::from_millis(200)).await, None);
}

/// Item 9 of the checklist and row 35.
#[tokio::test]
async fn clusters_come_back_to_the_letter_and_filter() {
    let server = Server::start().await;
    let (publisher, mut subscriber) = (Sdk::connect(server.grpc).await, Sdk::connect(server.grpc).await);
    let clustered = |port, cluster: &str| {
        let mut instance = instance(port);
        instance["clusterName"] = json!(cluster);
        instance
    };
    let batch = |instances| json!({"serviceName": "orders", "type": "batchRegisterInstance", "instances": instances});
    let answer = subscriber.subscribe("orders", "c1, c2").await;
    assert_eq!(answer["serviceInfo"]["clusters"], "c1, c2");
    subscriber.subscribe("orders", "c1").await;
    publisher.ask("BatchInstanceRequest", batch(json!([clustered(1, "c1"), clustered(3, "c3")]))).await;
    let mut seen = [subscriber.next().await.1, subscriber.next().await.1];
    seen.sort_by_key(|push| push["serviceInfo"]["clusters"].to_string());
    assert_eq!(seen.each_ref().map(|push| push["serviceInfo"]["clusters"].as_str().unwrap()), ["c1", "c1, c2"]);
    assert!(seen.iter().all(|push| ports(push) == [1]));
    publisher
        .ask("BatchInstanceRequest", batch(json!([clustered(1, "c1"), clustered(2, "c2"), clustered(3, "c3")])))
        .await;
    let (_, push) = subscriber.next().await;
    assert_eq!((push["serviceInfo"]["clusters"].as_str(), ports(&push)), (Some("c1, c2"), vec![1, 2]));
    assert_eq!(subscriber.next_within(Duration::from_millis(200)).await, None, "c1 saw nothing new");
    let (_, none) = subscriber.ask("SubscribeServiceRequest", subscribe_request("orders", "c9", true)).await;
    assert_eq!(ports(&none), [0; 0]);
    // Unsubscribing one leaves the other.
    subscriber.ask("SubscribeServiceRequest", subscribe_request("orders", "c1", false)).await;
    publisher.ask("BatchInstanceRequest", batch(json!([]))).await;
    let (_, push) = subscriber.next().await;
    assert_eq!((push["serviceInfo"]["clusters"].as_str(), ports(&push)), (Some("c1, c2"), vec![]));
    assert_eq!(subscriber.next_within(Duration::from_millis(200)).await, None);
}

#[tokio::test]
async fn what_was_missed_while_pushing_was_off_comes_when_it_is_on_again() {
    let server = Server::start().await;
    let (publisher, mut subscriber) = (Sdk::connect(server.grpc).await, Sdk::connect(server.grpc).await);
    subscriber.subscribe("orders", "").await;
    let turn = async |on| {
        let target = format!("/nacos/v1/ns/operator/switches?entry=pushEnabled&value={on}");
        assert_eq!(server.call("PUT", &target).await.0, 200);
    };
    turn(false).await;
    publisher.batch("orders", &[1, 2]).await;
    assert_eq!(subscriber.next_within(Duration::from_millis(200)).await, None);
    turn(true).await;
    assert_eq!(subscriber.next_ports().await, [1, 2]);
    publisher.batch("orders", &[3]).await;
    assert_eq!(subscriber.next_ports().await, [3]);
}

/// Item 10 of the checklist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_changes_are_a_handful_of_pushes_and_a_mute_client_harms_nobody() {
    let server = Server::with(&["sdk.ack_timeout=30s"]).await;
    let publisher = Sdk::connect(server.grpc).await;
    let (mut willing, mut mute) = (Sdk::connect(server.grpc).await, Sdk::connect(server.grpc).await);
    mute.answer(false);
    willing.subscribe("orders", "").await;
    mute.subscribe("orders", "").await;
    for round in 0..1_000 {
        publisher.register("orders", round % 7 + 1).await;
    }
    publisher.register("orders", 99).await;
    let (mut pushes, mut last) = (0, 0);
    loop {
        let (_, push) = willing.next().await;
        pushes += 1;
        let time = push["serviceInfo"]["lastRefTime"].as_u64().unwrap();
        assert!(time > last);
        last = time;
        if ports(&push) == [99] {
            break;
        }
    }
    assert!(pushes < 40, "{pushes}");
    // One push is on its way to the mute one, and the newest state is all that waits behind it.
    let (_, first) = mute.next().await;
    assert_eq!(mute.next_within(Duration::from_millis(500)).await, None);
    let ack = json!({"resultCode": 200, "requestId": first["requestId"]});
    mute.out.as_ref().unwrap().send(super::client::payload("NotifySubscriberResponse", &ack)).unwrap();
    assert_eq!(mute.next_ports().await, [99]);
}

#[tokio::test]
async fn a_client_that_never_acknowledges_is_dropped_in_the_end() {
    let server = Server::with(&["sdk.ack_timeout=200ms", "sdk.push_retries=2", "sdk.sweep=20ms"]).await;
    let (publisher, mut mute) = (Sdk::connect(server.grpc).await, Sdk::connect(server.grpc).await);
    mute.answer(false);
    mute.subscribe("orders", "").await;
    mute.register("stock", 1).await;
    publisher.register("orders", 1).await;
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let (_, push) = mute.next().await;
        assert_eq!(ports(&push), [1]);
        ids.insert(push["requestId"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 3);
    assert_eq!(mute.end().await.code(), tonic::Code::Unavailable);
    wait_until(async || server.ports("stock").await, Vec::is_empty).await;
}

/// Row 47: a list that is larger than some SDKs read is not sent to those, and everything else goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_beyond_an_sdks_limit_break_nothing() {
    let server = Server::start().await;
    let mut python = super::client::java();
    python["clientVersion"] = json!("Nacos-Python-Client:v3.2.0");
    let publisher = Sdk::connect(server.grpc).await;
    let (mut java, mut python) = (Sdk::connect(server.grpc).await, Sdk::with(server.grpc, &python).await);
    for sdk in [&java, &python] {
        sdk.subscribe("orders", "").await;
        sdk.subscribe("stock", "").await;
    }
    let batch = |count: u64| {
        let instances: Vec<_> = (0..count)
            .map(|n| json!({"ip": format!("10.1.{}.{}", n / 250, n % 250), "port": 1, "metadata": {"zone": "a"}}))
            .collect();
        json!({"serviceName": "orders", "type": "batchRegisterInstance", "instances": instances})
    };
    let (_, body) = publisher.ask("BatchInstanceRequest", batch(25_000)).await;
    assert_eq!(body["errorCode"], 0);
    let (_, push) = java.next().await;
    let hosts = push["serviceInfo"]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 25_000);
    assert!(hosts[0].get("ipDeleteTimeout").is_none(), "what nobody needs is spared");
    publisher.register("stock", 1).await;
    assert_eq!(python.next().await.0, "SetupAckRequest");
    assert_eq!(python.next_ports().await, [1], "the large one was passed over");
    assert_eq!(server.log().matches("larger than this SDK reads").count(), 1);
    publisher.ask("BatchInstanceRequest", batch(2)).await;
    assert_eq!(python.next().await.1["serviceInfo"]["hosts"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_subscribers_all_hear_of_a_change() {
    let server = Server::start().await;
    let publisher = Sdk::connect(server.grpc).await;
    let mut subscribers = Vec::new();
    for _ in 0..200 {
        let sdk = Sdk::connect(server.grpc).await;
        sdk.subscribe("orders", "").await;
        subscribers.push(sdk);
    }
    for round in 1..=3 {
        publisher.batch("orders", &(1..=100 + round).collect::<Vec<_>>()).await;
        for subscriber in &mut subscribers {
            let wanted: Vec<_> = (1..=100 + round).collect();
            subscriber.until_ports(&wanted).await;
        }
    }
}
