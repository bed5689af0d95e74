//! Publishers say that they are alive.

use std::{sync::Arc, time::Duration};

use super::{Error, Naming, Registration};
use crate::registry::{self, Instance, InstanceKey, Kind, Publication, ServiceCommand, ServiceKey, Target, heartbeat};

/// What became of a beat.
#[derive(Debug, Clone)]
pub struct Beat {
    /// Whether the instance is listed.
    pub result: BeatResult,
    /// When the next beat is expected.
    pub interval: Duration,
    /// Whether the next beats may leave the instance out.
    pub light: bool,
}

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

impl Naming {
    /// Renews the lease of the instance that `target` means. Costs a look-up and a store unless the instance was
    /// unhealthy, or was kept by a connection alone. An instance that is unknown is listed if `full` describes it; a live one is never changed by `full`.
    ///
    /// # Errors
    /// Ambiguous if the target names no cluster and fits several; [`Error::NoBeats`] for a persistent instance; those of
    /// [`Naming::register`] if the instance must be listed anew.
    pub async fn beat(&self, service: ServiceKey, target: &Target, full: Option<Publication>) -> Result<Beat, Error> {
        let found =
            self.registry.snapshot(&service).instances().resolve(target).map_err(registry::Error::from)?.cloned();
        let result = match found {
            Some(instance) if instance.kind() == Kind::Persistent => {
                return Err(Error::NoBeats { service, kind: instance.kind() });
            }
            Some(instance) => {
                self.registry.beat(&instance);
                if instance.is_well_here() && instance.lease().is_some() {
                    BeatResult::Renewed(instance)
                } else {
                    match self.change(service.clone(), ServiceCommand::Renew(instance.key())).await {
                        Ok(reply) => super::publish::first(reply).map(|(now, _)| BeatResult::Renewed(now))?,
                        // It was removed between the look and the command.
                        Err(Error::Registry(registry::Error::InstanceUnknown { .. })) => {
                            self.revive(service, target, full).await?
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            None => self.revive(service, target, full).await?,
        };
        let switches = self.registry.switches();
        let interval = match &result {
            BeatResult::Renewed(instance) | BeatResult::Registered(instance) => own_interval(instance),
            BeatResult::Unknown => None,
        };
        Ok(Beat {
            result,
            interval: interval.unwrap_or(Duration::from_millis(switches.client_beat_interval)),
            light: switches.light_beat_enabled,
        })
    }

    async fn revive(
        &self,
        service: ServiceKey,
        target: &Target,
        full: Option<Publication>,
    ) -> Result<BeatResult, Error> {
        let Some(publication) = full else { return Ok(BeatResult::Unknown) };
        let instance =
            InstanceKey { endpoint: target.endpoint.clone(), cluster: target.cluster.clone().unwrap_or_default() };
        let registration = Registration { service, instance, kind: Kind::Ephemeral, publication };
        Ok(BeatResult::Registered(self.register(registration).await?.0))
    }
}

/// The interval that the instance itself asks for.
fn own_interval(instance: &Instance) -> Option<Duration> {
    instance.metadata().value(heartbeat::INTERVAL_KEY)?;
    Some(instance.periods().interval)
}
