//! The cluster as this node sees it at one moment: plain values for operators, front ends and metrics.
//!
//! Two nodes may see it differently, and a view says what its node knows and nothing more. Times are ages: how long ago.

mod reason;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, net::SocketAddr, sync::atomic::Ordering, time::Duration};

use super::{
    detector::{Detector, Silence, Standing},
    epoch::Epoch,
    hub::{Hub, Incoming, Moved, Outgoing},
    member::MemberName,
    stage::Stage,
};
use crate::{
    clock::Mono,
    registry::{owners::Incarnation, version::OwnerId},
};

/// The cluster as one of its nodes sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterView {
    /// The name of the node that sees it.
    pub name: String,
    /// Whether it is one of several by its settings, be it the only member.
    pub clustered: bool,
    /// Its epoch, which grows with each of its starts. 0 on a node that is alone.
    pub epoch: u64,
    /// Where it is in its life.
    pub stage: Stage,
    /// Whether its own name is in the list of members.
    pub listed: bool,
    /// Whose records it waits for before it serves, in order.
    pub waiting_for: Vec<String>,
    /// Whether at least half of the list is up, this node included: without it nothing is taken over.
    pub majority: bool,
    /// All members in the order of their names, this node included.
    pub members: Vec<MemberView>,
    /// Former incarnations of members whose records are still listed.
    pub orphans: Vec<OrphanView>,
    /// What has found another owner through this node since its start.
    pub moved: MovedView,
}

/// One member, as another one sees it, or itself.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberView {
    /// Its name, `host:port` of its HTTP listener.
    pub name: String,
    /// Whether it is the node that sees.
    pub own: bool,
    /// Where its peer port was reached, if the last attempt to reach it succeeded.
    pub address: Option<SocketAddr>,
    /// How it stands.
    pub standing: Standing,
    /// Why it does not stand better, in words. Empty if it is up.
    pub reason: String,
    /// How long nothing was heard of it, in the direction that is silent for longer. 0 for the node that sees.
    pub silence: Duration,
    /// Where it is in its life, by its own latest word.
    pub stage: Stage,
    /// The latest epoch of it that was met.
    pub epoch: Option<u64>,
    /// Whether it may own beat sources.
    pub eligible: bool,
    /// How much of all beat sources it owns, 0 to 1, counted over a fixed sample of keys.
    pub share: f64,
    /// What this node tells it. `None` for the node that sees.
    pub link: Option<LinkView>,
    /// What this node holds of it; of the node that sees, its own records.
    pub copy: CopyView,
}

/// The link on which this node tells a member its own records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkView {
    /// For how long it has stood. `None`: it does not stand.
    pub up_for: Option<Duration>,
    /// Changed records that the member has still to be told, or has not acknowledged.
    pub outbox: usize,
    /// For how long the oldest of them has been due. `None` if there is none.
    pub lag: Option<Duration>,
    /// Batches that the member has acknowledged since this node's start.
    pub batches: u64,
    /// What came of the last comparison of this node's records with the member's copy of them.
    pub agreement: Option<Agreement>,
}

/// What this node holds of a member's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyView {
    /// How many.
    pub records: u64,
    /// Whether everything that the member had at the beginning of a link has arrived.
    pub synced: bool,
    /// What came of the last comparison of the copy with the member's records.
    pub agreement: Option<Agreement>,
}

/// What came of a comparison of records with a copy of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Whether they were equal. Under load they differ by what is on its way.
    pub equal: bool,
    /// How long ago that was.
    pub ago: Duration,
}

/// A member's incarnation that is gone, and whose records are still listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanView {
    /// The name of the member.
    pub member: String,
    /// Its epoch.
    pub epoch: u64,
    /// How many records are left.
    pub records: u64,
    /// How much longer they stay, as things stand.
    pub remaining: Duration,
}

/// What has found another owner through one node since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MovedView {
    /// Beat-kept records taken over from members that are gone.
    pub taken_over: u64,
    /// Beat-kept records handed to their new owner, because members came or went.
    pub handed_over: u64,
    /// Records of members that were gone for too long.
    pub forgotten: u64,
}

impl ClusterView {
    /// Who serves clients, as far as this node knows: ready and not known to be gone.
    pub fn serving(&self) -> impl Iterator<Item = &MemberView> {
        self.members.iter().filter(|member| member.eligible)
    }
}

/// The cluster as the node of `hub` sees it now.
///
/// Cost: O(members), and at the first call after a change of the eligible ones a look at the sample of keys.
pub(super) fn view(hub: &Hub, waiting_for: &[MemberName]) -> ClusterView {
    let now = hub.now();
    let shares = shares(hub);
    let share = |name: &MemberName| shares.get(name).copied();
    let detector = hub.detector.lock();
    let mut members: Vec<_> =
        detector.peers().map(|(name, standing)| peer(hub, &detector, name, standing, share(name), now)).collect();
    let (listed, majority) = (detector.is_listed(), detector.has_majority());
    drop(detector);
    members.push(own(hub, share(&hub.me)));
    members.sort_by(|a, b| a.name.cmp(&b.name));
    ClusterView {
        name: hub.me.to_string(),
        clustered: true,
        epoch: hub.epoch().number(),
        stage: hub.stage(),
        listed,
        waiting_for: waiting_for.iter().map(ToString::to_string).collect(),
        majority,
        members,
        orphans: orphans(hub),
        moved: moved(&hub.moved),
    }
}

fn shares(hub: &Hub) -> BTreeMap<MemberName, f64> {
    let eligible = hub.eligible.load_full();
    let mut known = hub.shares.lock();
    if known.0 != *eligible {
        *known = ((*eligible).clone(), eligible.shares().into_iter().collect());
    }
    known.1.clone()
}

fn own(hub: &Hub, share: Option<f64>) -> MemberView {
    let records = hub.registry.digests(OwnerId::SELF).count();
    MemberView {
        name: hub.me.to_string(),
        own: true,
        address: None,
        standing: Standing::Up,
        reason: String::new(),
        silence: Duration::ZERO,
        stage: hub.stage(),
        epoch: Some(hub.epoch().number()),
        eligible: share.is_some(),
        share: share.unwrap_or_default(),
        link: None,
        copy: CopyView { records, synced: true, agreement: None },
    }
}

fn peer(
    hub: &Hub,
    detector: &Detector,
    name: &MemberName,
    standing: Standing,
    share: Option<f64>,
    now: Mono,
) -> MemberView {
    let silence = detector.silences(name, now).unwrap_or_default();
    let evidence = Evidence {
        standing,
        silence,
        suspect_after: hub.settings.suspect_after,
        met: detector.epoch(name).is_some(),
        refused: detector.refused_for(name, now),
    };
    MemberView {
        name: name.to_string(),
        own: false,
        address: hub.transport.address(name),
        standing,
        reason: evidence.reason(),
        silence: silence.longer(),
        stage: detector.stage(name).unwrap_or_default(),
        epoch: detector.epoch(name).map(Epoch::number),
        eligible: share.is_some(),
        share: share.unwrap_or_default(),
        link: Some(hub.outgoing(name).map(|outgoing| link(&outgoing, now)).unwrap_or_default()),
        copy: copy(hub, name, detector.epoch(name), now),
    }
}

/// What a reason is told from.
#[derive(Debug, Clone, Copy)]
struct Evidence {
    standing: Standing,
    silence: Silence,
    suspect_after: Duration,
    /// Whether it has introduced itself.
    met: bool,
    /// For how long it has refused every connection.
    refused: Option<Duration>,
}

fn agreement(agreed: Option<(bool, Mono)>, now: Mono) -> Option<Agreement> {
    agreed.map(|(equal, at)| Agreement { equal, ago: now.since(at) })
}

fn link(outgoing: &Outgoing, now: Mono) -> LinkView {
    let state = *outgoing.state.lock();
    let outbox = outgoing.outbox.lock();
    LinkView {
        up_for: state.since.map(|since| now.since(since)),
        outbox: outbox.len(),
        lag: outbox.behind().map(|since| now.since(since)),
        batches: state.batches,
        agreement: agreement(state.agreed, now),
    }
}

fn copy(hub: &Hub, name: &MemberName, epoch: Option<Epoch>, now: Mono) -> CopyView {
    let current = |incoming: &Incoming| epoch.is_none_or(|epoch| incoming.epoch == epoch);
    let Some(incoming) = hub.incoming(name).filter(current) else { return CopyView::default() };
    CopyView {
        records: hub.registry.digests(incoming.owner).count(),
        synced: incoming.synced,
        agreement: agreement(incoming.agreed, now),
    }
}

fn orphans(hub: &Hub) -> Vec<OrphanView> {
    let orphan = |(owner, Incarnation { name, epoch }, remaining)| OrphanView {
        member: name.to_string(),
        epoch,
        records: hub.registry.digests(owner).count(),
        remaining,
    };
    let mut orphans: Vec<_> = hub.gone().into_iter().map(orphan).collect();
    orphans.sort_by(|a, b| (&a.member, a.epoch).cmp(&(&b.member, b.epoch)));
    orphans
}

fn moved(moved: &Moved) -> MovedView {
    MovedView {
        taken_over: moved.taken_over.load(Ordering::Relaxed),
        handed_over: moved.handed_over.load(Ordering::Relaxed),
        forgotten: moved.forgotten.load(Ordering::Relaxed),
    }
}
