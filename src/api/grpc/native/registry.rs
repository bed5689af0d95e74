//! `RegistryService`: publishers and consumers.

use std::sync::Arc;

use tonic::{Request, Response, Status, Streaming};

use super::{NativeApi, outbox::Outbox, peer, refuse};
use crate::{
    naming::{BeatResult, Registration},
    registry::{
        Instance, ServiceKey,
        overlay::{OverlayChange, Parts},
    },
    wire::{
        native::{
            Shape, duration,
            instance::{self, View},
            page::{self, Page},
            service,
        },
        pb::{self, registry_service_server::RegistryService},
    },
};

/// Most instances in one answer, whatever the client asks for.
const MOST_INSTANCES: usize = 100_000;

impl NativeApi {
    /// What is told of an instance in an answer that is of this moment.
    fn told(&self, protected: bool, instance: &Instance) -> View {
        View { protected, silence: self.naming.silence(instance), overlay_age: self.naming.overlay_age(instance) }
    }

    /// An instance as it is now, in an answer about it alone.
    fn one(&self, service: &ServiceKey, instance: &Instance) -> Option<pb::Instance> {
        let view = self.told(false, instance);
        Some(instance::instance(service, instance, view))
    }
}

/// Who changes an overlay: the way in, and the address if it is known.
fn origin<T>(request: &Request<T>) -> Box<str> {
    let way = if request.remote_addr().is_some() { "grpc" } else { "grpc-web" };
    peer(request).map_or_else(|| way.into(), |peer| format!("{way} {}", peer.ip()).into())
}

#[tonic::async_trait]
impl RegistryService for NativeApi {
    async fn register_instance(
        &self,
        request: Request<pb::RegisterInstanceRequest>,
    ) -> Result<Response<pb::RegisterInstanceResponse>, Status> {
        let pb::RegisterInstanceRequest { key, spec } = request.into_inner();
        let limits = self.naming.limits();
        let (service, key) = instance::new_key(limits, key.as_ref()).map_err(refuse(Shape::Registration))?;
        let (kind, publication) = instance::publication(limits, spec).map_err(refuse(Shape::Registration))?;
        let registration = Registration { service: service.clone(), instance: key, kind, publication };
        let (listed, revision) = self.naming.register(registration).await.map_err(refuse(Shape::Registration))?;
        let instance = self.one(&service, &listed);
        Ok(Response::new(pb::RegisterInstanceResponse { instance, revision }))
    }

    async fn deregister_instance(
        &self,
        request: Request<pb::DeregisterInstanceRequest>,
    ) -> Result<Response<pb::DeregisterInstanceResponse>, Status> {
        let pb::DeregisterInstanceRequest { key, kind } = request.into_inner();
        let (service, target) = instance::key(self.naming.limits(), key.as_ref()).map_err(refuse(Shape::Keyed))?;
        let kind = match instance::kind("kind", kind).map_err(refuse(Shape::Keyed))? {
            Some(kind) => kind,
            None => self.naming.instance(&service, &target).map_err(refuse(Shape::Keyed))?.0.kind(),
        };
        let revision = self.naming.deregister(service, target, kind).await.map_err(refuse(Shape::Keyed))?;
        Ok(Response::new(pb::DeregisterInstanceResponse { revision }))
    }

    async fn update_instance(
        &self,
        request: Request<pb::UpdateInstanceRequest>,
    ) -> Result<Response<pb::UpdateInstanceResponse>, Status> {
        let origin = origin(&request);
        let request = request.into_inner();
        let limits = self.naming.limits();
        let (service, target) = instance::key(limits, request.key.as_ref()).map_err(refuse(Shape::Keyed))?;
        let change = instance::overlay_change(limits, request).map_err(refuse(Shape::Keyed))?;
        let change = OverlayChange { origin, ..change };
        let (listed, revision) =
            self.naming.overlay(service.clone(), target, change).await.map_err(refuse(Shape::Keyed))?;
        let instance = self.one(&service, &listed);
        Ok(Response::new(pb::UpdateInstanceResponse { instance, revision }))
    }

    async fn reset_instance_overlay(
        &self,
        request: Request<pb::ResetInstanceOverlayRequest>,
    ) -> Result<Response<pb::ResetInstanceOverlayResponse>, Status> {
        let origin = origin(&request);
        let key = request.into_inner().key;
        let (service, target) = instance::key(self.naming.limits(), key.as_ref()).map_err(refuse(Shape::Keyed))?;
        let change = OverlayChange { unset: Parts::ALL, origin, ..OverlayChange::default() };
        let (listed, revision) =
            self.naming.overlay(service.clone(), target, change).await.map_err(refuse(Shape::Keyed))?;
        let instance = self.one(&service, &listed);
        Ok(Response::new(pb::ResetInstanceOverlayResponse { instance, revision }))
    }

    async fn beat(&self, request: Request<pb::BeatRequest>) -> Result<Response<pb::BeatResponse>, Status> {
        let key = request.into_inner().key;
        let (service, target) = instance::key(self.naming.limits(), key.as_ref()).map_err(refuse(Shape::Keyed))?;
        let beat = self.naming.beat(service, &target, None).await.map_err(refuse(Shape::Keyed))?;
        let result = match beat.result {
            BeatResult::Renewed(_) | BeatResult::Registered(_) => pb::BeatResult::Renewed,
            BeatResult::Unknown => pb::BeatResult::Unknown,
        };
        let beat_interval = Some(duration(beat.interval));
        Ok(Response::new(pb::BeatResponse { result: result.into(), beat_interval }))
    }

    type StreamBeatsStream = Outbox<pb::StreamBeatsResponse>;

    async fn stream_beats(
        &self,
        request: Request<Streaming<pb::StreamBeatsRequest>>,
    ) -> Result<Response<Self::StreamBeatsStream>, Status> {
        Ok(Response::new(self.start_beats(request.into_inner())))
    }

    async fn get_instance(
        &self,
        request: Request<pb::GetInstanceRequest>,
    ) -> Result<Response<pb::GetInstanceResponse>, Status> {
        let key = request.into_inner().key;
        let (service, target) = instance::key(self.naming.limits(), key.as_ref()).map_err(refuse(Shape::Keyed))?;
        let (found, revision) = self.naming.instance(&service, &target).map_err(refuse(Shape::Keyed))?;
        let instance = self.one(&service, &found);
        Ok(Response::new(pb::GetInstanceResponse { instance, revision }))
    }

    async fn list_instances(
        &self,
        request: Request<pb::ListInstancesRequest>,
    ) -> Result<Response<pb::ListInstancesResponse>, Status> {
        let request = request.into_inner();
        let limits = self.naming.limits();
        let key = service::key(limits, request.key.as_ref()).map_err(refuse(Shape::Keyed))?;
        let most = page::size(request.page_size, MOST_INSTANCES, MOST_INSTANCES).map_err(refuse(Shape::Flat))?;
        let after = page::instance_key(limits, &request.page_token).map_err(refuse(Shape::Flat))?;
        let query = instance::query(limits, &request.clusters, request.healthy_only, request.raw, request.consumer)
            .map_err(refuse(Shape::Flat))?;
        let listing = self.naming.list(&key, &query);
        let all = listing.selected.instances;
        let before = after.map_or(0, |after| all.partition_point(|instance| instance.key() <= after));
        let protected = listing.selected.protected;
        let view = |instance: &Arc<Instance>| {
            if query.raw { self.told(protected, instance) } else { View { protected, ..View::default() } }
        };
        let mut page = Page::new(most);
        let mut last = None;
        let mut next_page_token = String::new();
        for found in all.iter().skip(before) {
            if page.add(instance::instance(&key, found, view(found))).is_err() {
                next_page_token =
                    last.map_or_else(String::new, |last: &Arc<Instance>| page::instance_token(&last.key()));
                break;
            }
            last = Some(found);
        }
        Ok(Response::new(pb::ListInstancesResponse {
            instances: page.into_rows(),
            next_page_token,
            total_size: all.len() as u64,
            revision: listing.snapshot.revision(),
            protected,
        }))
    }

    type WatchServiceStream = Outbox<pb::WatchServiceResponse>;

    async fn watch_service(
        &self,
        request: Request<pb::WatchServiceRequest>,
    ) -> Result<Response<Self::WatchServiceStream>, Status> {
        self.start_watch(request)
    }
}
