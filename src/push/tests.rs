use std::{future::Future, io::Read, time::Duration};

use flate2::read::GzDecoder;
use serde_json::Value;
use tokio::{net::UdpSocket, time::timeout};

use super::*;
use crate::{
    clock::Clock,
    registry::{
        self, ClusterName, Command, InstanceKey, Kind, Limits, Metadata, Publication, ServiceCommand, Target,
        switches::SwitchChange,
    },
};

/// Longer than anything here takes; only a failing test waits for it.
const BOUND: Duration = Duration::from_secs(20);
const JAVA: &str = "Nacos-Java-Client:v1.4.6";

/// Settings whose pushes are prompt and whose subscribers and acks last for ever.
fn lasting() -> Settings {
    Settings {
        merge_delay: Duration::from_millis(20),
        subscriber_lifetime: Duration::from_secs(3_600),
        ack_timeout: Duration::from_secs(600),
        ..Settings::default()
    }
}

fn impatient() -> Settings {
    Settings { ack_timeout: Duration::from_millis(40), ..lasting() }
}

struct Bench {
    registry: RegistryHandle,
    push: Push,
    shutdown: Shutdown,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let shutdown = Shutdown::new();
        let registry =
            RegistryHandle::start(registry::Settings::default(), Limits::default(), Clock::start(), &shutdown);
        let push = Push::start(registry.clone(), settings, &shutdown).unwrap();
        Self { registry, push, shutdown }
    }

    fn service(name: &str) -> ServiceKey {
        Limits::default().service_key("", "", name).unwrap()
    }

    fn instance(cluster: &str, port: u16) -> InstanceKey {
        let limits = Limits::default();
        let cluster = limits.cluster(cluster).unwrap().unwrap_or_default();
        InstanceKey { endpoint: limits.endpoint("10.0.0.1", i64::from(port)).unwrap(), cluster }
    }

    async fn register(&self, service: &str, cluster: &str, port: u16) {
        self.register_with(service, cluster, port, Metadata::default()).await;
    }

    async fn register_with(&self, service: &str, cluster: &str, port: u16, metadata: Metadata) {
        let publication = Publication { metadata, ..Publication::default() };
        let command = ServiceCommand::Register(Self::instance(cluster, port), Kind::Ephemeral, publication);
        self.registry.apply(Command::Service(Self::service(service), command)).await.unwrap();
    }

    async fn deregister(&self, service: &str, port: u16) {
        let target = Target { endpoint: Self::instance("", port).endpoint, cluster: None };
        let command = ServiceCommand::Deregister(target, Kind::Ephemeral);
        self.registry.apply(Command::Service(Self::service(service), command)).await.unwrap();
    }

    fn subscribe(&self, service: &str, clusters: &str, client: &Client) -> Subscribed {
        self.subscribe_as(service, clusters, "127.0.0.1", client.port())
    }

    fn subscribe_as(&self, service: &str, clusters_text: &str, client_ip: &str, port: u16) -> Subscribed {
        let names: Option<Vec<ClusterName>> = (!clusters_text.is_empty())
            .then(|| clusters_text.split(',').filter_map(|name| Limits::default().cluster(name).unwrap()).collect());
        self.push.subscribe(&UdpSubscription {
            service: &Self::service(service),
            clusters_text,
            clusters: names.as_deref(),
            peer: SocketAddr::from(([127, 0, 0, 1], 40_000)),
            client_ip,
            udp_port: i64::from(port),
            agent: JAVA,
            app: "unknown",
        })
    }

    /// Waits until `holds`; prints the last figures if it never does.
    async fn until(&self, what: &str, holds: impl Fn(&Figures) -> bool) -> Figures {
        let wait = async {
            loop {
                let figures = self.push.figures();
                if holds(&figures) {
                    return figures;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(BOUND, wait).await.unwrap_or_else(|_| panic!("{what}: {:?}", self.push.figures()))
    }
}

/// A client with a socket for pushes.
struct Client {
    socket: UdpSocket,
}

/// A push as a client reads it.
struct Received {
    from: SocketAddr,
    raw: Vec<u8>,
    number: u64,
    list: Value,
}

impl Received {
    fn ports(&self) -> Vec<u64> {
        self.list["hosts"].as_array().unwrap().iter().map(|host| host["port"].as_u64().unwrap()).collect()
    }
}

impl Client {
    async fn new() -> Self {
        Self { socket: UdpSocket::bind("127.0.0.1:0").await.unwrap() }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    async fn receive(&self) -> Received {
        let mut buffer = vec![0; 65_536];
        let (length, from) = within(self.socket.recv_from(&mut buffer)).await.unwrap();
        buffer.truncate(length);
        let mut text = String::new();
        if buffer.starts_with(&[0x1f, 0x8b]) {
            GzDecoder::new(buffer.as_slice()).read_to_string(&mut text).unwrap();
        } else {
            text = String::from_utf8(buffer.clone()).unwrap();
        }
        let outer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(outer["type"], "dom");
        let number = outer["lastRefTime"].as_u64().unwrap();
        let list = serde_json::from_str(outer["data"].as_str().unwrap()).unwrap();
        Received { from, raw: buffer, number, list }
    }

    /// Reads pushes until one lists exactly these ports.
    async fn receive_ports(&self, ports: &[u64]) -> Received {
        loop {
            let received = self.receive().await;
            if received.ports() == ports {
                return received;
            }
        }
    }

    async fn send(&self, to: SocketAddr, text: &str) {
        self.socket.send_to(text.as_bytes(), to).await.unwrap();
    }

    async fn ack(&self, received: &Received) {
        let ack = format!(r#"{{"type": "push-ack", "lastRefTime":"{}", "data":""}}"#, received.number);
        self.send(received.from, &ack).await;
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    timeout(BOUND, future).await.expect("nothing happened in time")
}

#[tokio::test]
async fn a_subscriber_gets_a_first_push_and_each_change() {
    let bench = Bench::new(lasting());
    let client = Client::new().await;
    bench.register("demo", "", 8_080).await;
    assert_eq!(bench.subscribe("demo", "", &client), Subscribed::Yes);
    let first = client.receive().await;
    assert_eq!(first.from, bench.push.local_addr());
    assert_eq!(first.list["name"], "DEFAULT_GROUP@@demo");
    assert_eq!(first.list["cacheMillis"], 10_000);
    assert_eq!(first.ports(), [8_080]);
    bench.register("demo", "", 8_081).await;
    let second = client.receive_ports(&[8_080, 8_081]).await;
    assert!(second.number > first.number);
    assert!(second.list["lastRefTime"].as_u64() >= first.list["lastRefTime"].as_u64());
    bench.deregister("demo", 8_080).await;
    client.receive_ports(&[8_081]).await;
}

#[tokio::test]
async fn the_first_change_does_not_wait_for_the_merge_window_and_the_rest_are_merged() {
    let bench = Bench::new(Settings { merge_delay: Duration::from_secs(2), ..lasting() });
    let client = Client::new().await;
    bench.subscribe("demo", "", &client);
    let clock = Clock::start();
    let begin = clock.now();
    bench.register("demo", "", 1).await;
    assert!(!client.receive().await.ports().is_empty());
    assert!(clock.now().since(begin) < Duration::from_millis(1_500), "the first change waited");
    for port in 2..=100 {
        bench.register("demo", "", port).await;
    }
    let all: Vec<u64> = (1..=100).collect();
    client.receive_ports(&all).await;
    assert!(bench.push.figures().total <= 3, "{:?}", bench.push.figures());
}

#[tokio::test]
async fn an_ack_ends_the_retries() {
    let bench = Bench::new(Settings { ack_timeout: Duration::from_secs(2), ..lasting() });
    let (client, other) = (Client::new().await, Client::new().await);
    bench.subscribe("demo", "", &client);
    let push = client.receive().await;
    for text in ["", "{}", r#"{"lastRefTime":{}}"#] {
        client.send(push.from, text).await;
    }
    other.ack(&push).await;
    bench.until("refused acks", |figures| figures.malformed_acks == 3 && figures.unmatched_acks == 1).await;
    assert_eq!(bench.push.figures().waiting, 1);
    client.ack(&push).await;
    let figures = bench.until("acknowledged", |figures| figures.succeeded == 1).await;
    assert_eq!((figures.total, figures.waiting, figures.resent, figures.failed), (1, 0, 0, 0));
    let state = bench.push.state();
    assert_eq!((state.total, state.succeeded), (1, 1));
    assert!(state.average_cost.is_some() && state.average_cost == state.most_cost);
    bench.push.reset();
    assert_eq!(bench.push.state(), State::default());
}

#[tokio::test]
async fn npm_acks_with_a_number() {
    let bench = Bench::new(lasting());
    let client = Client::new().await;
    bench.subscribe("demo", "", &client);
    let push = client.receive().await;
    client.send(push.from, &format!(r#"{{"type":"push-ack","lastRefTime":{},"data":""}}"#, push.number)).await;
    bench.until("acknowledged", |figures| figures.succeeded == 1).await;
}

#[tokio::test]
async fn without_an_ack_the_same_bytes_come_once_more_and_then_it_has_failed() {
    let bench = Bench::new(impatient());
    let client = Client::new().await;
    bench.subscribe("demo", "", &client);
    let first = client.receive().await;
    let again = client.receive().await;
    assert_eq!(first.raw, again.raw);
    let figures = bench.until("given up", |figures| figures.failed == 1).await;
    assert_eq!((figures.total, figures.resent, figures.waiting, figures.succeeded), (1, 1, 0, 0));
    bench.register("demo", "", 1).await;
    client.receive_ports(&[1]).await;
}

#[tokio::test]
async fn a_subscriber_that_stops_polling_expires_and_one_that_polls_stays() {
    let bench = Bench::new(Settings { subscriber_lifetime: Duration::from_secs(1), ..lasting() });
    let (gone, stays) = (Client::new().await, Client::new().await);
    bench.subscribe("demo", "", &gone);
    bench.subscribe("demo", "", &stays);
    bench.subscribe("other", "", &gone);
    assert_eq!(bench.push.figures().services, 2);
    let polls = async {
        loop {
            assert_eq!(bench.subscribe("demo", "", &stays), Subscribed::Yes);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let expired = bench.until("expired", |figures| figures.subscribers.udp == 1 && figures.services == 1);
    tokio::select! {
        () = polls => {}
        _ = expired => {}
    }
    let left = bench.push.subscribers().list(|_| true);
    assert_eq!(left.iter().map(|(_, found)| found.address.clone()).collect::<Vec<_>>(), [stays.address()]);
    bench.until("all expired", |figures| figures.subscribers.udp == 0 && figures.services == 0).await;
    within(async {
        while bench.registry.figures().watched > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(bench.subscribe("demo", "", &gone), Subscribed::Yes);
    assert_eq!(bench.push.figures().services, 1);
}

#[tokio::test]
async fn third_parties_get_nothing_and_names_are_refused() {
    let bench = Bench::new(lasting());
    let caller = Client::new().await;
    let third = std::net::UdpSocket::bind(("127.0.0.2", caller.port())).unwrap();
    third.set_nonblocking(true).unwrap();
    for client_ip in ["localhost", "no.such.name.invalid", "not-an-ip"] {
        let answer = bench.subscribe_as("demo", "", client_ip, caller.port());
        assert_eq!(answer, Subscribed::No(Refusal::NotAnAddress), "{client_ip}");
    }
    assert_eq!(bench.push.figures().services, 0);
    assert_eq!(bench.subscribe_as("demo", "", "127.0.0.2", caller.port()), Subscribed::Yes);
    bench.register("demo", "", 1).await;
    caller.receive_ports(&[1]).await;
    assert!(third.recv(&mut [0; 16]).is_err());
}

#[tokio::test]
async fn with_the_setting_pushes_go_to_the_caller_whatever_it_calls_itself() {
    let bench = Bench::new(Settings { other_addresses: OtherAddresses::Peer, ..lasting() });
    let client = Client::new().await;
    for (service, client_ip) in [("a", "192.0.2.7"), ("b", "")] {
        assert_eq!(bench.subscribe_as(service, "", client_ip, client.port()), Subscribed::Yes);
        client.receive().await;
    }
    let listed = bench.push.subscribers().list(|_| true);
    assert_eq!(listed[0].1.address, format!("192.0.2.7:{}", client.port()));
    assert_eq!(bench.subscribe_as("demo", "", "not-an-ip", 1), Subscribed::No(Refusal::NotAnAddress));
}

#[tokio::test]
async fn a_service_that_is_registered_later_is_pushed_and_not_created_by_asking() {
    let bench = Bench::new(lasting());
    let client = Client::new().await;
    bench.subscribe("later", "", &client);
    let first = client.receive().await;
    assert!(first.ports().is_empty());
    assert_eq!(first.list["name"], "DEFAULT_GROUP@@later");
    assert!(bench.registry.service(&Bench::service("later")).is_none());
    bench.register("later", "", 7).await;
    client.receive_ports(&[7]).await;
}

#[tokio::test]
async fn one_client_gets_a_datagram_for_each_list_of_clusters() {
    let bench = Bench::new(lasting());
    let client = Client::new().await;
    bench.register("demo", "a", 1).await;
    bench.register("demo", "b", 2).await;
    for clusters in ["", "a", "b,a"] {
        bench.subscribe("demo", clusters, &client);
    }
    let mut seen: Vec<(String, Vec<u64>, u64)> = Vec::new();
    for _ in 0..3 {
        let push = client.receive().await;
        seen.push((push.list["clusters"].as_str().unwrap().to_owned(), push.ports(), push.number));
    }
    seen.sort();
    let told: Vec<_> = seen.iter().map(|(clusters, ports, _)| (clusters.as_str(), ports.as_slice())).collect();
    assert_eq!(told, [("", [1, 2].as_slice()), ("a", &[1]), ("b,a", &[1, 2])]);
    let numbers: std::collections::BTreeSet<u64> = seen.iter().map(|(_, _, number)| *number).collect();
    assert_eq!(numbers.len(), 3);
    assert_eq!(bench.push.subscribers().list(|_| true).len(), 3);
}

#[tokio::test]
async fn flips_towards_a_closed_port_cost_a_bounded_number_of_datagrams() {
    let bench = Bench::new(Settings { merge_delay: Duration::ZERO, ..impatient() });
    let dead = Client::new().await.port();
    let live = Client::new().await;
    bench.subscribe_as("demo", "", "127.0.0.1", dead);
    bench.subscribe("demo", "", &live);
    for _ in 0..20 {
        bench.register("demo", "", 1).await;
        let push = live.receive_ports(&[1]).await;
        live.ack(&push).await;
        bench.deregister("demo", 1).await;
        let push = live.receive_ports(&[]).await;
        live.ack(&push).await;
    }
    let figures = bench.until("nothing waits", |figures| figures.waiting == 0).await;
    assert!(figures.total <= 84, "{figures:?}");
    assert!(figures.resent <= figures.total, "{figures:?}");
    assert!(figures.failed >= 1, "{figures:?}");
    let settled = figures.failed + figures.succeeded + figures.superseded;
    assert_eq!(settled, figures.total, "{figures:?}");
}

#[tokio::test]
async fn limits_of_subscribers_hold() {
    let bench = Bench::new(Settings { max_subscribers: 3, max_subscribers_of_service: 2, ..lasting() });
    let answers: Vec<_> = [("a", 1), ("a", 2), ("a", 3), ("a", 1), ("b", 1), ("b", 2), ("c", 1), ("b", 1)]
        .into_iter()
        .map(|(service, port)| bench.subscribe_as(service, "", "127.0.0.1", port))
        .collect();
    let (yes, service_full, full) =
        (Subscribed::Yes, Subscribed::No(Refusal::ServiceFull), Subscribed::No(Refusal::Full));
    assert_eq!(answers, [yes, yes, service_full, yes, yes, full, full, yes]);
    assert_eq!((bench.push.figures().subscribers.udp, bench.push.figures().services), (3, 2));
}

#[tokio::test]
async fn the_switch_stops_subscribing_and_sending_and_what_was_missed_is_sent_later() {
    let bench = Bench::new(lasting());
    let client = Client::new().await;
    bench.subscribe("demo", "", &client);
    client.receive().await;
    let switch = |on| bench.registry.apply(Command::Switch(SwitchChange::PushEnabled(on)));
    switch(false).await.unwrap();
    assert_eq!(bench.subscribe("demo", "", &client), Subscribed::No(Refusal::Disabled));
    bench.register("demo", "", 1).await;
    tokio::task::yield_now().await;
    switch(true).await.unwrap();
    client.receive_ports(&[1]).await;
    bench.register("demo", "", 2).await;
    client.receive_ports(&[1, 2]).await;
    assert!(bench.push.figures().total <= 3);
}

#[tokio::test]
async fn a_list_that_is_too_large_is_counted_and_a_large_one_is_compressed() {
    let bench = Bench::new(lasting());
    let client = Client::new().await;
    for port in 1..=20 {
        bench.register("large", "", port).await;
    }
    bench.subscribe("large", "", &client);
    let push = client.receive_ports(&(1..=20).collect::<Vec<_>>()).await;
    assert!(push.raw.starts_with(&[0x1f, 0x8b]));
    client.ack(&push).await;
    let mut state = 1_u64;
    for port in 1..=4 {
        let noise: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'A' + u8::try_from(state >> 59).unwrap())
        })
        .take(60_000)
        .collect();
        let metadata = Limits::default().metadata([("noise", noise.as_str())]).unwrap();
        bench.register_with("large", "", port, metadata).await;
    }
    let figures = bench.until("too large", |figures| figures.too_large > 0).await;
    assert_eq!(figures.failed, 0);
    assert_eq!(bench.subscribe("large", "", &client), Subscribed::Yes);
}

#[tokio::test]
async fn draining_ends_every_task_and_refuses_subscribers() {
    let bench = Bench::new(lasting());
    let client = Client::new().await;
    for service in ["a", "b"] {
        bench.subscribe(service, "", &client);
    }
    bench.shutdown.drain();
    assert_eq!(bench.shutdown.drained(BOUND).await, 0);
    assert_eq!(bench.subscribe("a", "", &client), Subscribed::No(Refusal::Draining));
    let figures = bench.push.figures();
    assert_eq!((figures.services, figures.subscribers.udp), (0, 0));
}

#[tokio::test]
async fn a_port_in_use_names_the_setting() {
    let bench = Bench::new(lasting());
    let settings = Settings { udp: bench.push.local_addr(), ..lasting() };
    let error = Push::start(bench.registry.clone(), settings, &bench.shutdown).unwrap_err();
    assert!(error.to_string().contains("push.udp"), "{error}");
}
