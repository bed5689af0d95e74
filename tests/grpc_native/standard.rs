//! Health, reflection, and the end of the process.

use std::time::{Duration, Instant};

use nomina::wire::pb;
use rustix::process::Signal;
use tokio_stream::StreamExt;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tonic_reflection::pb::{v1, v1alpha};

use crate::{Native, assert_refused, service, support::wait::SOON, wait_until};

const SERVICES: [&str; 4] = [
    "nomina.registry.v1.CatalogService",
    "nomina.registry.v1.OperatorService",
    "nomina.registry.v1.RegistryService",
    "nomina.registry.v1.ClusterService",
];

#[tokio::test]
async fn health_is_told_for_the_server_and_for_each_service() {
    let native = Native::start().await;
    let mut health = HealthClient::new(native.channel.clone());
    for name in SERVICES.into_iter().chain([""]) {
        let answer = health.check(HealthCheckRequest { service: name.into() }).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{name}");
    }
    let unknown = health.check(HealthCheckRequest { service: "none".into() }).await;
    assert_refused(unknown, Code::NotFound, "service");
}

#[tokio::test]
async fn reflection_describes_every_service_in_both_versions() {
    let native = Native::start().await;
    {
        use v1::{
            server_reflection_client::ServerReflectionClient, server_reflection_request::MessageRequest,
            server_reflection_response::MessageResponse,
        };
        let ask = |request| v1::ServerReflectionRequest { host: String::new(), message_request: Some(request) };
        let requests = tokio_stream::iter([
            ask(MessageRequest::ListServices(String::new())),
            ask(MessageRequest::FileContainingSymbol(SERVICES[2].into())),
            ask(MessageRequest::FileContainingSymbol("google.protobuf.FieldMask".into())),
            ask(MessageRequest::FileContainingSymbol("nomina.registry.v1.RegistryService.WatchService".into())),
        ]);
        let mut client = ServerReflectionClient::new(native.channel.clone());
        let mut answers = client.server_reflection_info(requests).await.unwrap().into_inner();
        let Some(MessageResponse::ListServicesResponse(list)) =
            answers.message().await.unwrap().unwrap().message_response
        else {
            panic!("no list")
        };
        let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
        for name in SERVICES.into_iter().chain(["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"]) {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
        for _ in 0..3 {
            let answer = answers.message().await.unwrap().unwrap().message_response;
            assert!(matches!(answer, Some(MessageResponse::FileDescriptorResponse(_))), "{answer:?}");
        }
    }
    {
        use v1alpha::{
            server_reflection_client::ServerReflectionClient, server_reflection_request::MessageRequest,
            server_reflection_response::MessageResponse,
        };
        let request = v1alpha::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut client = ServerReflectionClient::new(native.channel.clone());
        let mut answers = client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response;
        let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("no list: {answer:?}") };
        assert!(list.service.iter().any(|service| service.name == SERVICES[0]));
    }
}

/// What members say to each other is for the peer port, where they have to prove themselves.
#[tokio::test]
async fn the_service_of_members_is_neither_served_nor_described_on_the_client_port() {
    use pb::peer::{ForwardRequest, ListOrphansRequest, peer_service_client::PeerServiceClient};
    use v1::{
        server_reflection_client::ServerReflectionClient, server_reflection_request::MessageRequest,
        server_reflection_response::MessageResponse,
    };
    let native = Native::start().await;
    let mut peer = PeerServiceClient::new(native.channel.clone());
    let link = peer.link(tokio_stream::empty()).await.map(|_| ());
    let forward = peer.forward(ForwardRequest::default()).await.map(|_| ());
    let orphans = peer.list_orphans(ListOrphansRequest::default()).await.map(|_| ());
    for answer in [link, forward, orphans] {
        assert_eq!(answer.unwrap_err().code(), Code::Unimplemented);
    }
    let ask = |request| v1::ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let requests = tokio_stream::iter([
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("nomina.peer.v1.PeerService".into())),
        ask(MessageRequest::FileByFilename("nomina/peer/v1/peer.proto".into())),
    ]);
    let mut client = ServerReflectionClient::new(native.channel.clone());
    let mut answers = client.server_reflection_info(requests).await.unwrap().into_inner();
    let list = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(list)) = list else { panic!("no list: {list:?}") };
    assert!(list.service.iter().all(|service| !service.name.contains("peer")), "{list:?}");
    while let Some(answer) = answers.next().await {
        match answer.map(|answer| answer.message_response) {
            Ok(Some(MessageResponse::ErrorResponse(_))) => {}
            Err(status) => assert_eq!(status.code(), Code::NotFound),
            Ok(other) => panic!("described: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_every_open_stream_and_the_process() {
    let mut native = Native::start().await;
    let request = pb::WatchServiceRequest { key: Some(service("s")), ..Default::default() };
    let mut watch = native.registry.watch_service(request).await.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();
    let open = tokio_stream::pending::<pb::StreamBeatsRequest>();
    let mut beats = native.registry.stream_beats(open).await.unwrap().into_inner();
    let mut health = HealthClient::new(native.channel.clone());
    let mut health = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(health.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let mut reflection = v1::server_reflection_client::ServerReflectionClient::new(native.channel.clone());
    let open = tokio_stream::pending::<v1::ServerReflectionRequest>();
    let mut reflection = reflection.server_reflection_info(open).await.unwrap().into_inner();

    let start = Instant::now();
    native.node.signal(Signal::TERM);
    assert_refused(watch.message().await, Code::Unavailable, "");
    assert_refused(beats.message().await, Code::Unavailable, "");
    let ended = reflection.message().await;
    assert!(
        matches!(&ended, Ok(None)) || ended.as_ref().is_err_and(|end| end.code() == Code::Unavailable),
        "{ended:?}"
    );
    assert_eq!(health.next().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(health.next().await.is_none());
    let status = tokio::task::block_in_place(|| native.node.ended(SOON));
    assert!(status.success());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn connections_beyond_the_bound_are_closed_until_there_is_room() {
    let native = Native::with(&["grpc.max_connections=1"]).await;
    let check = |channel| async move {
        let answer = HealthClient::new(channel).check(HealthCheckRequest::default()).await?;
        Ok::<_, tonic::Status>(answer.into_inner().status())
    };
    assert_eq!(check(native.channel.clone()).await.unwrap(), ServingStatus::Serving);
    let address = format!("http://{}", native.node.grpc());
    let second = || check(tonic::transport::Endpoint::from_shared(address.clone()).unwrap().connect_lazy());
    assert!(second().await.is_err());
    let Native { node: _node, channel, registry, catalog, operator } = native;
    drop((channel, registry, catalog, operator));
    assert_eq!(wait_until("there is room", second).await, ServingStatus::Serving);
}
