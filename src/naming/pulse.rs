//! Beats in bulk: the part of a beat that never waits, for publishers that keep very many instances alive.

use std::sync::Arc;

use super::{Error, Naming};
use crate::{
    cluster::forward::Noted,
    registry::{self, Instance, InstanceKey, Kind, ServiceKey, Target, service::Service, version::OwnerId},
};

/// What a beat met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pulse {
    /// The instance is listed as healthy and its lease begins anew.
    Renewed,
    /// Only [`Naming::beat`] can say: the instance is listed as unhealthy, is not kept by beats, or is another member's to
    /// know.
    Late(ServiceKey, Target),
    /// The instance is unknown.
    Unknown,
}

/// An instance that a publisher names again and again: found by its name once, and then at hand.
///
/// Small (two pointers while the instance is listed), because a publisher may hold a million.
#[derive(Debug)]
pub struct Held(State);

#[derive(Debug)]
enum State {
    Named(Box<(ServiceKey, Target)>),
    Found {
        service: Arc<Service>,
        instance: Arc<Instance>,
        /// Whether the publisher named the cluster.
        cluster_named: bool,
    },
}

type Located = (Arc<Service>, Arc<Instance>);

impl Held {
    /// An instance by its name. It need not exist.
    #[must_use]
    pub fn new(service: ServiceKey, target: Target) -> Self {
        Self(State::Named(Box::new((service, target))))
    }
}

impl Naming {
    /// Notes a beat of the instance that `target` means.
    ///
    /// # Errors
    /// Ambiguous if the target names no cluster and fits several; no beats for a persistent instance.
    pub fn pulse(&self, service: &ServiceKey, target: &Target) -> Result<Pulse, Error> {
        match self.locate(service, target)? {
            Some((service, instance)) => self.note(&service, &instance),
            None => Ok(self.unknown(service.clone(), target.clone())),
        }
    }

    /// Notes a beat of the instance that is held. Once it is found, it is this very instance until it is gone.
    ///
    /// # Errors
    /// As [`Naming::pulse`].
    pub fn pulse_held(&self, held: &mut Held) -> Result<Pulse, Error> {
        if let State::Found { service, instance, .. } = &mut held.0 {
            let snapshot = service.snapshot();
            if let Some(listed) = snapshot.instances().find(&instance.key()) {
                if !Arc::ptr_eq(listed, instance) {
                    *instance = listed.clone();
                }
                return self.note(service, instance);
            }
        }
        let (service, target) = match &held.0 {
            State::Named(name) => (name.0.clone(), name.1.clone()),
            State::Found { service, instance, cluster_named } => {
                let InstanceKey { endpoint, cluster } = instance.key();
                (service.key().clone(), Target { endpoint, cluster: cluster_named.then_some(cluster) })
            }
        };
        match self.locate(&service, &target)? {
            Some((service, instance)) => {
                let pulse = self.note(&service, &instance);
                held.0 = State::Found { service, instance, cluster_named: target.cluster.is_some() };
                pulse
            }
            None => {
                held.0 = State::Named(Box::new((service.clone(), target.clone())));
                Ok(self.unknown(service, target))
            }
        }
    }

    fn locate(&self, service: &ServiceKey, target: &Target) -> Result<Option<Located>, Error> {
        let Some(service) = self.registry.service(service) else { return Ok(None) };
        let found = service.snapshot().instances().resolve(target).map_err(registry::Error::from)?.cloned();
        Ok(found.map(|instance| (service, instance)))
    }

    fn note(&self, service: &Arc<Service>, instance: &Arc<Instance>) -> Result<Pulse, Error> {
        if instance.kind() == Kind::Persistent {
            let (service, kind) = (service.key().clone(), instance.kind());
            return Err(registry::Error::NoBeats { service, kind }.into());
        }
        let renewed = match self.forwarder.as_ref().map(|forwarder| forwarder.note(service, instance)).transpose()? {
            None | Some(Noted::Here) => {
                self.registry.beat(instance);
                instance.beats_well_at(OwnerId::SELF)
            }
            Some(Noted::Waits) => true,
            Some(Noted::Ask) => false,
        };
        if renewed {
            return Ok(Pulse::Renewed);
        }
        let InstanceKey { endpoint, cluster } = instance.key();
        Ok(Pulse::Late(service.key().clone(), Target { endpoint, cluster: Some(cluster) }))
    }

    /// What a beat of an instance met that this node does not list.
    fn unknown(&self, service: ServiceKey, target: Target) -> Pulse {
        match &self.forwarder {
            Some(forwarder) if !forwarder.is_here(&service, &target.endpoint) => Pulse::Late(service, target),
            Some(_) | None => Pulse::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Clock,
        naming::Registration,
        registry::{ClusterName, Endpoint, Limits, Publication, RegistryHandle, Settings},
        shutdown::Shutdown,
    };

    fn naming() -> Naming {
        let registry = RegistryHandle::start(Settings::default(), Limits::default(), Clock::start(), &Shutdown::new());
        Naming::new(registry, Limits::default())
    }

    fn target() -> (ServiceKey, Target) {
        let limits = Limits::default();
        let endpoint: Endpoint = limits.endpoint("10.0.0.1", 80).unwrap();
        (limits.service_key("", "", "s").unwrap(), Target { endpoint, cluster: None })
    }

    async fn register(naming: &Naming, healthy: bool) {
        let (service, Target { endpoint, .. }) = target();
        let instance = InstanceKey { endpoint, cluster: ClusterName::default() };
        let publication = Publication { healthy, ..Publication::default() };
        naming.register(Registration { service, instance, kind: Kind::Ephemeral, publication }).await.unwrap();
    }

    #[tokio::test]
    async fn a_held_instance_follows_removal_and_return() {
        let naming = naming();
        let (service, target) = target();
        let mut held = Held::new(service.clone(), target.clone());
        assert_eq!(naming.pulse_held(&mut held), Ok(Pulse::Unknown));
        register(&naming, true).await;
        assert_eq!(naming.pulse_held(&mut held), Ok(Pulse::Renewed));
        assert_eq!(naming.pulse(&service, &target), Ok(Pulse::Renewed));
        naming.deregister(service.clone(), target.clone(), Kind::Ephemeral).await.unwrap();
        naming.delete_service(service.clone()).await.unwrap();
        assert_eq!(naming.pulse_held(&mut held), Ok(Pulse::Unknown));
        register(&naming, false).await;
        assert!(matches!(naming.pulse_held(&mut held), Ok(Pulse::Late(..))));
        naming.beat(service, &target, None).await.unwrap();
        assert_eq!(naming.pulse_held(&mut held), Ok(Pulse::Renewed));
    }

    #[test]
    fn holding_costs_little() {
        assert!(size_of::<Held>() <= 24);
    }
}
