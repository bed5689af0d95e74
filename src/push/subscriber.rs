//! Who is told of the changes of which service, for operators to see.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use dashmap::DashMap;

use crate::{clock::Mono, registry::ServiceKey};

/// How a subscriber is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// A stream of the native API.
    Watch,
    /// UDP datagrams.
    Udp,
    /// The connection of an SDK.
    Sdk,
}

/// One who is told of the changes of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// Where it is, as `ip:port`.
    pub address: String,
    /// What it calls itself.
    pub agent: String,
    /// The application that it belongs to, if it said so.
    pub app: String,
    /// The clusters that it listens to, as it wrote them; empty: all.
    pub clusters: String,
    /// How it is told.
    pub protocol: Protocol,
    /// Since when.
    pub since: Mono,
}

/// All subscribers. Cheap to clone; all clones share one table. Written by whoever serves a subscriber.
#[derive(Debug, Clone, Default)]
pub struct Subscribers(Arc<Table>);

#[derive(Debug, Default)]
struct Table {
    by_service: DashMap<ServiceKey, BTreeMap<u64, Arc<Subscriber>>, ahash::RandomState>,
    next: AtomicU64,
    count: AtomicUsize,
}

/// Keeps a subscriber in the table; dropping it takes the subscriber out.
#[derive(Debug)]
pub struct Subscription {
    table: Arc<Table>,
    service: ServiceKey,
    number: u64,
}

impl Subscribers {
    /// Adds a subscriber of `service`, until the result is dropped.
    #[must_use]
    pub fn add(&self, service: ServiceKey, subscriber: Subscriber) -> Subscription {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.by_service.entry(service.clone()).or_default().insert(number, Arc::new(subscriber));
        self.0.count.fetch_add(1, Ordering::Relaxed);
        Subscription { table: self.0.clone(), service, number }
    }

    /// The subscribers of `service`, each with the number by which it is told from its like, in the order of addresses.
    #[must_use]
    pub fn of(&self, service: &ServiceKey) -> Vec<(u64, Arc<Subscriber>)> {
        let mut all: Vec<_> = match self.0.by_service.get(service) {
            Some(entry) => entry.iter().map(|(number, subscriber)| (*number, subscriber.clone())).collect(),
            None => Vec::new(),
        };
        all.sort_by(|a, b| (&a.1.address, a.0).cmp(&(&b.1.address, b.0)));
        all
    }

    /// How many subscribers there are, of all services.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(mut entry) = self.table.by_service.get_mut(&self.service)
            && entry.remove(&self.number).is_some()
        {
            self.table.count.fetch_sub(1, Ordering::Relaxed);
        }
        self.table.by_service.remove_if(&self.service, |_, left| left.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Limits;

    #[test]
    fn subscribers_stay_while_their_subscription_is_held() {
        let subscribers = Subscribers::default();
        let key = Limits::default().service_key("", "", "s").unwrap();
        let subscriber = |address: &str| Subscriber {
            address: address.to_owned(),
            agent: String::new(),
            app: String::new(),
            clusters: String::new(),
            protocol: Protocol::Watch,
            since: Mono::ZERO,
        };
        let second = subscribers.add(key.clone(), subscriber("b:1"));
        let first = subscribers.add(key.clone(), subscriber("a:1"));
        let addresses: Vec<_> = subscribers.of(&key).iter().map(|(_, s)| s.address.clone()).collect();
        assert_eq!(addresses, ["a:1", "b:1"]);
        drop(first);
        assert_eq!(subscribers.count(), 1);
        drop(second);
        assert_eq!((subscribers.count(), subscribers.of(&key)), (0, vec![]));
    }
}
