//! The outgoing half of one connection: what waits to be sent, what waits to be acknowledged, and when silence counts.
//!
//! The transport pulls: [`Line::poll_next`] composes a message when there is room for it, of the state that there is then.
//! So a slow client costs the memory of its subscriptions and of the one message that it is reading.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tracing::warn;

use super::{
    Hub, Refusal,
    counters::Counters,
    fuzzy::{Existing, Fuzzy},
    slot::Slot,
    topic::TopicKey,
};
use crate::{
    clock::Mono,
    push::subscriber::{Protocol, Subscriber},
    registry::{ServiceKey, key::excerpt, select::Query},
    wire::sdk::{
        Ack, Message, Pattern, ServiceInfo, client_detection, connect_reset, fragment, notify_subscriber, setup_ack,
    },
};

/// Rest after a client refused a push (Nacos: 1 s).
const REST: Duration = Duration::from_secs(1);

/// Messages about the connection itself that may wait: it is set up once, asked once at a time, told to move by hand.
const CONTROL: usize = 8;

/// The largest message that an SDK of Rust or Python reads, and that of the others.
const SMALL_INBOX: usize = 4 * 1024 * 1024;
const LARGE_INBOX: usize = 10 * 1024 * 1024;

/// What a client said of itself when it set its connection up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientFacts {
    /// What it calls itself: `Nacos-Java-Client:v3.0.3`.
    pub agent: String,
    /// The application that it belongs to, if it said so.
    pub app: String,
    /// Where it is, as `ip:port`.
    pub address: String,
}

/// What a look at a line has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The client is there, or may yet answer.
    Keep,
    /// It does not acknowledge what it is sent.
    Unresponsive,
    /// It was silent and did not answer when it was asked.
    Silent,
}

/// What to send next.
#[derive(Debug)]
pub enum Next {
    /// A message.
    Message(Message),
    /// Nothing any more: the stream is to fail.
    End,
}

/// See the module.
#[derive(Debug)]
pub struct Line {
    hub: Arc<Hub>,
    number: u64,
    heard: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    facts: ClientFacts,
    waker: Option<Waker>,
    control: VecDeque<Message>,
    slots: BTreeMap<u64, Slot>,
    by_topic: HashMap<TopicKey, u64, ahash::RandomState>,
    queue: VecDeque<u64>,
    fuzzy: Fuzzy,
    awaited: BTreeMap<u64, Awaited>,
    last_ref_time: u64,
    asked: Option<Mono>,
    ended: bool,
}

#[derive(Debug)]
struct Awaited {
    what: What,
    sent: Mono,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// An answer that only shows that the client is there.
    Sign,
    Push(u64),
    Fuzzy,
}

impl Line {
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        let (now, number) = (hub.now(), hub.next_number());
        Self { hub, number, heard: AtomicU64::new(now.as_millis()), state: Mutex::default() }
    }

    /// A number that no other line has or had.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The connection is set up; `negotiates`: the client waits for the set-up to be acknowledged.
    pub fn set_up(&self, facts: ClientFacts, negotiates: bool) {
        let mut state = self.state.lock();
        state.facts = facts;
        if negotiates {
            state.control.push_back(setup_ack());
        }
        wake(state);
    }

    /// What the client said of itself.
    #[must_use]
    pub fn facts(&self) -> ClientFacts {
        self.state.lock().facts.clone()
    }

    /// Notes that the client was heard of.
    pub fn heard(&self) {
        self.heard.store(self.hub.now().as_millis(), Ordering::Relaxed);
    }

    /// The next message, or a wait for it. One task at a time may wait.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut state = self.state.lock();
        if state.ended {
            return Poll::Ready(Next::End);
        }
        match state.next(&self.hub) {
            Some(message) => Poll::Ready(Next::Message(message)),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Nothing is sent any more; all subscriptions end.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.control.clear();
        state.queue.clear();
        state.by_topic.clear();
        state.awaited.clear();
        state.fuzzy = Fuzzy::default();
        let slots = std::mem::take(&mut state.slots);
        wake(state);
        // Not while the line is locked: see `Membership`.
        drop(slots);
        self.hub.names.forget(self);
    }

    /// Asks the client to go to another server.
    pub fn ask_to_move(&self, connection: &str) {
        let id = self.hub.next_id();
        let mut state = self.state.lock();
        if !state.ended && state.control.len() < CONTROL {
            state.awaited.insert(id, Awaited { what: What::Sign, sent: self.hub.now() });
            state.control.push_back(connect_reset(id, connection));
            wake(state);
        }
    }

    /// The instances of `service` for an answer on this connection: no message of a lower `lastRefTime` is newer.
    #[must_use]
    pub fn info(&self, service: &ServiceKey, clusters: &str, query: &Query) -> ServiceInfo {
        let mut state = self.state.lock();
        let last_ref_time = state.ref_time(&self.hub);
        let snapshot = self.hub.registry.snapshot(service);
        drop(state);
        self.hub.info(clusters, last_ref_time, fragment(service, &snapshot, query))
    }

    /// Has the client told of every change of `service` from the answer on that is returned. `app` is the application that
    /// the request names, if the connection named none.
    ///
    /// # Errors
    /// [`Refusal`] if the connection has ended or has too many subscriptions.
    pub fn subscribe(
        self: &Arc<Self>,
        service: &ServiceKey,
        clusters: &str,
        query: Query,
        app: Option<&str>,
    ) -> Result<ServiceInfo, Refusal> {
        let key: TopicKey = (service.clone(), clusters.into());
        let (facts, present) = {
            let state = self.state.lock();
            let most = self.hub.settings.max_subscriptions;
            let present = state.by_topic.contains_key(&key);
            if !present && state.slots.len() >= most {
                return Err(Refusal::TooManySubscriptions { most });
            }
            (state.facts.clone(), present)
        };
        if present {
            let info = self.info(service, clusters, &query);
            return Ok(info);
        }
        let number = self.hub.next_number();
        let membership = self.hub.topics.join(key.clone(), query, self.clone(), number);
        let listed = self.hub.subscribers.add(
            service.clone(),
            Subscriber {
                address: facts.address,
                agent: facts.agent,
                app: if facts.app.is_empty() { app.map_or_else(|| "unknown".to_owned(), excerpt) } else { facts.app },
                clusters: clusters.to_owned(),
                protocol: Protocol::Sdk,
                since: self.hub.now(),
            },
        );
        let mut slot = Slot::new(membership, listed);
        let mut state = self.state.lock();
        if state.ended {
            drop(state);
            drop(slot);
            return Err(Refusal::Ended);
        }
        let last_ref_time = state.ref_time(&self.hub);
        let content = slot.membership.topic().content();
        slot.answered(&content);
        // Two requests at once for one topic: the later one wins, and the other membership ends.
        let replaced = state.by_topic.insert(key, number).and_then(|old| state.slots.remove(&old));
        state.slots.insert(number, slot);
        drop(state);
        drop(replaced);
        Ok(self.hub.info(clusters, last_ref_time, content.fragment))
    }

    /// Ends a subscription. Returns whether there was one.
    pub fn unsubscribe(&self, service: &ServiceKey, clusters: &str) -> bool {
        let mut state = self.state.lock();
        let number = state.by_topic.remove(&(service.clone(), Arc::from(clusters)));
        let slot = number.and_then(|number| state.slots.remove(&number));
        drop(state);
        slot.is_some()
    }

    /// The topic under `slot` has changed.
    pub(super) fn changed(&self, slot: u64) {
        let now = self.hub.now();
        let mut state = self.state.lock();
        let Some(found) = state.slots.get_mut(&slot) else { return };
        if found.mark(now) {
            Counters::add(&self.hub.counters.merged);
        }
        if state.queue_if_due(slot) {
            wake(state);
        }
    }

    /// The client answered a request of the server. An answer that nobody waits for shows only that it is there.
    pub fn acknowledge(&self, ack: &Ack) {
        self.heard();
        let Ok(id) = ack.request_id.parse::<u64>() else { return };
        let now = self.hub.now();
        let mut state = self.state.lock();
        let Some(awaited) = state.awaited.remove(&id) else { return };
        match (awaited.what, ack.is_good()) {
            (What::Sign, _) => return,
            (What::Push(number), true) => {
                let Some(slot) = state.slots.get_mut(&number) else { return };
                if let Some(since) = slot.acknowledged() {
                    self.hub.counters.acknowledged(now.since(since));
                }
                state.queue_if_due(number);
            }
            (What::Push(number), false) => {
                Counters::add(&self.hub.counters.failed);
                let Some(slot) = state.slots.get_mut(&number) else { return };
                slot.failed();
                if slot.failures > self.hub.settings.push_retries {
                    slot.give_up();
                } else {
                    slot.rest_until = Some(now + REST);
                }
            }
            (What::Fuzzy, true) => state.fuzzy.acknowledged(),
            (What::Fuzzy, false) if state.fuzzy.failures >= self.hub.settings.push_retries => {
                state.fuzzy.acknowledged();
            }
            (What::Fuzzy, false) => state.fuzzy.failed(),
        }
        wake(state);
    }

    /// To be called every sweep: repeats what was not acknowledged in time, asks a silent client whether it is there.
    /// Nothing counts that should have come before `thaw`.
    pub fn sweep(&self, now: Mono, thaw: Mono) -> Verdict {
        let settings = &self.hub.settings;
        let waited = |since: Mono| now.since(since.max(thaw));
        let heard = Mono::from_millis(self.heard.load(Ordering::Relaxed));
        let mut state = self.state.lock();
        if state.ended {
            return Verdict::Keep;
        }
        if state.repeat(&self.hub, now, waited) {
            return Verdict::Unresponsive;
        }
        match state.asked {
            Some(asked) if heard >= asked => state.asked = None,
            Some(asked) if waited(asked) >= settings.detection_timeout => return Verdict::Silent,
            Some(_) => {}
            None if waited(heard) >= settings.idle_timeout => {
                let id = self.hub.next_id();
                state.asked = Some(now);
                state.awaited.insert(id, Awaited { what: What::Sign, sent: now });
                state.control.push_back(client_detection(id));
            }
            None => {}
        }
        if state.has_work() {
            wake(state);
        }
        Verdict::Keep
    }

    /// Begins to watch the names that `pattern` fits; queues what differs from what the client has `received`. Returns
    /// whether more services fit than it will be told of.
    ///
    /// # Errors
    /// [`Refusal`] if the connection has ended or watches too many patterns.
    pub fn watch_names(
        self: &Arc<Self>,
        text: &str,
        pattern: Pattern,
        received: &std::collections::BTreeSet<ServiceKey>,
        initializing: bool,
    ) -> Result<bool, Refusal> {
        {
            let state = self.state.lock();
            let most = self.hub.settings.max_patterns;
            if state.ended {
                return Err(Refusal::Ended);
            }
            if !state.fuzzy.watches(text) && state.fuzzy.len() >= most {
                return Err(Refusal::TooManyPatterns { most });
            }
        }
        // From here on changes are followed, so that none is missed after the look.
        self.hub.follow_names(self);
        let existing = self.hub.existing(&pattern);
        let cut = existing.cut;
        let mut state = self.state.lock();
        if state.ended {
            drop(state);
            self.hub.names.forget(self);
            return Err(Refusal::Ended);
        }
        state.fuzzy.watch(text, pattern, received, existing, initializing);
        wake(state);
        Ok(cut)
    }

    /// Ends to watch a pattern.
    pub fn cancel_names(&self, text: &str) {
        let mut state = self.state.lock();
        state.fuzzy.cancel(text);
        let none_left = state.fuzzy.is_empty();
        drop(state);
        if none_left {
            self.hub.names.forget(self);
        }
    }

    /// A service is there, or is not.
    pub(super) fn name_turned(&self, key: &ServiceKey, is_there: bool) {
        let mut state = self.state.lock();
        state.fuzzy.turn(key, is_there, self.hub.most_names());
        if state.fuzzy.is_due() {
            wake(state);
        }
    }

    /// Changes of names were missed: compares what the client knows with what there is.
    pub(super) fn compare_names(&self) {
        let patterns: Vec<_> = self.state.lock().fuzzy.patterns().cloned().collect();
        for pattern in patterns {
            let Existing { found, cut } = self.hub.existing(&pattern);
            let mut state = self.state.lock();
            let gone: Vec<_> =
                state.fuzzy.known().difference(&found).filter(|key| pattern.fits(key)).cloned().collect();
            for key in found {
                state.fuzzy.turn(&key, true, self.hub.most_names());
            }
            for key in gone.iter().filter(|_| !cut) {
                state.fuzzy.turn(key, false, self.hub.most_names());
            }
            wake(state);
        }
    }
}

impl State {
    /// A `lastRefTime` greater than all before: clients drop what is not newer than what they have.
    fn ref_time(&mut self, hub: &Hub) -> u64 {
        self.last_ref_time = hub.wall_millis().max(self.last_ref_time + 1);
        self.last_ref_time
    }

    fn has_work(&self) -> bool {
        !self.control.is_empty() || !self.queue.is_empty() || self.fuzzy.is_due()
    }

    /// Puts a slot into the queue if it has something to send and does not stand there. Returns whether it did.
    fn queue_if_due(&mut self, number: u64) -> bool {
        let Some(slot) = self.slots.get_mut(&number).filter(|slot| slot.is_due() && !slot.queued) else { return false };
        slot.queued = true;
        self.queue.push_back(number);
        true
    }

    fn next(&mut self, hub: &Hub) -> Option<Message> {
        if let Some(message) = self.control.pop_front() {
            return Some(message);
        }
        let now = hub.now();
        if let Some((id, message)) = self.fuzzy.next(|| hub.next_id()) {
            self.awaited.insert(id, Awaited { what: What::Fuzzy, sent: now });
            return Some(message);
        }
        while let Some(number) = self.queue.pop_front() {
            if let Some(message) = self.compose(hub, number, now) {
                return Some(message);
            }
        }
        None
    }

    /// The push for a slot, of the state that there is now; `None` if the client needs none.
    fn compose(&mut self, hub: &Hub, number: u64, now: Mono) -> Option<Message> {
        let slot = self.slots.get_mut(&number)?;
        slot.queued = false;
        if !slot.is_due() {
            return None;
        }
        let content = slot.membership.topic().content();
        if !slot.is_news(&content) {
            slot.calm();
            return None;
        }
        if content.is_empty() && hub.settings.hold_empty_pushes {
            slot.calm();
            Counters::add(&hub.counters.held_back);
            return None;
        }
        self.last_ref_time = hub.wall_millis().max(self.last_ref_time + 1);
        let id = hub.next_id();
        let topic = slot.membership.topic();
        let info = hub.info(topic.clusters(), self.last_ref_time, content.fragment.clone());
        let message = notify_subscriber(id, info);
        if message.len() > inbox(&self.facts.agent) {
            Counters::add(&hub.counters.oversized);
            warn!(service = ?topic.service(), bytes = message.len(), agent = %self.facts.agent, address = %self.facts.address,
                "a push is larger than this SDK reads; it is not sent");
            slot.answered(&content);
            slot.calm();
            return None;
        }
        slot.sent(&content, now);
        self.awaited.insert(id, Awaited { what: What::Push(number), sent: now });
        Counters::add(&hub.counters.sent);
        hub.counters.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
        Some(message)
    }

    /// Queues again what was not acknowledged in time. Returns whether the client has failed too often.
    fn repeat(&mut self, hub: &Hub, now: Mono, waited: impl Fn(Mono) -> Duration) -> bool {
        while let Some((id, what)) = self
            .awaited
            .first_key_value()
            .filter(|(_, awaited)| waited(awaited.sent) >= hub.settings.ack_timeout)
            .map(|(id, awaited)| (*id, awaited.what))
        {
            self.awaited.remove(&id);
            let failures = match what {
                What::Sign => continue,
                What::Push(number) => {
                    let Some(slot) = self.slots.get_mut(&number) else { continue };
                    slot.failed();
                    let failures = slot.failures;
                    self.queue_if_due(number);
                    failures
                }
                What::Fuzzy => {
                    self.fuzzy.failed();
                    self.fuzzy.failures
                }
            };
            Counters::add(&hub.counters.failed);
            if failures > hub.settings.push_retries {
                return true;
            }
            Counters::add(&hub.counters.repeated);
        }
        let rested: Vec<_> = self
            .slots
            .iter_mut()
            .filter(|(_, slot)| slot.rest_until.is_some_and(|until| until <= now))
            .map(|(number, slot)| {
                slot.rest_until = None;
                *number
            })
            .collect();
        for number in rested {
            self.queue_if_due(number);
        }
        false
    }
}

/// The largest message that an SDK of this name reads.
fn inbox(agent: &str) -> usize {
    let small = agent.starts_with("Nacos-Rust-Client") || agent.starts_with("Nacos-Python-Client");
    if small { SMALL_INBOX } else { LARGE_INBOX }
}

/// Wakes who waits for the next message, after the lock is released.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
