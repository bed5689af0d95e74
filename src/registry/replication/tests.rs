use std::{num::NonZeroU64, time::Duration};

use super::*;
use crate::{
    clock::Clock,
    registry::{
        ClusterName, Command, Limits, Publication, RegistryHandle, ServiceCommand, ServiceKey, Settings, Target,
        Weight,
        instance::ConnectionId,
        journal::{Changes, JournalReader},
        owners::Incarnation,
    },
    shutdown::Shutdown,
};

fn start() -> (RegistryHandle, JournalReader) {
    let replication = Replication {
        floor: Stamp::new(1_000),
        removal_ttl: Duration::from_secs(600),
        removal_limit: 100,
        journal_limit: 100,
    };
    RegistryHandle::start_replicated(
        Settings::default(),
        Limits::default(),
        Clock::start(),
        &Shutdown::new(),
        replication,
    )
}

fn service() -> ServiceKey {
    Limits::default().service_key("", "", "s").unwrap()
}

fn key(port: i64) -> InstanceKey {
    InstanceKey { endpoint: Limits::default().endpoint("10.0.0.1", port).unwrap(), cluster: ClusterName::default() }
}

fn weighing(weight: f64) -> Publication {
    Publication { weight: Weight::new(weight).unwrap(), ..Publication::default() }
}

fn owner(registry: &RegistryHandle, name: &str) -> OwnerId {
    registry.owners().number(&Incarnation { name: name.into(), epoch: 1 }).unwrap()
}

fn said(owner: OwnerId, stamp: u64, weight: f64) -> Share {
    let version = Version::new(Stamp::new(stamp), 0, owner);
    Share { version, beats: true, connections: false, publication: weighing(weight), snowflake: None }
}

async fn apply(registry: &RegistryHandle, replicas: Vec<Replica>) {
    let replicas = replicas.into_iter().map(|replica| (service(), replica)).collect();
    registry.apply(Command::Replicate(replicas)).await.unwrap();
}

async fn change(registry: &RegistryHandle, command: ServiceCommand) {
    registry.apply(Command::Service(service(), command)).await.unwrap();
}

/// Port and weight of each listed instance.
fn listed(registry: &RegistryHandle) -> Vec<(u16, f64)> {
    registry.snapshot(&service()).instances().iter().map(|i| (i.port(), i.weight().value())).collect()
}

const fn order(stamp: u64) -> u64 {
    Version::new(Stamp::new(stamp), 0, OwnerId::SELF).order()
}

#[tokio::test]
async fn a_record_gives_way_to_a_newer_one_and_to_a_later_reading_only() {
    let (registry, _journal) = start();
    let b = owner(&registry, "b");
    let put = |stamp, weight, as_of| Replica::Put { key: key(1), share: said(b, stamp, weight), as_of: order(as_of) };
    apply(&registry, vec![put(50, 5.0, 60)]).await;
    apply(&registry, vec![put(40, 4.0, 45)]).await;
    assert_eq!(listed(&registry), [(1, 5.0)], "an old reading of an old record");
    apply(&registry, vec![put(70, 7.0, 60)]).await;
    assert_eq!(listed(&registry), [(1, 7.0)], "a newer record");
    apply(&registry, vec![put(50, 5.0, 80)]).await;
    assert_eq!(listed(&registry), [(1, 5.0)], "its owner took over an older registration since");
    let absent = |as_of| Replica::Absent { key: key(1), owner: b, as_of: order(as_of) };
    apply(&registry, vec![absent(49)]).await;
    assert_eq!(listed(&registry).len(), 1);
    apply(&registry, vec![absent(50)]).await;
    assert_eq!(listed(&registry), []);
    assert!(registry.stamp() >= Stamp::new(1_000));
}

#[tokio::test]
async fn an_instance_stays_while_one_member_holds_it_and_shows_the_newest_word() {
    let (registry, _journal) = start();
    let (b, c) = (owner(&registry, "b"), owner(&registry, "c"));
    let put = |owner, stamp, weight| Replica::Put { key: key(1), share: said(owner, stamp, weight), as_of: 0 };
    apply(&registry, vec![put(b, 5, 5.0), put(c, 7, 7.0)]).await;
    change(&registry, ServiceCommand::Register(key(1), Kind::Ephemeral, weighing(1.0))).await;
    assert_eq!(listed(&registry), [(1, 1.0)], "a registration is newer than all that was seen");
    let absent = |owner| Replica::Absent { key: key(1), owner, as_of: u64::MAX };
    apply(&registry, vec![Replica::Yield { key: key(1), stamp: Stamp::MAX }]).await;
    assert_eq!(listed(&registry), [(1, 7.0)]);
    apply(&registry, vec![absent(c)]).await;
    assert_eq!(listed(&registry), [(1, 5.0)]);
    apply(&registry, vec![absent(b)]).await;
    assert_eq!(listed(&registry), []);
    assert_eq!((registry.digests(b).root(), registry.digests(OwnerId::SELF).root()), (0, 0));
    assert!(registry.release_owner(b) && !registry.release_owner(OwnerId::SELF));
}

#[tokio::test]
async fn a_removal_ends_what_beats_kept_before_it_and_nothing_later() {
    let (registry, _journal) = start();
    let b = owner(&registry, "b");
    let put = |port, stamp, connections| {
        let share = Share { connections, ..said(b, stamp, 1.0) };
        Replica::Put { key: key(port), share, as_of: u64::MAX }
    };
    let removed = |port, stamp| Replica::Removed { key: key(port), stamp: Stamp::new(stamp) };
    apply(&registry, vec![put(1, 50, false), removed(1, 60), put(2, 70, false), removed(2, 60)]).await;
    assert_eq!(listed(&registry), [(2, 1.0)]);
    apply(&registry, vec![put(1, 55, false)]).await;
    assert_eq!(listed(&registry), [(2, 1.0)], "a stale copy does not come back");
    apply(&registry, vec![Replica::Adopt { key: key(1), share: said(b, 55, 1.0) }]).await;
    assert_eq!(listed(&registry), [(2, 1.0)], "nor is it taken over");
    apply(&registry, vec![put(1, 61, false), put(3, 10, true), removed(3, 60)]).await;
    assert_eq!(listed(&registry), [(1, 1.0), (2, 1.0), (3, 1.0)], "a new registration, and a connection, stand");
}

#[tokio::test]
async fn a_deregistration_strikes_copies_of_others_and_is_remembered() {
    let (registry, mut journal) = start();
    let b = owner(&registry, "b");
    apply(&registry, vec![Replica::Put { key: key(1), share: said(b, 50, 1.0), as_of: 0 }]).await;
    let InstanceKey { endpoint, cluster } = key(1);
    change(&registry, ServiceCommand::Deregister(Target { endpoint, cluster: Some(cluster) }, Kind::Ephemeral)).await;
    assert_eq!(listed(&registry), []);
    let removed = registry.removal(&(service(), key(1))).unwrap();
    assert!(removed > Stamp::new(1_000));
    assert_eq!(journal.take().await, Changes { names: vec![(service(), key(1))], overflown: false });
    assert_eq!(registry.removals(), [((service(), key(1)), removed)]);
}

#[tokio::test]
async fn what_is_adopted_keeps_its_stamp_and_has_a_lease() {
    let (registry, mut journal) = start();
    let b = owner(&registry, "b");
    let share = said(b, 50, 5.0);
    apply(&registry, vec![Replica::Put { key: key(1), share: share.clone(), as_of: 0 }]).await;
    apply(&registry, vec![Replica::Adopt { key: key(1), share }]).await;
    let own = registry.own_share(&service(), &key(1)).unwrap();
    assert!(own.beats && own.version.stamp() == Stamp::new(50));
    assert_eq!(registry.figures().leases, 1);
    assert_eq!(journal.take().await.names, [(service(), key(1))]);
    apply(&registry, vec![Replica::Yield { key: key(1), stamp: Stamp::new(49) }]).await;
    assert_eq!(registry.figures().leases, 1, "newer than what was handed over");
    apply(&registry, vec![Replica::Yield { key: key(1), stamp: Stamp::new(50) }]).await;
    assert_eq!((registry.figures().leases, listed(&registry)), (0, vec![(1, 5.0)]));
}

#[tokio::test]
async fn a_change_that_no_reader_sees_moves_no_revision() {
    let (registry, _journal) = start();
    let (b, c) = (owner(&registry, "b"), owner(&registry, "c"));
    apply(&registry, vec![Replica::Put { key: key(1), share: said(b, 50, 5.0), as_of: 0 }]).await;
    let before = registry.snapshot(&service()).revision();
    apply(&registry, vec![Replica::Put { key: key(1), share: said(c, 40, 9.0), as_of: 0 }]).await;
    apply(&registry, vec![Replica::Adopt { key: key(1), share: said(b, 50, 5.0) }]).await;
    let snapshot = registry.snapshot(&service());
    assert_eq!(snapshot.revision(), before);
    assert_eq!(snapshot.instances().iter().next().unwrap().versions().count(), 3);
}

#[tokio::test]
async fn two_registries_that_tell_each_other_all_have_equal_digests() {
    let (ours, mut journal) = start();
    let (theirs, _) = start();
    let here = owner(&theirs, "a");
    let connection = ConnectionId::new(NonZeroU64::new(1).unwrap());
    ours.apply(Command::Open(connection)).await.unwrap();
    for port in 1..=20 {
        change(&ours, ServiceCommand::Register(key(port), Kind::Ephemeral, weighing(1.0))).await;
        change(&ours, ServiceCommand::Publish(connection, vec![(key(port + 10), weighing(2.0))])).await;
    }
    ours.apply(Command::Close(connection)).await.unwrap();
    let as_of = ours.as_of();
    let names = journal.take().await.names;
    let replicas = names.into_iter().map(|(service, key)| match ours.own_share(&service, &key) {
        Some(share) => {
            let version = Version::new(share.version.stamp(), share.version.minor(), here);
            Replica::Put { key, share: Share { version, ..share }, as_of }
        }
        None => Replica::Absent { key, owner: here, as_of },
    });
    apply(&theirs, replicas.collect()).await;
    assert_eq!(listed(&theirs), listed(&ours));
    assert_eq!(listed(&ours).len(), 20);
    assert_eq!(theirs.digests(here).root(), ours.digests(OwnerId::SELF).root());
    assert_eq!(theirs.digests(here).buckets(), ours.digests(OwnerId::SELF).buckets());
    assert_eq!(theirs.digests(here).count(), 20);
}
