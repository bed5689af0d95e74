//! Publishers say that they are alive.

use std::time::Duration;

use super::{Error, Naming};
use crate::registry::{BeatResult, Instance, Publication, ServiceKey, Target, heartbeat};

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

impl Naming {
    /// Renews the lease of the instance that `target` means, here or at its owner. An instance that is unknown is listed if
    /// `full` describes it; a live one is never changed by `full`.
    ///
    /// # Errors
    /// Ambiguous if the target names no cluster and fits several; no beats for a persistent instance; those of
    /// [`Naming::register`] if the instance must be listed anew.
    pub async fn beat(&self, service: ServiceKey, target: &Target, full: Option<Publication>) -> Result<Beat, Error> {
        let result = match &self.forwarder {
            None => self.registry.renew(&service, target, full).await?,
            Some(forwarder) => forwarder.beat(&service, target, full).await?,
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
}

/// The interval that the instance itself asks for.
fn own_interval(instance: &Instance) -> Option<Duration> {
    instance.metadata().value(heartbeat::INTERVAL_KEY)?;
    Some(instance.periods().interval)
}
