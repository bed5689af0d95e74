//! Everybody who follows a service, by whatever protocol: what operators are shown.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;

use crate::registry::ServiceKey;

/// How a subscriber is told of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Datagrams to a client of the v1 HTTP API.
    Udp,
    /// A stream of the native API.
    Native,
}

/// One subscriber, as operators see it. Texts are the subscriber's own and already cut to a bearable length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberInfo {
    /// What it follows.
    pub service: ServiceKey,
    /// Where it is: for UDP the address that it gave and its UDP port, for a stream the far end.
    pub address: SocketAddr,
    /// The client library, such as `Nacos-Java-Client:v1.4.6`.
    pub agent: String,
    /// The application that it says it is.
    pub app: String,
    /// The clusters that it asked for, to the letter; empty for all.
    pub clusters: String,
    /// How it is told.
    pub protocol: Protocol,
}

/// How many subscribers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriberCounts {
    /// By UDP.
    pub udp: usize,
    /// By streams of the native API.
    pub native: usize,
}

/// The table of all subscribers. Cheap to clone; all clones are one table. Written by whoever enters.
#[derive(Debug, Clone, Default)]
pub struct Subscribers(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// By service, then in the order in which they came, so that pages of a list are stable.
    services: BTreeMap<ServiceKey, BTreeMap<u64, Arc<SubscriberInfo>>>,
    last: u64,
    counts: SubscriberCounts,
}

impl SubscriberCounts {
    fn of(&mut self, protocol: Protocol) -> &mut usize {
        match protocol {
            Protocol::Udp => &mut self.udp,
            Protocol::Native => &mut self.native,
        }
    }
}

impl Subscribers {
    /// Adds a subscriber, which is listed until the result is dropped.
    pub fn enter(&self, info: SubscriberInfo) -> Entry {
        self.0.lock().enter(info, self)
    }

    /// As [`Subscribers::enter`], but not if there are `most` of this protocol already.
    pub(super) fn enter_within(&self, info: SubscriberInfo, most: usize) -> Option<Entry> {
        let mut table = self.0.lock();
        (*table.counts.of(info.protocol) < most).then(|| table.enter(info, self))
    }

    /// The subscribers of the services that pass `filter`, by service, then in the order in which they came. `filter`
    /// is called once for each service that has any and must not use this table.
    #[must_use]
    pub fn list(&self, filter: impl Fn(&ServiceKey) -> bool) -> Vec<Arc<SubscriberInfo>> {
        let table = self.0.lock();
        let passed = table.services.iter().filter(|(service, _)| filter(service));
        passed.flat_map(|(_, subscribers)| subscribers.values().cloned()).collect()
    }

    /// How many subscribers there are.
    #[must_use]
    pub fn counts(&self) -> SubscriberCounts {
        self.0.lock().counts
    }
}

impl Table {
    fn enter(&mut self, info: SubscriberInfo, table: &Subscribers) -> Entry {
        self.last += 1;
        *self.counts.of(info.protocol) += 1;
        let info = Arc::new(info);
        self.services.entry(info.service.clone()).or_default().insert(self.last, info.clone());
        Entry { id: self.last, info, table: table.clone() }
    }
}

/// A subscriber's place in the table; dropping it takes the subscriber off.
#[derive(Debug)]
#[must_use = "the subscriber is listed until this is dropped"]
pub struct Entry {
    id: u64,
    info: Arc<SubscriberInfo>,
    table: Subscribers,
}

impl Entry {
    /// A number that no other subscriber of this process has or had.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The subscriber.
    #[must_use]
    pub fn info(&self) -> &SubscriberInfo {
        &self.info
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.table.0.lock();
        *table.counts.of(self.info.protocol) -= 1;
        if let Some(subscribers) = table.services.get_mut(&self.info.service) {
            subscribers.remove(&self.id);
            if subscribers.is_empty() {
                table.services.remove(&self.info.service);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Limits;

    fn info(service: &str, port: u16, protocol: Protocol) -> SubscriberInfo {
        SubscriberInfo {
            service: Limits::default().service_key("", "", service).unwrap(),
            address: SocketAddr::from(([10, 0, 0, 9], port)),
            agent: "Nacos-Java-Client:v1.4.6".to_owned(),
            app: "unknown".to_owned(),
            clusters: String::new(),
            protocol,
        }
    }

    fn ports(subscribers: &Subscribers, part: &str) -> Vec<u16> {
        subscribers.list(|key| key.name.as_str().contains(part)).iter().map(|info| info.address.port()).collect()
    }

    #[test]
    fn an_entry_is_listed_until_it_is_dropped() {
        let subscribers = Subscribers::default();
        let beta = subscribers.enter(info("beta", 3, Protocol::Native));
        let first = subscribers.enter(info("alpha", 2, Protocol::Udp));
        let second = subscribers.enter(info("alpha", 1, Protocol::Udp));
        assert_eq!(ports(&subscribers, ""), [2, 1, 3]);
        assert_eq!(ports(&subscribers, "bet"), [3]);
        assert_eq!(subscribers.counts(), SubscriberCounts { udp: 2, native: 1 });
        drop(first);
        assert_eq!(ports(&subscribers, "alpha"), [1]);
        drop((second, beta));
        assert_eq!(subscribers.counts(), SubscriberCounts::default());
        assert!(subscribers.0.lock().services.is_empty());
    }

    #[test]
    fn the_bound_counts_one_protocol() {
        let subscribers = Subscribers::default();
        let _stream = subscribers.enter(info("s", 1, Protocol::Native));
        let first = subscribers.enter_within(info("s", 2, Protocol::Udp), 1);
        assert!(first.is_some());
        assert!(subscribers.enter_within(info("s", 3, Protocol::Udp), 1).is_none());
        drop(first);
        assert!(subscribers.enter_within(info("s", 3, Protocol::Udp), 1).is_some());
    }
}
