//! One subscription of a connection: what the client knows, and the one push that it may be working on.

use bytes::Bytes;

use super::topic::{Content, Membership};
use crate::{clock::Mono, push::subscriber::Subscription};

/// Latest wins: nothing waits here but the fact that there is something newer than the client knows.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) membership: Membership,
    /// Lists the subscriber for operators.
    _listed: Subscription,
    /// What the client is known to have.
    told: Told,
    /// Since when there is something newer.
    changed: Option<Mono>,
    flight: Option<Flight>,
    /// Not before this is the next attempt made.
    pub(super) rest_until: Option<Mono>,
    /// Attempts in a row that failed.
    pub(super) failures: u32,
    /// Whether it stands in the queue of its line.
    pub(super) queued: bool,
}

#[derive(Debug, Default)]
struct Told {
    revision: u64,
    /// Only for part of a service.
    fragment: Option<Bytes>,
}

/// A push that is not acknowledged yet.
#[derive(Debug)]
struct Flight {
    since: Mono,
    told: Told,
}

impl Slot {
    pub(super) fn new(membership: Membership, listed: Subscription) -> Self {
        Self {
            membership,
            _listed: listed,
            told: Told::default(),
            changed: None,
            flight: None,
            rest_until: None,
            failures: 0,
            queued: false,
        }
    }

    /// The client has been answered with `content`.
    pub(super) fn answered(&mut self, content: &Content) {
        self.told = self.told_of(content);
    }

    /// Something has changed. Returns whether an older change was still waiting.
    pub(super) fn mark(&mut self, now: Mono) -> bool {
        let waiting = self.changed.is_some();
        self.changed.get_or_insert(now);
        waiting
    }

    /// Whether there is something to be sent now.
    pub(super) fn is_due(&self) -> bool {
        self.changed.is_some() && self.flight.is_none() && self.rest_until.is_none()
    }

    /// Whether the client would see anything new in `content`.
    pub(super) fn is_news(&self, content: &Content) -> bool {
        self.told.revision != content.revision && self.told.fragment.as_ref() != Some(&content.fragment)
    }

    /// There is nothing to be sent after all.
    pub(super) fn calm(&mut self) {
        self.changed = None;
    }

    /// `content` is on its way.
    pub(super) fn sent(&mut self, content: &Content, now: Mono) {
        let since = self.changed.take().unwrap_or(now);
        self.flight = Some(Flight { since, told: self.told_of(content) });
    }

    /// The client has what was sent. Returns since when it had waited for it.
    pub(super) fn acknowledged(&mut self) -> Option<Mono> {
        let flight = self.flight.take()?;
        self.told = flight.told;
        self.failures = 0;
        Some(flight.since)
    }

    /// What was sent did not arrive, or was not understood: it is to be sent again, in its newest form.
    pub(super) fn failed(&mut self) {
        if let Some(flight) = self.flight.take() {
            self.changed = Some(flight.since);
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// The client does not take the state that is in flight: only a change that came after it is tried again.
    pub(super) fn give_up(&mut self) {
        self.failures = 0;
        self.flight = None;
    }

    fn told_of(&self, content: &Content) -> Told {
        let fragment = self.membership.topic().is_partial().then(|| content.fragment.clone());
        Told { revision: content.revision, fragment }
    }
}
