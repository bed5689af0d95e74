//! `ClusterService`: how the members stand.

use tonic::{Request, Response, Status};

use super::NativeApi;
use crate::{
    api::reply,
    naming::{Agreement, ClusterView, CopyView, LinkView, MemberView, OrphanView, Stage, Standing},
    wire::{
        native::duration,
        pb::{self, cluster_service_server::ClusterService},
    },
};

#[tonic::async_trait]
impl ClusterService for NativeApi {
    async fn get_cluster(&self, _: Request<pb::GetClusterRequest>) -> Result<Response<pb::GetClusterResponse>, Status> {
        let readiness = self.node.readiness.borrow().clone();
        Ok(Response::new(cluster(self.node.roster.view(), readiness.reason())))
    }

    async fn end_join(&self, _: Request<pb::EndJoinRequest>) -> Result<Response<pb::EndJoinResponse>, Status> {
        let missing = self.node.roster.end_join().map_err(|alone| reply::status(&alone))?;
        Ok(Response::new(pb::EndJoinResponse { missing }))
    }
}

fn cluster(view: ClusterView, reason: Option<&str>) -> pb::GetClusterResponse {
    pb::GetClusterResponse {
        node: view.name,
        clustered: view.clustered,
        epoch: view.epoch,
        stage: stage(view.stage).into(),
        ready: reason.is_none(),
        not_ready_reason: reason.unwrap_or_default().to_owned(),
        waiting_for: view.waiting_for,
        listed: view.listed,
        majority: view.majority,
        members: view.members.into_iter().map(member).collect(),
        orphans: view.orphans.into_iter().map(orphan).collect(),
        taken_over_total: view.moved.taken_over,
        handed_over_total: view.moved.handed_over,
        forgotten_total: view.moved.forgotten,
    }
}

fn member(member: MemberView) -> pb::Member {
    let standing = match member.standing {
        Standing::Up => pb::MemberStanding::Up,
        Standing::Suspect => pb::MemberStanding::Suspect,
        Standing::Unreachable => pb::MemberStanding::Unreachable,
        Standing::Dead => pb::MemberStanding::Dead,
        Standing::Departed => pb::MemberStanding::Departed,
    };
    pb::Member {
        name: member.name,
        own: member.own,
        peer_address: member.address.map(|address| address.to_string()).unwrap_or_default(),
        standing: standing.into(),
        reason: member.reason,
        silence: Some(duration(member.silence)),
        stage: stage(member.stage).into(),
        epoch: member.epoch.unwrap_or_default(),
        eligible: member.eligible,
        ownership_share: member.share,
        link: member.link.map(link),
        copy: Some(copy(member.copy)),
    }
}

const fn stage(stage: Stage) -> pb::MemberStage {
    match stage {
        Stage::Joining => pb::MemberStage::Joining,
        Stage::Ready => pb::MemberStage::Ready,
        Stage::Draining => pb::MemberStage::Draining,
    }
}

fn link(link: LinkView) -> pb::MemberLink {
    pb::MemberLink {
        up_for: link.up_for.map(duration),
        outbox_length: link.outbox as u64,
        lag: link.lag.map(duration),
        acknowledged_batches_total: link.batches,
        agreement: link.agreement.map(agreement),
    }
}

fn copy(copy: CopyView) -> pb::MemberCopy {
    pb::MemberCopy { record_count: copy.records, synced: copy.synced, agreement: copy.agreement.map(agreement) }
}

fn agreement(agreement: Agreement) -> pb::Agreement {
    pb::Agreement { equal: agreement.equal, ago: Some(duration(agreement.ago)) }
}

fn orphan(orphan: OrphanView) -> pb::Orphan {
    pb::Orphan {
        member: orphan.member,
        epoch: orphan.epoch,
        record_count: orphan.records,
        remaining: Some(duration(orphan.remaining)),
    }
}
