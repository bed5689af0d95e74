//! Three healthy nodes: whatever a client does at one of them is soon true at all.

use std::{
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use nomina::wire::pb::{self, registry_service_client::RegistryServiceClient, watch_service_response::Event};
use serde_json::Value;
use tonic::Streaming;

use super::{
    client::Sdk,
    publishers::{Caller, Publishers},
    support::{
        cluster::Cluster,
        naming::periods,
        server::Server,
        wait::{SOON, wait_until},
    },
    witness::Witness,
};

#[test]
fn what_is_registered_at_one_is_listed_by_all_and_removed_through_another() {
    let cluster = Cluster::start();
    for (port, at) in [(1, 0), (2, 1), (3, 2)] {
        cluster.node(at).register("orders", "10.0.0.1", port, &[("metadata", "zone=a"), ("weight", "2.5")]);
    }
    cluster.await_ports(SOON, "orders", &[1, 2, 3]);
    cluster.await_equal(SOON, &["orders"]);
    for (port, at) in [(1, 1), (2, 2), (3, 0)] {
        cluster.node(at).deregister("orders", "10.0.0.1", port, &[]);
        assert!(!cluster.node(at).ports("orders", &[]).contains(&u64::from(port)), "gone where it was removed");
    }
    cluster.await_ports(SOON, "orders", &[]);
}

#[test]
fn beats_through_any_node_keep_instances_and_none_is_told_to_register_again() {
    let cluster = Cluster::start();
    let publishers = Publishers::start(&cluster.https(), "orders", 60);
    cluster.await_ports(SOON, "orders", &publishers.ports);
    let witness = Witness::start(&cluster.https(), &[("orders", &publishers.ports)]);
    // Well beyond the time after which an instance without beats is removed.
    std::thread::sleep(Duration::from_secs(12));
    witness.stop();
    publishers.stop();
    cluster.await_ports(SOON, "orders", &[]);
}

/// Row 61.
#[test]
fn who_has_registered_at_a_node_is_found_there_by_the_next_request_and_elsewhere_soon() {
    let cluster = Cluster::start();
    let nodes = cluster.https();
    let mut caller = Caller::new(&nodes, 1);
    let mut late = Vec::new();
    for port in 1..=300_u16 {
        let at = usize::from(port) % nodes.len();
        let (here, there) = (cluster.node(at), cluster.node((at + 1) % nodes.len()));
        let parameters = [("serviceName", "orders"), ("ip", "10.0.0.1"), ("port", &port.to_string())];
        let mut ask = |node: &Server, method, path| -> Value {
            let answer = caller.at(node.http(), &node.ns(method, path).params(&parameters)).unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            if answer.text() == "ok" { Value::Null } else { answer.json() }
        };
        ask(here, "POST", "/instance");
        let beat = ask(here, "PUT", "/instance/beat");
        assert_eq!(beat["code"], 10_200, "round {port}");
        let list = ask(here, "GET", "/instance/list");
        assert!(list["hosts"].as_array().unwrap().iter().any(|host| host["port"] == port), "round {port}: {list}");
        if ask(there, "PUT", "/instance/beat")["code"] != 10_200 {
            late.push(port);
        }
    }
    assert!(late.is_empty(), "the owner knows what it was told of: {late:?}");
    cluster.await_ports(SOON, "orders", &(1..=300).collect::<Vec<_>>());
}

/// Rows 19 and 20: what a connection publishes, seen from everywhere.
#[test]
fn what_a_connection_publishes_is_equal_everywhere() {
    let cluster = Cluster::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let instances = |expected: &[u64]| {
        cluster.await_ports(SOON, "batch", expected);
        let gauge = || {
            let line = format!("nomina_registry_instances {}", expected.len());
            cluster.running().map(|node| metrics(node).contains(&line)).collect::<Vec<_>>()
        };
        wait_until(SOON, gauge, |there| there.iter().all(|there| *there));
        cluster.await_equal(SOON, &["batch"]);
    };
    let sdk = runtime.block_on(Sdk::connect(cluster.node(0).grpc()));
    runtime.block_on(sdk.batch("batch", &[1, 2, 3, 4, 5]));
    instances(&[1, 2, 3, 4, 5]);
    runtime.block_on(sdk.deregister("batch", 3));
    instances(&[1, 2, 4, 5]);
    runtime.block_on(sdk.batch("batch", &[8, 9]));
    instances(&[8, 9]);
    for port in [8_001, 8_002, 8_003] {
        runtime.block_on(sdk.register("batch", port));
    }
    instances(&[8_003]);
    runtime.block_on(sdk.batch("batch", &[8_001, 8_002, 8_003]));
    instances(&[8_001, 8_002, 8_003]);
    runtime.block_on(sdk.cut());
    instances(&[]);
}

fn metrics(node: &Server) -> Vec<String> {
    node.call("GET", "/metrics").send().text().lines().map(str::to_owned).collect()
}

#[test]
fn who_watches_at_one_node_is_told_of_what_changes_at_another() {
    let cluster = Cluster::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (changed, watched) = (cluster.node(0), cluster.node(1));
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(SOON)).unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    let list = watched.get("/instance/list").header("User-Agent", "Nacos-Java-Client:v1.4.6");
    list.params(&[("serviceName", "orders"), ("udpPort", &port), ("clientIP", "127.0.0.1")]).send().json();
    let mut sdk = runtime.block_on(async {
        let sdk = Sdk::connect(watched.grpc()).await;
        sdk.subscribe("orders", "").await;
        sdk
    });
    let mut native = runtime.block_on(watch(watched.grpc(), "orders"));

    let began = Instant::now();
    changed.register("orders", "10.0.0.1", 7, &[("metadata", &periods(1_000, 60_000, 90_000))]);
    let mut datagram = vec![0; 64 * 1024];
    let read = udp.recv(&mut datagram).unwrap();
    assert!(read > 0);
    runtime.block_on(sdk.until_ports(&[7]));
    runtime.block_on(until_native(&mut native, 7));
    eprintln!("told by UDP, SDK and Watch after {:?}", began.elapsed());
}

async fn watch(address: SocketAddr, service: &str) -> Streaming<pb::WatchServiceResponse> {
    let mut client = RegistryServiceClient::new(super::client::channel(address).await);
    let key = pb::ServiceKey { service: service.to_owned(), ..pb::ServiceKey::default() };
    let request = pb::WatchServiceRequest { key: Some(key), ..pb::WatchServiceRequest::default() };
    client.watch_service(request).await.unwrap().into_inner()
}

async fn until_native(watch: &mut Streaming<pb::WatchServiceResponse>, port: u32) {
    loop {
        let message =
            tokio::time::timeout(SOON, watch.message()).await.expect("a message").unwrap().expect("a message");
        let instances = match message.event.expect("an event") {
            Event::Full(full) => full.instances,
            Event::Delta(delta) => delta.upserts,
        };
        if instances.iter().any(|instance| instance.port == port) {
            return;
        }
    }
}
