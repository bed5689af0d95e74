//! The UDP subscribers of one service.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    schedule::Scope,
    settings::Settings,
    subscriber::{Protocol, Subscriber, Subscribers, Subscription},
    subscription::{Place, Refusal, UdpSubscription},
};
use crate::{
    clock::Mono,
    registry::{ServiceKey, select::Query},
};

/// Distinct `clusters` parameters of one service. Each is selected and encoded anew for each change; real ones are a
/// handful.
const MOST_FILTERS: usize = 256;
/// How much of a client's texts is kept, in bytes.
const MOST_TEXT_BYTES: usize = 128;

/// Who gets the pushes of one service. Entered by whoever subscribes; swept, read and closed by the service's task.
#[derive(Debug)]
pub(super) struct Audience {
    service: ServiceKey,
    state: Mutex<State>,
    joined: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Its task has ended or is about to: nobody who entered now would be told of anything.
    closed: bool,
    /// By the `clusters` parameter to the letter.
    filters: HashMap<Box<str>, Filter>,
    count: usize,
}

#[derive(Debug)]
struct Filter {
    query: Query,
    members: HashMap<SocketAddr, Member>,
}

#[derive(Debug)]
struct Member {
    subscription: Subscription,
    refreshed: Mono,
    /// Not pushed to yet.
    new: bool,
}

/// How an attempt to enter ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entered {
    /// The subscriber is in.
    Yes,
    /// The audience is closed: another one must be opened.
    Closed,
    /// A bound is reached.
    No(Refusal),
}

/// Subscribers that get the same datagram.
#[derive(Debug)]
pub(super) struct Group {
    /// The `clusters` parameter to the letter.
    pub(super) clusters: Box<str>,
    /// What they get.
    pub(super) query: Query,
    /// Number and target of each.
    pub(super) members: Vec<(u64, SocketAddr)>,
}

impl Audience {
    /// Nobody follows `service` yet.
    pub(super) fn new(service: ServiceKey) -> Self {
        Self { service, state: Mutex::default(), joined: Notify::new() }
    }

    /// The service.
    pub(super) fn service(&self) -> &ServiceKey {
        &self.service
    }

    /// Completes when somebody has entered since the last call. For one caller at a time.
    pub(super) async fn joined(&self) {
        self.joined.notified().await;
    }

    /// Adds the caller, or notes that it polled again.
    pub(super) fn enter(
        &self,
        call: &UdpSubscription<'_>,
        place: Place,
        now: Mono,
        settings: &Settings,
        table: &Subscribers,
    ) -> Entered {
        let mut state = self.state.lock();
        if state.closed {
            return Entered::Closed;
        }
        let (agent, app) = (cut(call.agent), cut(call.app));
        if let Some(filter) = state.filters.get_mut(call.clusters_text)
            && let Some(member) = filter.members.get_mut(&place.target)
        {
            member.refreshed = now;
            let known = member.subscription.subscriber();
            if known.agent == agent && known.app == app {
                return Entered::Yes;
            }
            // Another client has come up on the same port.
            filter.members.remove(&place.target);
            state.count -= 1;
        }
        if state.count >= settings.max_subscribers_of_service {
            return Entered::No(Refusal::ServiceFull);
        }
        if state.filters.len() >= MOST_FILTERS && !state.filters.contains_key(call.clusters_text) {
            return Entered::No(Refusal::TooManyFilters);
        }
        let subscriber = Subscriber {
            address: place.shown.to_string(),
            agent: agent.to_owned(),
            app: app.to_owned(),
            clusters: call.clusters_text.to_owned(),
            protocol: Protocol::Udp,
            since: now,
        };
        let Some(subscription) = table.add_within(self.service.clone(), subscriber, settings.max_subscribers) else {
            return Entered::No(Refusal::Full);
        };
        state.count += 1;
        let filter = state.filters.entry(call.clusters_text.into()).or_insert_with(|| Filter {
            query: Query { clusters: call.clusters.map(<[_]>::to_vec), ..Query::default() },
            members: HashMap::new(),
        });
        filter.members.insert(place.target, Member { subscription, refreshed: now, new: true });
        self.joined.notify_one();
        Entered::Yes
    }

    /// Drops those that have not polled for `lifetime`. Returns when the longest silent one polled last; closes the
    /// audience and returns `None` if nobody is left.
    pub(super) fn sweep(&self, now: Mono, lifetime: Duration) -> Option<Mono> {
        let mut state = self.state.lock();
        let mut oldest: Option<Mono> = None;
        let mut count = 0;
        state.filters.retain(|_, filter| {
            filter.members.retain(|_, member| {
                let alive = now.since(member.refreshed) < lifetime;
                if alive {
                    count += 1;
                    oldest = Some(oldest.map_or(member.refreshed, |oldest| oldest.min(member.refreshed)));
                }
                alive
            });
            !filter.members.is_empty()
        });
        state.count = count;
        state.closed |= oldest.is_none();
        oldest
    }

    /// Lets nobody in any more, and drops all who are.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        *state = State { closed: true, ..State::default() };
    }

    /// Those that are in `scope`, by what they get. None of them is a newcomer afterwards.
    pub(super) fn take(&self, scope: Scope) -> Vec<Group> {
        let mut state = self.state.lock();
        let mut groups = Vec::new();
        for (clusters, filter) in &mut state.filters {
            let mut members = Vec::new();
            for (target, member) in &mut filter.members {
                let new = std::mem::take(&mut member.new);
                if new || scope == Scope::All {
                    members.push((member.subscription.number(), *target));
                }
            }
            if !members.is_empty() {
                groups.push(Group { clusters: clusters.clone(), query: filter.query.clone(), members });
            }
        }
        groups
    }
}

/// The start of `text`, at most [`MOST_TEXT_BYTES`] long.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MOST_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
