//! Views of a hub whose state is made up: no task runs, and time stands.

use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::{
    clock::Clock,
    cluster::{
        epoch::EpochFile,
        member::MemberList,
        ownership::Eligible,
        settings::Settings,
        transport::{Accept, Accepted, BoxFuture, memory::Network},
    },
    registry::{
        self, ClusterName, Command, InstanceKey, Kind, Limits, Publication, RegistryHandle, ServiceCommand,
        replication::{Replica, Replication},
        share::Share,
        version::{Stamp, Version},
    },
    shutdown::Shutdown,
    wire::pb::peer as pb,
};

/// Nobody comes here.
struct Wall;

impl Accept for Wall {
    fn link(&self, _: MemberName, _: Accepted) {}

    fn forward(&self, _: MemberName, _: pb::ForwardRequest) -> BoxFuture<'static, pb::ForwardResponse> {
        Box::pin(std::future::pending())
    }

    fn list_orphans(&self, _: MemberName, _: pb::ListOrphansRequest) -> BoxFuture<'static, pb::ListOrphansResponse> {
        Box::pin(std::future::pending())
    }
}

fn member(name: &str) -> MemberName {
    MemberName::parse(name).unwrap()
}

fn hub(disk: &TempDir) -> Arc<Hub> {
    let (clock, shutdown) = (Clock::start(), Shutdown::new());
    let replication = Replication {
        floor: Stamp::new(0),
        removal_ttl: Duration::from_secs(600),
        removal_limit: 100,
        journal_limit: 100,
    };
    let (settings, limits) = (registry::Settings::default(), Limits::default());
    let (registry, _) = RegistryHandle::start_replicated(settings, limits, clock, &shutdown, replication);
    let network = Network::new(clock, Duration::from_secs(1), Shutdown::new());
    let transport = Arc::new(network.join(&member("b"), Arc::new(Wall)));
    let list = MemberList::new(["a", "b", "c", "d", "e"].map(member)).unwrap();
    let epoch = EpochFile::open(disk.path(), Epoch::new(0)).unwrap();
    let hub = Hub::new(member("b"), &list, Settings::default(), clock, registry, transport, epoch, shutdown);
    let _ = hub.follow(&list);
    hub
}

/// The instance at a port, said by another member.
fn replica(port: i64, owner: OwnerId) -> Vec<(crate::registry::ServiceKey, Replica)> {
    let limits = Limits::default();
    let service = limits.service_key("", "", "s").unwrap();
    let key = InstanceKey { endpoint: limits.endpoint("10.0.0.1", port).unwrap(), cluster: ClusterName::default() };
    let share = Share {
        version: Version::new(Stamp::new(7), 0, owner),
        publication: Publication::default(),
        beats: true,
        connections: false,
        snowflake: None,
    };
    vec![(service, Replica::Put { key, share, as_of: 0 })]
}

#[tokio::test(start_paused = true)]
async fn members_are_shown_as_they_stand_and_why() {
    let disk = TempDir::new().unwrap();
    let hub = hub(&disk);
    let before = view(&hub, &[member("a"), member("c")]);
    assert_eq!((before.name.as_str(), before.clustered, before.stage), ("b:8848", true, Stage::Joining));
    assert_eq!((before.listed, before.majority), (true, false));
    assert_eq!(before.waiting_for, ["a:8848", "c:8848"]);
    assert_eq!(before.serving().count(), 0);
    let names: Vec<_> = before.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["a:8848", "b:8848", "c:8848", "d:8848", "e:8848"]);
    assert_eq!(before.members[0].reason, "it has not been met for 0 ms");

    // `a` is well, `c` is silent but `a` has it up, `d` refuses, `e` says goodbye.
    for name in ["a", "c", "d", "e"] {
        hub.met(&member(name), Epoch::new(3)).unwrap();
    }
    let now = hub.now();
    let life = |name: &str| {
        let mut detector = hub.detector.lock();
        detector.link_acknowledged(&member(name), hub.now());
        detector.link_heard(&member(name), hub.now());
        detector.reported(&member(name), vec![member("c")], Stage::Ready);
    };
    for name in ["a", "c", "d", "e"] {
        life(name);
    }
    hub.detector.lock().refused(&member("d"), now);
    hub.departed(&member("e"), Epoch::new(3));
    // In ticks, or it would look like a frozen process.
    for _ in 0..60 {
        tokio::time::advance(crate::cluster::detector::TICK).await;
        life("a");
        hub.detector.lock().observe(hub.now());
    }
    hub.stage.send_replace(Stage::Ready);
    let eligible = Eligible::new(hub.detector.lock().eligible(Stage::Ready).cloned());
    hub.eligible.store(Arc::new(eligible));

    let view = view(&hub, &[]);
    let stands: Vec<_> =
        view.members.iter().map(|member| (member.standing, member.eligible, member.reason.as_str())).collect();
    assert_eq!(
        stands,
        [
            (Standing::Up, true, ""),
            (Standing::Up, true, ""),
            (Standing::Unreachable, false, "it neither answers nor is heard for 6000 ms; another member has it up"),
            (
                Standing::Dead,
                false,
                "it neither answers nor is heard for 6000 ms; it refuses connections for 6000 ms; no member that is up has it up"
            ),
            (Standing::Departed, false, "it said goodbye"),
        ]
    );
    assert_eq!(view.members[3].silence, Duration::from_secs(6));
    assert_eq!(view.members[0].epoch, Some(3));
    let shares: Vec<_> = view.members.iter().map(|member| member.share).collect();
    assert!((shares[0] + shares[1] - 1.0).abs() < 1e-9 && (shares[0] - 0.5).abs() < 0.03, "{shares:?}");
    assert_eq!(shares[2..], [0.0; 3]);
    assert_eq!(view.serving().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["a:8848", "b:8848"]);
    assert!(!view.majority, "two of five");
}

#[tokio::test(start_paused = true)]
async fn links_copies_and_orphans_are_measured() {
    let disk = TempDir::new().unwrap();
    let hub = hub(&disk);
    let (a, second) = (member("a"), Duration::from_secs(1));
    hub.met(&a, Epoch::new(1)).unwrap();
    let incoming = hub.begin_session(&a, Epoch::new(1)).unwrap();
    hub.registry.apply_surely(Command::Replicate(replica(1, incoming.owner))).await.unwrap();
    hub.registry.apply_surely(Command::Replicate(replica(2, incoming.owner))).await.unwrap();
    hub.set_synced(&a, incoming.session);
    hub.compared(&a, incoming.session, false);
    hub.compared(&a, incoming.session + 1, true);
    let outgoing = hub.outgoing(&a).unwrap();
    let limits = Limits::default();
    let own = InstanceKey { endpoint: limits.endpoint("10.0.0.2", 1).unwrap(), cluster: ClusterName::default() };
    let service = limits.service_key("", "", "s").unwrap();
    let register = ServiceCommand::Register(own.clone(), Kind::Ephemeral, Publication::default());
    hub.registry.apply(Command::Service(service.clone(), register)).await.unwrap();
    outgoing.outbox.lock().add((service, own), hub.now());
    {
        let mut state = outgoing.state.lock();
        (state.since, state.batches, state.agreed) = (Some(hub.now()), 4, Some((true, hub.now())));
    }
    tokio::time::advance(second).await;

    let agreement = |equal| Some(Agreement { equal, ago: second });
    let seen = view(&hub, &[]);
    let copy = CopyView { records: 2, synced: true, agreement: agreement(false) };
    let lag = second - hub.settings.merge_window;
    let link = LinkView { up_for: Some(second), outbox: 1, lag: Some(lag), batches: 4, agreement: agreement(true) };
    assert_eq!((seen.members[0].copy, seen.members[0].link), (copy, Some(link)));
    assert_eq!((seen.members[1].copy.records, seen.members[1].link), (1, None));
    assert_eq!((seen.members[2].copy, seen.members[2].link), (CopyView::default(), Some(LinkView::default())));
    assert_eq!(seen.orphans, []);

    // It starts anew: what it was before is an orphan, and nothing of the new one is held yet.
    hub.met(&a, Epoch::new(2)).unwrap();
    hub.moved.taken_over.store(5, Ordering::Relaxed);
    tokio::time::advance(second).await;
    let seen = view(&hub, &[]);
    assert_eq!(seen.members[0].copy, CopyView::default());
    let remaining = hub.settings.isolation_grace - second;
    assert_eq!(seen.orphans, [OrphanView { member: "a:8848".to_owned(), epoch: 1, records: 2, remaining }]);
    assert_eq!(seen.moved, MovedView { taken_over: 5, ..MovedView::default() });
}
