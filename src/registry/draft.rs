//! Services while a batch of commands changes them: each is published once, whatever the batch does to it.

use std::{collections::HashMap, sync::Arc};

use super::{
    apply::View,
    index::Index,
    key::ServiceKey,
    list::InstanceList,
    service::{Service, ServiceSettings},
    snapshot::Snapshot,
};

/// A service while a batch changes it.
pub(super) struct Draft {
    pub(super) service: Arc<Service>,
    pub(super) listed: bool,
    pub(super) exists: bool,
    /// Whether a reader can see a difference.
    pub(super) changed: bool,
    /// Whether an instance gave way to another one, if only for what readers do not see.
    pub(super) replaced: bool,
    pub(super) instances: InstanceList,
    pub(super) settings: Option<Arc<ServiceSettings>>,
}

/// The drafts of one batch, in the order in which they were begun.
#[derive(Default)]
pub(super) struct Drafts {
    pub(super) all: Vec<Draft>,
    by_key: HashMap<ServiceKey, usize, ahash::RandomState>,
}

impl Draft {
    pub(super) fn view(&self) -> View<'_> {
        View {
            key: self.service.key(),
            exists: self.exists,
            instances: &self.instances,
            settings: self.settings.as_ref(),
        }
    }
}

impl Drafts {
    /// The draft of the service of `key`: the one that this batch has, or a new one.
    pub(super) fn open(&mut self, key: ServiceKey, index: &Index) -> usize {
        if let Some(at) = self.by_key.get(&key) {
            return *at;
        }
        match index.find(&key) {
            Some(service) => self.begin(service, true),
            None => {
                let key = index.share(key);
                self.begin(Arc::new(Service::new(key, Arc::new(Snapshot::default()))), false)
            }
        }
    }

    /// The draft of a service that is listed.
    pub(super) fn open_service(&mut self, service: Arc<Service>) -> usize {
        match self.by_key.get(service.key()) {
            Some(at) => *at,
            None => self.begin(service, true),
        }
    }

    fn begin(&mut self, service: Arc<Service>, listed: bool) -> usize {
        let snapshot = service.snapshot();
        let at = self.all.len();
        self.by_key.insert(service.key().clone(), at);
        self.all.push(Draft {
            instances: snapshot.instances().clone(),
            settings: snapshot.settings().cloned(),
            exists: listed,
            listed,
            changed: false,
            replaced: false,
            service,
        });
        at
    }
}
