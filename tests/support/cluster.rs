//! Several processes that are members of one cluster, on this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::Command,
    sync::Arc,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{
    http::{Call, Connection},
    server::{Server, command},
    wait::wait_until,
};

/// For what needs other members to be heard, judged or loaded: far more than a busy machine needs.
pub const IN_TIME: Duration = Duration::from_secs(40);

/// What all nodes share.
pub const SECRET: &str = "cluster.secret=a secret of the tests, 32 bytes long";

/// Bounds that tests can wait for. A busy machine makes a process wait for a second now and then.
pub const QUICK: [&str; 8] = [
    "cluster.ping_interval=200ms",
    "cluster.suspect_after=1s",
    "cluster.down_after=3s",
    "cluster.grace=8s",
    "cluster.isolation_grace=60s",
    "cluster.join_timeout=10s",
    "cluster.verify_interval=1s",
    "cluster.handover_linger=2s",
];

/// When a member that fell silent has been found dead by all: `down_after`, a report of it, and a tick.
pub const DEAD: Duration = Duration::from_secs(4);

/// `cluster.grace` of [`QUICK`].
pub const GRACE: Duration = Duration::from_secs(8);

/// The members, each with a directory of its own. All are killed when it is dropped; a test that failed shows all logs.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    settings: Vec<String>,
}

#[derive(Debug)]
struct Node {
    name: String,
    http: SocketAddr,
    dir: Arc<TempDir>,
    /// Settings of this node alone.
    own: Vec<String>,
    /// What runs it, if it is not started as it is.
    wrapper: Vec<String>,
    server: Option<Server>,
    /// Ended processes, for their logs.
    former: Vec<Server>,
}

impl Cluster {
    /// Three nodes, all ready.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Three nodes with more settings, each as `key=value`; all ready, and agreed on who owns what.
    #[track_caller]
    pub fn with(settings: &[&str]) -> Self {
        let cluster = Self::begin(3, settings);
        cluster.await_all_ready();
        cluster.await_agreed();
        cluster
    }

    /// `count` nodes that have been started.
    #[track_caller]
    pub fn begin(count: usize, settings: &[&str]) -> Self {
        let mut refused = String::new();
        for _ in 0..5 {
            let mut cluster = Self::planned(count, settings);
            match (0..count).try_for_each(|node| cluster.launch(node)) {
                Ok(()) => return cluster,
                // Somebody took a port between probe and bind.
                Err(log) if log.contains("in use") => refused = log,
                Err(log) => panic!("node ended: {log}"),
            }
        }
        panic!("no ports to be had: {refused}");
    }

    /// `count` nodes that have names, and do not run yet.
    pub fn planned(count: usize, settings: &[&str]) -> Self {
        let mut taken = BTreeSet::new();
        let https: Vec<_> = (0..count).map(|_| free_port(&mut taken)).collect();
        let places = https.into_iter().map(|port| (format!("127.0.0.1:{port}"), localhost(port)));
        let members: Vec<_> = places.collect();
        let list: Vec<_> = members.iter().map(|(name, _)| format!("{name:?}")).collect();
        let mut cluster = Self::unlisted(members, settings);
        cluster.settings.push(format!("cluster.members=[{}]", list.join(",")));
        cluster
    }

    /// Nodes with these names and HTTP addresses, whose list of members is among `settings`.
    pub fn unlisted(members: Vec<(String, SocketAddr)>, settings: &[&str]) -> Self {
        let node = |(name, http)| Node {
            name,
            http,
            dir: Arc::new(TempDir::new().unwrap()),
            own: Vec::new(),
            wrapper: Vec::new(),
            server: None,
            former: Vec::new(),
        };
        let nodes = members.into_iter().map(node).collect();
        // The last of two settings of one key wins.
        let all = [SECRET].iter().chain(&QUICK).chain(settings);
        Self { nodes, settings: all.map(|setting| (*setting).to_owned()).collect() }
    }

    /// Has `node` run by `wrapper`, a command that becomes the one that follows it.
    pub fn wrap(&mut self, node: usize, wrapper: &[&str]) {
        self.nodes[node].wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
    }

    /// Gives `node` another address from its next start on.
    pub fn place(&mut self, node: usize, http: SocketAddr) {
        self.nodes[node].http = http;
    }

    /// Settings of `node` alone, from its next start on.
    pub fn set(&mut self, node: usize, settings: &[&str]) {
        self.nodes[node].own = settings.iter().map(|setting| (*setting).to_owned()).collect();
    }

    /// Starts a node in its directory, at its ports; returns when it listens.
    ///
    /// # Errors
    /// Its log, if it ended instead.
    pub fn launch(&mut self, node: usize) -> Result<(), String> {
        let settings = self.settings.clone();
        let node = &mut self.nodes[node];
        assert!(node.server.is_none(), "{} runs", node.name);
        let http = node.http;
        let at = |offset| SocketAddr::new(http.ip(), http.port() + offset);
        let plain = command(node.dir.path());
        let mut command = match node.wrapper.split_first() {
            Some((program, arguments)) => {
                let mut wrapped = Command::new(program);
                wrapped.args(arguments).arg(plain.get_program()).args(plain.get_args());
                wrapped.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
                wrapped.current_dir(node.dir.path()).stdin(std::process::Stdio::null());
                wrapped.stdout(std::process::Stdio::null());
                wrapped
            }
            None => plain,
        };
        let mut set = |setting: String| {
            command.arg("--set").arg(setting);
        };
        set(format!("server.http={}", at(0)));
        set(format!("server.grpc={}", at(1_000)));
        set(format!("server.peer={}", at(1_001)));
        set("auth.mode=off".to_owned());
        set(format!("cluster.advertise={}", node.name));
        settings.into_iter().chain(node.own.clone()).for_each(set);
        node.server = Some(Server::launch(command, node.dir.clone())?);
        Ok(())
    }

    /// Starts a node again; it need not be ready.
    #[track_caller]
    pub fn restart(&mut self, node: usize) {
        self.launch(node).unwrap_or_else(|log| panic!("node {node} ended: {log}"));
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A node that runs.
    #[track_caller]
    pub fn node(&self, node: usize) -> &Server {
        self.nodes[node].server.as_ref().expect("a running node")
    }

    /// The nodes that run.
    pub fn running(&self) -> impl Iterator<Item = &Server> {
        self.nodes.iter().filter_map(|node| node.server.as_ref())
    }

    /// The name of a node.
    pub fn name(&self, node: usize) -> &str {
        &self.nodes[node].name
    }

    /// Where the HTTP API of each node is, whether it runs or not.
    pub fn https(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.http).collect()
    }

    /// Where the gRPC API of each node is, whether it runs or not.
    pub fn grpcs(&self) -> Vec<SocketAddr> {
        self.https().into_iter().map(|http| SocketAddr::new(http.ip(), http.port() + 1_000)).collect()
    }

    /// Ends a node with `kill -9`.
    #[track_caller]
    pub fn kill(&mut self, node: usize) {
        self.node(node).signal(Signal::KILL);
        self.ended(node);
    }

    /// Tells a node to stop, and waits until it has.
    #[track_caller]
    pub fn stop(&mut self, node: usize) {
        self.node(node).signal(Signal::TERM);
        self.ended_well(node);
    }

    /// Waits until a node that was told to stop has.
    #[track_caller]
    pub fn ended_well(&mut self, node: usize) {
        let status = self.ended(node);
        assert_eq!(status.code(), Some(0), "node {node}");
    }

    #[track_caller]
    fn ended(&mut self, node: usize) -> std::process::ExitStatus {
        let node = &mut self.nodes[node];
        let mut server = node.server.take().expect("a running node");
        let status = server.ended(Duration::from_secs(15));
        node.former.push(server);
        status
    }

    /// Waits until a node is ready.
    #[track_caller]
    pub fn await_ready(&self, node: usize) {
        wait_until(IN_TIME, || readiness(self.nodes[node].http), |(status, _)| *status == 200);
    }

    /// Waits until all nodes are ready.
    #[track_caller]
    pub fn await_all_ready(&self) {
        (0..self.len()).for_each(|node| self.await_ready(node));
    }

    /// Waits until all running nodes have each other among the owners of beat sources, and nobody else.
    #[track_caller]
    pub fn await_agreed(&self) {
        let mut running: Vec<_> =
            self.nodes.iter().filter(|node| node.server.is_some()).map(|node| &node.name).collect();
        running.sort();
        let owners = || self.running().map(owners).collect::<Vec<_>>();
        wait_until(IN_TIME, owners, |owners| owners.iter().all(|owners| owners.iter().eq(running.iter().copied())));
    }

    /// Waits until all running nodes have the same instances in `services`, down to every field that clients see, and
    /// returns the ports of each service.
    #[track_caller]
    pub fn await_equal(&self, within: Duration, services: &[&str]) -> BTreeMap<String, Vec<u64>> {
        let lists = || self.running().map(|node| lists(node, services)).collect::<Vec<_>>();
        let equal = wait_until(within, lists, |lists| lists.windows(2).all(|two| two[0] == two[1]));
        let ports = |hosts: &BTreeMap<String, Value>| {
            let mut ports: Vec<_> = hosts.values().map(|host| host["port"].as_u64().unwrap()).collect();
            ports.sort_unstable();
            ports
        };
        equal.into_iter().next().unwrap().iter().map(|(service, hosts)| (service.clone(), ports(hosts))).collect()
    }

    /// Waits until all running nodes list exactly these ports in `service`.
    #[track_caller]
    pub fn await_ports(&self, within: Duration, service: &str, ports: &[u64]) {
        let seen = || self.running().map(|node| node.ports(service, &[])).collect::<Vec<_>>();
        wait_until(within, seen, |seen| seen.iter().all(|seen| seen == ports));
    }
}

/// The owners of beat sources, as a node last logged them.
fn owners(node: &Server) -> Vec<String> {
    let log = node.log();
    let line = log.lines().rfind(|line| line.contains("the owners of beat sources change"));
    let names = line.and_then(|line| line.split_once("members=")).map_or("", |(_, names)| names);
    let mut names: Vec<_> = names.split_whitespace().map(str::to_owned).collect();
    names.sort();
    names
}

/// The instances of each service, by their ids.
fn lists(node: &Server, services: &[&str]) -> BTreeMap<String, BTreeMap<String, Value>> {
    let hosts = |service: &str| {
        let hosts = node.hosts(service, &[]).into_iter();
        hosts.map(|host| (host["instanceId"].as_str().unwrap().to_owned(), host)).collect()
    };
    services.iter().map(|service| ((*service).to_owned(), hosts(service))).collect()
}

/// What a node says of its readiness; 0 if it says nothing.
pub fn readiness(http: SocketAddr) -> (u16, String) {
    let call = Call::new(http, "GET", "/nacos/v1/console/health/readiness");
    let answer = Connection::try_open(http, Duration::from_secs(2)).and_then(|mut open| open.try_call(&call));
    answer.map_or_else(|error| (0, error.to_string()), |answer| (answer.status, answer.text().to_owned()))
}

/// A port that is free, as are those 1000 and 1001 above. Not one of those that the system hands out for outgoing
/// connections, so that nobody gets it by chance before it is used.
pub fn free_port(taken: &mut BTreeSet<u16>) -> u16 {
    const PORTS: std::ops::Range<u16> = 20_000..31_000;
    let mut free = |port: u16| {
        let three = [port, port + 1_000, port + 1_001];
        let free = three.iter().all(|port| !taken.contains(port) && TcpListener::bind(localhost(*port)).is_ok());
        if free {
            taken.extend(three);
        }
        free
    };
    let start = RandomState::new().hash_one(0) % u64::from(PORTS.end - PORTS.start);
    let start = PORTS.start + u16::try_from(start).unwrap();
    (start..PORTS.end).chain(PORTS.start..start).find(|port| free(*port)).expect("a free port")
}

fn localhost(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
