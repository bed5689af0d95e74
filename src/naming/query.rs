//! What readers ask.

use std::{sync::Arc, time::Duration};

use super::{Error, Naming};
use crate::clock::Clock;
use crate::registry::{
    self, Group, Instance, Namespace, NamespaceInfo, ServiceKey, Snapshot, Target,
    select::{Query, Selected, select},
    service::Service,
    switches::Switches,
    watches::Watch,
};

/// The instances of a service that a reader gets, with the snapshot that they are of.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The snapshot; of revision 0 if the service does not exist.
    pub snapshot: Arc<Snapshot>,
    /// What was selected from it.
    pub selected: Selected,
}

/// A part of a long list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    number: usize,
    size: usize,
}

impl Page {
    /// Page `number`, from 1 on, of `size` rows each. A number below 1 counts as 1 (Nacos 1.4).
    ///
    /// # Errors
    /// [`Error::Argument`] with field `page_size` if `size` is below 1.
    pub fn new(number: i64, size: i64) -> Result<Self, Error> {
        let size = usize::try_from(size).ok().filter(|size| *size > 0).ok_or_else(|| Error::Argument {
            field: "page_size",
            value: size.to_string(),
            allowed: "it must be a whole number from 1 to 9223372036854775807",
        })?;
        Ok(Self { number: usize::try_from(number).unwrap_or(1).max(1), size })
    }

    /// How many rows come before it.
    #[must_use]
    pub fn skipped(self) -> usize {
        (self.number - 1).saturating_mul(self.size)
    }

    /// How many rows it has at most.
    #[must_use]
    pub fn size(self) -> usize {
        self.size
    }

    /// The rows of this page, and how many rows there are in all.
    pub fn of<T>(self, rows: impl Iterator<Item = T>) -> (Vec<T>, usize) {
        let mut total = 0;
        let (first, size) = (self.skipped(), self.size);
        let page = rows
            .inspect(|_| total += 1)
            .enumerate()
            .filter(|(at, _)| *at >= first && *at - first < size)
            .map(|(_, row)| row)
            .collect();
        (page, total)
    }
}

/// Which services to list. The cheap case, no test, costs no look at the services outside the page.
pub struct ServiceFilter<'a> {
    /// In this namespace.
    pub namespace: &'a Namespace,
    /// In this group; `None`: in all.
    pub group: Option<&'a Group>,
    /// Only those that pass.
    pub test: Option<&'a dyn Fn(&Service) -> bool>,
}

/// Part of a list of services, in key order.
#[derive(Debug, Clone)]
pub struct ServicePage {
    /// The services of the page.
    pub services: Vec<Arc<Service>>,
    /// How many pass the filter in all.
    pub total: usize,
}

impl Naming {
    /// The instances of `service` that `query` asks for. A service that does not exist has none.
    #[must_use]
    pub fn list(&self, service: &ServiceKey, query: &Query) -> Listing {
        let snapshot = self.registry.snapshot(service);
        let selected = select(&snapshot, query);
        Listing { snapshot, selected }
    }

    /// The present state of `service`; of revision 0 if it does not exist.
    #[must_use]
    pub fn snapshot(&self, service: &ServiceKey) -> Arc<Snapshot> {
        self.registry.snapshot(service)
    }

    /// The state of `service`, if it exists.
    ///
    /// # Errors
    /// Not found if it does not.
    pub fn service(&self, service: &ServiceKey) -> Result<Arc<Snapshot>, Error> {
        match self.registry.service(service) {
            Some(found) => Ok(found.snapshot()),
            None => Err(registry::Error::ServiceUnknown(service.clone()).into()),
        }
    }

    /// The instance that `target` means, and the revision of its service.
    ///
    /// # Errors
    /// Not found if the service or the instance does not exist; ambiguous if the target fits several.
    pub fn instance(&self, service: &ServiceKey, target: &Target) -> Result<(Arc<Instance>, u64), Error> {
        let snapshot = self.service(service)?;
        let found = snapshot.instances().resolve(target).map_err(registry::Error::from)?;
        let instance = found
            .cloned()
            .ok_or_else(|| registry::Error::InstanceUnknown { service: service.clone(), target: target.clone() })?;
        Ok((instance, snapshot.revision()))
    }

    /// How long ago `instance` was last heard of; `None` if it is not kept by beats.
    #[must_use]
    pub fn silence(&self, instance: &Instance) -> Option<Duration> {
        self.registry.silence(instance)
    }

    /// How long ago an operator last changed the overlay of `instance`; `None` if it has none.
    #[must_use]
    pub fn overlay_age(&self, instance: &Instance) -> Option<Duration> {
        instance.overlay().map(|overlay| self.registry.now().since(overlay.changed_at()))
    }

    /// A page of the services that pass `filter`, in key order.
    #[must_use]
    pub fn services(&self, filter: &ServiceFilter<'_>, page: Page) -> ServicePage {
        let all = self.registry.services(filter.namespace, filter.group);
        match filter.test {
            Some(test) => {
                let (services, total) = page.of(all.filter(|service| test(service)));
                ServicePage { services, total }
            }
            None => ServicePage {
                services: all.skip(page.skipped()).take(page.size()).collect(),
                total: self.registry.service_count(filter.namespace, filter.group),
            },
        }
    }

    /// The first services after `after` that pass `filter`, in key order, until `full` takes no more; and how many pass
    /// in all. Services that come and go between two calls shift nothing.
    pub fn services_after(
        &self,
        filter: &ServiceFilter<'_>,
        after: Option<ServiceKey>,
        mut full: impl FnMut(&Arc<Service>) -> bool,
    ) -> usize {
        let passes = |service: &Arc<Service>| filter.test.is_none_or(|test| test(service));
        let mut rest = self.registry.services(filter.namespace, filter.group);
        if let Some(after) = after {
            rest = rest.after(after);
        }
        let _ = rest.filter(passes).find(|service| full(service));
        match filter.test {
            Some(_) => self.registry.services(filter.namespace, filter.group).filter(passes).count(),
            None => self.registry.service_count(filter.namespace, filter.group),
        }
    }

    /// Starts to wait for changes of `service`, which need not exist. Read its first state after this call.
    #[must_use]
    pub fn watch(&self, service: ServiceKey) -> Watch {
        self.registry.watch(service)
    }

    /// The namespaces that there are, `public` first: those created, and those that have services. The last part tells
    /// how many services each has.
    #[must_use]
    pub fn namespaces(&self) -> Vec<(Namespace, Option<NamespaceInfo>, usize)> {
        let created = self.registry.namespaces();
        let mut all: std::collections::BTreeSet<_> = self.registry.used_namespaces().collect();
        all.extend(created.keys().cloned());
        all.remove(&Namespace::default());
        std::iter::once(Namespace::default())
            .chain(all)
            .map(|namespace| {
                let services = self.registry.service_count(&namespace, None);
                let info = created.get(&namespace).cloned();
                (namespace, info, services)
            })
            .collect()
    }

    /// The present position of every switch.
    #[must_use]
    pub fn switches(&self) -> Arc<Switches> {
        self.registry.switches()
    }

    /// The clock that the registry goes by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.registry.clock()
    }

    /// Wall time now, in milliseconds since 1970, for display.
    #[must_use]
    pub fn wall_millis(&self) -> u64 {
        self.registry.clock().wall_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_never_overflow() {
        let page = Page::new(i64::MAX, i64::MAX).unwrap();
        assert_eq!(page.of(0..10), (vec![], 10));
        assert_eq!(Page::new(0, i64::MAX).unwrap().of(0..3), (vec![0, 1, 2], 3));
        assert_eq!(Page::new(-1, 2).unwrap().of(0..3), (vec![0, 1], 3));
        assert_eq!(Page::new(2, 2).unwrap().of(0..3), (vec![2], 3));
        assert!(Page::new(1, 0).is_err());
    }
}
