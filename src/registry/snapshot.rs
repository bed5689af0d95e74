//! An immutable view of one service, replaced whole by the apply loop.

use std::{
    cmp::Ordering,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use super::{
    instance::Instance,
    key::InstanceKey,
    list::InstanceList,
    service::{ClusterSettings, ServiceSettings},
};

/// One state of a service. Shared by all who read it.
#[derive(Debug, Default)]
pub struct Snapshot {
    revision: u64,
    changed_at: u64,
    settings: Option<Arc<ServiceSettings>>,
    instances: InstanceList,
    encoded: OnceLock<Box<EncodedForms>>,
}

/// What of a snapshot is kept encoded, one slot for each form that is asked for often.
type EncodedForms = [OnceLock<Bytes>; 4];

/// A form in which a snapshot can be kept encoded. What the bytes mean is known to the one who passes the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Hosts of the v1 list that all may see.
    HttpAll,
    /// Hosts of the v1 list, the healthy ones.
    HttpHealthy,
    /// The whole list in the SDKs' form.
    SdkAll,
    /// The healthy ones in the SDKs' form.
    SdkHealthy,
}

impl Snapshot {
    pub(super) fn new(
        revision: u64,
        changed_at: u64,
        settings: Option<Arc<ServiceSettings>>,
        instances: InstanceList,
    ) -> Self {
        Self { revision, changed_at, settings, instances, encoded: OnceLock::new() }
    }

    /// The same to readers, but holding `instances`, which look the same and differ in who keeps them.
    pub(super) fn read_the_same(&self, instances: InstanceList) -> Self {
        Self::new(self.revision, self.changed_at, self.settings.clone(), instances)
    }

    /// Grows with every change of this service on this node; 0 for a service that does not exist.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Wall time of the change, in milliseconds since 1970; never less than that of an earlier snapshot of any service.
    #[must_use]
    pub fn changed_at(&self) -> u64 {
        self.changed_at
    }

    /// What an operator says of the service; `None` if it exists through its instances only.
    #[must_use]
    pub fn settings(&self) -> Option<&Arc<ServiceSettings>> {
        self.settings.as_ref()
    }

    /// All instances, disabled and unhealthy ones included, by ascending address, port and cluster.
    #[must_use]
    pub fn instances(&self) -> &InstanceList {
        &self.instances
    }

    /// Whether those who look for services by name are to find this one: it has instances, or was created explicitly. One
    /// that its last instance left stays for a while without being found.
    #[must_use]
    pub fn is_present(&self) -> bool {
        !self.instances.is_empty() || self.settings.is_some()
    }

    /// How `cluster` is set up: its own settings, or the defaults.
    #[must_use]
    pub fn cluster(&self, cluster: &super::key::ClusterName) -> ClusterSettings {
        self.settings().and_then(|settings| settings.clusters.get(cluster)).cloned().unwrap_or_default()
    }

    /// The bytes of `form`, made by `encode` when they are asked for the first time, then shared.
    pub fn encoded(&self, form: Form, encode: impl FnOnce() -> Bytes) -> Bytes {
        let slots = self.encoded.get_or_init(Box::default);
        let [http_all, http_healthy, sdk_all, sdk_healthy] = slots.as_ref();
        let slot = match form {
            Form::HttpAll => http_all,
            Form::HttpHealthy => http_healthy,
            Form::SdkAll => sdk_all,
            Form::SdkHealthy => sdk_healthy,
        };
        slot.get_or_init(encode).clone()
    }

    /// What changed from `older`, an earlier snapshot of the same service, to this one.
    #[must_use]
    pub fn since(&self, older: &Self) -> Delta {
        let (upserts, removals) = difference(self.instances.iter(), older.instances.iter());
        Delta { upserts, removals, settings_changed: self.settings != older.settings }
    }
}

/// Instances of `new` that are not in `old` or differ from it, and keys of `old` that are not in `new`. Both come in key
/// order; an instance that did not change is the same allocation in both.
pub(super) fn difference<'a>(
    new: impl Iterator<Item = &'a Arc<Instance>>,
    old: impl Iterator<Item = &'a Arc<Instance>>,
) -> (Vec<Arc<Instance>>, Vec<InstanceKey>) {
    let (mut upserts, mut removals) = (Vec::new(), Vec::new());
    let (mut new, mut old) = (new.peekable(), old.peekable());
    loop {
        let order = match (new.peek(), old.peek()) {
            (None, None) => return (upserts, removals),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Some(a), Some(b)) => a.key().cmp(&b.key()),
        };
        match order {
            Ordering::Less => upserts.extend(new.next().cloned()),
            Ordering::Greater => removals.extend(old.next().map(|gone| gone.key())),
            Ordering::Equal => {
                if let (Some(a), Some(b)) = (new.next(), old.next())
                    && !Arc::ptr_eq(a, b)
                {
                    upserts.push(a.clone());
                }
            }
        }
    }
}

/// The difference between two snapshots of one service.
#[derive(Debug, Clone)]
pub struct Delta {
    /// Instances that are new or changed, in key order.
    pub upserts: Vec<Arc<Instance>>,
    /// Instances that are gone, in key order.
    pub removals: Vec<InstanceKey>,
    /// Whether the operator's settings of the service changed.
    pub settings_changed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{
        key::ClusterName,
        limits::Limits,
        overlay::Overlay,
        publication::{Kind, Publication},
    };

    fn instance(port: i64) -> Arc<Instance> {
        let key = InstanceKey {
            endpoint: Limits::default().endpoint("10.0.0.1", port).unwrap(),
            cluster: ClusterName::default(),
        };
        Arc::new(Instance::new(key, Kind::Ephemeral, Publication::default(), Overlay::default(), None, None))
    }

    fn snapshot(instances: &[&Arc<Instance>]) -> Snapshot {
        let mut list = InstanceList::default();
        for one in instances {
            list.insert((*one).clone());
        }
        Snapshot::new(1, 0, None, list)
    }

    #[test]
    fn a_delta_names_what_came_changed_and_went() {
        let (a, b, b2, c, d) = (instance(1), instance(2), instance(2), instance(3), instance(4));
        let delta = snapshot(&[&a, &b2, &d]).since(&snapshot(&[&a, &b, &c]));
        assert_eq!(delta.upserts.iter().map(|i| i.port()).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(delta.removals, [c.key()]);
        assert!(!delta.settings_changed);
    }

    #[test]
    fn a_form_is_encoded_once() {
        let snapshot = snapshot(&[]);
        assert_eq!(snapshot.encoded(Form::HttpAll, || Bytes::from_static(b"a")), "a");
        assert_eq!(snapshot.encoded(Form::HttpAll, || Bytes::from_static(b"b")), "a");
        assert_eq!(snapshot.encoded(Form::SdkAll, || Bytes::from_static(b"c")), "c");
    }
}
