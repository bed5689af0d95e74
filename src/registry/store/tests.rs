use std::sync::Arc;

use super::*;
use crate::registry::{
    command::{ServiceChange, ServiceCommand},
    instance::ConnectionId,
    key::{InstanceKey, Target},
    limits::Limits,
    overlay::OverlayChange,
    publication::{Kind, Publication, Weight},
    service::{ServiceSettings, Threshold},
};

/// A registry on simulated time.
struct Bench {
    registry: RegistryHandle,
    limits: Limits,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let limits = Limits::default();
        Self { registry: RegistryHandle::start(settings, limits.clone(), Clock::start(), &Shutdown::new()), limits }
    }

    fn service(&self, name: &str) -> ServiceKey {
        self.limits.service_key("", "", name).unwrap()
    }

    fn instance(&self, port: u16) -> InstanceKey {
        InstanceKey {
            endpoint: self.limits.endpoint("10.0.0.1", i64::from(port)).unwrap(),
            cluster: crate::registry::ClusterName::default(),
        }
    }

    fn target(&self, port: u16) -> Target {
        Target { endpoint: self.instance(port).endpoint, cluster: None }
    }

    async fn apply(&self, service: &str, command: ServiceCommand) -> Result<Reply, Error> {
        self.registry.apply(Command::Service(self.service(service), command)).await
    }

    async fn register(&self, service: &str, port: u16) -> Reply {
        self.register_as(service, port, Publication::default()).await
    }

    async fn register_as(&self, service: &str, port: u16, publication: Publication) -> Reply {
        self.apply(service, ServiceCommand::Register(self.instance(port), Kind::Ephemeral, publication)).await.unwrap()
    }

    fn listed(&self, service: &str) -> Vec<(u16, bool)> {
        let snapshot = self.registry.snapshot(&self.service(service));
        snapshot.instances().iter().map(|i| (i.port(), i.healthy())).collect()
    }

    fn metadata(&self, pairs: &[(&str, &str)]) -> crate::registry::Metadata {
        self.limits.metadata(pairs.iter().copied()).unwrap()
    }

    fn beat(&self, service: &str, port: u16) {
        let snapshot = self.registry.snapshot(&self.service(service));
        self.registry.beat(snapshot.instances().find(&self.instance(port)).unwrap());
    }
}

/// Lets simulated time pass in steps that the freeze guard takes for ordinary.
async fn pass(time: Duration) {
    let step = Duration::from_millis(100);
    let mut rest = time;
    while !rest.is_zero() {
        let now = rest.min(step);
        tokio::time::sleep(now).await;
        rest -= now;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_read_as_soon_as_it_is_answered() {
    let bench = Bench::new(Settings::default());
    let first = bench.register("s", 1).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
    let second = bench.register("s", 2).await;
    assert!(second.revision > first.revision);
    assert_eq!(bench.registry.snapshot(&bench.service("s")).revision(), second.revision);
    bench.apply("s", ServiceCommand::Deregister(bench.target(1), Kind::Ephemeral)).await.unwrap();
    assert_eq!(bench.listed("s"), [(2, true)]);
}

#[tokio::test(start_paused = true)]
async fn an_equal_registration_changes_no_revision_and_renews_the_lease() {
    let bench = Bench::new(Settings::default());
    let first = bench.register("s", 1).await;
    pass(Duration::from_secs(14)).await;
    assert_eq!(bench.register("s", 1).await.revision, first.revision);
    pass(Duration::from_secs(14)).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
}

#[tokio::test(start_paused = true)]
async fn silence_makes_unhealthy_then_removes_and_beats_prevent_both() {
    let bench = Bench::new(Settings::default());
    bench.register("s", 1).await;
    bench.register("s", 2).await;
    for _ in 0..3 {
        pass(Duration::from_secs(5)).await;
        bench.beat("s", 2);
    }
    assert_eq!(bench.listed("s"), [(1, true), (2, true)]);
    pass(Duration::from_secs(1)).await;
    assert_eq!(bench.listed("s"), [(1, false), (2, true)]);
    for _ in 0..3 {
        pass(Duration::from_secs(5)).await;
        bench.beat("s", 2);
    }
    assert_eq!(bench.listed("s"), [(2, true)]);
    assert_eq!(bench.registry.figures().expired, 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_instance_is_healthy_again_once_renewed() {
    let bench = Bench::new(Settings::default());
    bench.register("s", 1).await;
    pass(Duration::from_secs(16)).await;
    assert_eq!(bench.listed("s"), [(1, false)]);
    bench.apply("s", ServiceCommand::Renew(bench.instance(1))).await.unwrap();
    pass(Duration::from_secs(14)).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
}

#[tokio::test(start_paused = true)]
async fn own_periods_are_honoured_within_a_second() {
    let bench = Bench::new(Settings::default());
    let metadata = bench.metadata(&[
        ("preserved.heart.beat.interval", "1000"),
        ("preserved.heart.beat.timeout", "2000"),
        ("preserved.ip.delete.timeout", "4000"),
    ]);
    bench.register_as("s", 1, Publication { metadata, ..Publication::default() }).await;
    pass(Duration::from_millis(2_000)).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
    pass(Duration::from_millis(1_000)).await;
    assert_eq!(bench.listed("s"), [(1, false)]);
    pass(Duration::from_millis(2_000)).await;
    assert_eq!(bench.listed("s"), []);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_process_gives_every_lease_a_full_new_period() {
    let bench = Bench::new(Settings::default());
    bench.register("s", 1).await;
    pass(Duration::from_secs(1)).await;
    tokio::time::advance(Duration::from_secs(45)).await;
    pass(Duration::from_secs(14)).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
    assert_eq!(bench.registry.figures().freezes, 1);
    pass(Duration::from_secs(2)).await;
    assert_eq!(bench.listed("s"), [(1, false)]);
}

#[tokio::test(start_paused = true)]
async fn the_brake_holds_mass_removal_back_until_its_hold_is_over() {
    let bench = Bench::new(Settings {
        brake: true,
        brake_min_leases: 10,
        brake_hold: Duration::from_secs(120),
        ..Settings::default()
    });
    for port in 0..20 {
        bench.register("s", port).await;
    }
    pass(Duration::from_secs(60)).await;
    assert_eq!(bench.listed("s").len(), 20);
    assert!(bench.registry.figures().brake_holding);
    pass(Duration::from_secs(80)).await;
    assert_eq!(bench.listed("s").len(), 0);
    assert!(!bench.registry.figures().brake_holding);
}

#[tokio::test(start_paused = true)]
async fn an_exempt_service_or_instance_never_expires() {
    let bench = Bench::new(Settings::default());
    let exempt = bench.metadata(&[("enableClientBeat", "true")]);
    bench.register_as("s", 1, Publication { metadata: exempt.clone(), ..Publication::default() }).await;
    let settings = ServiceSettings { metadata: exempt, ..ServiceSettings::default() };
    bench.apply("t", ServiceCommand::Create(settings)).await.unwrap();
    bench.register("t", 1).await;
    pass(Duration::from_secs(120)).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
    assert_eq!(bench.listed("t"), [(1, true)]);
}

#[tokio::test(start_paused = true)]
async fn an_overlay_outlives_registrations_and_an_expiry_but_no_removal() {
    let bench = Bench::new(Settings::default());
    let shown = |bench: &Bench| {
        let snapshot = bench.registry.snapshot(&bench.service("s"));
        let instance = snapshot.instances().find(&bench.instance(1)).unwrap().clone();
        (instance.weight().value(), instance.metadata().value("v").map(str::to_owned))
    };
    let publish = |bench: &Bench, v| Publication { metadata: bench.metadata(&[("v", v)]), ..Publication::default() };
    bench.register_as("s", 1, publish(&bench, "1")).await;
    let change = OverlayChange {
        weight: Some(Weight::new(0.0).unwrap()),
        set_metadata: BTreeMap::from([("v".to_owned(), "old".to_owned())]),
        ..OverlayChange::default()
    };
    bench.apply("s", ServiceCommand::Overlay(bench.target(1), change)).await.unwrap();
    assert_eq!(shown(&bench), (0.0, Some("old".to_owned())));
    bench.register_as("s", 1, publish(&bench, "2")).await;
    assert_eq!(shown(&bench), (0.0, Some("old".to_owned())));
    pass(Duration::from_secs(40)).await;
    assert_eq!(bench.listed("s"), []);
    bench.register_as("s", 1, publish(&bench, "2")).await;
    assert_eq!(shown(&bench), (0.0, Some("old".to_owned())));
    bench.apply("s", ServiceCommand::Deregister(bench.target(1), Kind::Ephemeral)).await.unwrap();
    bench.register_as("s", 1, publish(&bench, "2")).await;
    assert_eq!(shown(&bench), (1.0, Some("2".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_does_not_fit_is_refused_with_the_present_one() {
    let bench = Bench::new(Settings::default());
    bench.register("s", 1).await;
    let register = ServiceCommand::Register(bench.instance(2), Kind::Persistent, Publication::default());
    let error = bench.apply("s", register).await.unwrap_err();
    assert_eq!(
        error,
        Error::KindConflict { service: bench.service("s"), present: Kind::Ephemeral, asked: Kind::Persistent }
    );
}

#[tokio::test(start_paused = true)]
async fn empty_services_go_after_a_while_and_explicit_ones_stay() {
    let bench = Bench::new(Settings::default());
    bench.apply("kept", ServiceCommand::Create(ServiceSettings::default())).await.unwrap();
    for name in ["gone", "kept", "back"] {
        bench.register(name, 1).await;
        bench.apply(name, ServiceCommand::Deregister(bench.target(1), Kind::Ephemeral)).await.unwrap();
    }
    pass(Duration::from_secs(50)).await;
    bench.register("back", 2).await;
    bench.apply("back", ServiceCommand::Deregister(bench.target(2), Kind::Ephemeral)).await.unwrap();
    pass(Duration::from_secs(15)).await;
    assert!(bench.registry.service(&bench.service("gone")).is_none());
    assert!(bench.registry.service(&bench.service("kept")).is_some());
    assert!(bench.registry.service(&bench.service("back")).is_some());
    assert_eq!(bench.registry.figures().services, 2);
    assert_eq!(bench.registry.service_count(&Namespace::default(), None), 2);
}

#[tokio::test(start_paused = true)]
async fn service_settings_change_apart_from_instances() {
    let bench = Bench::new(Settings::default());
    let unknown = bench.apply("s", ServiceCommand::Update(ServiceChange::default())).await.unwrap_err();
    assert_eq!(unknown, Error::ServiceUnknown(bench.service("s")));
    bench.register("s", 1).await;
    let threshold = Threshold::new(0.5).ok();
    let change = ServiceChange { protect_threshold: Some(threshold), ..ServiceChange::default() };
    bench.apply("s", ServiceCommand::Update(change)).await.unwrap();
    let snapshot = bench.registry.snapshot(&bench.service("s"));
    assert_eq!(snapshot.settings().unwrap().protect_threshold, threshold);
    assert_eq!(bench.listed("s"), [(1, true)]);
    let refused = bench.apply("s", ServiceCommand::Delete).await.unwrap_err();
    assert_eq!(refused, Error::ServiceNotEmpty { service: bench.service("s"), count: 1 });
}

#[tokio::test(start_paused = true)]
async fn a_watch_begun_before_a_service_exists_sees_its_first_instance() {
    let bench = Bench::new(Settings::default());
    let mut watch = bench.registry.watch(bench.service("s"));
    assert!(bench.registry.service(&bench.service("s")).is_none());
    bench.register("s", 1).await;
    watch.changed().await;
    assert_eq!(bench.listed("s"), [(1, true)]);
}

#[tokio::test]
async fn parallel_first_registrations_are_all_listed() {
    let bench = Arc::new(Bench::new(Settings::default()));
    let tasks = tokio_util::task::TaskTracker::new();
    for port in 0..200 {
        let (one, own) = (bench.clone(), bench.clone());
        tasks.spawn(async move { one.register("shared", port).await });
        tasks.spawn(async move { own.register(&format!("own-{port}"), 1).await });
    }
    tasks.close();
    tasks.wait().await;
    assert_eq!(bench.listed("shared").len(), 200);
    for port in 0..200 {
        assert_eq!(bench.listed(&format!("own-{port}")), [(1, true)]);
    }
    assert_eq!(bench.registry.figures().instances, 400);
    assert_eq!(bench.registry.figures().services, 201);
}

#[tokio::test]
async fn a_full_queue_refuses_and_does_nothing() {
    let bench = Bench::new(Settings { queue: 1, ..Settings::default() });
    let futures: Vec<_> = (0..50)
        .map(|port| {
            let key = bench.service("s");
            let register = ServiceCommand::Register(bench.instance(port), Kind::Ephemeral, Publication::default());
            bench.registry.apply(Command::Service(key, register))
        })
        .collect();
    let mut done = 0;
    for answer in join_all(futures).await {
        match answer {
            Ok(_) => done += 1,
            Err(error) => assert_eq!(error, Error::Overloaded { waiting: 1 }),
        }
    }
    assert!((1..50).contains(&done), "{done}");
    assert_eq!(bench.listed("s").len(), done);
}

/// Polls all futures together.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

fn connection(number: u64) -> ConnectionId {
    ConnectionId::new(std::num::NonZeroU64::new(number).unwrap())
}

impl Bench {
    async fn open(&self, number: u64) {
        self.registry.apply(Command::Open(connection(number))).await.unwrap();
    }

    async fn close(&self, number: u64) {
        self.registry.apply_surely(Command::Close(connection(number))).await.unwrap();
    }

    async fn publish(&self, number: u64, service: &str, ports: &[u16]) -> Result<Reply, Error> {
        let wanted = ports.iter().map(|port| (self.instance(*port), Publication::default())).collect();
        self.apply(service, ServiceCommand::Publish(connection(number), wanted)).await
    }

    async fn withdraw(&self, number: u64, service: &str, port: u16) -> Result<Reply, Error> {
        self.apply(service, ServiceCommand::Withdraw(connection(number), self.target(port))).await
    }

    fn ports(&self, service: &str) -> Vec<u16> {
        self.listed(service).into_iter().map(|(port, _)| port).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_connection_publishes_replaces_what_it_published_and_goes_with_it() {
    let bench = Bench::new(Settings::default());
    bench.open(1).await;
    for port in [8001, 8002, 8003] {
        bench.publish(1, "s", &[port]).await.unwrap();
        assert_eq!(bench.ports("s"), [port]);
    }
    bench.publish(1, "s", &[1, 2, 3, 4, 5]).await.unwrap();
    bench.withdraw(1, "s", 2).await.unwrap();
    assert_eq!(bench.ports("s"), [1, 3, 4, 5]);
    bench.publish(1, "s", &[1, 4]).await.unwrap();
    assert_eq!(bench.ports("s"), [1, 4]);
    pass(Duration::from_secs(120)).await;
    assert_eq!(bench.ports("s"), [1, 4]);
    bench.publish(1, "t", &[7]).await.unwrap();
    bench.close(1).await;
    assert_eq!((bench.ports("s"), bench.ports("t")), (vec![], vec![]));
    assert_eq!(bench.registry.figures().instances, 0);
}

#[tokio::test(start_paused = true)]
async fn a_single_record_is_withdrawn_whatever_is_named() {
    let bench = Bench::new(Settings::default());
    bench.open(1).await;
    bench.publish(1, "s", &[1]).await.unwrap();
    bench.withdraw(1, "s", 9).await.unwrap();
    assert!(bench.ports("s").is_empty());
    bench.publish(1, "s", &[1, 2]).await.unwrap();
    assert!(matches!(bench.withdraw(1, "s", 9).await, Err(Error::InstanceUnknown { .. })));
    assert_eq!(bench.ports("s"), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_by_a_connection_that_is_gone() {
    let bench = Bench::new(Settings::default());
    assert_eq!(bench.publish(1, "s", &[1]).await.unwrap_err(), Error::ConnectionGone);
    bench.open(1).await;
    bench.close(1).await;
    assert_eq!(bench.publish(1, "s", &[1]).await.unwrap_err(), Error::ConnectionGone);
    assert!(bench.registry.service(&bench.service("s")).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_one_publisher_leaves_what_another_holds() {
    let bench = Bench::new(Settings::default());
    bench.open(1).await;
    bench.open(2).await;
    bench.publish(1, "s", &[1]).await.unwrap();
    bench.publish(2, "s", &[1]).await.unwrap();
    assert_eq!(bench.ports("s"), [1]);
    bench.close(1).await;
    assert_eq!(bench.ports("s"), [1]);
    bench.register("s", 1).await;
    bench.close(2).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
    bench.open(3).await;
    bench.publish(3, "s", &[1]).await.unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
    assert_eq!(bench.registry.figures().leases, 0);
    let deregister = ServiceCommand::Deregister(bench.target(1), Kind::Ephemeral);
    assert!(matches!(bench.apply("s", deregister.clone()).await, Err(Error::HeldByConnection { .. })));
    bench.register("s", 1).await;
    bench.apply("s", deregister).await.unwrap();
    assert_eq!(bench.listed("s"), [(1, true)]);
    bench.close(3).await;
    assert!(bench.ports("s").is_empty());
}

#[tokio::test(start_paused = true)]
async fn overlays_cannot_grow_metadata_past_the_limit() {
    let bench = Bench::new(Settings::default());
    bench.register("s", 1).await;
    let set = |key: &str| OverlayChange {
        set_metadata: BTreeMap::from([(key.to_owned(), "v".repeat(40_000))]),
        ..OverlayChange::default()
    };
    bench.apply("s", ServiceCommand::Overlay(bench.target(1), set("a"))).await.unwrap();
    let error = bench.apply("s", ServiceCommand::Overlay(bench.target(1), set("b"))).await.unwrap_err();
    assert!(matches!(error, Error::Metadata(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_beat_of_an_instance_that_a_connection_keeps_holds_it_after_the_connection() {
    let bench = Bench::new(Settings::default());
    bench.open(1).await;
    bench.publish(1, "s", &[1]).await.unwrap();
    bench.apply("s", ServiceCommand::Renew(bench.instance(1))).await.unwrap();
    assert_eq!(bench.registry.figures().leases, 1);
    bench.close(1).await;
    assert_eq!(bench.listed("s"), [(1, true)]);
    pass(Duration::from_secs(40)).await;
    assert_eq!(bench.listed("s"), []);
}

#[tokio::test(start_paused = true)]
async fn a_registration_whose_periods_clash_with_an_overlay_is_refused() {
    let bench = Bench::new(Settings::default());
    bench.register("s", 1).await;
    let change = OverlayChange {
        set_metadata: BTreeMap::from([("preserved.heart.beat.timeout".to_owned(), "6000".to_owned())]),
        ..OverlayChange::default()
    };
    bench.apply("s", ServiceCommand::Overlay(bench.target(1), change)).await.unwrap();
    let metadata = bench.metadata(&[
        ("preserved.heart.beat.interval", "20000"),
        ("preserved.heart.beat.timeout", "60000"),
        ("preserved.ip.delete.timeout", "90000"),
    ]);
    let publication = Publication { metadata, ..Publication::default() };
    let again = ServiceCommand::Register(bench.instance(1), Kind::Ephemeral, publication);
    assert!(matches!(bench.apply("s", again).await, Err(Error::Period(_))));
}
