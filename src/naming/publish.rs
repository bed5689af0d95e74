//! Instances come and go.

use std::sync::Arc;

use super::{Error, Naming};
use crate::registry::{
    Command, Instance, InstanceKey, Kind, Publication, Reply, ServiceCommand, ServiceKey, Target, heartbeat::Periods,
};

/// What a publisher wants to have listed.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The service; it comes into being with its first instance.
    pub service: ServiceKey,
    /// The instance in it.
    pub instance: InstanceKey,
    /// How it lives.
    pub kind: Kind,
    /// What is said of it.
    pub publication: Publication,
}

impl Naming {
    /// Lists an instance, or replaces what its publisher said of it before. When this returns, readers find it. Returns
    /// the instance as listed, an operator's overlay included, and the revision of the service.
    ///
    /// # Errors
    /// [`Error::Period`] if the reserved metadata asks for periods that cannot be kept; a kind conflict if the service
    /// holds instances of the other kind; [`Error::PersistentUnavailable`]; overload.
    pub async fn register(&self, registration: Registration) -> Result<(Arc<Instance>, u64), Error> {
        let Registration { service, instance, kind, publication } = registration;
        Periods::of(&publication.metadata)?;
        if kind == Kind::Persistent && !self.holds(&service, Kind::Ephemeral) {
            return Err(Error::PersistentUnavailable);
        }
        if let Some(forwarder) = self.forwarder.as_ref().filter(|_| kind == Kind::Ephemeral) {
            return Ok(forwarder.register(service, instance, publication).await?);
        }
        let reply = self.change(service, ServiceCommand::Register(instance, kind, publication)).await?;
        first(reply)
    }

    /// Removes the instance that `target` means, if it is of that kind, and forgets what an operator laid over it.
    /// Returns the revision of the service.
    ///
    /// # Errors
    /// Not found if there is no such instance; ambiguous if the target names no cluster and fits several.
    pub async fn deregister(&self, service: ServiceKey, target: Target, kind: Kind) -> Result<u64, Error> {
        if let Some(forwarder) = self.forwarder.as_ref().filter(|_| kind == Kind::Ephemeral) {
            return Ok(forwarder.deregister(service, target).await?);
        }
        Ok(self.change(service, ServiceCommand::Deregister(target, kind)).await?.revision)
    }

    /// Has the apply loop change `service`.
    pub(super) async fn change(&self, service: ServiceKey, command: ServiceCommand) -> Result<Reply, Error> {
        Ok(self.registry.apply(Command::Service(service, command)).await?)
    }

    fn holds(&self, service: &ServiceKey, kind: Kind) -> bool {
        self.registry.snapshot(service).instances().iter().next().is_some_and(|first| first.kind() == kind)
    }
}

/// The one instance of a reply about one.
pub(super) fn first(reply: Reply) -> Result<(Arc<Instance>, u64), Error> {
    let revision = reply.revision;
    let instance = reply.instances.into_iter().next().ok_or(crate::registry::Error::Internal)?;
    Ok((instance, revision))
}
