//! Beats, as the node takes them that answers for their instances.

use std::sync::Arc;

use super::{
    command::{Command, Error, ServiceCommand},
    heartbeat::Periods,
    instance::Instance,
    key::{InstanceKey, ServiceKey, Target},
    publication::{Kind, Publication},
    store::RegistryHandle,
    version::OwnerId,
};

/// Whether a beat found its instance.
#[derive(Debug, Clone)]
pub enum BeatResult {
    /// The instance is listed and its lease begins anew.
    Renewed(Arc<Instance>),
    /// The instance was unknown and has been listed from what the beat said of it.
    Registered(Arc<Instance>),
    /// The instance is unknown; its publisher must register it again.
    Unknown,
}

impl RegistryHandle {
    /// Renews the lease of the instance that `target` means. Costs a look-up and a store unless the instance was
    /// unhealthy, or was not kept by beats of this node. An instance that is unknown is listed if `full` describes it; a
    /// live one is never changed by `full`.
    ///
    /// # Errors
    /// [`Error::Ambiguous`] if the target names no cluster and fits several; [`Error::NoBeats`] for a persistent instance;
    /// those of a registration if the instance must be listed anew.
    pub async fn renew(
        &self,
        service: &ServiceKey,
        target: &Target,
        full: Option<Publication>,
    ) -> Result<BeatResult, Error> {
        if let Some(instance) = self.snapshot(service).instances().resolve(target)?.cloned() {
            if instance.kind() == Kind::Persistent {
                return Err(Error::NoBeats { service: service.clone(), kind: instance.kind() });
            }
            self.beat(&instance);
            if instance.beats_well_at(OwnerId::SELF) {
                return Ok(BeatResult::Renewed(instance));
            }
            let command = ServiceCommand::Renew(instance.key());
            match self.apply(Command::Service(service.clone(), command)).await {
                Ok(reply) => return reply.instances.into_iter().next().map(BeatResult::Renewed).ok_or(Error::Internal),
                // It was removed between the look and the command.
                Err(Error::InstanceUnknown { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(publication) = full else { return Ok(BeatResult::Unknown) };
        Periods::of(&publication.metadata)?;
        let Target { endpoint, cluster } = target.clone();
        let instance = InstanceKey { endpoint, cluster: cluster.unwrap_or_default() };
        let command = ServiceCommand::Register(instance, Kind::Ephemeral, publication);
        let reply = self.apply(Command::Service(service.clone(), command)).await?;
        reply.instances.into_iter().next().map(BeatResult::Registered).ok_or(Error::Internal)
    }

    /// Notes beats of many instances. Waits for a place in the queue if some of them need the apply loop.
    ///
    /// Returns those that are unknown, or take no beats.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn renew_many(
        &self,
        beats: Vec<(ServiceKey, InstanceKey)>,
    ) -> Result<Vec<(ServiceKey, InstanceKey)>, Error> {
        let mut unknown = Vec::new();
        let mut late = Vec::new();
        for name in beats {
            match self.snapshot(&name.0).instances().find(&name.1) {
                Some(instance) if instance.kind() == Kind::Ephemeral => {
                    self.beat(instance);
                    if !instance.beats_well_at(OwnerId::SELF) {
                        late.push(name);
                    }
                }
                Some(_) | None => unknown.push(name),
            }
        }
        if !late.is_empty() {
            self.apply_surely(Command::Renew(late.clone())).await?;
            let gone = |(service, key): &(_, _)| self.snapshot(service).instances().find(key).is_none();
            unknown.extend(late.into_iter().filter(gone));
        }
        Ok(unknown)
    }
}
