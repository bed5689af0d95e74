//! Lets the lines that watch names know which services appear and disappear. One task for all, while there are any.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    Hub, Refusal,
    fuzzy::Existing,
    line::{Line, wake},
};
use crate::{
    registry::{
        ServiceKey,
        appearances::{Appearance, Turn},
    },
    wire::sdk::Pattern,
};

#[derive(Debug, Default)]
pub(super) struct Names(Mutex<Followers>);

#[derive(Debug, Default)]
struct Followers {
    lines: HashMap<u64, Arc<Line>>,
    running: bool,
}

impl Names {
    /// How many lines watch names.
    pub(super) fn len(&self) -> usize {
        self.0.lock().lines.len()
    }

    /// Adds a line. Returns whether a task is to be started.
    fn add(&self, line: &Arc<Line>) -> bool {
        let mut followers = self.0.lock();
        followers.lines.insert(line.number(), line.clone());
        !std::mem::replace(&mut followers.running, true)
    }

    pub(super) fn forget(&self, line: &Line) {
        let gone = self.0.lock().lines.remove(&line.number());
        drop(gone);
    }

    /// The lines to tell; `None` if there are none, and then the task is to end.
    fn lines(&self) -> Option<Vec<Arc<Line>>> {
        let mut followers = self.0.lock();
        followers.running = !followers.lines.is_empty();
        followers.running.then(|| followers.lines.values().cloned().collect())
    }
}

impl Hub {
    /// Has `line` told of every service that appears or disappears from now on.
    pub(super) fn follow_names(self: &Arc<Self>, line: &Arc<Line>) {
        // Before the line is added: a task that another one starts in between follows from earlier on.
        let feed = self.registry.appearances();
        if self.names.add(line) {
            self.shutdown.spawn(self.clone().tell_names(feed));
        }
    }

    /// Whether there is a service of this name to be told of.
    fn is_present(&self, key: &ServiceKey) -> bool {
        self.registry.service(key).is_some_and(|service| service.snapshot().is_present())
    }

    async fn tell_names(self: Arc<Self>, mut feed: Appearance) {
        loop {
            let turn = tokio::select! {
                () = self.shutdown.draining() => return,
                turn = feed.next() => turn,
            };
            let (Some(turn), Some(lines)) = (turn, self.names.lines()) else { return };
            match turn {
                Turn::Of(key) => {
                    let is_there = self.is_present(&key);
                    for line in lines {
                        line.name_turned(&key, is_there);
                    }
                }
                Turn::Any => {
                    for line in lines {
                        line.compare_names();
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
}

impl Line {
    /// Begins to watch the names that `pattern` fits; queues what differs from what the client has `received`. Returns
    /// whether more services fit than it will be told of.
    ///
    /// # Errors
    /// [`Refusal`] if the connection has ended or watches too many patterns.
    pub fn watch_names(
        self: &Arc<Self>,
        text: &str,
        pattern: Pattern,
        received: &BTreeSet<ServiceKey>,
        initializing: bool,
    ) -> Result<bool, Refusal> {
        let ticket = self.hub.next_number();
        {
            let mut state = self.state.lock();
            let most = self.hub.settings.max_patterns;
            if state.ended {
                return Err(Refusal::Ended);
            }
            if !state.fuzzy.watches(text) && state.fuzzy.len() >= most {
                return Err(Refusal::TooManyPatterns { most });
            }
            // From here on what turns is noted, so that nothing is missed between the look and the watch.
            state.fuzzy.begin(ticket, pattern.clone());
        }
        self.hub.follow_names(self);
        let existing = self.hub.existing(&pattern);
        let cut = existing.cut;
        let mut state = self.state.lock();
        let meanwhile = state.fuzzy.begun(ticket);
        if state.ended {
            self.hub.names.forget(self);
            return Err(Refusal::Ended);
        }
        state.fuzzy.watch(text, pattern, received, existing, initializing);
        for key in &meanwhile.turned {
            state.fuzzy.turn(key, self.hub.is_present(key), self.hub.most_names());
        }
        wake(state);
        if meanwhile.missed {
            self.compare_names();
        }
        Ok(cut)
    }

    /// Ends to watch a pattern.
    pub fn cancel_names(&self, text: &str) {
        let mut state = self.state.lock();
        state.fuzzy.cancel(text);
        // While the line is locked: a watch that begins right after adds the line again.
        if state.fuzzy.is_empty() {
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
        let patterns: Vec<_> = {
            let mut state = self.state.lock();
            state.fuzzy.missed();
            state.fuzzy.patterns().cloned().collect()
        };
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
