//! Lets the lines that watch names know which services appear and disappear. One task for all, while there are any.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::{Hub, line::Line};
use crate::registry::appearances::{Appearance, Turn};

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

    async fn tell_names(self: Arc<Self>, mut feed: Appearance) {
        loop {
            let turn = tokio::select! {
                () = self.shutdown.draining() => return,
                turn = feed.next() => turn,
            };
            let (Some(turn), Some(lines)) = (turn, self.names.lines()) else { return };
            match turn {
                Turn::Of(key) => {
                    let is_there = self.registry.service(&key).is_some_and(|service| service.snapshot().is_present());
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
