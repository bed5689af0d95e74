//! What operators change. In a cluster it is refused: a change on one member only would be a success that is not one.

use std::sync::Arc;

use super::{Error, Naming, publish::first};
use crate::registry::{
    ClusterName, Command, Instance, Namespace, NamespaceCommand, NamespaceInfo, Selection, ServiceChange,
    ServiceCommand, ServiceKey, Target,
    overlay::OverlayChange,
    service::{ClusterSettings, ServiceSettings},
    switches::SwitchChange,
};

impl Naming {
    /// Changes what an operator laid over an instance. Returns it as listed from now on, and the revision of its service.
    ///
    /// # Errors
    /// Not found if the service or the instance does not exist; ambiguous if the target fits several; the publisher's and the
    /// operator's metadata together are too much, or ask for periods that cannot be kept.
    pub async fn overlay(
        &self,
        service: ServiceKey,
        target: Target,
        change: OverlayChange,
    ) -> Result<(Arc<Instance>, u64), Error> {
        self.alone("a change of an instance")?;
        first(self.change(service, ServiceCommand::Overlay(target, change)).await?)
    }

    /// Changes what an operator laid over several instances of a service; those that do not exist are passed over.
    /// Returns those that there were.
    ///
    /// # Errors
    /// Not found if the service does not exist; too much metadata.
    pub async fn overlay_many(
        &self,
        service: ServiceKey,
        selection: Selection,
        change: OverlayChange,
    ) -> Result<Vec<Arc<Instance>>, Error> {
        self.alone("a change of instances")?;
        Ok(self.change(service, ServiceCommand::OverlayMany(selection, change)).await?.instances.into_vec())
    }

    /// Sets the health of an instance whose cluster has the checker `NONE`. Returns the revision of its service.
    ///
    /// # Errors
    /// Failed precondition if the cluster has another checker; not found if there is no such service or instance.
    pub async fn set_health(&self, service: ServiceKey, target: Target, healthy: bool) -> Result<u64, Error> {
        self.alone("setting the health of an instance")?;
        Ok(self.change(service, ServiceCommand::SetHealth(target, healthy)).await?.revision)
    }

    /// Creates a service, which then stays until it is deleted. Returns its revision.
    ///
    /// # Errors
    /// Already exists, through instances or explicitly.
    pub async fn create_service(&self, service: ServiceKey, settings: ServiceSettings) -> Result<u64, Error> {
        self.alone("creating a service")?;
        Ok(self.change(service, ServiceCommand::Create(settings)).await?.revision)
    }

    /// Changes the settings of a service. Returns its revision.
    ///
    /// # Errors
    /// Not found if it does not exist.
    pub async fn update_service(&self, service: ServiceKey, change: ServiceChange) -> Result<u64, Error> {
        self.alone("a change of a service")?;
        Ok(self.change(service, ServiceCommand::Update(change)).await?.revision)
    }

    /// Removes a service without instances.
    ///
    /// # Errors
    /// Not found if it does not exist; failed precondition if it has instances.
    pub async fn delete_service(&self, service: ServiceKey) -> Result<(), Error> {
        self.alone("deleting a service")?;
        self.change(service, ServiceCommand::Delete).await.map(|_| ())
    }

    /// Sets a cluster of a service up. Returns the revision of the service.
    ///
    /// # Errors
    /// Not found if the service does not exist.
    pub async fn set_cluster(
        &self,
        service: ServiceKey,
        cluster: ClusterName,
        settings: ClusterSettings,
    ) -> Result<u64, Error> {
        self.alone("a change of a cluster")?;
        Ok(self.change(service, ServiceCommand::SetCluster(cluster, settings)).await?.revision)
    }

    /// Adds a namespace to the list. Services can live in one that is not on it.
    ///
    /// # Errors
    /// Already exists; invalid argument for `public`.
    pub async fn create_namespace(&self, namespace: Namespace, info: NamespaceInfo) -> Result<(), Error> {
        self.change_namespace(namespace, NamespaceCommand::Create(info)).await
    }

    /// Changes what is said of a namespace.
    ///
    /// # Errors
    /// Not found if it is not on the list; invalid argument for `public`.
    pub async fn update_namespace(&self, namespace: Namespace, info: NamespaceInfo) -> Result<(), Error> {
        self.change_namespace(namespace, NamespaceCommand::Update(info)).await
    }

    /// Takes a namespace off the list. Services in it are not touched.
    ///
    /// # Errors
    /// Not found if it is not on the list; invalid argument for `public`.
    pub async fn delete_namespace(&self, namespace: Namespace) -> Result<(), Error> {
        self.change_namespace(namespace, NamespaceCommand::Delete).await
    }

    /// Turns a switch.
    ///
    /// # Errors
    /// Overload.
    pub async fn turn_switch(&self, change: SwitchChange) -> Result<(), Error> {
        self.alone("turning a switch")?;
        Ok(self.registry.apply(Command::Switch(change)).await.map(|_| ())?)
    }

    async fn change_namespace(&self, namespace: Namespace, command: NamespaceCommand) -> Result<(), Error> {
        self.alone("a change of the list of namespaces")?;
        Ok(self.registry.apply(Command::Namespace(namespace, command)).await.map(|_| ())?)
    }

    /// Whether this node has nobody with whom it would have to agree on `what`.
    fn alone(&self, what: &'static str) -> Result<(), Error> {
        match &self.forwarder {
            None => Ok(()),
            Some(_) => Err(Error::ClusterWide { what }),
        }
    }
}
