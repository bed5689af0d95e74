//! The life of a node among the others: it joins, serves, and leaves.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};
use tracing::{debug, info, warn};

use super::{
    detector::{Change, Standing, TICK},
    hub::Hub,
    member::MemberName,
    ownership::Eligible,
    routes::View,
    stage::Stage,
};
use crate::{
    clock::Mono,
    registry::{Command, owners::Incarnation},
    wire::{pb::peer as pb, peer as wire},
};

/// How long a member must have refused every connection to count as not running. A member that has just been started
/// opens its port well before.
const REFUSED: Duration = Duration::from_secs(3);

/// How long one page of orphans may take.
const PAGE: Duration = Duration::from_secs(10);

/// Judges the members at every tick, and tells the other tasks what follows, until this node ends.
pub(super) async fn tick(hub: Arc<Hub>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = hub.judging.notified() => {}
            _ = ticks.tick() => {}
        }
        observe(&hub);
    }
}

fn observe(hub: &Hub) {
    let now = hub.now();
    let (changes, eligible, up, majority) = {
        let mut detector = hub.detector.lock();
        let changes = detector.observe(now);
        let eligible = Eligible::new(detector.eligible(hub.stage()).cloned());
        let up = detector.peers().filter(|(_, standing)| *standing == Standing::Up);
        let up = up.filter_map(|(peer, _)| Some((peer.clone(), detector.epoch(peer)?))).collect();
        (changes, eligible, up, detector.has_majority())
    };
    for change in changes {
        stands(hub, change, now);
    }
    hub.find_orphans(now);
    hub.routes.publish(View { me: hub.me.clone(), eligible: eligible.clone(), up });
    let moved = **hub.eligible.load() != eligible;
    if moved {
        info!(members = %names(&eligible), "the owners of beat sources change");
        hub.eligible.store(Arc::new(eligible));
    }
    let over = {
        let mut orphans = hub.orphans.lock();
        let regained = majority && !orphans.has_majority() && orphans.iter().next().is_some();
        orphans.set_majority(majority, now);
        regained || !orphans.over(now).is_empty()
    };
    if moved || over {
        hub.moving.notify_one();
    }
}

fn names(eligible: &Eligible) -> String {
    eligible.iter().map(MemberName::as_str).collect::<Vec<_>>().join(" ")
}

fn stands(hub: &Hub, change: Change, now: Mono) {
    match change {
        Change::Frozen(time) => {
            let frozen_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            warn!(frozen_ms, "this process did not run, all members have a fresh period");
        }
        Change::Majority(true) => info!("at least half of the members are up"),
        Change::Majority(false) => {
            warn!("fewer than half of the members are up: nothing is taken over, and what others left is kept");
        }
        Change::Stands { peer, from, to } => {
            match to {
                Standing::Up | Standing::Suspect => info!(%peer, %from, %to, "a member stands differently"),
                Standing::Unreachable | Standing::Dead | Standing::Departed => {
                    let silent = hub.detector.lock().silence(&peer, now).unwrap_or_default();
                    let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
                    warn!(%peer, %from, %to, silent_ms, "a member stands differently");
                }
            }
            let epoch = hub.detector.lock().epoch(&peer);
            let Some(epoch) = epoch else { return };
            match to {
                Standing::Dead | Standing::Departed => hub.orphaned(&peer, epoch, now),
                Standing::Up | Standing::Suspect | Standing::Unreachable => {
                    if let Some(owner) = hub.owner(&peer, epoch) {
                        hub.orphans.lock().remove(owner);
                    }
                }
            }
        }
    }
}

/// Waits until this node has what the others hold, or has learned that it is the first.
///
/// * `waiting_for`: whom it waits for, for who asks why it is not ready.
/// * `hurried`: becomes true when an operator ends the wait.
pub(super) async fn join(
    hub: Arc<Hub>,
    waiting_for: watch::Sender<Vec<MemberName>>,
    mut hurried: watch::Receiver<bool>,
) {
    let hub = hub.as_ref();
    let begun = hub.now();
    let mut ticks = interval(TICK / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let missing = missing(hub, begun);
        let hurry = *hurried.borrow();
        if missing.is_empty() || hurry {
            if hurry && !missing.is_empty() {
                warn!(missing = ?missing, "an operator has this node serve without what some members hold");
            }
            break;
        }
        waiting_for.send_if_modified(|waiting| {
            let changed = *waiting != missing;
            *waiting = missing;
            changed
        });
        tokio::select! {
            biased;
            _ = hurried.changed() => {}
            _ = ticks.tick() => {}
        }
    }
    adopt_orphans(hub).await;
    waiting_for.send_replace(Vec::new());
    let joined_ms = u64::try_from(hub.now().since(begun).as_millis()).unwrap_or(u64::MAX);
    info!(joined_ms, instances = hub.registry.figures().instances, "joined the cluster");
    hub.enter(Stage::Ready);
}

/// The members whose records are still to come.
fn missing(hub: &Hub, begun: Mono) -> Vec<MemberName> {
    let now = hub.now();
    let waited = now.since(begun);
    let detector = hub.detector.lock();
    let peers = detector.peers().filter(|(peer, standing)| {
        let incoming = hub.incoming(peer);
        if incoming.is_some_and(|incoming| incoming.synced && detector.epoch(peer) == Some(incoming.epoch)) {
            return false;
        }
        let not_running = detector.refused_for(peer, now).is_some_and(|refused| refused >= REFUSED);
        // One whose link stands is telling what it has, however long that takes.
        let telling = incoming.is_some_and(|incoming| incoming.open);
        let silent = waited >= hub.settings.join_timeout && *standing != Standing::Up && !telling;
        !(not_running || silent)
    });
    peers.map(|(peer, _)| peer.clone()).collect()
}

/// Takes over from a ready member what it still holds of members that are gone.
async fn adopt_orphans(hub: &Hub) {
    let ready: Vec<_> = {
        let detector = hub.detector.lock();
        let peers = detector.peers().map(|(peer, standing)| (peer.clone(), standing));
        peers
            .filter(|(peer, standing)| !standing.is_down() && detector.stage(peer) == Some(Stage::Ready))
            .map(|(peer, _)| peer)
            .collect()
    };
    for peer in ready {
        match orphans_of(hub, &peer).await {
            Ok(0) => return,
            Ok(records) => {
                info!(%peer, records, "loaded what members left that are gone");
                return;
            }
            Err(reason) => warn!(%peer, reason, "what members left that are gone could not be loaded"),
        }
    }
}

async fn orphans_of(hub: &Hub, peer: &MemberName) -> Result<usize, String> {
    let mut cursor = String::new();
    let mut records = 0;
    loop {
        let request = pb::ListOrphansRequest { cursor: cursor.clone() };
        let page = timeout(PAGE, hub.transport.list_orphans(peer, request)).await;
        let page = page.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())?;
        for orphan in page.orphans {
            records += take_orphan(hub, orphan).await;
        }
        if page.next_cursor.is_empty() {
            return Ok(records);
        }
        cursor = page.next_cursor;
    }
}

async fn take_orphan(hub: &Hub, orphan: pb::OrphanRecords) -> usize {
    let incarnation = Incarnation { name: orphan.member.as_str().into(), epoch: orphan.epoch };
    let Some(owner) = hub.registry.owners().number(&incarnation).filter(|owner| !owner.is_self()) else { return 0 };
    let alive = MemberName::parse(&orphan.member).ok().is_some_and(|name| {
        let detector = hub.detector.lock();
        let same = detector.epoch(&name).is_some_and(|epoch| epoch.number() == orphan.epoch);
        same && detector.standing(&name).is_some_and(|standing| !standing.is_down())
    });
    if alive {
        debug!(member = %orphan.member, "what a member left is not taken, it is there itself");
        return 0;
    }
    let elapsed = hub.settings.grace.saturating_sub(Duration::from_millis(orphan.remaining_ms));
    let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let since = Mono::from_millis(hub.now().as_millis().saturating_sub(elapsed));
    let read = wire::replicas(orphan.services, owner, 0);
    let records = read.replicas.len();
    hub.orphans.lock().add(owner, since);
    let _ = hub.registry.apply_surely(Command::Replicate(read.replicas)).await;
    records
}

/// Nothing new is owned here from now on, and what is kept goes to the next owner. Returns whether all of it went within
/// `bound`.
pub(super) async fn hand_over(hub: &Hub, bound: Duration) -> bool {
    hub.enter(Stage::Draining);
    let handing = async {
        let mut settled = hub.settled.subscribe();
        let handed = |settled: &Option<Arc<Eligible>>| {
            let eligible = hub.eligible.load();
            !eligible.contains(&hub.me) && (eligible.is_empty() || settled.as_ref() == Some(&*eligible))
        };
        // The eligible members change with the tick, which the stage has woken.
        while !handed(&settled.borrow_and_update()) {
            hub.moving.notify_one();
            let _ = timeout(TICK, settled.changed()).await;
        }
    };
    timeout(bound, handing).await.is_ok()
}

/// Tells everybody what they have not been told yet, and says goodbye. Returns whether that was done within `bound`.
pub(super) async fn part(hub: &Hub, bound: Duration) -> bool {
    hub.parting.send_replace(true);
    hub.call_links();
    let parted = async {
        let mut ticks = interval(TICK / 4);
        while hub.all_outgoing().iter().any(|outgoing| outgoing.state.lock().since.is_some()) {
            ticks.tick().await;
        }
    };
    timeout(bound, parted).await.is_ok()
}
