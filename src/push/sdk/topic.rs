//! What several connections subscribe to alike: a service and the clusters of it, as they were written.
//!
//! A topic has one task, which waits for changes and tells its members that there is one. What the state is each member
//! reads when it has room for it, so that nothing is sent that is older than what is known.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use dashmap::DashMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::line::Line;
use crate::{
    registry::{RegistryHandle, ServiceKey, select::Query, watches::Watch},
    shutdown::Shutdown,
    wire::sdk::{fragment, has_no_hosts},
};

/// Members that are told before others get their turn on the thread: about 100 µs of work.
const TOLD_AT_ONCE: usize = 256;

/// A service and the text of the clusters.
pub(super) type TopicKey = (ServiceKey, Arc<str>);

/// The state of a topic at one revision.
#[derive(Debug, Clone)]
pub(super) struct Content {
    /// Revision of the service; 0 if it does not exist.
    pub(super) revision: u64,
    /// The list as `wire` encodes it, shared by all members.
    pub(super) fragment: Bytes,
}

impl Content {
    pub(super) fn is_empty(&self) -> bool {
        has_no_hosts(&self.fragment)
    }
}

#[derive(Debug)]
pub(super) struct Topic {
    key: TopicKey,
    query: Query,
    registry: RegistryHandle,
    /// The last list that was encoded for this topic, if its query is not one whose lists the snapshots keep.
    encoded: Mutex<Option<Content>>,
    members: Mutex<HashMap<u64, Member>>,
    ended: CancellationToken,
}

#[derive(Debug, Clone)]
struct Member {
    line: Arc<Line>,
    slot: u64,
}

/// All topics that have members.
#[derive(Debug)]
pub(super) struct Topics {
    by_key: DashMap<TopicKey, Arc<Topic>, ahash::RandomState>,
    registry: RegistryHandle,
    windows: (Duration, Duration),
    shutdown: Shutdown,
}

/// Keeps a member in its topic; dropping it takes the member out. Not to be dropped while its line is locked.
#[derive(Debug)]
pub(super) struct Membership {
    topics: Arc<Topics>,
    topic: Arc<Topic>,
    number: u64,
}

impl Topics {
    /// * `windows`: the shortest time between two announcements, and the longest to which it grows.
    pub(super) fn new(registry: RegistryHandle, windows: (Duration, Duration), shutdown: Shutdown) -> Self {
        Self { by_key: DashMap::default(), registry, windows, shutdown }
    }

    /// How many topics there are.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Lets `line` be told of changes under the number `slot`. Changes after this call are not missed.
    pub(super) fn join(self: &Arc<Self>, key: TopicKey, query: Query, line: Arc<Line>, slot: u64) -> Membership {
        let member = Member { line, slot };
        let mut opened = None;
        let topic = {
            let entry = self.by_key.entry(key.clone()).or_insert_with(|| {
                let topic = Arc::new(Topic {
                    query,
                    registry: self.registry.clone(),
                    encoded: Mutex::default(),
                    members: Mutex::default(),
                    ended: CancellationToken::new(),
                    key,
                });
                opened = Some(self.registry.watch(topic.key.0.clone()));
                topic
            });
            // Under the entry's lock, so that a topic that others leave just now is not given up.
            entry.members.lock().insert(slot, member);
            entry.clone()
        };
        if let Some(watch) = opened {
            self.shutdown.spawn(topic.clone().run(watch, self.windows, self.shutdown.clone()));
        }
        Membership { topics: self.clone(), topic, number: slot }
    }
}

impl Membership {
    pub(super) fn topic(&self) -> &Topic {
        &self.topic
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let left = self.topic.members.lock().remove(&self.number);
        drop(left);
        let emptied = self
            .topics
            .by_key
            .remove_if(&self.topic.key, |_, topic| Arc::ptr_eq(topic, &self.topic) && topic.members.lock().is_empty());
        if emptied.is_some() {
            self.topic.ended.cancel();
        }
    }
}

impl Topic {
    /// The service.
    pub(super) fn service(&self) -> &ServiceKey {
        &self.key.0
    }

    /// The clusters, to the letter.
    pub(super) fn clusters(&self) -> &str {
        &self.key.1
    }

    /// Whether its lists are worth a comparison before they are sent: most changes of a service are of other clusters.
    pub(super) fn is_partial(&self) -> bool {
        !self.query.is_plain()
    }

    /// The state that there is now.
    pub(super) fn content(&self) -> Content {
        let snapshot = self.registry.snapshot(&self.key.0);
        let revision = snapshot.revision();
        if self.query.is_plain() {
            return Content { revision, fragment: fragment(&self.key.0, &snapshot, &self.query) };
        }
        let mut encoded = self.encoded.lock();
        match &*encoded {
            Some(content) if content.revision == revision => content.clone(),
            _ => {
                let content = Content { revision, fragment: fragment(&self.key.0, &snapshot, &self.query) };
                *encoded = Some(content.clone());
                content
            }
        }
    }

    async fn run(self: Arc<Self>, mut watch: Watch, (least, most): (Duration, Duration), shutdown: Shutdown) {
        let mut window = least;
        loop {
            tokio::select! {
                () = self.ended.cancelled() => return,
                () = shutdown.draining() => return,
                () = watch.changed() => {}
            }
            let revision = self.registry.snapshot(&self.key.0).revision();
            if self.registry.switches().push_enabled {
                self.announce().await;
            }
            tokio::time::sleep(window).await;
            let quiet = self.registry.snapshot(&self.key.0).revision() == revision;
            window = if quiet { least } else { most.min(window * 2) };
        }
    }

    async fn announce(&self) {
        let members: Vec<_> = self.members.lock().values().cloned().collect();
        for part in members.chunks(TOLD_AT_ONCE) {
            for member in part {
                member.line.changed(member.slot);
            }
            tokio::task::yield_now().await;
        }
    }
}
