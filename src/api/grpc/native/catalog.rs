//! `CatalogService`: services, clusters, namespaces, subscribers.

use tonic::{Request, Response, Status};

use super::{NativeApi, refuse};
use crate::{
    naming::ServiceFilter,
    push::subscriber::{Protocol, Subscriber},
    registry::{self, Namespace, ServiceKey, service::Service},
    wire::{
        native::{
            DecodeError, Shape, duration, namespace,
            page::{self, Page},
            service,
        },
        pb::{self, catalog_service_server::CatalogService},
    },
};

/// Rows of one answer if the client does not say.
const ROWS: usize = 1_000;
/// Most rows of one answer, whatever the client asks for.
const MOST_ROWS: usize = 10_000;

impl NativeApi {
    /// A service as it is now.
    fn shown(&self, key: &ServiceKey) -> Result<Option<pb::Service>, Status> {
        let snapshot = self.naming.service(key).map_err(refuse(Shape::Settings))?;
        Ok(Some(service::service(key, &snapshot)))
    }

    fn service_key(&self, key: Option<&pb::ServiceKey>) -> Result<ServiceKey, Status> {
        service::key(self.naming.limits(), key).map_err(refuse(Shape::Settings))
    }

    fn namespace_id(&self, shape: Shape, id: &str) -> Result<Namespace, Status> {
        self.naming.limits().namespace(id).map_err(refuse(shape))
    }

    /// A namespace as it is now; NOT_FOUND if it is neither listed nor has services.
    fn namespace_now(&self, id: &Namespace) -> Result<pb::Namespace, Status> {
        let found = self.naming.namespaces().into_iter().find(|(listed, ..)| listed == id);
        match found {
            Some((id, info, services)) => Ok(namespace::message(&id, info, services)),
            None => Err(refuse(Shape::Namespace)(registry::Error::NamespaceUnknown(id.clone()))),
        }
    }

    fn subscriber(&self, subscriber: &Subscriber) -> pb::Subscriber {
        let protocol = match subscriber.protocol {
            Protocol::Watch => pb::SubscriberProtocol::Watch,
            Protocol::Udp => pb::SubscriberProtocol::Udp,
            Protocol::Sdk => pb::SubscriberProtocol::Sdk,
        };
        pb::Subscriber {
            address: subscriber.address.clone(),
            agent: subscriber.agent.clone(),
            app: subscriber.app.clone(),
            clusters: subscriber.clusters.clone(),
            protocol: protocol.into(),
            age: Some(duration(self.node.clock.now().since(subscriber.since))),
        }
    }
}

#[tonic::async_trait]
impl CatalogService for NativeApi {
    async fn create_service(
        &self,
        request: Request<pb::CreateServiceRequest>,
    ) -> Result<Response<pb::CreateServiceResponse>, Status> {
        let pb::CreateServiceRequest { key, settings } = request.into_inner();
        let key = self.service_key(key.as_ref())?;
        let settings = service::settings(self.naming.limits(), settings).map_err(refuse(Shape::Settings))?;
        self.naming.create_service(key.clone(), settings).await.map_err(refuse(Shape::Settings))?;
        Ok(Response::new(pb::CreateServiceResponse { service: self.shown(&key)? }))
    }

    async fn get_service(
        &self,
        request: Request<pb::GetServiceRequest>,
    ) -> Result<Response<pb::GetServiceResponse>, Status> {
        let key = self.service_key(request.into_inner().key.as_ref())?;
        Ok(Response::new(pb::GetServiceResponse { service: self.shown(&key)? }))
    }

    async fn update_service(
        &self,
        request: Request<pb::UpdateServiceRequest>,
    ) -> Result<Response<pb::UpdateServiceResponse>, Status> {
        let request = request.into_inner();
        let key = self.service_key(request.key.as_ref())?;
        let change = service::change(self.naming.limits(), request).map_err(refuse(Shape::Settings))?;
        self.naming.update_service(key.clone(), change).await.map_err(refuse(Shape::Settings))?;
        Ok(Response::new(pb::UpdateServiceResponse { service: self.shown(&key)? }))
    }

    async fn delete_service(
        &self,
        request: Request<pb::DeleteServiceRequest>,
    ) -> Result<Response<pb::DeleteServiceResponse>, Status> {
        let key = self.service_key(request.into_inner().key.as_ref())?;
        self.naming.delete_service(key).await.map_err(refuse(Shape::Settings))?;
        Ok(Response::new(pb::DeleteServiceResponse {}))
    }

    async fn list_services(
        &self,
        request: Request<pb::ListServicesRequest>,
    ) -> Result<Response<pb::ListServicesResponse>, Status> {
        let request = request.into_inner();
        let limits = self.naming.limits();
        let id = self.namespace_id(Shape::Flat, &request.namespace)?;
        let group = if request.group.is_empty() { None } else { Some(limits.group(&request.group)) };
        let group = group.transpose().map_err(refuse(Shape::Flat))?;
        let most = page::size(request.page_size, ROWS, MOST_ROWS).map_err(refuse(Shape::Flat))?;
        let after = page::service_key(limits, id.as_str(), &request.page_token).map_err(refuse(Shape::Flat))?;
        let test = |service: &Service| {
            service.key().name.as_str().contains(&request.name_contains)
                && !(request.non_empty_only && service.snapshot().instances().is_empty())
        };
        let filters = request.non_empty_only || !request.name_contains.is_empty();
        let filter =
            ServiceFilter { namespace: &id, group: group.as_ref(), test: if filters { Some(&test) } else { None } };
        let mut page = Page::new(most);
        let mut last: Option<ServiceKey> = None;
        let mut next_page_token = String::new();
        let total = self.naming.services_after(&filter, after, |found| {
            let full = page.add(service::summary(found.key(), &found.snapshot())).is_err();
            if full {
                next_page_token = last.as_ref().map_or_else(String::new, page::service_token);
            } else {
                last = Some(found.key().clone());
            }
            full
        });
        Ok(Response::new(pb::ListServicesResponse {
            services: page.into_rows(),
            next_page_token,
            total_size: total as u64,
        }))
    }

    async fn update_cluster(
        &self,
        request: Request<pb::UpdateClusterRequest>,
    ) -> Result<Response<pb::UpdateClusterResponse>, Status> {
        let request = request.into_inner();
        let limits = self.naming.limits();
        let key = self.service_key(request.key.as_ref())?;
        let cluster = limits.cluster(&request.cluster).map_err(refuse(Shape::Settings))?.unwrap_or_default();
        let present = self.naming.service(&key).map_err(refuse(Shape::Settings))?.cluster(&cluster);
        let settings = service::cluster_change(limits, present, request).map_err(refuse(Shape::Settings))?;
        let shown = service::cluster_message(cluster.as_str(), &settings);
        self.naming.set_cluster(key, cluster, settings).await.map_err(refuse(Shape::Settings))?;
        Ok(Response::new(pb::UpdateClusterResponse { cluster: Some(shown) }))
    }

    async fn list_subscribers(
        &self,
        request: Request<pb::ListSubscribersRequest>,
    ) -> Result<Response<pb::ListSubscribersResponse>, Status> {
        let request = request.into_inner();
        let key = self.service_key(request.key.as_ref())?;
        let most = page::size(request.page_size, ROWS, MOST_ROWS).map_err(refuse(Shape::Flat))?;
        let after = page::subscriber(&request.page_token).map_err(refuse(Shape::Flat))?;
        let all = self.subscribers.of(&key);
        let before =
            after.map_or(0, |after| all.partition_point(|(number, found)| (found.address.as_str(), *number) <= after));
        let mut page = Page::new(most);
        let mut last = None;
        let mut next_page_token = String::new();
        for (number, found) in all.iter().skip(before) {
            if page.add(self.subscriber(found)).is_err() {
                next_page_token = last.unwrap_or_default();
                break;
            }
            last = Some(page::subscriber_token(&found.address, *number));
        }
        Ok(Response::new(pb::ListSubscribersResponse {
            subscribers: page.into_rows(),
            next_page_token,
            total_size: all.len() as u64,
        }))
    }

    async fn create_namespace(
        &self,
        request: Request<pb::CreateNamespaceRequest>,
    ) -> Result<Response<pb::CreateNamespaceResponse>, Status> {
        let mut sent = named(request.into_inner().namespace)?;
        if sent.id.trim().is_empty() {
            sent.id = uuid::Uuid::new_v4().to_string();
        }
        let id = self.namespace_id(Shape::Namespace, &sent.id)?;
        let info = namespace::info(&id, sent).map_err(refuse(Shape::Flat))?;
        self.naming.create_namespace(id.clone(), info).await.map_err(refuse(Shape::Namespace))?;
        Ok(Response::new(pb::CreateNamespaceResponse { namespace: Some(self.namespace_now(&id)?) }))
    }

    async fn get_namespace(
        &self,
        request: Request<pb::GetNamespaceRequest>,
    ) -> Result<Response<pb::GetNamespaceResponse>, Status> {
        let id = self.namespace_id(Shape::Id, &request.into_inner().id)?;
        Ok(Response::new(pb::GetNamespaceResponse { namespace: Some(self.namespace_now(&id)?) }))
    }

    async fn update_namespace(
        &self,
        request: Request<pb::UpdateNamespaceRequest>,
    ) -> Result<Response<pb::UpdateNamespaceResponse>, Status> {
        let pb::UpdateNamespaceRequest { namespace: sent, update_mask } = request.into_inner();
        let sent = named(sent)?;
        let id = self.namespace_id(Shape::Namespace, &sent.id)?;
        let now = self.namespace_now(&id)?;
        let present = registry::NamespaceInfo { name: now.name, description: now.description };
        let info = namespace::change(&id, present, sent, update_mask.as_ref()).map_err(refuse(Shape::Flat))?;
        self.naming.update_namespace(id.clone(), info).await.map_err(refuse(Shape::Namespace))?;
        Ok(Response::new(pb::UpdateNamespaceResponse { namespace: Some(self.namespace_now(&id)?) }))
    }

    async fn delete_namespace(
        &self,
        request: Request<pb::DeleteNamespaceRequest>,
    ) -> Result<Response<pb::DeleteNamespaceResponse>, Status> {
        let id = self.namespace_id(Shape::Id, &request.into_inner().id)?;
        self.naming.delete_namespace(id).await.map_err(refuse(Shape::Id))?;
        Ok(Response::new(pb::DeleteNamespaceResponse {}))
    }

    async fn list_namespaces(
        &self,
        _: Request<pb::ListNamespacesRequest>,
    ) -> Result<Response<pb::ListNamespacesResponse>, Status> {
        let all = self.naming.namespaces().into_iter();
        let namespaces = all.map(|(id, info, services)| namespace::message(&id, info, services)).collect();
        Ok(Response::new(pb::ListNamespacesResponse { namespaces }))
    }
}

fn named(namespace: Option<pb::Namespace>) -> Result<pb::Namespace, Status> {
    namespace.ok_or_else(|| refuse(Shape::Flat)(DecodeError::Missing { field: "namespace" }))
}
