//! Programs with an SDK: each holds one connection to some node, publishes an instance in some services and subscribes to
//! them, and does all of that again elsewhere when its connection ends or it is told to move.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use super::{
    client::{self, Stream, ask, instance_request, payload, ports, stream, subscribe_request},
    support::{
        cluster::IN_TIME,
        wait::{SOON, wait_until},
    },
};

/// Time for a node to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long an SDK takes, once it is connected again, until it registers again: up to 3 s for that of Java.
const REDO: Duration = Duration::from_millis(500);

/// A list that a subscriber was told of.
#[derive(Debug, Clone)]
pub struct Push {
    pub at: Duration,
    pub client: u64,
    pub service: String,
    pub ports: Vec<u64>,
}

#[derive(Debug)]
struct Shared {
    from: Option<IpAddr>,
    nodes: Vec<SocketAddr>,
    services: Vec<String>,
    began: Instant,
    /// The node that each program is connected to and has registered at.
    at: Vec<Mutex<Option<SocketAddr>>>,
    pushes: Mutex<Vec<Push>>,
}

/// The programs, until this is dropped. The instance of program `i` has the port `first + i`.
#[derive(Debug)]
pub struct Fleet {
    shared: Arc<Shared>,
    pub ports: Vec<u64>,
    runtime: Option<Runtime>,
}

impl Fleet {
    /// Starts `count` programs, spread over the nodes, and waits until each has registered.
    #[track_caller]
    pub fn start(nodes: &[SocketAddr], services: &[&str], first: u64, count: usize) -> Self {
        Self::start_from(None, nodes, services, first, count)
    }

    /// The same, from an address of this host.
    #[track_caller]
    pub fn start_from(from: Option<IpAddr>, nodes: &[SocketAddr], services: &[&str], first: u64, count: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let shared = Arc::new(Shared {
            from,
            nodes: nodes.to_vec(),
            services: services.iter().map(|service| (*service).to_owned()).collect(),
            began: Instant::now(),
            at: (0..count).map(|_| Mutex::default()).collect(),
            pushes: Mutex::default(),
        });
        for client in 0..count {
            runtime.spawn(live(shared.clone(), client, first + client as u64));
        }
        let fleet = Self { shared, ports: (first..first + count as u64).collect(), runtime: Some(runtime) };
        fleet.await_registered();
        fleet
    }

    /// Waits until every program is connected and has registered.
    #[track_caller]
    pub fn await_registered(&self) {
        wait_until(IN_TIME, || self.unregistered(), Vec::is_empty);
    }

    /// The programs that are not connected, or have not registered yet.
    pub fn unregistered(&self) -> Vec<usize> {
        let waits = |client: &usize| self.shared.at[*client].lock().is_none();
        (0..self.shared.at.len()).filter(waits).collect()
    }

    /// How many programs are connected to a node.
    pub fn at(&self, node: SocketAddr) -> usize {
        self.shared.at.iter().filter(|at| *at.lock() == Some(node)).count()
    }

    /// All lists that the programs were told of.
    pub fn pushes(&self) -> Vec<Push> {
        self.shared.pushes.lock().clone()
    }

    /// Waits until the last list that every program was told of a service has exactly these ports.
    #[track_caller]
    pub fn await_told(&self, service: &str, ports: &[u64]) {
        let others = || {
            let mut last = BTreeMap::new();
            for push in self.shared.pushes.lock().iter().filter(|push| push.service == service) {
                last.insert(push.client, push.ports.clone());
            }
            last.retain(|_, told| told != ports);
            last
        };
        wait_until(SOON, others, BTreeMap::is_empty);
    }

    /// Every list that any program was told of from now on and before has at least one instance.
    #[track_caller]
    pub fn assert_no_empty_push(&self) {
        let empty: Vec<_> = self.pushes().into_iter().filter(|push| push.ports.is_empty()).collect();
        assert!(empty.is_empty(), "empty lists were pushed: {empty:#?}");
    }

    /// Every list that any program was told of since `since` has these ports.
    #[track_caller]
    pub fn assert_never_missing(&self, since: Duration, ports: &[u64]) {
        let lacks = |push: &Push| push.at >= since && ports.iter().any(|port| !push.ports.contains(port));
        let lacking: Vec<_> = self.pushes().into_iter().filter(lacks).collect();
        let first = lacking.iter().take(5).map(|push| {
            let missing: Vec<_> = ports.iter().filter(|port| !push.ports.contains(port)).collect();
            format!(
                "{:?}: {} was told of {} of {}, not {missing:?}",
                push.at,
                push.client,
                push.ports.len(),
                push.service
            )
        });
        assert!(lacking.is_empty(), "{} pushes lack instances: {:#?}", lacking.len(), first.collect::<Vec<_>>());
    }

    /// The time by which pushes are noted.
    pub fn now(&self) -> Duration {
        self.shared.began.elapsed()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection that is set up.
struct Connection {
    channel: Channel,
    stream: Stream,
}

async fn live(shared: Arc<Shared>, client: usize, port: u64) {
    let mut turn = client;
    let mut current: Option<Connection> = None;
    loop {
        // What takes longer than a real SDK would wait, or fails, is tried at the next node.
        let node = shared.nodes[turn % shared.nodes.len()];
        let Some(new) = tokio::time::timeout(PATIENCE, connect(shared.from, node)).await.ok().flatten() else {
            turn += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // As the SDK of Java does: the old connection is closed before anything is registered on the new one.
        let again = current.replace(new).is_some();
        if again {
            tokio::time::sleep(REDO).await;
        }
        let Some(connection) = &mut current else { continue };
        if register(&shared, client, &connection.channel, port).await.is_none() {
            turn += 1;
            continue;
        }
        *shared.at[client].lock() = Some(node);
        listen(&shared, client, connection).await;
        *shared.at[client].lock() = None;
        turn += 1;
    }
}

async fn connect(from: Option<IpAddr>, node: SocketAddr) -> Option<Connection> {
    let channel = Endpoint::from_shared(format!("http://{node}")).unwrap().local_address(from).connect().await.ok()?;
    let stream = stream(&channel, vec![payload("ConnectionSetupRequest", &client::go())]).await.ok()?;
    // Asked until the connection is known, as SDKs do.
    for _ in 0..20 {
        match ask(&channel, payload("HealthCheckRequest", &json!({}))).await {
            Ok((kind, _)) if kind == "HealthCheckResponse" => return Some(Connection { channel, stream }),
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(_) => return None,
        }
    }
    None
}

/// Registers and subscribes. `None` if the node does not do all of it.
async fn register(shared: &Shared, client: usize, channel: &Channel, port: u64) -> Option<()> {
    for service in &shared.services {
        let request = instance_request("registerInstance", service, port);
        said(channel, "InstanceRequest", request).await?;
        let request = subscribe_request(service, "", true);
        let list = said(channel, "SubscribeServiceRequest", request).await?;
        told(shared, client, &list);
    }
    Some(())
}

async fn said(channel: &Channel, kind: &str, body: Value) -> Option<Value> {
    let answer = tokio::time::timeout(PATIENCE, ask(channel, payload(kind, &body))).await;
    let (_, body) = answer.ok()?.ok()?;
    (body["errorCode"] == json!(0)).then_some(body)
}

fn told(shared: &Shared, client: usize, list: &Value) {
    let service = list["serviceInfo"]["name"].as_str().unwrap().to_owned();
    let push = Push { at: shared.began.elapsed(), client: client as u64, service, ports: ports(list) };
    shared.pushes.lock().push(push);
}

/// Answers the node until the connection ends, or it is to be left.
async fn listen(shared: &Shared, client: usize, connection: &mut Connection) {
    loop {
        // A node that says nothing for long is asked whether it is there.
        let message = match tokio::time::timeout(Duration::from_secs(5), connection.stream.from.message()).await {
            Ok(Ok(Some(message))) => message,
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => match tokio::time::timeout(
                PATIENCE,
                ask(&connection.channel, payload("HealthCheckRequest", &json!({}))),
            )
            .await
            {
                Ok(Ok((kind, _))) if kind == "HealthCheckResponse" => continue,
                Ok(_) | Err(_) => return,
            },
        };
        let kind = message.metadata.unwrap().r#type;
        let body: Value = serde_json::from_slice(&message.body.unwrap().value).unwrap();
        if kind == "NotifySubscriberRequest" {
            told(shared, client, &body);
        }
        let ack = json!({"resultCode": 200, "errorCode": 0, "requestId": body["requestId"]});
        let _ = connection.stream.out.send(payload(&kind.replace("Request", "Response"), &ack));
        if kind == "ConnectResetRequest" {
            return;
        }
    }
}
