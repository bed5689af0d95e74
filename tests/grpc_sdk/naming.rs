//! Registering, batches, deregistering, queries, lists.

use serde_json::{Value, json};

use super::{
    client::{Sdk, instance, instance_request, ports, subscribe_request},
    server::{Server, wait_until},
};

fn error_of(answer: &(String, Value)) -> (&str, u64) {
    (answer.0.as_str(), answer.1["errorCode"].as_u64().unwrap())
}

/// Row 19 and item 7 of the checklist: a single registration replaces, a batch replaces all.
#[tokio::test]
async fn one_connection_publishes_what_it_said_last() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    for port in [8001, 8002, 8003] {
        sdk.register("orders", port).await;
    }
    assert_eq!(server.ports("orders").await, [8003]);
    sdk.batch("orders", &[8001, 8002, 8003]).await;
    assert_eq!(ports(&sdk.query("orders").await), [8001, 8002, 8003]);
    sdk.batch("orders", &[8002]).await;
    assert_eq!(server.ports("orders").await, [8002]);
    sdk.batch("orders", &[]).await;
    assert_eq!(server.ports("orders").await, [0; 0]);
    sdk.register("orders", 1).await;
    sdk.register("orders", 2).await;
    sdk.deregister("orders", 1).await;
    assert_eq!(server.ports("orders").await, [0; 0]);
    sdk.deregister("orders", 1).await;
    sdk.deregister("nobody", 1).await;
}

/// Row 20.
#[tokio::test]
async fn one_of_a_batch_leaves_alone() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    sdk.batch("orders", &[1, 2, 3, 4, 5]).await;
    // As Go writes it.
    let go = json!({"requestId": "", "namespace": "public", "serviceName": "orders", "groupName": "DEFAULT_GROUP",
        "type": "deregisterInstance", "instance": {"instanceId": "", "ip": "10.0.0.7", "port": 3, "weight": 0,
        "healthy": false, "enabled": false, "metadata": null, "clusterName": ""}});
    assert_eq!(error_of(&sdk.ask("InstanceRequest", go).await), ("InstanceResponse", 0));
    assert_eq!(server.ports("orders").await, [1, 2, 4, 5]);
    sdk.batch("orders", &[6, 7]).await;
    assert_eq!(server.ports("orders").await, [6, 7]);
    sdk.cut().await;
    wait_until(async || server.ports("orders").await, Vec::is_empty).await;
}

/// Item 8 of the checklist.
#[tokio::test]
async fn two_connections_publish_one_instance() {
    let server = Server::start().await;
    let (first, second) = (Sdk::connect(server.grpc).await, Sdk::connect(server.grpc).await);
    first.register("orders", 1).await;
    second.register("orders", 1).await;
    assert_eq!(server.ports("orders").await, [1]);
    first.cut().await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(server.ports("orders").await, [1]);
    second.cut().await;
    wait_until(async || server.ports("orders").await, Vec::is_empty).await;
}

/// Row 11: the limit of metadata is generous, and a refusal names it.
#[tokio::test]
async fn metadata_is_bounded_and_never_cut() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    for (size, good) in [(900, true), (1_100, true), (8_192, true), (200_000, false)] {
        let mut request = instance_request("registerInstance", "orders", 1);
        request["instance"]["metadata"] = json!({"k": "v".repeat(size)});
        let answer = sdk.ask("InstanceRequest", request).await;
        if good {
            assert_eq!(error_of(&answer), ("InstanceResponse", 0), "{size}");
            let listed = sdk.query("orders").await;
            let value = listed["serviceInfo"]["hosts"][0]["metadata"]["k"].as_str().unwrap().len();
            assert_eq!(value, size);
        } else {
            assert_eq!(error_of(&answer), ("InstanceResponse", 400));
            let message = answer.1["message"].as_str().unwrap();
            assert!(message.contains("65536") && message.contains("200001"), "{message}");
        }
    }
}

/// P1 and its like: what is not allowed is refused, typed, whole batches with it.
#[tokio::test]
async fn bad_arguments_are_refused_typed() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    sdk.batch("orders", &[1, 2]).await;
    for (pointer, value) in [
        ("/instance/weight", json!("NaN")),
        ("/instance/weight", json!(-1)),
        ("/instance/weight", json!(10_001)),
        ("/instance/port", json!(65_536)),
        ("/instance/port", json!(-1)),
        ("/instance/ip", json!("")),
        ("/instance/ip", json!("999.1.1.1")),
        ("/instance/clusterName", json!("a b")),
        ("/instance/metadata", json!({"preserved.heart.beat.interval": "x"})),
        ("/serviceName", json!("")),
        ("/serviceName", json!("g@@s")),
        ("/groupName", json!("a b")),
        ("/namespace", json!("a b")),
    ] {
        let mut request = instance_request("registerInstance", "orders", 3);
        *request.pointer_mut(pointer).unwrap() = value.clone();
        let answer = sdk.ask("InstanceRequest", request.clone()).await;
        assert_eq!(error_of(&answer), ("InstanceResponse", 400), "{pointer} {value}");
        assert_eq!((&answer.1["resultCode"], &answer.1["success"]), (&json!(500), &json!(false)));

        let instances = json!([instance(4), request["instance"]]);
        request["type"] = json!("batchRegisterInstance");
        request["instances"] = instances;
        let answer = sdk.ask("BatchInstanceRequest", request).await;
        assert_eq!(error_of(&answer), ("BatchInstanceResponse", 400), "{pointer} {value}");
    }
    assert_eq!(server.ports("orders").await, [1, 2]);
    for request in ["ServiceQueryRequest", "SubscribeServiceRequest"] {
        let (_, body) = sdk.ask(request, subscribe_request("", "", true)).await;
        assert_eq!(body["errorCode"], 400);
        assert_eq!(ports(&body), [0; 0]);
    }
    let (kind, body) = sdk.ask("ServiceListRequest", json!({"groupName": "a b"})).await;
    assert_eq!((kind.as_str(), &body["serviceNames"]), ("ServiceListResponse", &json!([])));
    assert_eq!(body["errorCode"], 400);
}

/// Persistent instances do not exist yet: refused so that nobody takes it for success.
#[tokio::test]
async fn persistent_instances_are_refused_clearly() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    let mut request = instance_request("registerInstance", "orders", 1);
    request["instance"]["ephemeral"] = json!(false);
    let answer = sdk.ask("PersistentInstanceRequest", request).await;
    assert_eq!(error_of(&answer), ("InstanceResponse", 501));
    assert!(answer.1["message"].as_str().unwrap().contains("not available"), "{}", answer.1);
    let request = instance_request("deregisterInstance", "orders", 1);
    assert_eq!(error_of(&sdk.ask("PersistentInstanceRequest", request).await), ("InstanceResponse", 0));
    // A service with ephemeral instances takes no others: the words of the original.
    sdk.register("orders", 1).await;
    let answer = sdk.ask("PersistentInstanceRequest", instance_request("registerInstance", "orders", 2)).await;
    assert_eq!(error_of(&answer), ("ErrorResponse", 400));
    assert_eq!(answer.1["resultCode"], 400);
    assert!(answer.1["message"].as_str().unwrap().contains("is ephemeral service, can't register persistent instance"));
}

/// Rows 37, 38, 40.
#[tokio::test]
async fn lists_have_their_full_form_whatever_there_is() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    let unknown = sdk.subscribe("nope", "").await;
    assert_eq!(ports(&unknown), [0; 0]);
    assert_eq!(unknown["serviceInfo"]["name"], "nope");
    assert_eq!(unknown["serviceInfo"]["groupName"], "DEFAULT_GROUP");
    assert_eq!(ports(&sdk.query("nope").await), [0; 0]);
    let (_, gone) = sdk.ask("SubscribeServiceRequest", subscribe_request("nope", "", false)).await;
    assert_eq!(ports(&gone), [0; 0]);
    let (_, names) = sdk.ask("ServiceListRequest", json!({"namespace": "", "pageNo": 1, "pageSize": 10})).await;
    assert_eq!((&names["count"], &names["serviceNames"]), (&json!(0), &json!([])), "no phantom service");

    sdk.batch("orders", &[1, 2]).await;
    let put = "/nacos/v1/ns/instance?serviceName=orders&ip=10.0.0.7&port=1&enabled=false";
    assert_eq!(server.call("PUT", put).await, (200, "ok".to_owned()));
    assert_eq!(ports(&sdk.query("orders").await), [2]);
    assert_eq!(ports(&sdk.subscribe("orders", "").await), [2]);
    let host = &sdk.query("orders").await["serviceInfo"]["hosts"][0];
    assert_eq!(
        host,
        &json!({"instanceId": "10.0.0.7#2#DEFAULT#DEFAULT_GROUP@@orders", "ip": "10.0.0.7", "port": 2, "weight": 1.0,
            "healthy": true, "enabled": true, "ephemeral": true, "clusterName": "DEFAULT",
            "serviceName": "DEFAULT_GROUP@@orders", "metadata": {"zone": "a"}, "instanceHeartBeatInterval": 5000,
            "instanceHeartBeatTimeOut": 15000, "ipDeleteTimeout": 30000})
    );
}

/// `healthOnly` is how Python 3 spells it; unhealthy instances are delivered unless they are not wanted.
#[tokio::test]
async fn only_healthy_ones_if_asked() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    let mut sick = instance(2);
    sick["healthy"] = json!(false);
    let batch = json!({"serviceName": "orders", "type": "batchRegisterInstance", "instances": [instance(1), sick]});
    sdk.ask("BatchInstanceRequest", batch).await;
    assert_eq!(ports(&sdk.query("orders").await), [1, 2]);
    for key in ["healthyOnly", "healthOnly"] {
        let (_, body) = sdk.ask("ServiceQueryRequest", json!({"serviceName": "orders", key: true})).await;
        assert_eq!(ports(&body), [1], "{key}");
    }
}

/// Item 14 of the checklist, and paging.
#[tokio::test]
async fn names_are_listed_by_group_and_page() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    for name in ["b", "a", "c", "providers:com.acme.Foo::"] {
        sdk.register(name, 1).await;
    }
    let mut other = instance_request("registerInstance", "x", 1);
    other["groupName"] = json!("other");
    sdk.ask("InstanceRequest", other).await;
    for namespace in ["", "public"] {
        let body =
            json!({"namespace": namespace, "groupName": "DEFAULT_GROUP", "pageNo": 0, "pageSize": 10, "selector": ""});
        let (_, body) = sdk.ask("ServiceListRequest", body).await;
        assert_eq!(body["count"], 4);
        assert_eq!(body["serviceNames"], json!(["a", "b", "c", "providers:com.acme.Foo::"]));
    }
    let (_, page) = sdk.ask("ServiceListRequest", json!({"pageNo": 2.0, "pageSize": 3})).await;
    assert_eq!((&page["count"], &page["serviceNames"]), (&json!(4), &json!(["providers:com.acme.Foo::"])));
    let (_, page) = sdk.ask("ServiceListRequest", json!({"pageNo": 9, "pageSize": 3})).await;
    assert_eq!((&page["count"], &page["serviceNames"]), (&json!(4), &json!([])));
}

/// Row 22: an operator's word survives a connection that breaks, and ends with an explicit removal.
#[tokio::test]
async fn overlays_outlive_a_broken_connection_only() {
    let server = Server::start().await;
    let put = "/nacos/v1/ns/instance?serviceName=orders&ip=10.0.0.7&port=1&weight=0";
    let weight = async |sdk: &Sdk| sdk.query("orders").await["serviceInfo"]["hosts"][0]["weight"].as_f64();
    let first = Sdk::connect(server.grpc).await;
    first.register("orders", 1).await;
    assert_eq!(server.call("PUT", put).await.1, "ok");
    assert_eq!(weight(&first).await, Some(0.0));
    first.cut().await;
    wait_until(async || server.ports("orders").await, Vec::is_empty).await;
    let second = Sdk::connect(server.grpc).await;
    second.register("orders", 1).await;
    assert_eq!(weight(&second).await, Some(0.0));
    second.deregister("orders", 1).await;
    second.register("orders", 1).await;
    assert_eq!(weight(&second).await, Some(1.0));
}
