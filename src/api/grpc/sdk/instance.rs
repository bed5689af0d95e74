//! Instances come and go with connections.

use std::sync::Arc;

use super::{
    Inner,
    unary::{gone, read, refuse, refuse_naming},
};
use crate::{
    api::grpc::connection::Connection,
    naming::{self, Registration},
    registry::{self, InstanceKey, Kind as InstanceKind, Publication, Target, Weight, key::excerpt},
    wire::sdk::{BatchInstanceRequest, Extra, Fault, InstanceBody, InstanceRequest, Kind, Reply, error_codes as codes},
};

const REGISTER: &str = "registerInstance";
const DEREGISTER: &str = "deregisterInstance";
const BATCH_REGISTER: &str = "batchRegisterInstance";

impl Inner {
    /// `InstanceRequest` and `PersistentInstanceRequest`.
    pub(super) async fn instance(
        &self,
        connection: &Arc<Connection>,
        lives: InstanceKind,
        body: &[u8],
    ) -> Result<Reply, Reply> {
        let kind = match lives {
            InstanceKind::Ephemeral => Kind::Instance,
            InstanceKind::Persistent => Kind::PersistentInstance,
        };
        let InstanceRequest { namespace, service_name, group_name, r#type, instance } = read(body)?;
        if r#type != REGISTER && r#type != DEREGISTER {
            return Err(unsupported(&r#type));
        }
        let extra = || Extra::Type(r#type.clone());
        let Some(instance) = instance else {
            return Err(refused(kind, "instance is required and must not be empty", extra()));
        };
        let limits = self.naming.limits();
        let service =
            limits.service_key(&namespace, &group_name, &service_name).map_err(|e| refuse(kind, &e, extra()))?;
        let done = if r#type == REGISTER {
            let (key, publication) = self.publication(instance).map_err(|e| refuse_naming(kind, &e, extra()))?;
            match lives {
                InstanceKind::Ephemeral => {
                    self.naming.publish(connection.id(), service, vec![(key, publication)]).await
                }
                InstanceKind::Persistent => {
                    let registration = Registration { service, instance: key, kind: lives, publication };
                    self.naming.register(registration).await.map(|_| ())
                }
            }
        } else {
            let target = self.target(&instance).map_err(|e| refuse_naming(kind, &e, extra()))?;
            match lives {
                InstanceKind::Ephemeral => self.naming.withdraw(connection.id(), service, target).await.map(|_| ()),
                InstanceKind::Persistent => match self.naming.deregister(service, target, lives).await {
                    Ok(_) | Err(naming::Error::Registry(registry::Error::InstanceUnknown { .. })) => Ok(()),
                    Err(error) => Err(error),
                },
            }
        };
        finish(kind, connection, done, extra())
    }

    /// `BatchInstanceRequest`.
    pub(super) async fn batch(&self, connection: &Arc<Connection>, body: &[u8]) -> Result<Reply, Reply> {
        let kind = Kind::BatchInstance;
        let BatchInstanceRequest { namespace, service_name, group_name, r#type, instances } = read(body)?;
        if r#type != BATCH_REGISTER {
            return Err(unsupported(&r#type));
        }
        let extra = || Extra::Type(r#type.clone());
        let limits = self.naming.limits();
        let service =
            limits.service_key(&namespace, &group_name, &service_name).map_err(|e| refuse(kind, &e, extra()))?;
        let instances: Result<Vec<_>, _> = instances.into_iter().map(|instance| self.publication(instance)).collect();
        let instances = instances.map_err(|e| refuse_naming(kind, &e, extra()))?;
        let done = self.naming.publish(connection.id(), service, instances).await;
        finish(kind, connection, done, extra())
    }

    fn publication(&self, body: InstanceBody) -> Result<(InstanceKey, Publication), naming::Error> {
        let Target { endpoint, cluster } = self.target(&body)?;
        let publication = Publication {
            weight: Weight::new(body.weight.unwrap_or(1.0))?,
            enabled: body.enabled.unwrap_or(true),
            healthy: body.healthy.unwrap_or(true),
            metadata: self.naming.limits().metadata(body.metadata)?,
            app: None,
        };
        Ok((InstanceKey { endpoint, cluster: cluster.unwrap_or_default() }, publication))
    }

    fn target(&self, body: &InstanceBody) -> Result<Target, naming::Error> {
        let limits = self.naming.limits();
        Ok(Target {
            endpoint: limits.endpoint(&body.ip, body.port.unwrap_or(0))?,
            cluster: limits.cluster(&body.cluster_name)?,
        })
    }
}

/// The answer to a change. What was done on a connection that ended in the meantime is gone again: that is no success.
fn finish(kind: Kind, connection: &Connection, done: Result<(), naming::Error>, extra: Extra) -> Result<Reply, Reply> {
    match done {
        Ok(()) if connection.is_open() => Ok(Reply::ok(kind, extra)),
        Ok(()) => Err(gone(kind)),
        Err(error) => Err(refuse_naming(kind, &error, extra)),
    }
}

fn unsupported(operation: &str) -> Reply {
    Reply::refused(Fault { code: codes::INVALID, message: format!("Unsupported request type {}", excerpt(operation)) })
}

fn refused(kind: Kind, message: &str, extra: Extra) -> Reply {
    let message = format!("Param check invalid:{message}");
    Reply::failed(kind, Fault { code: codes::INVALID, message }, extra)
}
