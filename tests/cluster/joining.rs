//! A node that starts empty beside one that holds much.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    client::{Sdk, ask, payload},
    publishers::Caller,
    support::{
        cluster::{Cluster, IN_TIME, readiness},
        server::Server,
        wait::{SOON, wait_until},
    },
};

const SERVICES: usize = 400;

/// Row 47: what the others hold comes in parts, and the node serves when it has all of it.
#[test]
fn a_node_is_ready_only_with_everything_and_then_equal() {
    let mut cluster = Cluster::planned(2, &[]);
    cluster.restart(0);
    cluster.await_ready(0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // Each program publishes 5,000.
    let programs: Vec<_> = (1..=4).map(|third| runtime.block_on(crowd(cluster.node(0), third))).collect();
    let mut caller = Caller::patient(&[cluster.node(0).http()]);
    for number in 0..SERVICES {
        let call = cluster.node(0).post("/instance").params(&[
            ("serviceName", &format!("small-{number}")),
            ("ip", "10.0.0.1"),
            ("port", "80"),
            ("metadata", "preserved.heart.beat.timeout=300000,preserved.ip.delete.timeout=600000"),
        ]);
        caller.at(cluster.node(0).http(), &call).unwrap().ok();
    }
    assert_eq!(count(cluster.node(0)), (20_000, SERVICES as u64 + 1));

    let began = Instant::now();
    cluster.restart(1);
    let http = cluster.node(1).http();
    let mut waited = 0;
    let reason = |_: &()| readiness(http);
    let mut before = reason(&());
    while before.0 != 200 {
        waited += 1;
        assert!(began.elapsed() < IN_TIME, "{before:?}");
        before = reason(&());
    }
    assert_eq!(count(cluster.node(1)), (20_000, SERVICES as u64 + 1), "all is there at the first moment");
    eprintln!("ready with 20,000 and {SERVICES} services after {:?}, {waited} looks before", began.elapsed());
    cluster.await_equal(SOON, &["crowd", "small-0", "small-399"]);

    // The list of 20,000 in one message, and other services beside it.
    let mut subscriber = runtime.block_on(Sdk::connect(cluster.node(1).grpc()));
    let list = runtime.block_on(subscriber.subscribe("crowd", ""));
    assert_eq!(list["serviceInfo"]["hosts"].as_array().unwrap().len(), 20_000);
    runtime.block_on(subscriber.subscribe("small-0", ""));
    cluster.node(0).register("small-0", "10.0.0.1", 81, &[]);
    runtime.block_on(subscriber.until_ports(&[80, 81]));
    drop(programs);
    let left = || cluster.running().map(|node| node.ports("crowd", &[]).len()).collect::<Vec<_>>();
    wait_until(IN_TIME, left, |left| left.iter().all(|left| *left == 0));
}

/// How many instances the crowd has, and how many services there are.
fn count(node: &Server) -> (usize, u64) {
    let services = node.get("/service/list").params(&[("pageNo", "1"), ("pageSize", "1")]).send().json();
    (node.hosts("crowd", &[]).len(), services["count"].as_u64().unwrap())
}

async fn crowd(node: &Server, part: u64) -> Sdk {
    let sdk = Sdk::connect(node.grpc()).await;
    let metadata = json!({"zone": "z".repeat(290)});
    let instance = |port: u64| -> Value {
        json!({"ip": format!("10.0.1.{part}"), "port": port, "weight": 1.0, "healthy": true, "enabled": true,
            "ephemeral": true, "clusterName": "DEFAULT", "metadata": metadata})
    };
    let instances: Vec<_> = (1..=5_000).map(instance).collect();
    let body = json!({"namespace": "public", "serviceName": "crowd", "groupName": "DEFAULT_GROUP",
        "type": "batchRegisterInstance", "instances": instances});
    let answer =
        tokio::time::timeout(Duration::from_secs(30), ask(&sdk.channel, payload("BatchInstanceRequest", &body)));
    let (_, body) = answer.await.unwrap().unwrap();
    assert_eq!(body["errorCode"], 0, "{body}");
    sdk
}
