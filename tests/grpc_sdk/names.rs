//! Fuzzy watches: which services there are.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    client::{Sdk, java},
    server::Server,
};

fn watch(pattern: &str, received: &[&str], kind: &str, initializing: bool) -> Value {
    json!({"headers": {}, "module": "naming", "namespace": "public", "groupKeyPattern": pattern,
        "receivedGroupKeys": received, "watchType": kind, "initializing": initializing})
}

async fn connect(server: &Server) -> Sdk {
    let mut sdk = Sdk::with(server.grpc, &java()).await;
    assert_eq!(sdk.next().await.0, "SetupAckRequest");
    sdk
}

const ORDERS: &str = "public>>DEFAULT_GROUP>>ord*";

#[tokio::test]
async fn existing_services_come_first_and_then_every_change() {
    let server = Server::start().await;
    let publisher = Sdk::connect(server.grpc).await;
    for name in ["orders", "ordinary", "stock"] {
        publisher.register(name, 1).await;
    }
    let mut sdk = connect(&server).await;
    let (kind, body) = sdk.ask("NamingFuzzyWatchRequest", watch(ORDERS, &[], "WATCH", true)).await;
    assert_eq!((kind.as_str(), &body["errorCode"]), ("NamingFuzzyWatchResponse", &json!(0)));
    let (kind, init) = sdk.next().await;
    assert_eq!((kind.as_str(), &init["syncType"]), ("NamingFuzzyWatchSyncRequest", &json!("FUZZY_WATCH_INIT_NOTIFY")));
    assert_eq!(init["groupKeyPattern"], ORDERS);
    assert_eq!(
        init["contexts"],
        json!([{"serviceKey": "public@@DEFAULT_GROUP@@orders", "changedType": "ADD_SERVICE"},
            {"serviceKey": "public@@DEFAULT_GROUP@@ordinary", "changedType": "ADD_SERVICE"}])
    );
    assert_eq!(sdk.next().await.1["syncType"], "FINISH_FUZZY_WATCH_INIT_NOTIFY");

    publisher.register("ordeal", 1).await;
    publisher.register("stocks", 1).await;
    let (kind, notice) = sdk.next().await;
    assert_eq!(kind, "NamingFuzzyWatchChangeNotifyRequest");
    assert_eq!(
        (&notice["syncType"], &notice["changedType"]),
        (&json!("FUZZY_WATCH_RESOURCE_CHANGED"), &json!("ADD_SERVICE"))
    );
    assert_eq!(notice["serviceKey"], "public@@DEFAULT_GROUP@@ordeal");
    publisher.deregister("ordeal", 1).await;
    let (_, notice) = sdk.next().await;
    assert_eq!(
        (&notice["serviceKey"], &notice["changedType"]),
        (&json!("public@@DEFAULT_GROUP@@ordeal"), &json!("DELETE_SERVICE"))
    );

    // What the client says it knows is compared.
    let known = ["public@@DEFAULT_GROUP@@orders", "public@@DEFAULT_GROUP@@ordeal"];
    sdk.ask("NamingFuzzyWatchRequest", watch(ORDERS, &known, "WATCH", false)).await;
    let (_, diff) = sdk.next().await;
    assert_eq!(diff["syncType"], "FUZZY_WATCH_DIFF_SYNC_NOTIFY");
    assert_eq!(
        diff["contexts"],
        json!([{"serviceKey": "public@@DEFAULT_GROUP@@ordinary", "changedType": "ADD_SERVICE"},
            {"serviceKey": "public@@DEFAULT_GROUP@@ordeal", "changedType": "DELETE_SERVICE"}])
    );
    assert_eq!(sdk.next().await.1["changedType"], "DELETE_SERVICE", "again, for clients that pass over it in a sync");

    sdk.ask("NamingFuzzyWatchRequest", watch(ORDERS, &[], "CANCEL_WATCH", false)).await;
    publisher.register("ordeal", 1).await;
    assert_eq!(sdk.next_within(Duration::from_millis(200)).await, None);
}

#[tokio::test]
async fn the_limits_have_codes_of_their_own() {
    let server = Server::with(&["sdk.max_patterns=2", "sdk.max_pattern_matches=3"]).await;
    let publisher = Sdk::connect(server.grpc).await;
    for n in 0..5 {
        publisher.register(&format!("s{n}"), 1).await;
    }
    let mut sdk = connect(&server).await;
    let (kind, body) = sdk.ask("NamingFuzzyWatchRequest", watch("public>>*>>*", &[], "WATCH", true)).await;
    assert_eq!((kind.as_str(), &body["errorCode"]), ("NamingFuzzyWatchResponse", &json!(50311)));
    assert_eq!(sdk.next().await.1["contexts"].as_array().unwrap().len(), 3);
    assert_eq!(sdk.next().await.1["syncType"], "FINISH_FUZZY_WATCH_INIT_NOTIFY");
    for (pattern, code) in [("public>>a>>*", 0), ("public>>b>>*", 50310), ("public>>a>>*", 0), ("nonsense", 400)] {
        let (kind, body) = sdk.ask("NamingFuzzyWatchRequest", watch(pattern, &[], "WATCH", false)).await;
        assert_eq!((kind.as_str(), &body["errorCode"]), ("NamingFuzzyWatchResponse", &json!(code)), "{pattern}");
    }
    let (_, body) = sdk.ask("NamingFuzzyWatchRequest", watch("public>>a>>*", &[], "LOOK", false)).await;
    assert_eq!(body["errorCode"], 400);
}
