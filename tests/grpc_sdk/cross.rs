//! Several protocols at one registry.

use std::time::Duration;

use super::{
    client::{Sdk, ports},
    server::{Server, wait_until},
};

const ONE: &str = "serviceName=orders&ip=10.0.0.7&port=1";

#[tokio::test]
async fn what_comes_by_http_is_pushed_to_sdks_and_the_reverse() {
    let server = Server::start().await;
    let mut sdk = Sdk::connect(server.grpc).await;
    sdk.subscribe("orders", "").await;
    assert_eq!(server.call("POST", &format!("/nacos/v1/ns/instance?{ONE}")).await.1, "ok");
    assert_eq!(sdk.next_ports().await, [1]);
    sdk.register("orders", 2).await;
    assert_eq!(server.ports("orders").await, [1, 2]);
    sdk.until_ports(&[1, 2]).await;
    assert_eq!(server.call("DELETE", &format!("/nacos/v1/ns/instance?{ONE}")).await.1, "ok");
    sdk.until_ports(&[2]).await;
}

/// P7: one instance that is registered both ways stays until both have ended.
#[tokio::test]
async fn one_instance_by_http_and_by_a_connection() {
    let server = Server::start().await;
    let register = format!("/nacos/v1/ns/instance?{ONE}");
    let sdk = Sdk::connect(server.grpc).await;
    assert_eq!(server.call("POST", &register).await.1, "ok");
    sdk.register("orders", 1).await;
    assert_eq!(server.ports("orders").await, [1]);
    assert_eq!(server.call("DELETE", &register).await.1, "ok");
    assert_eq!(server.ports("orders").await, [1]);
    assert_eq!(server.call("POST", &register).await.1, "ok");
    sdk.cut().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.ports("orders").await, [1]);
    assert_eq!(server.call("DELETE", &register).await.1, "ok");
    assert_eq!(server.ports("orders").await, [0; 0]);
}

/// A beat-kept instance that goes silent is pushed to SDKs as unhealthy, then as gone.
#[tokio::test]
async fn silence_of_a_beat_source_is_pushed() {
    let server = Server::with(&["registry.expiry_scan=50ms"]).await;
    let mut sdk = Sdk::connect(server.grpc).await;
    sdk.subscribe("orders", "").await;
    let periods = "metadata=%7B%22preserved.heart.beat.interval%22%3A%22100%22%2C\
                   %22preserved.heart.beat.timeout%22%3A%22300%22%2C%22preserved.ip.delete.timeout%22%3A%22900%22%7D";
    assert_eq!(server.call("POST", &format!("/nacos/v1/ns/instance?{ONE}&{periods}")).await.1, "ok");
    assert_eq!(sdk.next_ports().await, [1]);
    let (_, push) = sdk.next().await;
    assert_eq!((ports(&push), push["serviceInfo"]["hosts"][0]["healthy"].as_bool()), (vec![1], Some(false)));
    assert_eq!(sdk.next_ports().await, [0; 0]);
}

/// After a crash of the server clients find their transport bare, set up anew and are listed again.
#[tokio::test]
async fn registrations_end_with_the_server() {
    let server = Server::start().await;
    let mut sdk = Sdk::connect(server.grpc).await;
    sdk.register("orders", 1).await;
    server.signal("-KILL");
    assert_ne!(sdk.end().await.code(), tonic::Code::Ok);
    let again = Server::start().await;
    let sdk = Sdk::connect(again.grpc).await;
    sdk.register("orders", 1).await;
    wait_until(async || again.ports("orders").await, |ports| ports == &[1]).await;
}

/// What SDKs call by HTTP beside gRPC.
#[tokio::test]
async fn companions_over_http_answer_as_sdks_expect() {
    let server = Server::start().await;
    for path in ["/nacos/v3/auth/user/login", "/nacos/v1/auth/users/login", "/nacos/v1/auth/login"] {
        let (status, body) = server.call("POST", &format!("{path}?username=svc&password=x")).await;
        assert_eq!(status, 200, "{path}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert!(body["accessToken"].is_string() && body["tokenTtl"].is_u64(), "{path}: {body}");
        assert_eq!(body["username"], "svc");
    }
    let (status, body) = server.call("GET", "/nacos/v3/admin/core/state/liveness").await;
    assert_eq!((status, body.contains("\"ok\"")), (200, true));
}

#[tokio::test]
async fn subscribers_and_metrics_are_shown() {
    let server = Server::start().await;
    let mut sdk = Sdk::with(server.grpc, &super::client::java()).await;
    sdk.subscribe("orders", "").await;
    let (_, listed) = server.call("GET", "/nacos/v1/ns/service/subscribers?serviceName=orders").await;
    for part in ["Nacos-Java-Client:v3.0.3", "shop", "127.0.0.1"] {
        assert!(listed.contains(part), "{part} is not in {listed}");
    }
    sdk.register("orders", 1).await;
    sdk.until_ports(&[1]).await;
    let shown = wait_until(
        async || server.call("GET", "/metrics").await.1,
        |text| text.contains("nomina_sdk_pushes_acknowledged_total 1"),
    )
    .await;
    for line in [
        "nomina_sdk_connections 1",
        "nomina_push_subscribers{protocol=\"sdk\"} 1",
        "nomina_sdk_requests_total{request=\"InstanceRequest\",code=\"0\"} 1",
    ] {
        assert!(shown.lines().any(|own| own == line), "{line} is not in {shown}");
    }
}
