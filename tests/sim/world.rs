//! The nodes, their network and their disks, and what may be done to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use nomina::{
    clock::Clock,
    cluster::{
        Cluster, Epoch, MemberList, MemberName, Parts, Settings, Stage, epoch::EpochFile, forward::Forwarder,
        transport::memory::Network,
    },
    naming::Naming,
    registry::{
        self, ClusterName, Command, Instance, InstanceKey, Kind, Limits, Publication, RegistryHandle, ServiceCommand,
        ServiceKey, Target, instance::ConnectionId, owners::Incarnation, replication::Replication, version::Stamp,
    },
    shutdown::Shutdown,
};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{front::Porch, log::Log, oracle::number, rng::Rng};

pub struct World {
    pub clock: Clock,
    pub network: Network,
    pub settings: Settings,
    pub log: Log,
    /// Whose tasks those of clients are.
    pub tasks: Shutdown,
    pub names: Vec<String>,
    list: watch::Sender<Arc<MemberList>>,
    nodes: Mutex<BTreeMap<String, Arc<Node>>>,
    disks: Mutex<BTreeMap<String, TempDir>>,
    /// Nodes that no client reaches.
    hidden: Mutex<BTreeSet<String>>,
    /// Nodes that are not expected to keep up.
    shaky: Mutex<BTreeSet<String>>,
    connections: AtomicU64,
    rng: Mutex<Rng>,
}

/// A process.
pub struct Node {
    pub name: String,
    pub registry: RegistryHandle,
    pub cluster: Cluster,
    pub forwarder: Forwarder,
    pub naming: Naming,
    pub shutdown: Shutdown,
}

pub fn member(name: &str) -> MemberName {
    MemberName::parse(&format!("{name}:8848")).unwrap()
}

pub fn service() -> ServiceKey {
    Limits::default().service_key("", "", "s").unwrap()
}

pub fn key(address: &str, port: i64) -> InstanceKey {
    InstanceKey { endpoint: Limits::default().endpoint(address, port).unwrap(), cluster: ClusterName::default() }
}

/// A place in memory if there is one: what the nodes store is synced to it each time.
fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    TempDir::new_in(memory).or_else(|_| TempDir::new()).unwrap()
}

impl World {
    /// A world of `nodes` nodes, none of which has begun.
    pub fn empty(nodes: usize, seed: u64, settings: Settings) -> Arc<Self> {
        let names: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().take(nodes).map(str::to_owned).collect();
        let clock = Clock::start();
        let list = MemberList::new(names.iter().map(|name| member(name))).unwrap();
        Arc::new(Self {
            clock,
            network: Network::new(clock, Duration::from_secs(1), Shutdown::new()),
            settings,
            log: Log::new(clock),
            tasks: Shutdown::new(),
            names,
            list: watch::Sender::new(Arc::new(list)),
            nodes: Mutex::default(),
            disks: Mutex::default(),
            hidden: Mutex::default(),
            shaky: Mutex::default(),
            connections: AtomicU64::new(1),
            rng: Mutex::new(Rng::new(seed)),
        })
    }

    /// `nodes` nodes that have found each other.
    pub async fn new(nodes: usize) -> Arc<Self> {
        Self::with(nodes, Settings::default()).await
    }

    pub async fn with(nodes: usize, settings: Settings) -> Arc<Self> {
        let world = Self::empty(nodes, 1, settings);
        for name in &world.names {
            world.begin(name);
        }
        for name in &world.names {
            world.joined(name).await;
        }
        world
    }

    /// Starts a node and waits until it serves.
    pub async fn start(&self, name: &str) {
        self.begin(name);
        self.joined(name).await;
    }

    pub async fn joined(&self, name: &str) {
        let node = self.node(name).expect("the node is there");
        tokio::time::timeout(Duration::from_secs(120), node.cluster.joined()).await.expect("the node joins");
    }

    /// Starts a node, in place of a former process of it if there is one.
    pub fn begin(&self, name: &str) {
        let first = self.rng.lock().between(1, 1_000);
        self.begin_after(name, first);
    }

    /// As [`World::begin`]; without anything stored its epoch is the one after `first`.
    pub fn begin_after(&self, name: &str, first: u64) {
        let mut disks = self.disks.lock();
        let disk = disks.entry(name.to_owned()).or_insert_with(place);
        let epoch = EpochFile::open(disk.path(), Epoch::new(first)).unwrap();
        self.log.note(format!("{name} starts, epoch {}", epoch.epoch().number()));
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
        let porch = Arc::new(Porch::new(shutdown.clone()));
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
        porch.open(cluster.door());
        let forwarder = cluster.forwarder();
        let naming = Naming::clustered(registry.clone(), Limits::default(), forwarder.clone()).of(cluster.clone());
        let node = Arc::new(Node { name: name.to_owned(), registry, cluster, forwarder, naming, shutdown });
        self.nodes.lock().insert(name.to_owned(), node);
    }

    /// Takes a node off the list of members.
    pub fn leave_out(&self, name: &str) {
        let names: Vec<_> = self.list.borrow().iter().filter(|listed| **listed != member(name)).cloned().collect();
        self.list.send_replace(Arc::new(MemberList::new(names).unwrap()));
    }

    /// Ends a node without a word.
    pub fn kill(&self, name: &str) {
        let node = self.nodes.lock().remove(name);
        if let Some(node) = node {
            self.log.note(format!("{name} is killed"));
            self.network.leave(&member(name));
            node.shutdown.drain();
        }
    }

    /// Ends a node in good order.
    pub async fn leave(&self, name: &str) {
        let Some(node) = self.node(name) else { return };
        let handed = node.cluster.hand_over(Duration::from_secs(5)).await;
        // Clients are told to move.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let done = node.cluster.part(Duration::from_secs(5)).await && handed;
        self.log.note(format!("{name} has left, all done: {done}"));
        if self.node(name).is_some_and(|now| Arc::ptr_eq(&now, &node)) {
            self.kill(name);
        }
    }

    /// What a node has stored is lost.
    pub fn wipe(&self, name: &str) {
        self.disks.lock().remove(name);
    }

    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.lock().get(name).cloned()
    }

    /// The nodes that run.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().values().cloned().collect()
    }

    /// Clients reach `name` no longer, or again.
    pub fn hide(&self, name: &str, hidden: bool) {
        if hidden {
            self.hidden.lock().insert(name.to_owned());
        } else {
            self.hidden.lock().remove(name);
        }
    }

    pub fn is_hidden(&self, name: &str) -> bool {
        self.hidden.lock().contains(name)
    }

    pub fn set_shaky(&self, name: &str, shaky: bool) {
        if shaky {
            self.shaky.lock().insert(name.to_owned());
        } else {
            self.shaky.lock().remove(name);
        }
    }

    pub fn is_shaky(&self, name: &str) -> bool {
        self.shaky.lock().contains(name)
    }

    /// A connection that nobody has had.
    pub fn connection(&self) -> ConnectionId {
        ConnectionId::new(NonZeroU64::new(self.connections.fetch_add(1, Ordering::Relaxed)).unwrap())
    }

    /// The node as clients reach it: it runs, and serves.
    pub fn serving(&self, name: &str) -> Option<Arc<Node>> {
        self.node(name).filter(|node| node.is_ready() && !self.is_hidden(name))
    }

    /// What a node lists in the service of tests.
    pub fn listed(&self, at: &str) -> Vec<String> {
        let node = self.node(at).expect("the node is there");
        node.listed().keys().map(|key| key.endpoint.to_string()).collect()
    }

    pub fn everywhere(&self, wanted: &[&str]) -> bool {
        self.nodes().iter().all(|node| self.listed(&node.name) == wanted)
    }

    /// Lets time pass until `condition` holds; fails after `bound` of the world's time.
    pub async fn within(&self, bound: Duration, what: &str, condition: impl Fn(&Self) -> bool) {
        let begun = self.clock.now();
        while !condition(self) {
            assert!(self.clock.now().since(begun) < bound, "not within {bound:?}: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Who says what of each instance at each node: for who reads why a run failed.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for node in self.nodes() {
            let (view, owners) = (node.cluster.view(), node.registry.owners());
            let stands = view.members.iter().map(|member| {
                let owner = if member.eligible { " owner" } else { "" };
                format!("{} {}{owner}", member.name.split(':').next().unwrap_or_default(), member.standing)
            });
            lines.push(format!("{}: {}, {}", node.name, view.stage, stands.collect::<Vec<_>>().join(", ")));
            for (key, instance) in node.listed() {
                let shares = instance.shares().map(|share| {
                    let owner = owners.incarnation(share.version.owner());
                    let owner = owner.map_or("nobody".to_owned(), |owner| format!("{}.{}", owner.name, owner.epoch));
                    let kept = ["", "b", "c", "bc"][usize::from(share.beats) + 2 * usize::from(share.connections)];
                    let said = number(&share.publication.metadata);
                    let well = if share.publication.healthy { "" } else { ", late" };
                    format!("[{said} {:?} of {owner} {kept}{well}]", share.version)
                });
                lines.push(format!("    p{} {}", key.endpoint.port, shares.collect::<Vec<_>>().join(" ")));
            }
        }
        lines
    }

    /// Owners of whom some node holds something else than they do themselves.
    pub fn disagreements(&self) -> Vec<String> {
        let nodes = self.nodes();
        let mut found = Vec::new();
        for owner in &nodes {
            let own = owner.registry.digests(registry::version::OwnerId::SELF);
            for holder in nodes.iter().filter(|holder| holder.name != owner.name) {
                let held = owner.incarnation().and_then(|me| holder.held_of(&me));
                if held.unwrap_or_default() != (own.root(), own.count()) {
                    let held = held.map_or(0, |(_, count)| count);
                    found.push(format!("{} holds {held} of {} of {}", holder.name, own.count(), owner.name));
                }
            }
        }
        found
    }
}

impl Node {
    pub fn is_ready(&self) -> bool {
        self.cluster.stage() == Stage::Ready
    }

    /// Changed records that `peer` has still to be told, or has not acknowledged.
    pub fn backlog(&self, peer: &str) -> usize {
        let members = self.cluster.view().members;
        let links = members.iter().filter(|member| member.name == self::member(peer).as_str());
        links.filter_map(|member| member.link).map(|link| link.outbox).sum()
    }

    pub fn listed(&self) -> BTreeMap<InstanceKey, Arc<Instance>> {
        let snapshot = self.registry.snapshot(&service());
        snapshot.instances().iter().map(|instance| (instance.key(), instance.clone())).collect()
    }

    pub fn find(&self, key: &InstanceKey) -> Option<Arc<Instance>> {
        self.registry.snapshot(&service()).instances().find(key).cloned()
    }

    pub fn incarnation(&self) -> Option<Incarnation> {
        self.registry.owners().incarnation(registry::version::OwnerId::SELF)
    }

    /// Digest and count of what this node holds of an incarnation of another; `None` if it does not know it.
    fn held_of(&self, incarnation: &Incarnation) -> Option<(u64, u64)> {
        let others = self.registry.owners().others();
        let owner = others.into_iter().find(|(_, known)| known == incarnation)?.0;
        let digests = self.registry.digests(owner);
        Some((digests.root(), digests.count()))
    }

    pub async fn register(&self, address: &str, port: i64) {
        let command = ServiceCommand::Register(key(address, port), Kind::Ephemeral, Publication::default());
        self.registry.apply(Command::Service(service(), command)).await.unwrap();
    }

    pub async fn deregister(&self, address: &str, port: i64) {
        let InstanceKey { endpoint, cluster } = key(address, port);
        let target = Target { endpoint, cluster: Some(cluster) };
        let command = ServiceCommand::Deregister(target, Kind::Ephemeral);
        self.registry.apply(Command::Service(service(), command)).await.unwrap();
    }
}
