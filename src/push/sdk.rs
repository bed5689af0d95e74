//! Pushes to the connections of SDKs.
//!
//! Each connection has a [`Line`], from which its transport pulls messages. Each service that is subscribed to has one
//! task (`topic`), which waits for changes, merges them, and marks the lines; a line reads the newest state when it can
//! send, so that a client never has more than one unacknowledged push of a service, and nothing waits but the fact that
//! there is something newer. Lists are encoded once for each state and shared.

mod counters;
mod fuzzy;
mod line;
mod names;
mod outbox;
mod settings;
mod slot;
mod subscribe;
mod topic;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;

use self::{counters::Counters, fuzzy::Existing, names::Names, topic::Topics};
pub use self::{
    counters::Figures,
    line::{ClientFacts, Line, Next, Verdict},
    settings::Settings,
};
use super::subscriber::Subscribers;
use crate::{
    clock::Mono,
    error::{Classify, Code},
    registry::RegistryHandle,
    shutdown::Shutdown,
    wire::sdk::{Pattern, ServiceInfo},
};

/// Makes lines. Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub struct SdkPush {
    hub: Arc<Hub>,
}

/// What all lines share.
#[derive(Debug)]
struct Hub {
    registry: RegistryHandle,
    topics: Arc<Topics>,
    names: Names,
    subscribers: Subscribers,
    settings: Settings,
    counters: Counters,
    shutdown: Shutdown,
    /// The last number of a request of the server; SDKs answer with it.
    request: AtomicU64,
    /// The last number of a line or a subscription.
    number: AtomicU64,
}

/// Why a subscription is not begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The connection has as many subscriptions as it may have.
    #[error("this connection has {most} subscriptions, the setting sdk.max_subscriptions allows no more")]
    TooManySubscriptions {
        /// The setting.
        most: usize,
    },
    /// The connection watches as many patterns as it may.
    #[error("fuzzy watch pattern over limit: the setting sdk.max_patterns allows {most} on one connection")]
    TooManyPatterns {
        /// The setting.
        most: usize,
    },
    /// The connection has ended.
    #[error("the connection has ended")]
    Ended,
}

impl Classify for Refusal {
    fn code(&self) -> Code {
        match self {
            Self::TooManySubscriptions { .. } | Self::TooManyPatterns { .. } => Code::ResourceExhausted,
            Self::Ended => Code::Unavailable,
        }
    }
}

impl SdkPush {
    /// Pushes of the states in `registry`.
    ///
    /// * `subscribers`: where subscriptions are noted for operators to see.
    #[must_use]
    pub fn new(registry: RegistryHandle, subscribers: Subscribers, settings: Settings, shutdown: Shutdown) -> Self {
        let windows = (settings.merge_window, settings.merge_window_max);
        let topics = Arc::new(Topics::new(registry.clone(), windows, shutdown.clone()));
        let hub = Hub {
            registry,
            topics,
            names: Names::default(),
            subscribers,
            settings,
            counters: Counters::default(),
            shutdown,
            request: AtomicU64::new(0),
            number: AtomicU64::new(0),
        };
        Self { hub: Arc::new(hub) }
    }

    /// The outgoing half of a new connection.
    #[must_use]
    pub fn line(&self) -> Arc<Line> {
        Arc::new(Line::new(self.hub.clone()))
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.hub.settings
    }

    /// Counts since the process started.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures { topics: self.hub.topics.len(), name_watchers: self.hub.names.len(), ..self.hub.counters.figures() }
    }
}

impl Hub {
    fn now(&self) -> Mono {
        self.registry.now()
    }

    fn wall_millis(&self) -> u64 {
        self.registry.clock().wall_millis()
    }

    fn next_id(&self) -> u64 {
        self.request.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many names one client is told of at most.
    fn most_names(&self) -> usize {
        self.settings.max_patterns.saturating_mul(self.settings.max_pattern_matches)
    }

    fn info(&self, clusters: &str, last_ref_time: u64, fragment: Bytes) -> ServiceInfo {
        let cache_millis = self.registry.switches().push_cache_millis;
        ServiceInfo { clusters: clusters.to_owned(), last_ref_time, cache_millis, fragment }
    }

    /// The services that there are and that `pattern` fits, up to the limit.
    fn existing(&self, pattern: &Pattern) -> Existing {
        let most = self.settings.max_pattern_matches;
        let mut found: BTreeSet<_> = self
            .registry
            .services(&pattern.namespace, None)
            .filter(|service| pattern.fits(service.key()) && service.snapshot().is_present())
            .map(|service| service.key().clone())
            .take(most.saturating_add(1))
            .collect();
        let cut = found.len() > most;
        if cut {
            found.pop_last();
        }
        Existing { found, cut }
    }
}

#[cfg(test)]
mod tests;
