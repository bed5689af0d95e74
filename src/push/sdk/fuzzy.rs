//! Which services a connection is told of by their names: the patterns that it watches, and what waits to be told.
//!
//! One message at a time is on its way; what waits is bounded by the number of names, not of changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    registry::ServiceKey,
    wire::sdk::{Change, Message, Pattern, Sync, SyncType, change_notice, service_key_text, sync},
};

/// Services in one message of a synchronisation (Nacos).
const BATCH: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Fuzzy {
    patterns: BTreeMap<String, Pattern>,
    /// Watches that are about to begin: their look at what there is takes a while.
    beginning: BTreeMap<u64, Beginning>,
    /// What the client has been told that there is, or is about to be.
    known: BTreeSet<ServiceKey>,
    syncs: VecDeque<Sync>,
    notices: BTreeMap<ServiceKey, Change>,
    flight: Option<Letter>,
    pub(super) failures: u32,
}

#[derive(Debug, Clone)]
enum Letter {
    Sync(Sync),
    Notice(ServiceKey, Change),
}

/// A watch whose look at what there is goes on, and what has turned meanwhile.
#[derive(Debug)]
struct Beginning {
    pattern: Pattern,
    turned: BTreeSet<ServiceKey>,
    /// Changes were missed: everything must be compared once more.
    missed: bool,
}

/// What has turned while a watch began.
#[derive(Debug, Default)]
pub(super) struct Meanwhile {
    /// Services that fit and have come or gone.
    pub(super) turned: BTreeSet<ServiceKey>,
    /// Whether changes were missed.
    pub(super) missed: bool,
}

/// What there is for a pattern when a watch begins.
#[derive(Debug)]
pub(super) struct Existing {
    /// Services that fit, at most as many as the limit.
    pub(super) found: BTreeSet<ServiceKey>,
    /// Whether there were more.
    pub(super) cut: bool,
}

impl Fuzzy {
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.beginning.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.patterns.len() + self.beginning.len()
    }

    /// From here on what turns and fits `pattern` is noted under `ticket`, until [`Fuzzy::begun`].
    pub(super) fn begin(&mut self, ticket: u64, pattern: Pattern) {
        self.beginning.insert(ticket, Beginning { pattern, turned: BTreeSet::new(), missed: false });
    }

    /// Ends the noting, and tells what has turned.
    pub(super) fn begun(&mut self, ticket: u64) -> Meanwhile {
        self.beginning
            .remove(&ticket)
            .map(|Beginning { turned, missed, .. }| Meanwhile { turned, missed })
            .unwrap_or_default()
    }

    /// Changes were missed, for watches that are about to begin too.
    pub(super) fn missed(&mut self) {
        for beginning in self.beginning.values_mut() {
            beginning.missed = true;
        }
    }

    pub(super) fn watches(&self, text: &str) -> bool {
        self.patterns.contains_key(text)
    }

    pub(super) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.patterns.values()
    }

    /// Begins to watch, or goes on: queues the differences between what the client has `received` and what there is.
    pub(super) fn watch(
        &mut self,
        text: &str,
        pattern: Pattern,
        received: &BTreeSet<ServiceKey>,
        existing: Existing,
        initializing: bool,
    ) {
        self.known.retain(|key| !pattern.fits(key));
        let others = |key: &ServiceKey| self.patterns.iter().any(|(other, found)| other != text && found.fits(key));
        self.notices.retain(|key, _| !pattern.fits(key) || others(key));
        self.syncs.retain(|sync| sync.pattern != text);
        let added = existing.found.difference(received).map(|key| (key, Change::Added));
        let deleted: Vec<_> = if existing.cut {
            Vec::new()
        } else {
            received.difference(&existing.found).filter(|key| pattern.fits(key)).collect()
        };
        // Java 3.0 passes over what a synchronisation says is gone, but not over a notice.
        self.notices.extend(deleted.iter().map(|key| ((*key).clone(), Change::Deleted)));
        let contexts: Vec<_> = added
            .chain(deleted.iter().map(|key| (*key, Change::Deleted)))
            .map(|(key, change)| (service_key_text(key), change))
            .collect();
        let total = contexts.chunks(BATCH).len();
        let sync_type = if initializing { SyncType::Init } else { SyncType::Diff };
        for (at, part) in contexts.chunks(BATCH).enumerate() {
            let contexts = part.to_vec();
            self.syncs.push_back(Sync { sync_type, pattern: text.to_owned(), contexts, total, current: at + 1 });
        }
        if initializing {
            self.syncs.push_back(Sync {
                sync_type: SyncType::FinishInit,
                pattern: text.to_owned(),
                contexts: Vec::new(),
                total: total.max(1),
                current: total.max(1),
            });
        }
        self.known.extend(existing.found);
        self.patterns.insert(text.to_owned(), pattern);
    }

    /// Ends to watch.
    pub(super) fn cancel(&mut self, text: &str) {
        let Some(gone) = self.patterns.remove(text) else { return };
        let patterns = &self.patterns;
        let unwatched = |key: &ServiceKey| gone.fits(key) && !patterns.values().any(|pattern| pattern.fits(key));
        self.known.retain(|key| !unwatched(key));
        self.notices.retain(|key, _| !unwatched(key));
        self.syncs.retain(|sync| sync.pattern != text);
    }

    /// A service is there, or is not. `most`: names of which a client is told at most.
    pub(super) fn turn(&mut self, key: &ServiceKey, is_there: bool, most: usize) {
        for beginning in self.beginning.values_mut().filter(|beginning| beginning.pattern.fits(key)) {
            beginning.turned.insert(key.clone());
        }
        if !self.patterns.values().any(|pattern| pattern.fits(key)) {
            return;
        }
        let (news, change) = if is_there {
            (self.known.len() < most && self.known.insert(key.clone()), Change::Added)
        } else {
            (self.known.remove(key), Change::Deleted)
        };
        if news {
            self.notices.insert(key.clone(), change);
        }
    }

    /// What the client is believed to know, to be compared with what there is after changes were missed.
    pub(super) fn known(&self) -> &BTreeSet<ServiceKey> {
        &self.known
    }

    /// Whether something can be sent now.
    pub(super) fn is_due(&self) -> bool {
        self.flight.is_none() && !(self.syncs.is_empty() && self.notices.is_empty())
    }

    /// The next message, which then counts as on its way.
    pub(super) fn next(&mut self, id: impl FnOnce() -> u64) -> Option<(u64, Message)> {
        if self.flight.is_some() {
            return None;
        }
        let letter = match self.syncs.pop_front() {
            Some(sync) => Letter::Sync(sync),
            None => self.notices.pop_first().map(|(key, change)| Letter::Notice(key, change))?,
        };
        let id = id();
        let message = match &letter {
            Letter::Sync(part) => sync(id, part),
            Letter::Notice(key, change) => change_notice(id, &service_key_text(key), *change),
        };
        self.flight = Some(letter);
        Some((id, message))
    }

    pub(super) fn acknowledged(&mut self) {
        self.flight = None;
        self.failures = 0;
    }

    /// What was sent is to be sent again, unless something newer is to be said.
    pub(super) fn failed(&mut self) {
        match self.flight.take() {
            Some(Letter::Sync(sync)) if self.patterns.contains_key(&sync.pattern) => self.syncs.push_front(sync),
            Some(Letter::Notice(key, change)) => {
                self.notices.entry(key).or_insert(change);
            }
            Some(Letter::Sync(_)) | None => {}
        }
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::{
        registry::Limits,
        wire::sdk::{UNARY_PREFIX, pb},
    };

    const PATTERN: &str = "public>>DEFAULT_GROUP>>o*";

    fn key(name: &str) -> ServiceKey {
        Limits::default().service_key("", "", name).unwrap()
    }

    fn keys(names: &[String]) -> BTreeSet<ServiceKey> {
        names.iter().map(|name| key(name)).collect()
    }

    fn watch(fuzzy: &mut Fuzzy, received: &[String], found: &[String], initializing: bool) {
        let pattern = Pattern::parse(&Limits::default(), PATTERN).unwrap();
        let existing = Existing { found: keys(found), cut: false };
        fuzzy.watch(PATTERN, pattern, &keys(received), existing, initializing);
    }

    /// Sends and acknowledges all that waits; the bodies.
    fn drain(fuzzy: &mut Fuzzy) -> Vec<serde_json::Value> {
        let mut bodies = Vec::new();
        while let Some((_, message)) = fuzzy.next(|| 1) {
            assert!(!fuzzy.is_due());
            let whole = message.framed().concat();
            let payload = pb::Payload::decode(&whole[UNARY_PREFIX..]).unwrap();
            bodies.push(serde_json::from_slice(&payload.body.unwrap().value).unwrap());
            fuzzy.acknowledged();
        }
        bodies
    }

    #[test]
    fn the_first_list_comes_in_batches_and_ends() {
        let mut fuzzy = Fuzzy::default();
        let names: Vec<_> = (0..12).map(|n| format!("o{n:02}")).collect();
        watch(&mut fuzzy, &[], &names, true);
        let bodies = drain(&mut fuzzy);
        let counts: Vec<_> = bodies.iter().map(|body| body["contexts"].as_array().unwrap().len()).collect();
        assert_eq!(counts, [10, 2, 0]);
        assert_eq!(bodies[2]["syncType"], "FINISH_FUZZY_WATCH_INIT_NOTIFY");
        assert_eq!((bodies[1]["currentBatch"].as_u64(), bodies[1]["totalBatch"].as_u64()), (Some(2), Some(2)));
        watch(&mut fuzzy, &names, &names, false);
        assert!(drain(&mut fuzzy).is_empty());
    }

    #[test]
    fn what_turns_while_a_watch_begins_is_noted_and_keeps_the_line_in_the_game() {
        let mut fuzzy = Fuzzy::default();
        fuzzy.begin(7, Pattern::parse(&Limits::default(), PATTERN).unwrap());
        assert!(!fuzzy.is_empty());
        fuzzy.turn(&key("orders"), true, 10);
        fuzzy.turn(&key("stock"), true, 10);
        fuzzy.missed();
        let meanwhile = fuzzy.begun(7);
        assert_eq!(meanwhile.turned, BTreeSet::from([key("orders")]));
        assert!(meanwhile.missed && fuzzy.is_empty() && !fuzzy.is_due());
    }

    #[test]
    fn a_watch_leaves_notices_alone_that_another_pattern_waits_for() {
        let mut fuzzy = Fuzzy::default();
        watch(&mut fuzzy, &[], &["orders".to_owned()], false);
        drain(&mut fuzzy);
        fuzzy.turn(&key("orders"), false, 10);
        let all = "public>>DEFAULT_GROUP>>*";
        let existing = Existing { found: BTreeSet::new(), cut: false };
        fuzzy.watch(all, Pattern::parse(&Limits::default(), all).unwrap(), &BTreeSet::new(), existing, false);
        let bodies = drain(&mut fuzzy);
        assert_eq!(bodies.len(), 1);
        assert_eq!(bodies[0]["changedType"], "DELETE_SERVICE");
    }

    #[test]
    fn what_came_and_went_before_it_was_told_is_told_as_it_is_now() {
        let mut fuzzy = Fuzzy::default();
        watch(&mut fuzzy, &[], &[], false);
        fuzzy.turn(&key("orders"), true, 10);
        fuzzy.turn(&key("orders"), false, 10);
        fuzzy.turn(&key("stock"), true, 10);
        let bodies = drain(&mut fuzzy);
        assert_eq!(bodies.len(), 1);
        assert_eq!(bodies[0]["changedType"], "DELETE_SERVICE");
        assert_eq!(bodies[0]["serviceKey"], "public@@DEFAULT_GROUP@@orders");
    }

    #[test]
    fn what_failed_is_sent_again_and_what_was_cancelled_is_not() {
        let mut fuzzy = Fuzzy::default();
        watch(&mut fuzzy, &["ox".to_owned()], &["oy".to_owned()], false);
        let first = fuzzy.next(|| 1).unwrap();
        fuzzy.failed();
        assert_eq!(fuzzy.next(|| 1).unwrap(), first);
        fuzzy.cancel(PATTERN);
        fuzzy.failed();
        assert!(!fuzzy.is_due());
        assert!(fuzzy.is_empty());
    }
}
