//! Members without links between them: what one knows of another's records it knows from answers alone.

use std::collections::BTreeMap;

use super::*;
use crate::{
    clock::Clock,
    cluster::{
        forwarded::Forwarded,
        ownership::Eligible,
        routes::View,
        transport::{Accept, Accepted, BoxFuture, memory::Network},
    },
    error::{Classify, Code},
    naming::{self, Held, Naming, Pulse, Registration},
    registry::{Limits, hash, heartbeat, overlay::OverlayChange, replication::Replication, version::OwnerId},
};

const EPOCH: u64 = 7;

/// A member as the others reach it.
struct Answering {
    forwarded: Forwarded,
    asked: Arc<AtomicU64>,
}

impl Accept for Answering {
    fn link(&self, _: MemberName, _: Accepted) {}

    fn forward(&self, from: MemberName, request: pb::ForwardRequest) -> BoxFuture<'static, pb::ForwardResponse> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let forwarded = self.forwarded.clone();
        Box::pin(async move { forwarded.handle(&from, request).await })
    }

    fn list_orphans(&self, _: MemberName, _: pb::ListOrphansRequest) -> BoxFuture<'static, pb::ListOrphansResponse> {
        Box::pin(async { pb::ListOrphansResponse::default() })
    }
}

struct Node {
    name: MemberName,
    registry: RegistryHandle,
    routes: Routes,
    forwarder: Forwarder,
    naming: Naming,
    /// Requests that came in.
    asked: Arc<AtomicU64>,
}

impl Node {
    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn listed(&self, port: i64) -> Option<Arc<Instance>> {
        self.registry.snapshot(&service()).instances().find(&key(port)).cloned()
    }

    async fn register(&self, port: i64) -> Result<(Arc<Instance>, u64), naming::Error> {
        self.naming.register(registration(port, Publication::default())).await
    }

    async fn beat(&self, port: i64, full: Option<Publication>) -> BeatResult {
        self.naming.beat(service(), &target(port), full).await.unwrap().result
    }

    async fn deregister(&self, port: i64) -> Result<u64, naming::Error> {
        self.naming.deregister(service(), target(port), Kind::Ephemeral).await
    }
}

struct Cluster {
    network: Network,
    nodes: Vec<Node>,
    shutdown: Shutdown,
}

impl Cluster {
    fn of(hosts: &[&str]) -> Self {
        Self::with(hosts, Limits::default())
    }

    /// As [`Cluster::of`]; the registries take what `limits` allow.
    fn with(hosts: &[&str], limits: Limits) -> Self {
        let (clock, shutdown) = (Clock::start(), Shutdown::new());
        let network = Network::new(clock, Duration::from_secs(5), shutdown.clone());
        let names: Vec<_> = hosts.iter().map(|host| MemberName::parse(host).unwrap()).collect();
        let nodes = names.iter().map(|me| {
            let replication = Replication {
                floor: Stamp::new(100),
                removal_ttl: Duration::from_secs(600),
                removal_limit: 1_000,
                journal_limit: 1_000,
            };
            let settings = crate::registry::Settings::default();
            let (registry, _) =
                RegistryHandle::start_replicated(settings, limits.clone(), clock, &shutdown, replication);
            registry.owners().set_self(Incarnation { name: me.as_str().into(), epoch: EPOCH });
            let others = names.iter().filter(|name| *name != me);
            let routes = Routes::new(View {
                me: me.clone(),
                eligible: Eligible::new(names.clone()),
                up: others.map(|name| (name.clone(), Epoch::new(EPOCH))).collect(),
            });
            let asked = Arc::<AtomicU64>::default();
            let answering = Answering { forwarded: Forwarded::new(registry.clone()), asked: asked.clone() };
            let transport = Arc::new(network.join(me, Arc::new(answering)));
            let (routes, settings) = (routes, Settings::default());
            let forwarder = Forwarder::start(routes.clone(), transport, registry.clone(), settings, &shutdown);
            let naming = Naming::clustered(registry.clone(), Limits::default(), forwarder.clone());
            Node { name: me.clone(), registry, routes, forwarder, naming, asked }
        });
        let nodes = nodes.collect();
        Self { network, nodes, shutdown }
    }

    /// The members in the order in which they answer for that port.
    fn line(&self, port: i64) -> Vec<&Node> {
        let names = Eligible::new(self.nodes.iter().map(|node| node.name.clone()));
        let key = hash::endpoint(&service(), &key(port).endpoint);
        let node = |name: &MemberName| self.nodes.iter().find(|node| node.name == *name).unwrap();
        names.in_line(key).map(node).collect()
    }
}

fn service() -> ServiceKey {
    Limits::default().service_key("", "", "s").unwrap()
}

fn key(port: i64) -> InstanceKey {
    InstanceKey { endpoint: Limits::default().endpoint("10.0.0.1", port).unwrap(), cluster: Default::default() }
}

fn target(port: i64) -> Target {
    Target { endpoint: key(port).endpoint, cluster: None }
}

fn registration(port: i64, publication: Publication) -> Registration {
    Registration { service: service(), instance: key(port), kind: Kind::Ephemeral, publication }
}

fn with_metadata(pairs: &[(&str, &str)]) -> Publication {
    let metadata = Limits::default().metadata(pairs.iter().copied()).unwrap();
    Publication { metadata, ..Publication::default() }
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_read_at_the_owner_and_where_it_was_made() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    for port in 1..50 {
        let [owner, second, third] = cluster.line(port)[..] else { panic!("three members") };
        let (instance, revision) = third.register(port).await.unwrap();
        assert_eq!(instance.version(OwnerId::SELF), None);
        assert_eq!(revision, third.naming.snapshot(&service()).revision());
        let at_owner = owner.listed(port).unwrap();
        assert!(at_owner.beats_well_at(OwnerId::SELF));
        let here = third.listed(port).unwrap();
        assert_eq!(here.versions().next().unwrap().order(), at_owner.versions().next().unwrap().order());
        assert!(here.healthy() && here.is_elsewhere());
        assert!(second.listed(port).is_none(), "it was sent to the owner only");
    }
    let asked: u64 = cluster.nodes.iter().map(Node::asked).sum();
    assert_eq!(asked, 49, "each was forwarded once");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_gone_or_silent_is_passed_over() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    let [owner, second, third] = cluster.line(1)[..] else { panic!("three members") };
    cluster.network.cut_both(&third.name, &owner.name, None);
    let begun = third.registry.now();
    third.register(1).await.unwrap();
    assert_eq!(third.registry.now().since(begun), Duration::from_secs(1), "the owner had its time");
    assert!(owner.listed(1).is_none());
    assert!(second.listed(1).unwrap().beats_well_at(OwnerId::SELF) && third.listed(1).is_some());

    cluster.network.leave(&second.name);
    third.register(1).await.unwrap();
    assert!(third.listed(1).unwrap().beats_well_at(OwnerId::SELF), "the last in line is this node");

    cluster.network.heal_all();
    third.routes.publish(View {
        me: third.name.clone(),
        eligible: Eligible::new(cluster.nodes.iter().map(|node| node.name.clone())),
        up: BTreeMap::new(),
    });
    let asked = owner.asked();
    third.register(1).await.unwrap();
    assert_eq!(owner.asked(), asked, "a suspect is not asked");
}

#[tokio::test(start_paused = true)]
async fn three_hundred_ports_can_be_written_while_a_member_is_gone() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    cluster.network.leave(&cluster.nodes[0].name);
    let node = &cluster.nodes[1];
    for port in 1..=300 {
        node.register(port).await.unwrap();
        assert!(matches!(node.beat(port, None).await, BeatResult::Renewed(_)));
    }
    assert_eq!(node.naming.snapshot(&service()).instances().len(), 300);
    for port in 1..=300 {
        node.deregister(port).await.unwrap();
    }
    assert_eq!(node.naming.snapshot(&service()).instances().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_those_of_the_owner() {
    let tight = Limits { metadata_bytes: 200, ..Limits::default() };
    let cluster = Cluster::with(&["a", "b"], tight);
    let [owner, other] = cluster.line(1)[..] else { panic!("two members") };
    let same = |asked: naming::Error, told: naming::Error| {
        assert_eq!((asked.code(), asked.field(), asked.to_string()), (told.code(), told.field(), told.to_string()));
        assert_eq!(asked, told);
    };
    let too_much = registration(1, with_metadata(&[("k", &"v".repeat(1_000))]));
    let asked = owner.naming.register(too_much.clone()).await.unwrap_err();
    same(asked, other.naming.register(too_much).await.unwrap_err());
    same(owner.deregister(1).await.unwrap_err(), other.deregister(1).await.unwrap_err());
    for cluster in ["c1", "c2"] {
        let mut registration = registration(1, Publication::default());
        registration.instance.cluster = Limits::default().cluster(cluster).unwrap().unwrap();
        other.naming.register(registration).await.unwrap();
    }
    same(owner.deregister(1).await.unwrap_err(), other.deregister(1).await.unwrap_err());
    let beat = |node: &Node| {
        let naming = node.naming.clone();
        async move { naming.beat(service(), &target(1), None).await.unwrap_err() }
    };
    same(beat(owner).await, beat(other).await);
    let never = registration(1, with_metadata(&[(heartbeat::INTERVAL_KEY, "never")]));
    let asked = owner.naming.register(never.clone()).await.unwrap_err();
    same(asked, other.naming.register(never).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn beats_of_the_unknown_are_answered_as_at_the_owner() {
    let cluster = Cluster::of(&["a", "b"]);
    let [owner, other] = cluster.line(1)[..] else { panic!("two members") };
    assert!(matches!(other.beat(1, None).await, BeatResult::Unknown));
    let result = other.beat(1, Some(with_metadata(&[("k", "v")]))).await;
    let BeatResult::Registered(instance) = result else { panic!("{result:?}") };
    assert_eq!(instance.metadata().value("k"), Some("v"));
    assert_eq!(owner.listed(1).unwrap().metadata().value("k"), Some("v"));
    assert!(other.listed(1).is_some());
    let result = other.beat(1, Some(with_metadata(&[("k", "another")]))).await;
    let BeatResult::Renewed(instance) = result else { panic!("{result:?}") };
    assert_eq!(instance.metadata().value("k"), Some("v"), "a live one is never changed by a beat");
}

#[tokio::test(start_paused = true)]
async fn a_beat_finds_what_only_the_owner_knows() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    for port in 1..=1_000 {
        let [_, second, third] = cluster.line(port)[..] else { panic!("three members") };
        third.register(port).await.unwrap();
        assert!(matches!(third.beat(port, None).await, BeatResult::Renewed(_)));
        assert!(matches!(second.beat(port, None).await, BeatResult::Renewed(_)));
        assert!(second.listed(port).is_some() && third.listed(port).is_some());
    }
    for node in &cluster.nodes {
        let snapshot = node.naming.snapshot(&service());
        assert_eq!(snapshot.instances().len(), 1_000);
        assert!(snapshot.instances().iter().all(|instance| instance.versions().count() == 1), "none is there twice");
    }
}

#[tokio::test(start_paused = true)]
async fn who_deregisters_at_another_member_sees_it_gone_and_it_stays_gone() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    let [owner, second, third] = cluster.line(1)[..] else { panic!("three members") };
    second.register(1).await.unwrap();
    third.beat(1, None).await;
    let old = third.listed(1).unwrap();
    third.deregister(1).await.unwrap();
    assert!(third.listed(1).is_none() && owner.listed(1).is_none());
    let share = old.shares().next().unwrap();
    let as_of = share.version.order();
    let late = Replica::Put { key: key(1), share, as_of };
    third.registry.apply(Command::Replicate(vec![(service(), late)])).await.unwrap();
    assert!(third.listed(1).is_none(), "a late copy does not come back");
    let error = third.deregister(1).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    third.register(1).await.unwrap();
    assert!(third.listed(1).is_some() && owner.listed(1).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_here_can_be_deregistered_before_its_owner_knows_it() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    let [owner, second, third] = cluster.line(1)[..] else { panic!("three members") };
    cluster.network.cut_both(&third.name, &owner.name, None);
    third.register(1).await.unwrap();
    cluster.network.heal_all();
    assert!(owner.listed(1).is_none() && second.listed(1).is_some());
    third.deregister(1).await.unwrap();
    assert!(third.listed(1).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_owner_takes_over_what_the_sender_of_a_beat_knows() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    let [owner, _, third] = cluster.line(1)[..] else { panic!("three members") };
    cluster.network.cut_both(&third.name, &owner.name, None);
    third.naming.register(registration(1, with_metadata(&[("k", "v")]))).await.unwrap();
    cluster.network.heal_all();
    assert!(matches!(third.beat(1, None).await, BeatResult::Renewed(_)));
    let at_owner = owner.listed(1).unwrap();
    assert!(at_owner.beats_well_at(OwnerId::SELF));
    assert_eq!(at_owner.metadata().value("k"), Some("v"));
}

#[tokio::test(start_paused = true)]
async fn beats_that_were_answered_at_once_keep_the_lease_at_the_owner() {
    let cluster = Cluster::of(&["a", "b"]);
    let [owner, other] = cluster.line(1)[..] else { panic!("two members") };
    other.register(1).await.unwrap();
    let mut held = Held::new(service(), target(1));
    for round in 0..30 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        if round % 2 == 0 {
            assert_eq!(other.naming.pulse_held(&mut held), Ok(Pulse::Renewed));
        } else {
            other.beat(1, None).await;
        }
        assert!(owner.listed(1).unwrap().beats_well_at(OwnerId::SELF));
    }
    assert_eq!(owner.asked(), 30, "the registration, and a message for each beat but the one that waits");
    let figures = other.forwarder.figures();
    assert_eq!((figures.batched, figures.waiting, figures.failed), (30, 1, 0));
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(owner.listed(1).is_none(), "and without them it ends");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_beats_make_few_messages() {
    let cluster = Cluster::of(&["a", "b"]);
    let node = &cluster.nodes[0];
    let mine = |port: &i64| cluster.line(*port)[0].name != node.name;
    let ports: Vec<_> = (1..=20_000).filter(mine).collect();
    for chunk in ports.chunks(200) {
        let registered = chunk.iter().map(|port| node.register(*port));
        for registered in registered {
            registered.await.unwrap();
        }
    }
    let before = cluster.nodes[1].asked();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for port in &ports {
        assert_eq!(node.naming.pulse(&service(), &target(*port)), Ok(Pulse::Renewed));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let messages = cluster.nodes[1].asked() - before;
    assert!((3..=5).contains(&messages), "{messages} messages for {} beats", ports.len());
    let owner = &cluster.nodes[1].registry;
    let silent = |port: &i64| owner.silence(&cluster.nodes[1].listed(*port).unwrap()).unwrap();
    assert!(ports.iter().map(silent).max().unwrap() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn batched_beats_of_an_owner_that_is_gone_move_to_the_next_in_line() {
    let cluster = Cluster::of(&["a", "b", "c"]);
    let port = (1..).find(|port| cluster.line(*port)[2].name.host() == "c").unwrap();
    let [owner, second, third] = cluster.line(port)[..] else { panic!("three members") };
    third.register(port).await.unwrap();
    second.beat(port, None).await;
    cluster.network.leave(&owner.name);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(matches!(third.beat(port, None).await, BeatResult::Renewed(_)));
    }
    assert!(second.listed(port).unwrap().beats_well_at(OwnerId::SELF));
    cluster.network.leave(&second.name);
    third.beat(port, None).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(third.listed(port).unwrap().beats_well_at(OwnerId::SELF));
}

#[tokio::test(start_paused = true)]
async fn a_batched_beat_that_met_nothing_is_noticed_by_the_next_one() {
    let cluster = Cluster::of(&["a", "b"]);
    let [owner, other] = cluster.line(1)[..] else { panic!("two members") };
    other.register(1).await.unwrap();
    owner.deregister(1).await.unwrap();
    assert!(matches!(other.beat(1, None).await, BeatResult::Renewed(_)), "the replica is behind");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(other.listed(1).is_none());
    assert!(matches!(other.beat(1, None).await, BeatResult::Unknown));
}

#[tokio::test(start_paused = true)]
async fn answers_from_a_life_that_is_over_do_not_count() {
    let cluster = Cluster::of(&["a", "b"]);
    let [owner, other] = cluster.line(1)[..] else { panic!("two members") };
    owner.registry.owners().set_self(Incarnation { name: owner.name.as_str().into(), epoch: EPOCH - 1 });
    other.register(1).await.unwrap();
    assert!(other.listed(1).unwrap().beats_well_at(OwnerId::SELF));
    assert_eq!(other.registry.owners().find(owner.name.as_str(), EPOCH - 1), None);
}

#[tokio::test(start_paused = true)]
async fn the_last_beats_leave_with_the_drain() {
    let cluster = Cluster::of(&["a", "b"]);
    let [owner, other] = cluster.line(1)[..] else { panic!("two members") };
    other.register(1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10_100)).await;
    other.beat(1, None).await;
    cluster.shutdown.drain();
    assert_eq!(cluster.shutdown.drained(Duration::from_secs(5)).await, 0);
    assert!(owner.registry.silence(&owner.listed(1).unwrap()).unwrap() < Duration::from_secs(1));
    assert!(matches!(other.beat(1, None).await, BeatResult::Renewed(_)), "and later ones go by themselves");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_refused() {
    let cluster = Cluster::of(&["a", "b"]);
    let node = &cluster.nodes[0];
    let forwarded = Forwarded::new(node.registry.clone());
    let service = || Some(wire::service_name(&service()));
    let record = || said(&key(1), Publication::default());
    let broken = [
        None,
        Some(Request::Register(pb::Register { service: None, record: Some(record()) })),
        Some(Request::Register(pb::Register { service: service(), record: None })),
        Some(Request::Register(pb::Register {
            service: service(),
            record: Some(pb::Record { weight: f64::NAN, ..record() }),
        })),
        Some(Request::Register(pb::Register {
            service: service(),
            record: Some(pb::Record { instance: Some(pb::InstanceName::default()), ..record() }),
        })),
        Some(Request::Deregister(pb::Deregister {
            service: service(),
            target: Some(pb::Target { address: "1.2.3".to_owned(), port: 80, cluster: None }),
        })),
        Some(Request::Beat(pb::Beat { service: service(), ..pb::Beat::default() })),
        Some(Request::Beats(pb::Beats {
            services: vec![pb::BeatsOfService { service: service(), instances: vec![pb::InstanceName::default()] }],
        })),
    ];
    for request in broken {
        let response = forwarded.handle(&cluster.nodes[1].name, pb::ForwardRequest { standing: None, request }).await;
        let Some(Outcome::Refused(refused)) = response.outcome else { panic!("it must be refused") };
        assert_eq!(refused.reason, wire::refusal::MALFORMED);
    }
    assert_eq!(node.naming.figures().instances, 0);
}

#[tokio::test(start_paused = true)]
async fn names_that_are_too_long_here_are_kept_for_others() {
    let cluster = Cluster::of(&["a", "b"]);
    let node = &cluster.nodes[0];
    let wide = Limits::of_peers();
    let service = wire::service_name(&wide.service_key("", "", &"s".repeat(5_000)).unwrap());
    let register = pb::Register { service: Some(service), record: Some(said(&key(1), Publication::default())) };
    let request = pb::ForwardRequest { standing: None, request: Some(Request::Register(register)) };
    let response = Forwarded::new(node.registry.clone()).handle(&cluster.nodes[1].name, request).await;
    assert!(matches!(response.outcome, Some(Outcome::Done(_))));
}

#[tokio::test(start_paused = true)]
async fn operators_are_told_what_a_cluster_cannot_do_yet() {
    let cluster = Cluster::of(&["a", "b"]);
    let naming = &cluster.nodes[0].naming;
    let change = OverlayChange::default();
    let error = naming.overlay(service(), target(1), change).await.unwrap_err();
    assert_eq!(error.code().http_status(), 501);
    assert_eq!(
        error.to_string(),
        "a change of an instance needs the replicated store, which this version has in standalone mode only"
    );
    assert!(matches!(naming.delete_service(service()).await, Err(naming::Error::ClusterWide { .. })));
}
