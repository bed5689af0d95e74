//! This node's link to one peer: its own records go out, acknowledgements and questions come back.
//!
//! One task for each peer. It dials, and dials again when the link breaks; what was not acknowledged then goes out again.
//! A peer that does not keep up makes only its own task wait.

use std::{collections::VecDeque, future::pending, sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, info, warn};

use super::{
    compose::{self, Bulk, ENTRIES, Selection},
    verify::LISTED_AT_ONCE,
};
use crate::{
    cluster::{
        epoch::Epoch,
        hub::{Hub, Outgoing},
        transport::{BoxFuture, Dialled, Unreachable},
    },
    registry::{hash::mix, version::OwnerId},
    wire::pb::peer::{self as pb, link_request, link_response},
};

/// Batches that may be under way: 8,000 records, which a receiver applies in some 10 ms. Fewer would leave it idle on a
/// slow path, more would make what is urgent wait.
const UNDER_WAY: u64 = 8;

/// The first and the longest time between two attempts to dial.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long a peer may take to close a link after goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Keeps the link to one peer until it is no longer a member, or this node ends.
pub(in crate::cluster) async fn run(hub: Arc<Hub>, outgoing: Arc<Outgoing>) {
    let mut failures: u32 = 0;
    loop {
        let dialled = tokio::select! {
            biased;
            dialled = hub.transport.link(&outgoing.peer) => dialled,
            () = outgoing.stop.draining() => return,
        };
        match dialled {
            Ok(link) => {
                let lasted = tokio::select! {
                    biased;
                    lasted = Stream::drive(&hub, &outgoing, link) => lasted,
                    () = outgoing.stop.draining() => return,
                };
                let mut state = outgoing.state.lock();
                (state.since, state.agreed) = (None, None);
                outgoing.outbox.lock().broken(hub.now());
                failures = if lasted { 0 } else { failures.saturating_add(1) };
            }
            Err(error) => {
                if matches!(error, Unreachable::Refused { .. } | Unreachable::Unresolved { .. }) {
                    hub.detector.lock().refused(&outgoing.peer, hub.now());
                }
                if failures == 0 {
                    info!(peer = %outgoing.peer, %error, "a member cannot be reached");
                } else {
                    debug!(peer = %outgoing.peer, %error, failures, "a member cannot be reached");
                }
                failures = failures.saturating_add(1);
            }
        }
        if *hub.parting.borrow() {
            return;
        }
        tokio::select! {
            biased;
            () = outgoing.stop.draining() => return,
            () = outgoing.heard.notified() => {}
            () = sleep(backoff(&outgoing, failures)) => {}
        }
    }
}

/// Twice as long after each failure, and spread over the second half so that many nodes do not dial in step.
fn backoff(outgoing: &Outgoing, failures: u32) -> Duration {
    let full = BACKOFF.0.saturating_mul(1 << failures.min(6)).min(BACKOFF.1);
    let peer = outgoing.peer.as_str().bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
    let share = mix(peer ^ u64::from(failures)) % 1_000;
    full / 2 + full.mul_f64(share as f64 / 2_000.0)
}

/// What one message of the peer asks for.
enum Next {
    Go,
    /// A listing of these buckets, and then everything in those.
    List(Vec<u32>, Vec<u32>),
    End,
}

/// A listing that is being made: it looks at everything, and the link lives on meanwhile.
type Listing<'a> = BoxFuture<'a, pb::Listing>;

/// A link that stands.
struct Stream<'a> {
    hub: &'a Hub,
    outgoing: &'a Outgoing,
    /// Made and not yet handed to the transport, in order.
    staged: VecDeque<link_request::Message>,
    /// Asked for and not yet sent.
    bulks: VecDeque<Bulk>,
    /// Whether the peer asked for as much as it may at once.
    more: bool,
    /// Whether a listing is being made: nothing that changes what it lists may be sent before it.
    listing: bool,
    sent: u64,
    acknowledged: u64,
    pings: u64,
    answered: u64,
}

impl<'a> Stream<'a> {
    /// Drives a link until it ends. Returns whether it was of use.
    async fn drive(hub: &'a Hub, outgoing: &'a Outgoing, link: Dialled) -> bool {
        let mut stream = Self {
            hub,
            outgoing,
            staged: VecDeque::new(),
            bulks: VecDeque::new(),
            more: false,
            listing: false,
            sent: 0,
            acknowledged: 0,
            pings: 0,
            answered: 0,
        };
        stream.go(link).await
    }

    async fn go(&mut self, mut link: Dialled) -> bool {
        let (hub, peer) = (self.hub, &self.outgoing.peer);
        let epoch = hub.epoch().number();
        let hello = pb::Hello { member: hub.me.to_string(), epoch, standing: Some(hub.standing()) };
        if link.sender.send(request(link_request::Message::Hello(hello))).await.is_err() {
            return false;
        }
        let Ok(Some(pb::LinkResponse { message: Some(link_response::Message::Welcome(welcome)) })) =
            timeout(hub.settings.down_after, link.receiver.recv()).await
        else {
            return false;
        };
        if welcome.known_epoch > hub.epoch().number() {
            warn!(%peer, known = welcome.known_epoch, "a member knows a later epoch of this node");
            hub.outgrow(Epoch::new(welcome.known_epoch));
            return false;
        }
        if welcome.member != peer.as_str() || hub.met(peer, Epoch::new(welcome.epoch)).is_err() {
            warn!(%peer, member = %welcome.member, epoch = welcome.epoch, "another member answered than was dialled");
            return false;
        }
        let now = hub.now();
        hub.detector.lock().link_acknowledged(peer, now);
        hub.reported(peer, welcome.standing);
        self.outgoing.state.lock().since = Some(now);
        info!(%peer, epoch = welcome.epoch, "linked to a member");

        // The digests tell what the peer lacks, whatever it was told before.
        self.staged.push_back(link_request::Message::Removals(compose::removals(&hub.registry)));
        self.verify();

        let mut stage = hub.stage();
        let mut pings = interval(hub.settings.ping_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut verifications = interval(hub.settings.verify_interval);
        verifications.set_missed_tick_behavior(MissedTickBehavior::Delay);
        verifications.reset();
        let mut listing: Option<(Listing<'_>, Vec<u32>)> = None;
        loop {
            self.compose();
            let asked = self.listing || !self.bulks.is_empty();
            let said_all = self.staged.is_empty() && !asked && self.outgoing.outbox.lock().is_empty();
            if *hub.parting.borrow() && said_all {
                let _ = link.sender.send(request(link_request::Message::Goodbye(pb::Goodbye {}))).await;
                let _ = timeout(GOODBYE, async { while link.receiver.recv().await.is_some() {} }).await;
                return true;
            }
            let due = self.due();
            tokio::select! {
                biased;
                _ = pings.tick() => {
                    // Counted in pings and not in time: a process that was frozen has sent none meanwhile.
                    let unanswered = u32::try_from(self.pings - self.answered).unwrap_or(u32::MAX);
                    if hub.settings.ping_interval.saturating_mul(unanswered) > hub.settings.down_after {
                        info!(%peer, unanswered, "a link is given up, its pings are not answered");
                        return true;
                    }
                    self.ping();
                }
                () = self.outgoing.called.notified() => {
                    if hub.epoch().number() != epoch {
                        return true;
                    }
                    if std::mem::replace(&mut stage, hub.stage()) != hub.stage() {
                        self.ping();
                    }
                }
                response = link.receiver.recv() => {
                    let Some(message) = response.and_then(|response| response.message) else { return true };
                    match self.answer(message).await {
                        Next::Go => {}
                        Next::List(buckets, whole) => {
                            self.listing = true;
                            listing = Some((Box::pin(compose::listing(&hub.registry, buckets)), whole));
                        }
                        Next::End => return true,
                    }
                }
                permit = link.sender.reserve(), if !self.staged.is_empty() => match permit {
                    Ok(permit) => if let Some(message) = self.staged.pop_front() {
                        permit.send(request(message));
                    },
                    Err(_) => return true,
                },
                () = due => {}
                () = self.outgoing.filled.notified() => {}
                _ = verifications.tick() => if !asked {
                    self.verify();
                },
                (listed, whole) = made(&mut listing) => {
                    (listing, self.listing) = (None, false);
                    self.staged.push_back(link_request::Message::Listing(listed));
                    self.send_whole(&whole);
                }
                // More of what was asked for is to be looked for.
                () = tokio::task::yield_now(), if self.has_room() && !self.bulks.is_empty() => {}
            }
            if self.outgoing.outbox.lock().take_overflown() {
                info!(%peer, "more has changed than is remembered, the link begins anew");
                return true;
            }
        }
    }

    /// Completes when the next tasks of the outbox are due, if they may be sent then.
    fn due(&self) -> impl Future<Output = ()> + use<> {
        let now = self.hub.now();
        let due = self.has_room().then(|| self.outgoing.outbox.lock().due()).flatten().map(|due| due.since(now));
        async move {
            match due {
                Some(wait) => sleep(wait).await,
                None => pending().await,
            }
        }
    }

    fn has_room(&self) -> bool {
        !self.listing && self.staged.is_empty() && self.sent - self.acknowledged < UNDER_WAY
    }

    /// Makes the next batch, if there is room for one: what changed goes before what was asked for.
    fn compose(&mut self) {
        if self.has_room() {
            let order = self.sent + 1;
            let names = self.outgoing.outbox.lock().take(order, ENTRIES, self.hub.now());
            let batch = if !names.is_empty() {
                compose::latest(&self.hub.registry, order, &names)
            } else if let Some(bulk) = self.bulks.front_mut() {
                match bulk.next(&self.hub.registry, order) {
                    Some(batch) if batch.services.is_empty() => return,
                    Some(batch) => batch,
                    None => {
                        self.bulks.pop_front();
                        self.staged.push_back(link_request::Message::Complete(pb::Complete {}));
                        self.go_on();
                        return;
                    }
                }
            } else {
                return;
            };
            self.sent = order;
            self.staged.push_back(link_request::Message::Batch(batch));
        }
    }

    fn ping(&mut self) {
        self.pings += 1;
        let ping = pb::Ping { number: self.pings, standing: Some(self.hub.standing()) };
        // Not behind batches: who is asked whether it lives need not have worked everything off.
        self.staged.push_front(link_request::Message::Ping(ping));
    }

    fn verify(&mut self) {
        let digests = self.hub.registry.digests(OwnerId::SELF);
        let verify = pb::Verify { root: digests.root(), count: digests.count() };
        self.staged.push_back(link_request::Message::Verify(verify));
    }

    /// Has the peer compare at once again, if more differed than it could ask for in one round.
    fn go_on(&mut self) {
        if self.more && self.bulks.is_empty() {
            self.more = false;
            self.verify();
        }
    }

    /// Sends everything that is in some buckets, and that this was all.
    fn send_whole(&mut self, buckets: &[u32]) {
        if buckets.is_empty() {
            self.staged.push_back(link_request::Message::Complete(pb::Complete {}));
            self.go_on();
        } else {
            self.bulks.push_back(Bulk::new(&self.hub.registry, Selection::buckets(buckets)));
        }
    }

    async fn answer(&mut self, message: link_response::Message) -> Next {
        let (hub, peer) = (self.hub, &self.outgoing.peer);
        let now = hub.now();
        hub.detector.lock().link_acknowledged(peer, now);
        match message {
            link_response::Message::Welcome(_) => return Next::End,
            link_response::Message::Pong(pong) => {
                self.answered = self.answered.max(pong.number.min(self.pings));
                hub.reported(peer, pong.standing);
            }
            link_response::Message::Acknowledgement(pb::Acknowledgement { order }) => {
                let acknowledged = self.acknowledged.max(order.min(self.sent));
                self.outgoing.state.lock().batches += acknowledged - self.acknowledged;
                self.acknowledged = acknowledged;
                self.outgoing.outbox.lock().acknowledge(order);
            }
            link_response::Message::Removals(removals) => {
                super::receive::take_removals(hub, peer, removals).await;
            }
            link_response::Message::Agrees(pb::Agrees {}) => {
                self.outgoing.state.lock().agreed = Some((true, now));
                self.outgoing.outbox.lock().agree();
            }
            link_response::Message::Differs(pb::Differs {}) => {
                self.outgoing.state.lock().agreed = Some((false, now));
                let digests = hub.registry.digests(OwnerId::SELF).buckets();
                self.staged.push_back(link_request::Message::Buckets(pb::Buckets { digests }));
            }
            link_response::Message::WantBuckets(pb::WantBuckets { buckets, whole }) => {
                debug!(%peer, listed = buckets.len(), whole = whole.len(), "a member asks what is in some buckets");
                self.more = buckets.len() >= LISTED_AT_ONCE;
                if !buckets.is_empty() {
                    return Next::List(buckets, whole);
                }
                self.send_whole(&whole);
            }
            link_response::Message::WantKeys(pb::WantKeys { keys }) => {
                debug!(%peer, keys = keys.len(), "a member asks for records that it lacks");
                let hashes = keys.into_iter().collect();
                self.bulks.push_back(Bulk::new(&hub.registry, Selection::Hashes(hashes)));
            }
        }
        Next::Go
    }
}

/// Completes when the listing has been made, if there is one.
async fn made(listing: &mut Option<(Listing<'_>, Vec<u32>)>) -> (pb::Listing, Vec<u32>) {
    match listing {
        Some((made, whole)) => (made.await, std::mem::take(whole)),
        None => pending().await,
    }
}

fn request(message: link_request::Message) -> pb::LinkRequest {
    pb::LinkRequest { message: Some(message) }
}
