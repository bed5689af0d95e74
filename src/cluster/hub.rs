//! What the tasks of the cluster share: who this node is, how the others stand, and what is between them.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tracing::{error, info, warn};

use super::{
    detector::{Detector, Met},
    distro::{orphans::Orphans, task::Outbox},
    epoch::{Epoch, EpochFile},
    member::{MemberList, MemberName},
    ownership::Eligible,
    routes::{Routes, View},
    settings::Settings,
    stage::Stage,
    transport::Transport,
};
use crate::{
    clock::{Clock, Mono},
    registry::{
        RegistryHandle,
        lease::Freeze,
        owners::Incarnation,
        version::{OwnerId, Stamp},
    },
    shutdown::Shutdown,
    wire::pb::peer as pb,
};

/// The shared state of one node's part in the cluster.
pub(super) struct Hub {
    pub(super) me: MemberName,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) registry: RegistryHandle,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) shutdown: Shutdown,
    pub(super) detector: Mutex<Detector>,
    pub(super) orphans: Mutex<Orphans>,
    /// Who may own beat sources. Written by the task that ticks.
    pub(super) eligible: ArcSwap<Eligible>,
    /// Who answers for a beat source now. Written by the task that ticks.
    pub(super) routes: Routes,
    pub(super) stage: watch::Sender<Stage>,
    /// Whether the links are to say goodbye once they have said everything else.
    pub(super) parting: watch::Sender<bool>,
    /// Something is to be taken over, handed over or forgotten.
    pub(super) moving: Notify,
    /// The members are to be judged now and not at the next tick only.
    pub(super) judging: Notify,
    /// The owners for whom all that this node keeps has been looked through and handed over. Written by the mover.
    pub(super) settled: watch::Sender<Option<Arc<Eligible>>>,
    /// How much each eligible member owns, for the set that it was counted for. Written by who asks first.
    pub(super) shares: Mutex<(Eligible, BTreeMap<MemberName, f64>)>,
    /// Counted by the mover.
    pub(super) moved: Moved,
    epoch: Mutex<EpochFile>,
    outgoing: Mutex<BTreeMap<MemberName, Arc<Outgoing>>>,
    incoming: Mutex<BTreeMap<MemberName, Incoming>>,
    sessions: Mutex<u64>,
}

/// This node's link to one peer, as the other tasks see it.
pub(super) struct Outgoing {
    pub(super) peer: MemberName,
    pub(super) outbox: Mutex<Outbox>,
    /// There is something new in the outbox.
    pub(super) filled: Notify,
    /// Something has changed that every link is to look at: the stage, the epoch, or that this node parts.
    pub(super) called: Notify,
    /// The peer has just been heard: it is worth while to dial at once.
    pub(super) heard: Notify,
    /// The peer is no longer a member.
    pub(super) stop: Shutdown,
    pub(super) state: Mutex<LinkState>,
}

/// How this node's link to a peer is doing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LinkState {
    /// Since when it stands.
    pub(super) since: Option<Mono>,
    /// Batches that the peer has acknowledged, on this link and those before.
    pub(super) batches: u64,
    /// Whether the peer found its copy equal in the last verification, and when.
    pub(super) agreed: Option<(bool, Mono)>,
}

/// What a peer tells this node of its records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incoming {
    pub(super) session: u64,
    pub(super) owner: OwnerId,
    pub(super) epoch: Epoch,
    /// When the link began.
    pub(super) begun: Mono,
    /// Whether it stands.
    pub(super) open: bool,
    /// Whether everything that it had at the beginning of some link has arrived.
    pub(super) synced: bool,
    /// Whether the copy of its records was equal to them in the last verification, and when.
    pub(super) agreed: Option<(bool, Mono)>,
}

/// What has moved between owners since the start.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Beat-kept records taken over from members that are gone.
    pub(super) taken_over: AtomicU64,
    /// Beat-kept records handed to their new owner.
    pub(super) handed_over: AtomicU64,
    /// Records of members that were gone for too long.
    pub(super) forgotten: AtomicU64,
}

impl Hub {
    #[expect(clippy::too_many_arguments, reason = "made in one place, from all that a node has")]
    pub(super) fn new(
        me: MemberName,
        list: &MemberList,
        settings: Settings,
        clock: Clock,
        registry: RegistryHandle,
        transport: Arc<dyn Transport>,
        epoch: EpochFile,
        shutdown: Shutdown,
    ) -> Arc<Self> {
        registry.owners().set_self(Incarnation { name: me.as_str().into(), epoch: epoch.epoch().number() });
        Arc::new(Self {
            detector: Mutex::new(Detector::new(me.clone(), list, &settings, clock.now())),
            orphans: Mutex::new(Orphans::new(settings.grace, settings.isolation_grace)),
            eligible: ArcSwap::default(),
            routes: Routes::new(View { me: me.clone(), eligible: Eligible::default(), up: BTreeMap::new() }),
            stage: watch::Sender::new(Stage::Joining),
            parting: watch::Sender::new(false),
            moving: Notify::new(),
            judging: Notify::new(),
            settled: watch::Sender::new(None),
            shares: Mutex::default(),
            moved: Moved::default(),
            epoch: Mutex::new(epoch),
            outgoing: Mutex::default(),
            incoming: Mutex::default(),
            sessions: Mutex::new(0),
            me,
            settings,
            clock,
            registry,
            transport,
            shutdown,
        })
    }

    pub(super) fn now(&self) -> Mono {
        self.clock.now()
    }

    pub(super) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch.lock().epoch()
    }

    /// Enters a stage of life.
    pub(super) fn enter(&self, stage: Stage) {
        self.stage.send_replace(stage);
        self.judging.notify_one();
        self.call_links();
    }

    /// Has every link look at what has changed, one after the other: a channel that many watch wakes them in no order.
    pub(super) fn call_links(&self) {
        for outgoing in self.all_outgoing() {
            outgoing.called.notify_one();
        }
    }

    /// Keeps the stamps of the next life above those of this one. A failure is told and tried again.
    pub(super) fn reserve_stamps(&self) {
        let stamp = self.registry.stamp().number();
        if let Err(error) = self.epoch.lock().reserve(stamp) {
            error!(%error, "the stamps in use could not be noted");
        }
    }

    /// Another member knows a later epoch of this node than its own: it takes one above, and begins all its links anew, also
    /// those to members who took it at its word.
    pub(super) fn outgrow(&self, known: Epoch) {
        let raised = self.epoch.lock().raise(known);
        match raised {
            Ok(epoch) => {
                info!(epoch = epoch.number(), "the epoch was raised above what others know");
                let name = self.me.as_str().into();
                self.registry.owners().set_self(Incarnation { name, epoch: epoch.number() });
                // A link that was begun by the former incarnation is begun anew.
                self.call_links();
            }
            Err(error) => error!(%error, "the epoch could not be raised"),
        }
    }

    /// Where this node is in its life, for every message that carries it.
    pub(super) fn standing(&self) -> pb::Standing {
        let sees = self.detector.lock().sees();
        pb::Standing {
            stage: match self.stage() {
                Stage::Joining => pb::Stage::Joining,
                Stage::Ready => pb::Stage::Ready,
                Stage::Draining => pb::Stage::Draining,
            }
            .into(),
            stamp: self.registry.stamp().number(),
            sees: sees.iter().map(ToString::to_string).collect(),
        }
    }

    /// Takes in what `peer` says of itself; of one that does not say its stage, the stamp only.
    pub(super) fn reported(&self, peer: &MemberName, standing: Option<pb::Standing>) {
        let Some(standing) = standing else { return };
        self.registry.observe(Stamp::new(standing.stamp));
        let stage = match standing.stage() {
            pb::Stage::Unspecified => return,
            pb::Stage::Joining => Stage::Joining,
            pb::Stage::Ready => Stage::Ready,
            pb::Stage::Draining => Stage::Draining,
        };
        let sees = standing.sees.iter().filter_map(|name| MemberName::parse(name).ok()).collect();
        self.detector.lock().reported(peer, sees, stage);
    }

    /// `peer` introduced itself. A former incarnation of it is an orphan from now on.
    ///
    /// # Errors
    /// [`Met::Stale`] and [`Met::Stranger`].
    pub(super) fn met(&self, peer: &MemberName, epoch: Epoch) -> Result<(), Met> {
        let now = self.now();
        let met = self.detector.lock().met(peer, epoch, now);
        match met {
            Met::First | Met::Same => {
                if let Some(owner) = self.registry.owners().find(peer.as_str(), epoch.number()) {
                    self.orphans.lock().remove(owner);
                }
                Ok(())
            }
            Met::Restarted { former } => {
                info!(%peer, former = former.number(), epoch = epoch.number(), "a member has started anew");
                self.orphaned(peer, former, now);
                Ok(())
            }
            Met::Stale { .. } | Met::Stranger => Err(met),
        }
    }

    /// Finds owners that nobody answers for any more and makes orphans of them: of a member that was taken off the list, or
    /// of one that was gone when the last word of it came.
    pub(super) fn find_orphans(&self, now: Mono) {
        for (owner, Incarnation { name, epoch }) in self.registry.owners().others() {
            let lives = MemberName::parse(&name).is_ok_and(|name| {
                let detector = self.detector.lock();
                let there = detector.standing(&name).is_some_and(|standing| !standing.is_gone());
                there && detector.epoch(&name).is_some_and(|known| known.number() == epoch)
            });
            if !lives && self.orphans.lock().add(owner, now) {
                self.moving.notify_one();
            }
        }
    }

    /// `peer` has said goodbye.
    pub(super) fn departed(&self, peer: &MemberName, epoch: Epoch) {
        let departed = self.detector.lock().departed(peer);
        if departed.is_some() {
            self.orphaned(peer, epoch, self.now());
        }
    }

    /// An incarnation of `peer` is gone since `since`.
    pub(super) fn orphaned(&self, peer: &MemberName, epoch: Epoch, since: Mono) {
        let Some(owner) = self.owner(peer, epoch) else { return };
        if self.orphans.lock().add(owner, since) {
            self.moving.notify_one();
        }
    }

    /// Runs `task` until it ends, or this node does.
    pub(super) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let draining = self.shutdown.draining();
        self.shutdown.spawn(async move {
            tokio::select! {
                biased;
                () = draining => {}
                () = task => {}
            }
        });
    }

    /// The owners that are gone and whose records are still held, with the time that each has left.
    pub(super) fn gone(&self) -> Vec<(OwnerId, Incarnation, Duration)> {
        let now = self.now();
        let orphans = self.orphans.lock();
        let gone = orphans.iter().filter_map(|owner| {
            let incarnation = self.registry.owners().incarnation(owner)?;
            Some((owner, incarnation, orphans.remaining(owner, now)?))
        });
        gone.collect()
    }

    /// The number of an incarnation.
    pub(super) fn owner(&self, peer: &MemberName, epoch: Epoch) -> Option<OwnerId> {
        let incarnation = Incarnation { name: peer.as_str().into(), epoch: epoch.number() };
        let owner = self.registry.owners().number(&incarnation);
        if owner.is_none() {
            warn!(%peer, "more incarnations of members are remembered than there is room for");
        }
        owner
    }

    /// The link to `peer`, if it is a member.
    pub(super) fn outgoing(&self, peer: &MemberName) -> Option<Arc<Outgoing>> {
        self.outgoing.lock().get(peer).cloned()
    }

    /// All links to peers.
    pub(super) fn all_outgoing(&self) -> Vec<Arc<Outgoing>> {
        self.outgoing.lock().values().cloned().collect()
    }

    /// Follows a new list of members. Returns those to whom a link is to be made.
    pub(super) fn follow(&self, list: &MemberList) -> Vec<Arc<Outgoing>> {
        self.detector.lock().follow(list, self.now());
        let mut outgoing = self.outgoing.lock();
        outgoing.retain(|peer, link| {
            let stays = list.contains(peer);
            if !stays {
                link.stop.drain();
            }
            stays
        });
        let mut new = Vec::new();
        for peer in list.iter().filter(|peer| **peer != self.me) {
            if !outgoing.contains_key(peer) {
                let link = Arc::new(Outgoing {
                    peer: peer.clone(),
                    outbox: Mutex::new(Outbox::new(self.settings.merge_window, self.settings.outbox_limit)),
                    filled: Notify::new(),
                    called: Notify::new(),
                    heard: Notify::new(),
                    stop: Shutdown::new(),
                    state: Mutex::default(),
                });
                outgoing.insert(peer.clone(), link.clone());
                new.push(link);
            }
        }
        new
    }

    /// A link from `peer` begins: from now on only its messages count. `None` if there is no room for another owner.
    pub(super) fn begin_session(&self, peer: &MemberName, epoch: Epoch) -> Option<Incoming> {
        let owner = self.owner(peer, epoch)?;
        let session = {
            let mut sessions = self.sessions.lock();
            *sessions += 1;
            *sessions
        };
        let mut incoming = self.incoming.lock();
        let known = incoming.get(peer).filter(|known| known.owner == owner);
        let (synced, agreed) = known.map_or((false, None), |known| (known.synced, known.agreed));
        let new = Incoming { session, owner, epoch, begun: self.now(), open: true, synced, agreed };
        incoming.insert(peer.clone(), new);
        Some(new)
    }

    /// The link of this session has ended.
    pub(super) fn end_session(&self, peer: &MemberName, session: u64) {
        if let Some(incoming) = self.incoming.lock().get_mut(peer).filter(|incoming| incoming.session == session) {
            incoming.open = false;
        }
    }

    /// Whether the link of this session is still the newest of `peer`.
    pub(super) fn is_current(&self, peer: &MemberName, session: u64) -> bool {
        self.incoming.lock().get(peer).is_some_and(|incoming| incoming.session == session)
    }

    /// Everything that `peer` had at the beginning of its link has arrived.
    pub(super) fn set_synced(&self, peer: &MemberName, session: u64) {
        if let Some(incoming) = self.incoming.lock().get_mut(peer).filter(|incoming| incoming.session == session) {
            incoming.synced = true;
        }
    }

    /// Whether this node knows what the others do, as far as it can: not after it was frozen, until they have told it
    /// what happened meanwhile, or `down_after` is over.
    pub(super) fn has_caught_up(&self) -> bool {
        let now = self.now();
        let detector = self.detector.lock();
        let bound = self.settings.down_after;
        let Some(Freeze { from, thaw }) = detector.last_freeze(now).filter(|freeze| now.since(freeze.thaw) < bound)
        else {
            return true;
        };
        // What came in on a link that its sender may have given up meanwhile is old.
        let given_up = thaw.since(from) >= bound / 2;
        let incoming = self.incoming.lock();
        let mut there = detector.peers().filter(|(_, standing)| !standing.is_down()).map(|(peer, _)| peer);
        there.all(|peer| {
            let link = incoming.get(peer);
            link.is_some_and(|link| {
                let equal = link.agreed.is_some_and(|(equal, at)| equal && at >= thaw);
                equal && (!given_up || link.begun >= thaw)
            })
        })
    }

    /// `peer` has compared its records with the copy of them here.
    pub(super) fn compared(&self, peer: &MemberName, session: u64, equal: bool) {
        let now = self.now();
        if let Some(incoming) = self.incoming.lock().get_mut(peer).filter(|incoming| incoming.session == session) {
            incoming.agreed = Some((equal, now));
        }
    }

    /// What is known of the records of `peer`.
    pub(super) fn incoming(&self, peer: &MemberName) -> Option<Incoming> {
        self.incoming.lock().get(peer).copied()
    }
}
