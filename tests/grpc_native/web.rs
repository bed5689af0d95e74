//! gRPC-Web on the HTTP port, by plain HTTP/1.1.

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use nomina::wire::pb;
use prost::Message;

use crate::{Native, instance, list_of, service};

/// Sends one message; the messages and the trailers of the answer.
async fn call(native: &Native, method: &str, message: &impl Message) -> (http::HeaderMap, Vec<Bytes>, String) {
    let mut body = vec![0];
    body.extend((message.encoded_len() as u32).to_be_bytes());
    body.extend(message.encode_to_vec());
    let request = http::Request::post(format!("http://{}/{method}", native.node.http()))
        .header("content-type", "application/grpc-web+proto")
        .header("x-grpc-web", "1")
        .header("origin", "http://console.example")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers().clone();
    let mut rest = response.into_body().collect().await.unwrap().to_bytes();
    let (mut messages, mut trailers) = (Vec::new(), String::new());
    while rest.remaining() >= 5 {
        let flag = rest.get_u8();
        let length = rest.get_u32() as usize;
        let frame = rest.split_to(length);
        if flag & 0x80 == 0 {
            messages.push(frame);
        } else {
            trailers = String::from_utf8(frame.to_vec()).unwrap();
        }
    }
    (headers, messages, trailers)
}

#[tokio::test]
async fn the_native_api_answers_grpc_web() {
    let mut native = Native::start().await;
    let register = pb::RegisterInstanceRequest { key: Some(instance("s", 1)), spec: None };
    let (headers, messages, trailers) =
        call(&native, "nomina.registry.v1.RegistryService/RegisterInstance", &register).await;
    assert_eq!(headers["content-type"], "application/grpc-web+proto");
    assert!(trailers.contains("grpc-status:0"), "{trailers}");
    let answer = pb::RegisterInstanceResponse::decode(messages[0].clone()).unwrap();
    assert_eq!(answer.instance.unwrap().port, 1);
    assert_eq!(native.list(list_of("s")).await.total_size, 1);
    assert!(!headers.contains_key("access-control-allow-origin"), "no page of another origin may call by default");

    let get = pb::GetServiceRequest { key: Some(service("none")) };
    let (headers, messages, trailers) = call(&native, "nomina.registry.v1.CatalogService/GetService", &get).await;
    assert!(messages.is_empty());
    let in_header = headers.get("grpc-status").is_some_and(|status| status == "5");
    assert!(in_header || trailers.contains("grpc-status:5"), "{headers:?} {trailers}");
}

#[tokio::test]
async fn pages_of_named_origins_may_call() {
    let native = Native::with(&[r#"http.web_origins=["http://console.example"]"#]).await;
    let get = pb::GetSwitchesRequest {};
    let (headers, messages, _) = call(&native, "nomina.registry.v1.OperatorService/GetSwitches", &get).await;
    assert_eq!(headers["access-control-allow-origin"], "http://console.example");
    assert_eq!(messages.len(), 1);
}

#[tokio::test]
async fn other_paths_of_the_http_port_are_untouched() {
    let native = Native::start().await;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let uri = format!("http://{}/nacos/v1/ns/instance/list?serviceName=s", native.node.http());
    let response = client.get(uri.parse().unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let uri = format!("http://{}/no/such/path", native.node.http());
    let response = client.get(uri.parse().unwrap()).await.unwrap();
    assert!(response.status().is_client_error() || response.status().is_server_error());
}
