//! Many connections. Not run by default: `cargo test --release --test grpc_sdk load -- --ignored --nocapture`, with an open
//! file limit above the number of connections (`NOMINA_LOAD`, 5,000 if not set).

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use nomina::wire::sdk::pb::Payload;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    client::{Sdk, instance_request, payload, subscribe_request},
    light::Light,
    server::{Server, wait_until},
};

/// Most pieces of set-up at once: what a machine with few cores does in a moment.
const AT_ONCE: usize = 64;

fn connections() -> usize {
    std::env::var("NOMINA_LOAD").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000)
}

const ROUNDS: u64 = 10;

/// Figures that go up by one with each connection that publishes and subscribes.
const EACH: [&str; 3] =
    ["nomina_registry_instances ", "nomina_sdk_connections ", "nomina_push_subscribers{protocol=\"sdk\"} "];

/// When pushes came in.
#[derive(Default)]
pub struct Pushes(Mutex<Vec<Instant>>);

impl Pushes {
    pub fn note(&self) {
        self.0.lock().unwrap().push(Instant::now());
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn take(&self) -> Vec<Instant> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

async fn connect_all(address: SocketAddr, pushes: &Arc<Pushes>, each: impl Fn(usize) -> Vec<Payload>) -> Vec<Light> {
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = (0..connections())
        .map(|number| {
            let (gate, pushes, requests) = (gate.clone(), pushes.clone(), each(number));
            tokio::spawn(async move {
                let _turn = gate.acquire_owned().await.unwrap();
                Light::connect(address, pushes, requests).await
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    all
}

fn resident_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Hundredths of a second.
fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// One service, a change every second: how long after its acknowledgement each subscriber has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a machine for itself"]
async fn load_of_subscribers_of_one_service() {
    let server = Server::start().await;
    let idle = resident_mib(server.pid());
    let publisher = Sdk::connect(server.grpc).await;
    for instances in [100_u64, 500] {
        let service = format!("orders-{instances}");
        publisher.batch(&service, &(1..=instances).collect::<Vec<_>>()).await;
        let pushes = Arc::new(Pushes::default());
        let started = Instant::now();
        let all = connect_all(server.grpc, &pushes, |_| {
            vec![payload("SubscribeServiceRequest", &subscribe_request(&service, "", true))]
        })
        .await;
        let (took, resident) = (started.elapsed(), resident_mib(server.pid()));
        eprintln!("{} subscribed to {instances} instances in {took:?}, {idle} -> {resident} MiB", all.len());
        let mut delays = Vec::new();
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        let ticks = [server.pid(), std::process::id()].map(cpu_ticks);
        for round in 0..ROUNDS {
            seconds.tick().await;
            publisher.batch(&service, &(1..=instances - (round + 1) % 2).collect::<Vec<_>>()).await;
            let acknowledged = Instant::now();
            wait_until(async || pushes.count(), |count| *count >= all.len()).await;
            delays.extend(pushes.take().into_iter().map(|at| at.saturating_duration_since(acknowledged)));
        }
        seconds.tick().await;
        let used = [server.pid(), std::process::id()].map(cpu_ticks);
        let [server_used, own] = [used[0] - ticks[0], used[1] - ticks[1]].map(|ticks| ticks * 10 / ROUNDS);
        delays.sort_unstable();
        let of = |share: usize| delays[(delays.len() - 1) * share / 1_000];
        eprintln!(
            "{instances} instances: half after {:?}, 99 % after {:?}, all after {:?}; for each change {server_used} ms of \
             CPU, and {own} ms of the subscribers; {} MiB",
            of(500),
            of(990),
            of(1_000),
            resident_mib(server.pid())
        );
        drop(all);
        let alone = "nomina_sdk_connections 1\n";
        wait_until(async || server.call("GET", "/metrics").await.1, |text| text.contains(alone)).await;
        eprintln!("after all have left: {} MiB", resident_mib(server.pid()));
    }
}

/// All publish and subscribe; all leave and come back, twice; the server is killed, and all come back to its successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a machine for itself"]
async fn load_of_a_reconnect_storm() {
    let pushes = Arc::new(Pushes::default());
    let requests = |number: usize| {
        let service = format!("s{}", number % 1_000);
        let mut register = instance_request("registerInstance", &service, 80);
        register["instance"]["ip"] = json!(format!("10.{}.{}.7", number / 250, number % 250));
        vec![
            payload("InstanceRequest", &register),
            payload("SubscribeServiceRequest", &subscribe_request(&service, "", true)),
        ]
    };
    let come = async |server: &Server| {
        let (before, started) = (resident_mib(server.pid()), Instant::now());
        let all = connect_all(server.grpc, &pushes, requests).await;
        let took = started.elapsed();
        for figure in EACH {
            assert_eq!(shown(server, figure).await, connections() as u64, "{figure}");
        }
        let resident = resident_mib(server.pid());
        eprintln!("{} there after {took:?}, {before} -> {resident} MiB", all.len());
        (all, resident)
    };
    let leave = async |server: &Server, all: Vec<Light>| {
        drop(all);
        for figure in EACH {
            wait_until(async || shown(server, figure).await, |left| *left == 0).await;
        }
        wait_until(async || open_files(server.pid()), |open| *open < connections() / 10).await;
        eprintln!("after all have left: {} MiB", resident_mib(server.pid()));
    };
    let server = Server::start().await;
    let (all, first) = come(&server).await;
    leave(&server, all).await;
    let (all, _) = come(&server).await;
    leave(&server, all).await;
    let (all, again) = come(&server).await;
    server.signal("-KILL");
    for light in &all {
        wait_until(async || light.has_ended(), |ended| *ended).await;
    }
    let server = Server::start().await;
    let (_all, after) = come(&server).await;
    // The allocator keeps what was freed, and finds less and less of it in pieces of the right size; there is an end to it.
    assert!(again <= first * 2, "{again} MiB when all were there for the third time, {first} MiB the first time");
    assert!(after <= first + first / 10, "{after} MiB after the restart, {first} MiB before");
}

/// A figure of the metrics.
async fn shown(server: &Server, name: &str) -> u64 {
    let (_, text) = server.call("GET", "/metrics").await;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    line.trim().parse().unwrap_or_else(|_| panic!("{line}"))
}
