//! Writes that another member has sent here because it holds this one to be the owner: carried out at once, whatever this
//! node itself thinks of that, and never sent on.

use tracing::{debug, warn};

use super::member::MemberName;
use crate::{
    registry::{
        BeatResult, Command, Error, InstanceKey, Kind, RegistryHandle, ServiceCommand, ServiceKey,
        replication::Replica,
        version::{OwnerId, Stamp},
    },
    wire::{
        pb::peer::{self as pb, forward_request::Request, forward_response::Outcome},
        peer as wire,
    },
};

/// Carries out what other members send. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Forwarded {
    registry: RegistryHandle,
}

/// Why a request was not carried out.
#[derive(Debug)]
enum Refusal {
    /// The registry says why.
    Registry(Error),
    /// It cannot be read.
    Malformed(wire::Malformed),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Registry(error)
    }
}

impl From<wire::Malformed> for Refusal {
    fn from(error: wire::Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl Forwarded {
    /// Carries writes out on `registry`.
    #[must_use]
    pub fn new(registry: RegistryHandle) -> Self {
        Self { registry }
    }

    /// Carries out what `from` asks for.
    pub async fn handle(&self, from: &MemberName, request: pb::ForwardRequest) -> pb::ForwardResponse {
        self.registry.observe(Stamp::new(request.standing.unwrap_or_default().stamp));
        let done = match request.request {
            Some(Request::Register(register)) => self.register(register).await,
            Some(Request::Deregister(deregister)) => self.deregister(deregister).await,
            Some(Request::Beat(beat)) => self.beat(beat).await,
            Some(Request::Beats(beats)) => self.beats(beats).await,
            Some(Request::Adopt(adopt)) => self.adopt(from, adopt).await,
            None => Err(wire::Malformed::Missing { field: "request" }.into()),
        };
        let outcome = done.unwrap_or_else(|refusal| {
            Outcome::Refused(match refusal {
                Refusal::Registry(error) => {
                    debug!(peer = %from, %error, "a forwarded write is refused");
                    wire::refusal::refused(&error)
                }
                Refusal::Malformed(error) => {
                    warn!(peer = %from, %error, "a forwarded write cannot be read");
                    wire::refusal::malformed(&error)
                }
            })
        });
        let standing = pb::Standing { stamp: self.registry.stamp().number(), ..pb::Standing::default() };
        pb::ForwardResponse { standing: Some(standing), outcome: Some(outcome) }
    }

    async fn register(&self, register: pb::Register) -> Result<Outcome, Refusal> {
        let service = wire::service_key(register.service)?;
        let record = register.record.ok_or(wire::Malformed::Missing { field: "record" })?;
        let (key, said) = wire::share(record, OwnerId::SELF)?;
        let command = ServiceCommand::Register(key.clone(), Kind::Ephemeral, said.publication);
        self.registry.apply(Command::Service(service.clone(), command)).await?;
        Ok(self.done(&service, &key, false))
    }

    async fn deregister(&self, deregister: pb::Deregister) -> Result<Outcome, Refusal> {
        let service = wire::service_key(deregister.service)?;
        let target = wire::target(deregister.target)?;
        let command = ServiceCommand::Deregister(target, Kind::Ephemeral);
        let reply = self.registry.apply(Command::Service(service.clone(), command)).await?;
        let removed = reply.instances.first().ok_or(Error::Internal)?;
        Ok(self.done(&service, &removed.key(), false))
    }

    async fn beat(&self, beat: pb::Beat) -> Result<Outcome, Refusal> {
        let service = wire::service_key(beat.service)?;
        let target = wire::target(beat.target)?;
        let full = beat.full.map(|record| wire::share(record, OwnerId::SELF)).transpose()?;
        if let Some(known) = beat.known {
            let (key, share) = wire::share(known, OwnerId::SELF)?;
            let meant = key.endpoint == target.endpoint && target.cluster.as_ref().is_none_or(|c| *c == key.cluster);
            let found = self.registry.snapshot(&service).instances().resolve(&target).map_err(Error::from)?.is_some();
            if meant && !found {
                let adopt = (service.clone(), Replica::Adopt { key, share });
                self.registry.apply_surely(Command::Replicate(vec![adopt])).await?;
            }
        }
        Ok(match self.registry.renew(&service, &target, full.map(|(_, share)| share.publication)).await? {
            BeatResult::Renewed(instance) => self.done(&service, &instance.key(), false),
            BeatResult::Registered(instance) => self.done(&service, &instance.key(), true),
            BeatResult::Unknown => Outcome::Unknown(pb::Unknown {}),
        })
    }

    async fn beats(&self, beats: pb::Beats) -> Result<Outcome, Refusal> {
        let mut names = Vec::new();
        for of in beats.services {
            let service = wire::service_key(of.service)?;
            for instance in of.instances {
                names.push((service.clone(), wire::instance_key(Some(instance))?));
            }
        }
        let as_of = self.registry.as_of();
        let mut absent = wire::Grouped::default();
        for (service, key) in self.registry.renew_many(names).await? {
            absent.absence(&service, &key);
        }
        let (as_of_stamp, as_of_minor) = wire::as_of(as_of);
        Ok(Outcome::Noted(pb::Noted {
            epoch: self.epoch(),
            services: absent.into_services(),
            as_of_stamp,
            as_of_minor,
        }))
    }

    async fn adopt(&self, from: &MemberName, adopt: pb::Adopt) -> Result<Outcome, Refusal> {
        let wire::Read { replicas, malformed } = wire::adoptions(adopt.services);
        if let Some((error, entries)) = malformed {
            warn!(peer = %from, %error, entries, "a part of what is handed over cannot be read");
        }
        debug!(peer = %from, instances = replicas.len(), "instances are handed over to this node");
        self.registry.apply_surely(Command::Replicate(replicas)).await?;
        Ok(Outcome::Done(pb::Done { epoch: self.epoch(), ..pb::Done::default() }))
    }

    /// This node's record of the instance as it is now, or its absence.
    fn done(&self, service: &ServiceKey, key: &InstanceKey, registered: bool) -> Outcome {
        // Before the record is looked at: what is absent then was so at this point already.
        let as_of = self.registry.as_of();
        let mut now = wire::Grouped::default();
        let name = (service.clone(), key.clone());
        let share = self.registry.own_share(service, key);
        let outlived = |removed: &Stamp| share.as_ref().is_some_and(|share| share.version.stamp() >= *removed);
        if let Some(stamp) = self.registry.removal(&name).filter(|removed| !outlived(removed)) {
            now.removal(&name, stamp);
        }
        match share {
            Some(share) => now.record(service, key, &share),
            None => now.absence(service, key),
        }
        let (as_of_stamp, as_of_minor) = wire::as_of(as_of);
        let service = now.into_services().pop();
        Outcome::Done(pb::Done { epoch: self.epoch(), service, as_of_stamp, as_of_minor, registered })
    }

    fn epoch(&self) -> u64 {
        self.registry.owners().incarnation(OwnerId::SELF).map_or(0, |me| me.epoch)
    }
}
