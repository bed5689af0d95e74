//! The failure detector: silence on the links makes a member suspect, then down; what others report makes it dead.
//!
//! A member is up only while there is evidence in both directions: it answers on our link, and is heard on its own. So a
//! link that is broken one way does not show it as up. Called by the task that ticks, and by the links.
//!
//! Bounds: with a tick in time, a member that falls silent is suspect within `suspect_after` and down within
//! `down_after` of the last evidence, plus one [`TICK`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use super::{
    epoch::Epoch,
    member::{MemberList, MemberName},
    settings::Settings,
    stage::Stage,
};
use crate::{clock::Mono, registry::lease::FreezeGuard};

/// How often [`Detector::observe`] is to be called. 100 ms: 2 % of the default time to down.
pub const TICK: Duration = Duration::from_millis(100);

/// How a member stands, as this node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It answers and is heard.
    Up,
    /// One of both has been missing for `suspect_after`, or it was not heard yet.
    Suspect,
    /// Down for this node, and up for another one that is up: nothing is forwarded to it, and its records stay.
    Unreachable,
    /// Down for this node and for all that it has up.
    Dead,
    /// It said goodbye.
    Departed,
}

impl Standing {
    /// Whether nothing is to be sent there: it owns no beat source.
    #[must_use]
    pub const fn is_down(self) -> bool {
        match self {
            Self::Up | Self::Suspect => false,
            Self::Unreachable | Self::Dead | Self::Departed => true,
        }
    }
}

impl Standing {
    /// Whether what it left is on its own: nobody that is up has it up.
    #[must_use]
    pub const fn is_gone(self) -> bool {
        match self {
            Self::Up | Self::Suspect | Self::Unreachable => false,
            Self::Dead | Self::Departed => true,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Suspect => "suspect",
            Self::Unreachable => "unreachable",
            Self::Dead => "dead",
            Self::Departed => "departed",
        })
    }
}

/// What is new, for who logs, takes over and computes owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// This process did not run for so long. Every member has a fresh period.
    Frozen(Duration),
    /// A member stands differently than before.
    Stands {
        /// Which one.
        peer: MemberName,
        /// How it stood.
        from: Standing,
        /// How it stands now.
        to: Standing,
    },
    /// Whether at least half of the list is up, this node included; without it nothing is taken over.
    Majority(bool),
}

/// What the first message of a link says about its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It was not met before.
    First,
    /// The incarnation that is known.
    Same,
    /// It started again: what it was in the former epoch is over.
    Restarted {
        /// The epoch before.
        former: Epoch,
    },
    /// An incarnation that is over: its message counts for nothing, and it has to be told.
    Stale {
        /// The later epoch that is known.
        known: Epoch,
    },
    /// Not in the list of members.
    Stranger,
}

/// How long a member has been silent, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Silence {
    /// Since its last answer on our link to it.
    pub answers: Duration,
    /// Since its last message on its own link to us.
    pub own_link: Duration,
}

impl Silence {
    /// The longer of both.
    #[must_use]
    pub fn longer(self) -> Duration {
        self.answers.max(self.own_link)
    }
}

#[derive(Debug)]
struct Peer {
    standing: Standing,
    /// A new incarnation was met since the last observation: what was down begins anew.
    anew: bool,
    /// Silence is counted from here if there was no evidence yet.
    since: Mono,
    /// It last answered on our link.
    acknowledged: Option<Mono>,
    /// It was last heard on its own link.
    heard: Option<Mono>,
    /// Since when each attempt to connect was refused.
    refused: Option<Mono>,
    epoch: Option<Epoch>,
    stage: Stage,
    /// Whom it has up, by its latest report.
    sees: BTreeSet<MemberName>,
}

impl Peer {
    fn new(now: Mono) -> Self {
        Self {
            standing: Standing::Suspect,
            anew: false,
            since: now,
            acknowledged: None,
            heard: None,
            refused: None,
            epoch: None,
            stage: Stage::default(),
            sees: BTreeSet::new(),
        }
    }

    /// Whether both directions have shown life within `bound`.
    fn alive_within(&self, bound: Duration, now: Mono) -> bool {
        [self.acknowledged, self.heard].iter().all(|last| last.is_some_and(|last| now.since(last) <= bound))
    }

    /// The silence of both directions, counted from `thaw` at the earliest.
    fn silences(&self, thaw: Mono, now: Mono) -> Silence {
        let of = |last: Option<Mono>| now.since(last.unwrap_or(self.since).max(self.since).max(thaw));
        Silence { answers: of(self.acknowledged), own_link: of(self.heard) }
    }

    /// The longer silence of both directions, counted from `thaw` at the earliest.
    fn silence(&self, thaw: Mono, now: Mono) -> Duration {
        self.silences(thaw, now).longer()
    }
}

/// How all members stand. Owned by the task that ticks; the links bring evidence through it.
#[derive(Debug)]
pub struct Detector {
    me: MemberName,
    suspect_after: Duration,
    down_after: Duration,
    guard: FreezeGuard,
    listed: bool,
    peers: BTreeMap<MemberName, Peer>,
    majority: bool,
}

impl Detector {
    /// A detector that has heard nobody yet: all members but `me` are suspect, with a full period from `now`.
    #[must_use]
    pub fn new(me: MemberName, list: &MemberList, settings: &Settings, now: Mono) -> Self {
        // A tick that is late by less than half of what makes suspect cannot make anybody down by itself.
        let guard = FreezeGuard::new(TICK, settings.suspect_after / 2, now);
        let mut detector = Self {
            me,
            suspect_after: settings.suspect_after,
            down_after: settings.down_after,
            guard,
            listed: false,
            peers: BTreeMap::new(),
            majority: false,
        };
        detector.follow(list, now);
        detector
    }

    /// Takes a new list: who joined is suspect with a full period, who left is forgotten.
    pub fn follow(&mut self, list: &MemberList, now: Mono) {
        self.listed = list.contains(&self.me);
        self.peers.retain(|name, _| list.contains(name));
        for name in list.iter().filter(|name| **name != self.me) {
            self.peers.entry(name.clone()).or_insert_with(|| Peer::new(now));
        }
    }

    /// `peer` introduced itself, on its link or in its answer on ours.
    ///
    /// * A later epoch than the known one is a restart: evidence, stage and reports of the former incarnation are
    ///   forgotten.
    /// * An incarnation that is new has a full period, and is suspect if the member was down.
    pub fn met(&mut self, peer: &MemberName, epoch: Epoch, now: Mono) -> Met {
        let Some(state) = self.peers.get_mut(peer) else { return Met::Stranger };
        match state.epoch {
            Some(known) if epoch < known => Met::Stale { known },
            Some(known) if epoch == known => Met::Same,
            Some(former) => {
                let standing = state.standing;
                *state = Peer { standing, anew: true, epoch: Some(epoch), ..Peer::new(now) };
                Met::Restarted { former }
            }
            None => {
                (state.anew, state.since, state.epoch) = (true, now, Some(epoch));
                Met::First
            }
        }
    }

    /// `peer` answered on our link.
    pub fn link_acknowledged(&mut self, peer: &MemberName, now: Mono) {
        if let Some(state) = self.peers.get_mut(peer) {
            state.acknowledged = Some(now);
            state.refused = None;
        }
    }

    /// `peer` was heard on its link.
    pub fn link_heard(&mut self, peer: &MemberName, now: Mono) {
        if let Some(state) = self.peers.get_mut(peer) {
            state.heard = Some(now);
            state.refused = None;
        }
    }

    /// `peer` said in a ping whom it has up, and in which stage it is.
    pub fn reported(&mut self, peer: &MemberName, sees: Vec<MemberName>, stage: Stage) {
        if let Some(state) = self.peers.get_mut(peer) {
            state.sees = sees.into_iter().collect();
            state.stage = stage;
        }
    }

    /// `peer` refused a connection, or nobody has its name. That alone makes nobody down: see
    /// [`Detector::refused_for`].
    pub fn refused(&mut self, peer: &MemberName, now: Mono) {
        if let Some(state) = self.peers.get_mut(peer) {
            state.refused.get_or_insert(now);
        }
    }

    /// `peer` said goodbye: it is departed until a later epoch of it is met.
    pub fn departed(&mut self, peer: &MemberName) -> Option<Change> {
        let state = self.peers.get_mut(peer)?;
        if state.standing == Standing::Departed {
            return None;
        }
        let from = std::mem::replace(&mut state.standing, Standing::Departed);
        // A member may say goodbye within the tick in which it was met.
        state.anew = false;
        state.sees.clear();
        Some(Change::Stands { peer: peer.clone(), from, to: Standing::Departed })
    }

    /// Judges everybody. To be called each [`TICK`].
    ///
    /// * Returns what changed since the last call: a freeze first, then members in the order of their names, the
    ///   majority last; empty if nothing did.
    /// * Cost: O(members²) while some are down, else O(members).
    pub fn observe(&mut self, now: Mono) -> Vec<Change> {
        let mut changes: Vec<Change> = self.guard.observe(now).map(Change::Frozen).into_iter().collect();
        let thaw = self.guard.thaw();
        let direct: Vec<Standing> = self.peers.values().map(|peer| self.judge(peer, thaw, now)).collect();
        let up = |standing: &Standing| *standing == Standing::Up;
        let seen: BTreeSet<MemberName> = self
            .peers
            .values()
            .zip(&direct)
            .filter(|(_, standing)| up(standing))
            .flat_map(|(peer, _)| peer.sees.iter().cloned())
            .collect();
        for ((name, peer), direct) in self.peers.iter_mut().zip(&direct) {
            let to = match direct {
                Standing::Dead if seen.contains(name) => Standing::Unreachable,
                other => *other,
            };
            if to != peer.standing {
                changes.push(Change::Stands { peer: name.clone(), from: peer.standing, to });
                peer.standing = to;
            }
            peer.anew = false;
        }
        let members = self.peers.len() + usize::from(self.listed);
        let up = direct.iter().filter(|standing| up(standing)).count() + usize::from(self.listed);
        let majority = 2 * up >= members && self.listed;
        if majority != self.majority {
            self.majority = majority;
            changes.push(Change::Majority(majority));
        }
        changes
    }

    /// How a member stands by what this node itself saw: up, suspect, departed, or dead for any kind of down.
    fn judge(&self, peer: &Peer, thaw: Mono, now: Mono) -> Standing {
        let before = if peer.anew && peer.standing.is_down() { Standing::Suspect } else { peer.standing };
        if before == Standing::Departed {
            return Standing::Departed;
        }
        if peer.alive_within(self.suspect_after, now) {
            return Standing::Up;
        }
        let silence = peer.silence(thaw, now);
        if silence > self.down_after {
            return Standing::Dead;
        }
        // A fresh period keeps nobody from staying what it was, and makes nobody better.
        match before {
            Standing::Up if silence <= self.suspect_after => Standing::Up,
            Standing::Up | Standing::Suspect => Standing::Suspect,
            Standing::Unreachable | Standing::Dead | Standing::Departed => Standing::Dead,
        }
    }

    /// How `peer` stands; `None` for this node itself and for strangers.
    #[must_use]
    pub fn standing(&self, peer: &MemberName) -> Option<Standing> {
        self.peers.get(peer).map(|peer| peer.standing)
    }

    /// The stage that `peer` reported last.
    #[must_use]
    pub fn stage(&self, peer: &MemberName) -> Option<Stage> {
        self.peers.get(peer).map(|peer| peer.stage)
    }

    /// The latest epoch of `peer` that was met.
    #[must_use]
    pub fn epoch(&self, peer: &MemberName) -> Option<Epoch> {
        self.peers.get(peer)?.epoch
    }

    /// For how long `peer` has refused every connection without another sign of life.
    #[must_use]
    pub fn refused_for(&self, peer: &MemberName, now: Mono) -> Option<Duration> {
        self.peers.get(peer)?.refused.map(|since| now.since(since))
    }

    /// How long `peer` has been silent in one direction or both.
    #[must_use]
    pub fn silence(&self, peer: &MemberName, now: Mono) -> Option<Duration> {
        self.peers.get(peer).map(|peer| peer.silence(self.guard.thaw(), now))
    }

    /// How long `peer` has been silent in each direction.
    #[must_use]
    pub fn silences(&self, peer: &MemberName, now: Mono) -> Option<Silence> {
        self.peers.get(peer).map(|peer| peer.silences(self.guard.thaw(), now))
    }

    /// The other members in the order of their names, and how they stand.
    pub fn peers(&self) -> impl Iterator<Item = (&MemberName, Standing)> {
        self.peers.iter().map(|(name, peer)| (name, peer.standing))
    }

    /// The direct view that this node's pings carry: whom it has up.
    #[must_use]
    pub fn sees(&self) -> Vec<MemberName> {
        self.peers().filter(|(_, standing)| *standing == Standing::Up).map(|(name, _)| name.clone()).collect()
    }

    /// Who may own beat sources: members that are ready and not down, and this node by its `own` stage.
    pub fn eligible(&self, own: Stage) -> impl Iterator<Item = &MemberName> {
        let me = (self.listed && own == Stage::Ready).then_some(&self.me);
        let ready = |peer: &Peer| peer.stage == Stage::Ready && !peer.standing.is_down();
        self.peers.iter().filter(move |(_, peer)| ready(peer)).map(|(name, _)| name).chain(me)
    }

    /// Whether at least half of the list was up at the last observation, this node included. Never so on a node that is
    /// not in its own list.
    #[must_use]
    pub const fn has_majority(&self) -> bool {
        self.majority
    }

    /// Whether this node is in the list.
    #[must_use]
    pub const fn is_listed(&self) -> bool {
        self.listed
    }
}

#[cfg(test)]
mod tests;
