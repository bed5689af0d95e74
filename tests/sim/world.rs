//! A handful of nodes and what a test may do to them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nomina::{
    clock::Clock,
    cluster::{
        Cluster, Epoch, MemberList, MemberName, Parts, Settings,
        epoch::EpochFile,
        transport::{Accept, Accepted, BoxFuture, memory::Network},
    },
    registry::{
        self, Command, InstanceKey, Kind, Limits, Publication, RegistryHandle, ServiceCommand, ServiceKey, Target,
        replication::Replication, version::Stamp,
    },
    shutdown::Shutdown,
    wire::pb::peer as pb,
};
use parking_lot::RwLock;
use tempfile::TempDir;
use tokio::sync::watch;

pub struct World {
    pub clock: Clock,
    pub network: Network,
    pub settings: Settings,
    list: watch::Sender<Arc<MemberList>>,
    nodes: BTreeMap<String, Node>,
    disks: BTreeMap<String, TempDir>,
}

pub struct Node {
    pub registry: RegistryHandle,
    pub cluster: Cluster,
    shutdown: Shutdown,
}

/// The network wants a door before the node behind it is there.
#[derive(Default)]
struct Porch(RwLock<Option<Arc<dyn Accept>>>);

impl Accept for Porch {
    fn link(&self, from: MemberName, link: Accepted) {
        if let Some(door) = &*self.0.read() {
            door.link(from, link);
        }
    }

    fn forward(&self, from: MemberName, request: pb::ForwardRequest) -> BoxFuture<'static, pb::ForwardResponse> {
        self.0.read().as_ref().expect("the node is there").forward(from, request)
    }

    fn list_orphans(
        &self,
        from: MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, pb::ListOrphansResponse> {
        self.0.read().as_ref().expect("the node is there").list_orphans(from, request)
    }
}

pub fn member(name: &str) -> MemberName {
    MemberName::parse(&format!("{name}:8848")).unwrap()
}

pub fn service() -> ServiceKey {
    Limits::default().service_key("", "", "s").unwrap()
}

impl World {
    /// `nodes` nodes that have found each other.
    pub async fn new(nodes: usize) -> Self {
        let names: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().take(nodes).collect();
        let clock = Clock::start();
        let network = Network::new(clock, Duration::from_secs(1), Shutdown::new());
        let list = MemberList::new(names.iter().map(|name| member(name))).unwrap();
        let mut world = Self {
            clock,
            network,
            settings: Settings::default(),
            list: watch::Sender::new(Arc::new(list)),
            nodes: BTreeMap::new(),
            disks: BTreeMap::new(),
        };
        for name in &names {
            world.begin(name);
        }
        for name in &names {
            world.joined(name).await;
        }
        world
    }

    /// Starts a node and waits until it serves.
    pub async fn start(&mut self, name: &str) {
        self.begin(name);
        self.joined(name).await;
    }

    pub async fn joined(&self, name: &str) {
        let joined = self.node(name).cluster.joined();
        tokio::time::timeout(Duration::from_secs(120), joined).await.expect("the node joins");
    }

    pub fn begin(&mut self, name: &str) {
        let disk = self.disks.entry(name.to_owned()).or_insert_with(|| TempDir::new().unwrap());
        let epoch = EpochFile::open(disk.path(), Epoch::new(0)).unwrap();
        let shutdown = Shutdown::new();
        let replication = Replication {
            floor: Stamp::new(epoch.stamp_floor()),
            removal_ttl: self.settings.tombstone_ttl,
            removal_limit: 100_000,
            journal_limit: 100_000,
        };
        let (settings, limits) = (registry::Settings::default(), Limits::default());
        let (registry, journal) =
            RegistryHandle::start_replicated(settings, limits, self.clock, &shutdown, replication);
        let porch = Arc::new(Porch::default());
        let transport = Arc::new(self.network.join(&member(name), porch.clone()));
        let cluster = Cluster::start(Parts {
            me: member(name),
            members: self.list.subscribe(),
            settings: self.settings.clone(),
            clock: self.clock,
            registry: registry.clone(),
            journal,
            transport,
            epoch,
            shutdown: shutdown.clone(),
        });
        *porch.0.write() = Some(cluster.door());
        self.nodes.insert(name.to_owned(), Node { registry, cluster, shutdown });
    }

    /// Takes a node off the list of members.
    pub fn leave_out(&self, name: &str) {
        let names: Vec<_> =
            self.list.borrow().iter().filter(|member_of| **member_of != member(name)).cloned().collect();
        self.list.send_replace(Arc::new(MemberList::new(names).unwrap()));
    }

    /// Ends a node without a word.
    pub fn kill(&mut self, name: &str) {
        self.network.leave(&member(name));
        let node = self.nodes.remove(name).expect("the node is there");
        node.shutdown.drain();
    }

    pub fn node(&self, name: &str) -> &Node {
        self.nodes.get(name).expect("the node is there")
    }

    pub async fn register(&self, at: &str, address: &str, port: i64) {
        let key = key(address, port);
        let command = ServiceCommand::Register(key, Kind::Ephemeral, Publication::default());
        self.node(at).registry.apply(Command::Service(service(), command)).await.unwrap();
    }

    pub async fn deregister(&self, at: &str, address: &str, port: i64) {
        let InstanceKey { endpoint, cluster } = key(address, port);
        let target = Target { endpoint, cluster: Some(cluster) };
        let command = ServiceCommand::Deregister(target, Kind::Ephemeral);
        self.node(at).registry.apply(Command::Service(service(), command)).await.unwrap();
    }

    /// What a node lists.
    pub fn listed(&self, at: &str) -> Vec<String> {
        let snapshot = self.node(at).registry.snapshot(&service());
        snapshot.instances().iter().map(|instance| instance.key().endpoint.to_string()).collect()
    }

    pub fn leases(&self, at: &str) -> usize {
        self.node(at).registry.figures().leases
    }

    pub fn everywhere(&self, wanted: &[&str]) -> bool {
        self.nodes.keys().all(|name| self.listed(name) == wanted)
    }

    /// Lets time pass until `condition` holds; fails after two minutes of the world's time.
    pub async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let begun = self.clock.now();
        while !condition(self) {
            let waited = self.clock.now().since(begun);
            assert!(waited < Duration::from_secs(120), "not within two minutes: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn key(address: &str, port: i64) -> InstanceKey {
    let limits = Limits::default();
    InstanceKey { endpoint: limits.endpoint(address, port).unwrap(), cluster: registry::ClusterName::default() }
}
