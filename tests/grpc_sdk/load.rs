//! Many connections. Not run by default: `cargo test --release --test grpc_sdk load -- --ignored --nocapture`, with an open
//! file limit above the number of connections (`NOMINA_LOAD`, 5,000 if not set).

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use nomina::wire::sdk::pb::Payload;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use super::{
    client::{Sdk, Stream, ask, channel, go, instance_request, payload, raw_payload, stream, subscribe_request},
    server::{Server, wait_until},
};

/// Most pieces of set-up at once: what a machine with few cores does in a moment.
const AT_ONCE: usize = 64;

fn connections() -> usize {
    std::env::var("NOMINA_LOAD").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000)
}

/// Counts the pushes that each wave brings, and acknowledges them without looking at the list.
struct Light {
    channel: tonic::transport::Channel,
    out: mpsc::UnboundedSender<Payload>,
}

impl Light {
    async fn connect(address: SocketAddr, pushes: Arc<AtomicUsize>) -> Self {
        let channel = channel(address).await;
        let set_up = vec![payload("ConnectionSetupRequest", &go())];
        let Stream { out, mut from } = stream(&channel, set_up).await.unwrap();
        let back = out.downgrade();
        tokio::spawn(async move {
            while let Ok(Some(message)) = from.message().await {
                let kind = message.metadata.unwrap().r#type;
                let body = message.body.unwrap().value;
                let head = String::from_utf8_lossy(&body[..body.len().min(64)]).into_owned();
                let id = head.split("\"requestId\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
                if kind == "NotifySubscriberRequest" {
                    pushes.fetch_add(1, SeqCst);
                }
                if let Some(back) = back.upgrade() {
                    let ack = format!("{{\"resultCode\":200,\"requestId\":\"{id}\"}}").into_bytes();
                    let _ = back.send(raw_payload(&kind.replace("Request", "Response"), ack));
                }
            }
        });
        Self { channel, out }
    }
}

async fn connect_all(
    address: SocketAddr,
    pushes: &Arc<AtomicUsize>,
    first: usize,
    each: impl Fn(usize) -> Vec<Payload>,
) -> Vec<Light> {
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = (first..first + connections())
        .map(|number| {
            let (gate, pushes, requests) = (gate.clone(), pushes.clone(), each(number));
            tokio::spawn(async move {
                let _turn = gate.acquire_owned().await.unwrap();
                let light = Light::connect(address, pushes).await;
                for request in requests {
                    let (kind, body) = ask(&light.channel, request).await.unwrap();
                    assert_eq!(body["errorCode"], 0, "{kind} {body}");
                }
                light
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    all
}

fn resident_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

fn cpu_ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// One service of 500 instances, a change every second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a machine for itself"]
async fn load_of_subscribers_of_one_service() {
    let server = Server::start().await;
    let publisher = Sdk::connect(server.grpc).await;
    publisher.batch("orders", &(1..=500).collect::<Vec<_>>()).await;
    let pushes = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let all = connect_all(server.grpc, &pushes, 0, |_| {
        vec![payload("SubscribeServiceRequest", &subscribe_request("orders", "", true))]
    })
    .await;
    eprintln!("{} subscribed in {:?}, {} MiB", all.len(), started.elapsed(), resident_mib(&server));
    for round in 0..5 {
        let (before, ticks) = (pushes.load(SeqCst), cpu_ticks(&server));
        publisher.batch("orders", &(1..=499 + round % 2).collect::<Vec<_>>()).await;
        let changed = Instant::now();
        wait_until(async || pushes.load(SeqCst) - before, |count| *count >= all.len()).await;
        let last = changed.elapsed();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let ticks = cpu_ticks(&server) - ticks;
        eprintln!("last of {} after {last:?}, {ticks} ticks of CPU, {} MiB", all.len(), resident_mib(&server));
    }
    drop(all);
    wait_until(async || server.call("GET", "/metrics").await.1, |text| text.contains("nomina_sdk_connections 1\n"))
        .await;
    eprintln!("after all have left: {} MiB", resident_mib(&server));
}

/// All publish and subscribe; the server is killed; all come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a machine for itself"]
async fn load_of_a_reconnect_storm() {
    let pushes = Arc::new(AtomicUsize::new(0));
    let requests = |number: usize| {
        let service = format!("s{}", number % 1_000);
        let mut register = instance_request("registerInstance", &service, 80);
        register["instance"]["ip"] = json!(format!("10.{}.{}.7", number / 250, number % 250));
        vec![
            payload("InstanceRequest", &register),
            payload("SubscribeServiceRequest", &subscribe_request(&service, "", true)),
        ]
    };
    for _ in 0..2 {
        let server = Server::start().await;
        let idle = resident_mib(&server);
        let started = Instant::now();
        let all = connect_all(server.grpc, &pushes, 0, requests).await;
        let taken = started.elapsed();
        let (_, shown) = server.call("GET", "/metrics").await;
        let instances = format!("nomina_registry_instances {}\n", connections());
        assert!(shown.contains(&instances), "{shown}");
        eprintln!("{} back in {taken:?}, {idle} -> {} MiB", all.len(), resident_mib(&server));
        server.signal("-KILL");
        for light in all {
            wait_until(async || light.out.is_closed(), |closed| *closed).await;
        }
    }
}
