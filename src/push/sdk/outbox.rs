//! What waits on a line: messages about the connection itself, services with news, names; and which answers are awaited.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::atomic::Ordering,
    task::Waker,
    time::Duration,
};

use tracing::warn;

use super::{Hub, counters::Counters, fuzzy::Fuzzy, line::ClientFacts, slot::Slot, topic::TopicKey};
use crate::{
    clock::Mono,
    wire::sdk::{Message, notify_subscriber},
};

/// The largest message that an SDK of Rust or Python reads, and that of the others.
const SMALL_INBOX: usize = 4 * 1024 * 1024;
const LARGE_INBOX: usize = 10 * 1024 * 1024;

/// Behind the lock of its line.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) facts: ClientFacts,
    pub(super) waker: Option<Waker>,
    pub(super) control: VecDeque<Message>,
    /// Boxed, because a tree keeps room for eleven, and most lines have a few.
    pub(super) slots: BTreeMap<u64, Box<Slot>>,
    pub(super) by_topic: HashMap<TopicKey, u64, ahash::RandomState>,
    pub(super) queue: VecDeque<u64>,
    pub(super) fuzzy: Fuzzy,
    pub(super) awaited: BTreeMap<u64, Awaited>,
    pub(super) last_ref_time: u64,
    pub(super) asked: Option<Mono>,
    pub(super) ended: bool,
}

/// A request of the server that the client has not answered.
#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) what: What,
    pub(super) sent: Mono,
}

/// What an answer of the client is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// An answer that only shows that the client is there.
    Sign,
    Push(u64),
    Fuzzy,
}

impl Outbox {
    /// A `lastRefTime` greater than all before: clients drop what is not newer than what they have.
    pub(super) fn ref_time(&mut self, hub: &Hub) -> u64 {
        self.last_ref_time = hub.wall_millis().max(self.last_ref_time + 1);
        self.last_ref_time
    }

    /// Whether there may be something to send.
    pub(super) fn has_work(&self) -> bool {
        !self.control.is_empty() || !self.queue.is_empty() || self.fuzzy.is_due()
    }

    /// Puts a slot into the queue if it has something to send and does not stand there. Returns whether it did.
    pub(super) fn queue_if_due(&mut self, number: u64) -> bool {
        let Some(slot) = self.slots.get_mut(&number).filter(|slot| slot.is_due() && !slot.queued) else { return false };
        slot.queued = true;
        self.queue.push_back(number);
        true
    }

    /// The next message that is to be sent; what it says is composed now.
    pub(super) fn next(&mut self, hub: &Hub) -> Option<Message> {
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
    pub(super) fn repeat(&mut self, hub: &Hub, now: Mono, waited: impl Fn(Mono) -> Duration) -> bool {
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
