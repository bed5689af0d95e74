//! Subscriptions of a line, and lists for its answers.

use std::sync::Arc;

use super::{Refusal, line::Line, slot::Slot, topic::TopicKey};
use crate::{
    push::subscriber::{Protocol, Subscriber},
    registry::{ServiceKey, key::excerpt, select::Query},
    wire::sdk::{ServiceInfo, fragment},
};

impl Line {
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
                clusters: excerpt(clusters),
                protocol: Protocol::Sdk,
                since: self.hub.now(),
            },
        );
        let mut slot = Box::new(Slot::new(membership, listed));
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
}
