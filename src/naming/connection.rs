//! Publishers that are connections: what they publish is listed exactly as long as they are open.

use super::{Error, Naming};
use crate::registry::{
    self, Command, InstanceKey, Publication, ServiceCommand, ServiceKey, Target, heartbeat::Periods,
    instance::ConnectionId,
};

impl Naming {
    /// A connection begins. Only after this has returned may it publish.
    ///
    /// # Errors
    /// Unavailable if the registry has stopped.
    pub async fn open_connection(&self, connection: ConnectionId) -> Result<(), Error> {
        Ok(self.registry.apply_surely(Command::Open(connection)).await.map(|_| ())?)
    }

    /// A connection has ended; what it alone published is gone when this returns. Never refused for want of a place in
    /// the queue.
    ///
    /// On a node that leaves its cluster connections end because it sends them away: what they published stays listed,
    /// there and at the others, until its publisher has come back elsewhere or the grace is over.
    ///
    /// # Errors
    /// Unavailable if the registry has stopped.
    pub async fn close_connection(&self, connection: ConnectionId) -> Result<(), Error> {
        if self.is_leaving() {
            return Ok(());
        }
        Ok(self.registry.apply_surely(Command::Close(connection)).await.map(|_| ())?)
    }

    /// A connection publishes exactly these instances in a service, in place of all that it published there before. All
    /// are checked before anything is done. When this returns, readers find them.
    ///
    /// # Errors
    /// [`Error::Period`] if the reserved metadata of one asks for periods that cannot be kept; a kind conflict if the
    /// service holds persistent instances; connection gone; overload.
    pub async fn publish(
        &self,
        connection: ConnectionId,
        service: ServiceKey,
        instances: Vec<(InstanceKey, Publication)>,
    ) -> Result<(), Error> {
        for (_, publication) in &instances {
            Periods::of(&publication.metadata)?;
        }
        self.change(service, ServiceCommand::Publish(connection, instances)).await.map(|_| ())
    }

    /// A connection no longer publishes the instance that `target` means; if it publishes a single one in the service,
    /// that one, whatever is meant. Returns whether there was one.
    ///
    /// # Errors
    /// Ambiguous if the target names no cluster and the connection publishes it in several; connection gone; overload.
    pub async fn withdraw(&self, connection: ConnectionId, service: ServiceKey, target: Target) -> Result<bool, Error> {
        match self.change(service, ServiceCommand::Withdraw(connection, target)).await {
            Ok(_) => Ok(true),
            Err(Error::Registry(registry::Error::InstanceUnknown { .. } | registry::Error::ServiceUnknown(_))) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::{
        clock::Clock,
        registry::{ClusterName, Limits, RegistryHandle, Settings, heartbeat},
        shutdown::Shutdown,
    };

    fn naming() -> Naming {
        let registry = RegistryHandle::start(Settings::default(), Limits::default(), Clock::start(), &Shutdown::new());
        Naming::new(registry, Limits::default())
    }

    fn service() -> ServiceKey {
        Limits::default().service_key("", "", "s").unwrap()
    }

    fn instance(port: i64) -> (InstanceKey, Publication) {
        let endpoint = Limits::default().endpoint("10.0.0.1", port).unwrap();
        (InstanceKey { endpoint, cluster: ClusterName::default() }, Publication::default())
    }

    fn ports(naming: &Naming) -> Vec<u16> {
        naming.snapshot(&service()).instances().iter().map(|i| i.port()).collect()
    }

    fn connection(number: u64) -> ConnectionId {
        ConnectionId::new(NonZeroU64::new(number).unwrap())
    }

    #[tokio::test]
    async fn a_batch_is_all_or_nothing_and_ends_with_its_connection() {
        let naming = naming();
        naming.open_connection(connection(1)).await.unwrap();
        naming.publish(connection(1), service(), vec![instance(1), instance(2)]).await.unwrap();
        let (key, _) = instance(3);
        let metadata = Limits::default().metadata([(heartbeat::INTERVAL_KEY, "x")]).unwrap();
        let broken = (key, Publication { metadata, ..Publication::default() });
        assert!(naming.publish(connection(1), service(), vec![instance(4), broken]).await.is_err());
        assert_eq!(ports(&naming), [1, 2]);
        naming.close_connection(connection(1)).await.unwrap();
        assert_eq!(ports(&naming), [0_u16; 0]);
        let gone = naming.publish(connection(1), service(), vec![instance(1)]).await;
        assert_eq!(gone, Err(Error::Registry(registry::Error::ConnectionGone)));
    }

    #[tokio::test]
    async fn one_of_a_batch_is_withdrawn_by_name_and_a_single_one_by_any() {
        let naming = naming();
        naming.open_connection(connection(1)).await.unwrap();
        naming.publish(connection(1), service(), (1..=3).map(instance).collect()).await.unwrap();
        let target = |port| Target { endpoint: instance(port).0.endpoint, cluster: None };
        assert!(naming.withdraw(connection(1), service(), target(2)).await.unwrap());
        assert!(!naming.withdraw(connection(1), service(), target(9)).await.unwrap());
        assert_eq!(ports(&naming), [1, 3]);
        assert!(naming.withdraw(connection(1), service(), target(1)).await.unwrap());
        assert!(naming.withdraw(connection(1), service(), target(9)).await.unwrap());
        assert!(!naming.withdraw(connection(1), service(), target(9)).await.unwrap());
        assert_eq!(ports(&naming), [0_u16; 0]);
    }
}
