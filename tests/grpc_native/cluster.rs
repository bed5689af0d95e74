//! The cluster, on a node that is alone: it is its only member.

use nomina::wire::pb::{self, cluster_service_client::ClusterServiceClient};
use tonic::Code;

use crate::{Native, assert_refused, instance};

#[tokio::test]
async fn a_node_that_is_alone_is_its_only_member() {
    let mut native = Native::start().await;
    native.register(instance("s", 1), Default::default()).await;
    let mut cluster = ClusterServiceClient::new(native.channel.clone());
    let answer = cluster.get_cluster(pb::GetClusterRequest {}).await.unwrap().into_inner();
    let name = native.node.http().to_string();
    let own = pb::Member {
        name: name.clone(),
        own: true,
        standing: pb::MemberStanding::Up.into(),
        silence: Some(prost_types::Duration::default()),
        stage: pb::MemberStage::Ready.into(),
        eligible: true,
        ownership_share: 1.0,
        copy: Some(pb::MemberCopy { record_count: 1, synced: true, agreement: None }),
        ..Default::default()
    };
    let alone = pb::GetClusterResponse {
        node: name,
        stage: pb::MemberStage::Ready.into(),
        ready: true,
        listed: true,
        majority: true,
        members: vec![own],
        ..Default::default()
    };
    assert_eq!(answer, alone);
}

#[tokio::test]
async fn a_node_that_is_alone_joins_nobody() {
    let native = Native::start().await;
    let mut cluster = ClusterServiceClient::new(native.channel.clone());
    assert_refused(cluster.end_join(pb::EndJoinRequest {}).await, Code::FailedPrecondition, "");
}
