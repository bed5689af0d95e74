//! What one client may ask for, and what happens beyond it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    client::{Sdk, ask, channel, instance, payload, ports, raw_payload, subscribe_request},
    server::Server,
};

/// Item 15 of the checklist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_are_read_and_larger_ones_harm_nothing() {
    let server = Server::with(&["limits.metadata_bytes=16000000"]).await;
    let sdk = Sdk::connect(server.grpc).await;
    let sized = |size: usize| {
        let mut one = instance(1);
        one["metadata"] = json!({"k": "v".repeat(size)});
        json!({"serviceName": "orders", "type": "batchRegisterInstance", "instances": [one]})
    };
    let (kind, body) = sdk.ask("BatchInstanceRequest", sized(9 * 1024 * 1024)).await;
    assert_eq!((kind.as_str(), &body["errorCode"]), ("BatchInstanceResponse", &json!(0)));
    let refused = ask(&sdk.channel, payload("BatchInstanceRequest", &sized(11 * 1024 * 1024))).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    sdk.register("orders", 2).await;
    assert_eq!(server.ports("orders").await, [2]);
}

/// Bytes that are no Payload end the call, not the connection.
#[tokio::test]
async fn what_is_no_payload_ends_the_call_only() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    let mut grpc = tonic::client::Grpc::new(sdk.channel.clone());
    for garbage in [vec![0xff; 10], vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        grpc.ready().await.unwrap();
        let path = http::uri::PathAndQuery::from_static("/Request/request");
        let status = grpc.unary(tonic::Request::new(garbage), path, Raw).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
    }
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/Request/other");
    let status = grpc.unary(tonic::Request::new(Vec::new()), path, Raw).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
    sdk.register("orders", 1).await;
}

/// Writes bytes as they are.
#[derive(Clone, Copy)]
struct Raw;

impl tonic::codec::Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl tonic::codec::Encoder for Raw {
    type Item = Vec<u8>;
    type Error = tonic::Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut tonic::codec::EncodeBuf<'_>) -> Result<(), tonic::Status> {
        bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }
}

impl tonic::codec::Decoder for Raw {
    type Item = ();
    type Error = tonic::Status;

    fn decode(&mut self, _: &mut tonic::codec::DecodeBuf<'_>) -> Result<Option<()>, tonic::Status> {
        Ok(Some(()))
    }
}

#[tokio::test]
async fn subscriptions_are_bounded_and_the_refusal_is_typed_and_slow() {
    let server = Server::with(&["sdk.max_subscriptions=2"]).await;
    let sdk = Sdk::connect(server.grpc).await;
    sdk.subscribe("a", "").await;
    sdk.subscribe("b", "").await;
    sdk.subscribe("b", "").await;
    let started = Instant::now();
    let (kind, body) = sdk.ask("SubscribeServiceRequest", subscribe_request("c", "", true)).await;
    assert_eq!((kind.as_str(), &body["errorCode"]), ("SubscribeServiceResponse", &json!(503)));
    assert!(body["message"].as_str().unwrap().contains("sdk.max_subscriptions"));
    assert_eq!(ports(&body), [0; 0]);
    assert!(started.elapsed() >= Duration::from_secs(1), "clients that try again at once are slowed down");
    sdk.ask("SubscribeServiceRequest", subscribe_request("a", "", false)).await;
    sdk.subscribe("c", "").await;
}

#[tokio::test]
async fn connections_from_one_address_are_bounded() {
    let server = Server::with(&["grpc.max_connections_per_address=2"]).await;
    let first = Sdk::connect(server.grpc).await;
    let _second = Sdk::connect(server.grpc).await;
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", server.grpc)).unwrap();
    if let Ok(third) = endpoint.connect().await {
        assert!(ask(&third, payload("ServerCheckRequest", &json!({}))).await.is_err());
    }
    first.cut().await;
    let check = async || {
        let endpoint = endpoint.clone();
        let Ok(third) = endpoint.connect().await else { return Err(String::new()) };
        ask(&third, payload("ServerCheckRequest", &json!({}))).await.map_err(|status| status.to_string())
    };
    assert!(super::server::wait_until(check, Result::is_ok).await.is_ok());
}

/// Every type with every kind of body: an answer or a refusal, never the end of the connection.
#[tokio::test]
async fn no_body_of_any_type_ends_the_connection() {
    let server = Server::start().await;
    let sdk = Sdk::connect(server.grpc).await;
    let bodies: Vec<Value> = vec![
        json!({}),
        json!({"type": null, "instance": {}, "instances": [null, {}], "serviceName": null}),
        json!({"type": "registerInstance", "instance": {"ip": "a".repeat(10_000)}, "serviceName": "s"}),
        json!({"serviceName": "\u{0}\u{1f}\"\\", "groupName": "\u{7f}", "namespace": " "}),
        json!({"serviceName": "s", "clusters": ",,,", "cluster": ",".repeat(10_000), "subscribe": "true"}),
        json!({"pageNo": i64::MAX, "pageSize": i64::MAX}),
        json!({"pageNo": -1, "pageSize": -1}),
        json!({"groupKeyPattern": ">>>>", "watchType": "WATCH", "receivedGroupKeys": ["", "@@", "a@@b@@c@@d"]}),
        json!({"requestId": {"a": 1}}),
        json!({"headers": [1, 2, 3]}),
    ];
    for kind in nomina::wire::sdk::Kind::ALL {
        for body in &bodies {
            let answer = ask(&sdk.channel, payload(kind.request(), body)).await;
            assert!(answer.is_ok(), "{} {body}: {answer:?}", kind.request());
        }
        let answer = ask(&sdk.channel, raw_payload(kind.request(), vec![b' '; 100_000])).await;
        assert!(answer.is_ok());
    }
    let channel = channel(server.grpc).await;
    assert!(ask(&channel, payload("ServerCheckRequest", &json!({}))).await.is_ok());
    sdk.register("orders", 1).await;
}
