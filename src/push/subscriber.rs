//! Who is told of the changes of which service, by whatever protocol, for operators to see.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

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

/// One who is told of the changes of a service. Its texts have been cut to a bearable length by whoever adds it.
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

/// How many subscribers there are, of all services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriberCounts {
    /// By streams of the native API.
    pub watch: usize,
    /// By UDP.
    pub udp: usize,
    /// By connections of SDKs.
    pub sdk: usize,
}

/// All subscribers. Cheap to clone; all clones share one table. Written by whoever serves a subscriber.
#[derive(Debug, Clone, Default)]
pub struct Subscribers(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// By service, then in the order in which they came, so that pages of a list are stable.
    by_service: BTreeMap<ServiceKey, BTreeMap<u64, Arc<Subscriber>>>,
    last: u64,
    counts: SubscriberCounts,
}

/// Keeps a subscriber in the table; dropping it takes the subscriber out.
#[derive(Debug)]
#[must_use = "the subscriber is listed until this is dropped"]
pub struct Subscription {
    table: Subscribers,
    service: ServiceKey,
    number: u64,
    subscriber: Arc<Subscriber>,
}

impl SubscriberCounts {
    fn of(&mut self, protocol: Protocol) -> &mut usize {
        match protocol {
            Protocol::Watch => &mut self.watch,
            Protocol::Udp => &mut self.udp,
            Protocol::Sdk => &mut self.sdk,
        }
    }
}

impl Subscribers {
    /// Adds a subscriber of `service`, until the result is dropped.
    pub fn add(&self, service: ServiceKey, subscriber: Subscriber) -> Subscription {
        self.0.lock().add(self, service, subscriber)
    }

    /// As [`Subscribers::add`], but not if there are `most` of this protocol already.
    pub(super) fn add_within(&self, service: ServiceKey, subscriber: Subscriber, most: usize) -> Option<Subscription> {
        let mut table = self.0.lock();
        (*table.counts.of(subscriber.protocol) < most).then(|| table.add(self, service, subscriber))
    }

    /// The subscribers of `service`, each with the number by which it is told from its like, in the order of addresses.
    #[must_use]
    pub fn of(&self, service: &ServiceKey) -> Vec<(u64, Arc<Subscriber>)> {
        let mut all: Vec<_> = match self.0.lock().by_service.get(service) {
            Some(found) => found.iter().map(|(number, subscriber)| (*number, subscriber.clone())).collect(),
            None => Vec::new(),
        };
        all.sort_by(|a, b| (&a.1.address, a.0).cmp(&(&b.1.address, b.0)));
        all
    }

    /// The subscribers of the services that pass `filter`, by service, then in the order in which they came. `filter`
    /// is called once for each service that has any and must not use this table.
    #[must_use]
    pub fn list(&self, filter: impl Fn(&ServiceKey) -> bool) -> Vec<(ServiceKey, Arc<Subscriber>)> {
        let table = self.0.lock();
        let passed = table.by_service.iter().filter(|(service, _)| filter(service));
        passed
            .flat_map(|(service, found)| found.values().map(|subscriber| (service.clone(), subscriber.clone())))
            .collect()
    }

    /// How many subscribers there are, of all services and protocols.
    #[must_use]
    pub fn count(&self) -> usize {
        let SubscriberCounts { watch, udp, sdk } = self.counts();
        watch + udp + sdk
    }

    /// How many subscribers there are by protocol, of all services.
    #[must_use]
    pub fn counts(&self) -> SubscriberCounts {
        self.0.lock().counts
    }
}

impl Table {
    fn add(&mut self, table: &Subscribers, service: ServiceKey, subscriber: Subscriber) -> Subscription {
        self.last += 1;
        *self.counts.of(subscriber.protocol) += 1;
        let subscriber = Arc::new(subscriber);
        self.by_service.entry(service.clone()).or_default().insert(self.last, subscriber.clone());
        Subscription { table: table.clone(), service, number: self.last, subscriber }
    }
}

impl Subscription {
    /// A number that no other subscriber of this table has or had.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The subscriber.
    #[must_use]
    pub fn subscriber(&self) -> &Subscriber {
        &self.subscriber
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut table = self.table.0.lock();
        *table.counts.of(self.subscriber.protocol) -= 1;
        if let Some(found) = table.by_service.get_mut(&self.service) {
            found.remove(&self.number);
            if found.is_empty() {
                table.by_service.remove(&self.service);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Limits;

    fn key(name: &str) -> ServiceKey {
        Limits::default().service_key("", "", name).unwrap()
    }

    fn subscriber(address: &str, protocol: Protocol) -> Subscriber {
        Subscriber {
            address: address.to_owned(),
            agent: String::new(),
            app: String::new(),
            clusters: String::new(),
            protocol,
            since: Mono::ZERO,
        }
    }

    fn addresses<'a>(found: impl IntoIterator<Item = &'a Arc<Subscriber>>) -> Vec<&'a str> {
        found.into_iter().map(|subscriber| subscriber.address.as_str()).collect()
    }

    #[test]
    fn subscribers_stay_while_their_subscription_is_held() {
        let subscribers = Subscribers::default();
        let second = subscribers.add(key("s"), subscriber("b:1", Protocol::Watch));
        let first = subscribers.add(key("s"), subscriber("a:1", Protocol::Udp));
        assert_eq!(addresses(subscribers.of(&key("s")).iter().map(|(_, found)| found)), ["a:1", "b:1"]);
        assert_eq!(subscribers.counts(), SubscriberCounts { watch: 1, udp: 1, sdk: 0 });
        drop(first);
        assert_eq!(subscribers.count(), 1);
        drop(second);
        assert_eq!((subscribers.count(), subscribers.of(&key("s"))), (0, vec![]));
        assert!(subscribers.0.lock().by_service.is_empty());
    }

    #[test]
    fn a_list_is_of_the_services_that_pass_in_the_order_of_coming() {
        let subscribers = Subscribers::default();
        let _all = [("beta", "c:1"), ("alpha", "b:1"), ("alpha", "a:1")]
            .map(|(service, address)| subscribers.add(key(service), subscriber(address, Protocol::Udp)));
        let listed = |part: &str| subscribers.list(|key| key.name.as_str().contains(part));
        assert_eq!(addresses(listed("").iter().map(|(_, found)| found)), ["b:1", "a:1", "c:1"]);
        assert_eq!(addresses(listed("bet").iter().map(|(_, found)| found)), ["c:1"]);
        assert!(listed("gamma").is_empty());
    }

    #[test]
    fn the_bound_counts_one_protocol() {
        let subscribers = Subscribers::default();
        let _stream = subscribers.add(key("s"), subscriber("a:1", Protocol::Watch));
        let add = || subscribers.add_within(key("s"), subscriber("b:1", Protocol::Udp), 1);
        let first = add();
        assert!(first.is_some());
        assert!(add().is_none());
        drop(first);
        assert!(add().is_some());
    }
}
