//! The native gRPC API, through the real binary and tonic clients.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time")]

mod beats;
mod catalog;
mod cluster;
mod hostile;
mod instances;
mod operator;
mod standard;
#[path = "../support/mod.rs"]
mod support;
mod watch;
mod web;

use nomina::wire::pb::{
    self, catalog_service_client::CatalogServiceClient, operator_service_client::OperatorServiceClient,
    registry_service_client::RegistryServiceClient,
};
use std::{fmt::Debug, future::Future, time::Duration};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

use crate::support::{server::Server, wait::SOON};

/// A node and clients of its services, all on one connection.
struct Native {
    node: Server,
    channel: Channel,
    registry: RegistryServiceClient<Channel>,
    catalog: CatalogServiceClient<Channel>,
    operator: OperatorServiceClient<Channel>,
}

impl Native {
    async fn start() -> Self {
        Self::with(&[]).await
    }

    async fn with(settings: &[&str]) -> Self {
        let node = Server::with(settings);
        let channel = connect(&node).await;
        Self {
            registry: RegistryServiceClient::new(channel.clone()),
            catalog: CatalogServiceClient::new(channel.clone()),
            operator: OperatorServiceClient::new(channel.clone()),
            channel,
            node,
        }
    }

    async fn register(&mut self, key: pb::InstanceKey, spec: pb::InstanceSpec) -> pb::RegisterInstanceResponse {
        let request = pb::RegisterInstanceRequest { key: Some(key), spec: Some(spec) };
        self.registry.register_instance(request).await.unwrap().into_inner()
    }

    async fn list(&mut self, request: pb::ListInstancesRequest) -> pb::ListInstancesResponse {
        self.registry.list_instances(request).await.unwrap().into_inner()
    }
}

async fn connect(node: &Server) -> Channel {
    Channel::from_shared(format!("http://{}", node.grpc())).unwrap().connect().await.unwrap()
}

fn service(name: &str) -> pb::ServiceKey {
    pb::ServiceKey { service: name.to_owned(), ..Default::default() }
}

fn instance(service: &str, port: u32) -> pb::InstanceKey {
    pb::InstanceKey { service: service.to_owned(), ip: "10.0.0.1".to_owned(), port, ..Default::default() }
}

fn in_cluster(service: &str, port: u32, cluster: &str) -> pb::InstanceKey {
    pb::InstanceKey { cluster: cluster.to_owned(), ..instance(service, port) }
}

fn list_of(name: &str) -> pb::ListInstancesRequest {
    pb::ListInstancesRequest { key: Some(service(name)), ..Default::default() }
}

fn map(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn millis(ms: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: (ms / 1_000).into(), nanos: ms % 1_000 * 1_000_000 })
}

fn mask(paths: &[&str]) -> Option<prost_types::FieldMask> {
    Some(prost_types::FieldMask { paths: paths.iter().map(|&path| path.to_owned()).collect() })
}

/// Checks code, `ErrorInfo` and the field that `BadRequest` names ("" for none).
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, field: &str) -> Status {
    let status = answer.expect_err("it must be refused");
    assert_eq!(status.code(), code, "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().expect("ErrorInfo").domain, "nomina", "{status:?}");
    let named = details.bad_request().map_or("", |bad| bad.field_violations[0].field.as_str());
    assert_eq!(named, field, "{status:?}");
    status
}

/// Asks again and again until the answer is `Ok`; panics with the last `Err` if that takes too long.
async fn wait_until<T, E: Debug, F: Future<Output = Result<T, E>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        match ask().await {
            Ok(value) => return value,
            Err(state) if tokio::time::Instant::now() > deadline => panic!("waited in vain until {what}: {state:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
