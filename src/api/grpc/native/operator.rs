//! `OperatorService`: switches and figures.

use tonic::{Request, Response, Status};

use super::{NativeApi, refuse};
use crate::wire::{
    native::{Shape, duration, operator},
    pb::{self, operator_service_server::OperatorService},
};

#[tonic::async_trait]
impl OperatorService for NativeApi {
    async fn get_switches(
        &self,
        _: Request<pb::GetSwitchesRequest>,
    ) -> Result<Response<pb::GetSwitchesResponse>, Status> {
        let switches = Some(operator::switches(&self.naming.switches()));
        Ok(Response::new(pb::GetSwitchesResponse { switches }))
    }

    async fn update_switches(
        &self,
        request: Request<pb::UpdateSwitchesRequest>,
    ) -> Result<Response<pb::UpdateSwitchesResponse>, Status> {
        for change in operator::changes(request.into_inner()).map_err(refuse(Shape::Flat))? {
            self.naming.turn_switch(change).await.map_err(refuse(Shape::Flat))?;
        }
        let switches = Some(operator::switches(&self.naming.switches()));
        Ok(Response::new(pb::UpdateSwitchesResponse { switches }))
    }

    async fn get_metrics_summary(
        &self,
        _: Request<pb::GetMetricsSummaryRequest>,
    ) -> Result<Response<pb::GetMetricsSummaryResponse>, Status> {
        let figures = self.naming.figures();
        let readiness = self.node.readiness.borrow().clone();
        let reason = readiness.reason();
        let brake = self.node.brake;
        Ok(Response::new(pb::GetMetricsSummaryResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: self.node.roster.name().to_owned(),
            ready: reason.is_none(),
            not_ready_reason: reason.unwrap_or_default().to_owned(),
            uptime: Some(duration(self.node.clock.now().since(crate::clock::Mono::ZERO))),
            namespace_count: self.naming.namespaces().len() as u64,
            service_count: figures.services as u64,
            instance_count: figures.instances as u64,
            lease_count: figures.leases as u64,
            late_lease_count: figures.late as u64,
            subscriber_count: self.subscribers.count() as u64,
            lapsed_total: figures.lapsed,
            expired_total: figures.expired,
            published_total: figures.published,
            write_queue: Some(pb::WriteQueue { depth: figures.queued as u64, capacity: figures.queue_capacity as u64 }),
            eviction_brake: Some(pb::EvictionBrake {
                enabled: brake.enabled,
                engaged: figures.brake_holding,
                threshold: brake.share,
                engagements: figures.brake_engagements,
            }),
            freeze_guard: Some(pb::FreezeGuard { freezes: figures.freezes }),
        }))
    }
}
