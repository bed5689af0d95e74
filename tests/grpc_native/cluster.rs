//! The cluster: a node that is alone is its only member, and one that joins says for whom it waits.

use std::{net::TcpListener, sync::Arc};

use nomina::wire::pb::{
    self, catalog_service_client::CatalogServiceClient, cluster_service_client::ClusterServiceClient,
};
use tempfile::TempDir;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    Native, assert_refused, connect, instance,
    support::{
        server::Server,
        wait::{SOON, wait_until},
    },
};

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

/// The other member takes connections and never says a word, so that it is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_says_for_whom_it_waits_until_an_operator_ends_it() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    // Where the peer port of a member is looked for.
    let other = format!("127.0.0.1:{}", silent.local_addr().unwrap().port() - 1_001);
    let me = "127.0.0.1:9";
    let node = Server::begin(
        Arc::new(TempDir::new().unwrap()),
        &[
            "server.peer=127.0.0.1:0",
            &format!("cluster.advertise={me}"),
            &format!("cluster.members=[\"{me}\", \"{other}\"]"),
            "cluster.secret=a secret of at least 32 bytes, and not a good one",
        ],
    );
    let reason = format!("loading snapshot from {other}");
    let readiness = || {
        let answer = node.call("GET", "/nacos/v1/console/health/readiness").send();
        (answer.status, answer.text().to_owned())
    };
    wait_until(SOON, readiness, |(status, text)| *status == 500 && text.contains(&reason));
    let list = node.get("/instance/list").param("serviceName", "s").send();
    assert_eq!(list.status, 503);
    assert!(list.text().contains(&reason), "{}", list.text());
    assert_eq!(node.call("GET", "/nacos/serverlist").send().status, 503);
    let own = node.call("GET", "/nacos/v1/core/cluster/self").send().json();
    assert_eq!((&own["data"]["address"], &own["data"]["state"]), (&me.into(), &"STARTING".into()));
    let metrics = node.call("GET", "/metrics").send();
    assert!(metrics.text().contains("nomina_cluster_stage{stage=\"joining\"} 1"), "{}", metrics.text());

    let channel = connect(&node).await;
    let mut catalog = CatalogServiceClient::new(channel.clone());
    let refused = catalog.list_namespaces(pb::ListNamespacesRequest::default()).await;
    let status = assert_refused(refused, Code::Unavailable, "");
    assert!(status.message().contains(&reason), "{status:?}");
    let mut health = HealthClient::new(channel.clone());
    let mut serving = async || {
        let answer = health.check(HealthCheckRequest::default()).await.unwrap();
        answer.into_inner().status()
    };
    assert_eq!(serving().await, ServingStatus::NotServing);

    let mut cluster = ClusterServiceClient::new(channel);
    let seen = cluster.get_cluster(pb::GetClusterRequest {}).await.unwrap().into_inner();
    assert_eq!((seen.node.as_str(), seen.clustered, seen.listed, seen.ready), (me, true, true, false));
    assert_eq!((seen.stage(), &seen.waiting_for), (pb::MemberStage::Joining, &vec![other.clone()]));
    assert_eq!(seen.not_ready_reason, reason);
    let peer = seen.members.iter().find(|member| member.name == other).unwrap();
    assert!(peer.reason.starts_with("it has not been met for"), "{peer:?}");

    let ended = cluster.end_join(pb::EndJoinRequest {}).await.unwrap().into_inner();
    assert_eq!(ended.missing, [other]);
    wait_until(SOON, readiness, |(status, _)| *status == 200);
    assert_eq!(serving().await, ServingStatus::Serving);
    catalog.list_namespaces(pb::ListNamespacesRequest::default()).await.unwrap();
    assert_eq!(node.call("GET", "/nacos/serverlist").send().text(), format!("{me}\r\n"));
    let again = cluster.end_join(pb::EndJoinRequest {}).await.unwrap().into_inner();
    assert_eq!(again.missing, Vec::<String>::new());
}
