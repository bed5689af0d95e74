//! A peer's link to this node: its records come in, newest session only, and are applied in the order in which they were
//! sent.

use std::sync::Arc;

use tokio::{sync::mpsc, time::timeout};
use tracing::{debug, info, warn};

use super::{
    compose::Selection,
    verify::{Comparison, Rounds, Verdict},
};
use crate::{
    cluster::{
        detector::Met,
        epoch::Epoch,
        hub::{Hub, Incoming},
        member::MemberName,
        transport::Accepted,
    },
    registry::{Command, ServiceKey, digest::BUCKETS, hash, replication::Replica, version::OwnerId},
    wire::{
        pb::peer::{self as pb, link_request, link_response},
        peer::{self as wire, Read},
    },
};

/// Replicas of one command: as many as a batch has.
const AT_ONCE: usize = super::compose::ENTRIES;

/// Messages that may wait for their turn. A peer has at most 8 batches under way, and a few others.
const WAITING: usize = 64;

/// Answers a link of `from` until it ends.
pub(in crate::cluster) async fn run(hub: Arc<Hub>, from: MemberName, mut link: Accepted) {
    let bound = hub.settings.down_after;
    let Ok(Some(pb::LinkRequest { message: Some(link_request::Message::Hello(hello)) })) =
        timeout(bound, link.receiver.recv()).await
    else {
        return;
    };
    let epoch = Epoch::new(hello.epoch);
    let mut welcome = pb::Welcome {
        member: hub.me.to_string(),
        epoch: hub.epoch().number(),
        standing: Some(hub.standing()),
        known_epoch: epoch.number(),
    };
    if hello.member != from.as_str() {
        warn!(peer = %from, member = %hello.member, "a member introduced itself by another name");
        return;
    }
    match hub.met(&from, epoch) {
        Ok(()) => {}
        Err(Met::Stale { known }) => {
            welcome.known_epoch = known.number();
            let _ = link.sender.send(response(link_response::Message::Welcome(welcome))).await;
            return;
        }
        Err(_) => {
            warn!(peer = %from, "a link of somebody who is no member was closed");
            return;
        }
    }
    let Some(incoming) = hub.begin_session(&from, epoch) else { return };
    hub.detector.lock().link_heard(&from, hub.now());
    hub.reported(&from, hello.standing);
    if let Some(outgoing) = hub.outgoing(&from) {
        outgoing.heard.notify_one();
    }
    let removals = super::compose::removals(&hub.registry);
    for message in [link_response::Message::Welcome(welcome), link_response::Message::Removals(removals)] {
        if link.sender.send(response(message)).await.is_err() {
            hub.end_session(&from, incoming.session);
            return;
        }
    }
    let receiver = Receiver { hub: &hub, from: &from, incoming, rounds: Rounds::default(), open: 0, all: false };
    receiver.go(link).await;
    hub.end_session(&from, incoming.session);
}

/// Explicit removals that another member knows.
pub(super) async fn take_removals(hub: &Hub, peer: &MemberName, removals: pb::Removals) {
    // Only removals are in it, so whose records they are does not matter.
    let read = wire::replicas(removals.services, OwnerId::SELF, 0);
    let removed = |(_, replica): &(ServiceKey, Replica)| matches!(replica, Replica::Removed { .. });
    let read = Read { replicas: read.replicas.into_iter().filter(removed).collect(), ..read };
    apply(hub, peer, read).await;
}

/// The explicit removals that came after records that are still told; `None` if there are none, as nearly always.
fn removed_since(hub: &Hub, read: &Read) -> Option<pb::Removals> {
    if !hub.registry.has_removals() {
        return None;
    }
    let mut grouped = wire::Grouped::default();
    for (service, replica) in &read.replicas {
        if let Replica::Put { key, share, .. } = replica
            && !share.connections
        {
            let name = (service.clone(), key.clone());
            if let Some(stamp) = hub.registry.removal(&name).filter(|stamp| *stamp > share.version.stamp()) {
                grouped.removal(&name, stamp);
            }
        }
    }
    (!grouped.is_empty()).then(|| pb::Removals { services: grouped.into_services() })
}

async fn apply(hub: &Hub, peer: &MemberName, read: Read) {
    if let Some((error, count)) = read.malformed {
        warn!(%peer, %error, count, "entries of a member could not be understood and were left out");
    }
    let mut rest = read.replicas;
    while !rest.is_empty() {
        let later = rest.split_off(rest.len().min(AT_ONCE));
        // It fails only when the registry has stopped.
        let _ = hub.registry.apply_surely(Command::Replicate(std::mem::replace(&mut rest, later))).await;
    }
}

/// One link, as its receiver sees it.
struct Receiver<'a> {
    hub: &'a Hub,
    from: &'a MemberName,
    incoming: Incoming,
    rounds: Rounds,
    /// Questions that have not been answered completely.
    open: usize,
    /// Whether the last round asked for all that differed.
    all: bool,
}

impl Receiver<'_> {
    /// Takes what comes until the link ends. Whether the peer lives is seen and answered as it is read; the rest waits its
    /// turn, so that a peer that sends very much does not seem to be gone.
    async fn go(mut self, mut link: Accepted) {
        let (hub, from, session) = (self.hub, self.from, self.incoming.session);
        let (work, mut waiting) = mpsc::channel(WAITING);
        let answers = link.sender;
        let reading = async {
            let work = work;
            // A peer that is silent for longer has given the link up; its next one is a new link.
            let silence = hub.settings.down_after * 2;
            while let Ok(Some(message)) = timeout(silence, link.receiver.recv()).await {
                if !hub.is_current(from, session) {
                    debug!(peer = %from, "a link has given way to a newer one");
                    return;
                }
                hub.detector.lock().link_heard(from, hub.now());
                match message.message {
                    Some(link_request::Message::Ping(ping)) => {
                        hub.reported(from, ping.standing);
                        let standing = Some(hub.standing());
                        let pong = link_response::Message::Pong(pb::Pong { number: ping.number, standing });
                        if answers.send(response(pong)).await.is_err() {
                            return;
                        }
                    }
                    Some(message) => {
                        if work.try_send(message).is_err() {
                            warn!(peer = %from, "a link was closed: its peer sends more at once than is agreed");
                            return;
                        }
                    }
                    None => return,
                }
            }
        };
        let working = async {
            while let Some(message) = waiting.recv().await {
                if !hub.is_current(from, session) || self.take(message, &answers).await.is_none() {
                    return;
                }
            }
        };
        let (mut reading, mut working) = (std::pin::pin!(reading), std::pin::pin!(working));
        tokio::select! {
            biased;
            () = &mut reading => working.await,
            () = &mut working => {}
        }
    }

    /// Takes one message in. `None` ends the link.
    async fn take(&mut self, message: link_request::Message, answers: &mpsc::Sender<pb::LinkResponse>) -> Option<()> {
        let (hub, from) = (self.hub, self.from);
        let answer = match message {
            // The one comes once, the other is answered as it is read.
            link_request::Message::Hello(_) | link_request::Message::Ping(_) => return None,
            link_request::Message::Batch(batch) => {
                let as_of = wire::order(batch.as_of_stamp, batch.as_of_minor);
                let read = wire::replicas(batch.services, self.incoming.owner, as_of);
                let removed = removed_since(hub, &read);
                apply(hub, from, read).await;
                if let Some(removals) = removed {
                    // Their owner does not know yet, or it would have withdrawn them.
                    answers.send(response(link_response::Message::Removals(removals))).await.ok()?;
                }
                Some(link_response::Message::Acknowledgement(pb::Acknowledgement { order: batch.order }))
            }
            link_request::Message::Removals(removals) => {
                take_removals(hub, from, removals).await;
                None
            }
            link_request::Message::Verify(pb::Verify { root, count }) => {
                let digests = hub.registry.digests(self.incoming.owner);
                let equal = (digests.root(), digests.count()) == (root, count);
                hub.compared(from, self.incoming.session, equal);
                if equal {
                    self.synced();
                    Some(link_response::Message::Agrees(pb::Agrees {}))
                } else {
                    Some(link_response::Message::Differs(pb::Differs {}))
                }
            }
            link_request::Message::Buckets(pb::Buckets { digests }) => self.compare(&digests),
            link_request::Message::Listing(listing) => self.settle(listing).await,
            link_request::Message::Complete(pb::Complete {}) => {
                self.open = self.open.saturating_sub(1);
                if self.open == 0 && self.all {
                    self.synced();
                }
                None
            }
            link_request::Message::Goodbye(pb::Goodbye {}) => {
                info!(peer = %from, "a member says goodbye");
                hub.departed(from, self.incoming.epoch);
                return None;
            }
        };
        match answer {
            Some(answer) => answers.send(response(answer)).await.ok(),
            None => Some(()),
        }
    }

    fn synced(&mut self) {
        if !self.incoming.synced {
            self.incoming.synced = true;
            info!(peer = %self.from, records = self.hub.registry.digests(self.incoming.owner).count(), "in step with a member");
        }
        self.hub.set_synced(self.from, self.incoming.session);
    }

    fn compare(&mut self, theirs: &[u64]) -> Option<link_response::Message> {
        if theirs.len() != BUCKETS || self.open > 0 {
            return None;
        }
        let ours = self.hub.registry.digests(self.incoming.owner).buckets();
        let differing = theirs.iter().zip(&ours).filter(|(theirs, ours)| theirs != ours).count();
        let wanted = self.rounds.compare(theirs, &ours, !self.all);
        self.all |= wanted.listed.len() + wanted.whole.len() == differing;
        if wanted.is_empty() {
            if differing == 0 {
                self.synced();
            }
            return None;
        }
        debug!(peer = %self.from, differing, listed = wanted.listed.len(), whole = wanted.whole.len(), "buckets differ");
        self.open = 1;
        Some(link_response::Message::WantBuckets(pb::WantBuckets { buckets: wanted.listed, whole: wanted.whole }))
    }

    /// Compares a listing with the copy: what is gone goes, what is missing or outdated is asked for.
    async fn settle(&mut self, listing: pb::Listing) -> Option<link_response::Message> {
        const STEP: usize = 512;
        let (registry, owner) = (&self.hub.registry, self.incoming.owner);
        let as_of = wire::order(listing.as_of_stamp, listing.as_of_minor);
        let selection = Selection::buckets(&listing.buckets);
        let mut comparison = Comparison::new(&listing.keys, &listing.versions, as_of);
        let mut gone = Read::default();
        for (number, service) in registry.all_services().enumerate() {
            if number % STEP == STEP - 1 {
                tokio::task::yield_now().await;
            }
            for instance in service.snapshot().instances().iter() {
                let Some(version) = instance.version(owner) else { continue };
                let key = instance.key();
                let hash = hash::instance(service.key(), &key);
                if !selection.has(hash) {
                    continue;
                }
                match comparison.judge(hash, version.order()) {
                    Verdict::Stays | Verdict::Outdated => {}
                    Verdict::Goes => {
                        gone.replicas.push((service.key().clone(), Replica::Absent { key, owner, as_of }));
                    }
                }
            }
        }
        let keys = comparison.wanted();
        if !gone.replicas.is_empty() || !keys.is_empty() {
            info!(peer = %self.from, surplus = gone.replicas.len(), lacking = keys.len(), "a copy is repaired");
        }
        apply(self.hub, self.from, gone).await;
        if keys.is_empty() {
            return None;
        }
        self.open += 1;
        Some(link_response::Message::WantKeys(pb::WantKeys { keys }))
    }
}

fn response(message: link_response::Message) -> pb::LinkResponse {
    pb::LinkResponse { message: Some(message) }
}
