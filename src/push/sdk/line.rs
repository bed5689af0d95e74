//! The outgoing half of one connection: what waits to be sent, what waits to be acknowledged, and when silence counts.
//!
//! The transport pulls: [`Line::poll_next`] composes a message when there is room for it, of the state that there is then.
//! So a slow client costs the memory of its subscriptions and of the one message that it is reading.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};

use super::{
    Hub,
    counters::Counters,
    fuzzy::Fuzzy,
    outbox::{Awaited, Outbox, What},
};
use crate::{
    clock::Mono,
    wire::sdk::{Ack, Message, client_detection, connect_reset, setup_ack},
};

/// Messages about the connection itself that may wait: it is set up once, asked once at a time, told to move by hand.
const CONTROL: usize = 8;

/// Rest after a client refused a push (Nacos: 1 s).
const REST: Duration = Duration::from_secs(1);

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
    pub(super) hub: Arc<Hub>,
    number: u64,
    heard: AtomicU64,
    pub(super) state: Mutex<Outbox>,
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
                if slot.failures >= self.hub.settings.push_retries {
                    slot.give_up();
                    state.queue_if_due(number);
                } else {
                    slot.failed();
                    slot.rest_until = Some(now + REST);
                }
            }
            (What::Fuzzy, true) => state.fuzzy.acknowledged(),
            (What::Fuzzy, false) if state.fuzzy.failures >= self.hub.settings.push_retries => {
                state.fuzzy.acknowledged();
            }
            (What::Fuzzy, false) => state.fuzzy.failed(),
        }
        if state.has_work() {
            wake(state);
        }
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
}

/// Wakes who waits for the next message, after the lock is released.
pub(super) fn wake(mut state: MutexGuard<'_, Outbox>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
