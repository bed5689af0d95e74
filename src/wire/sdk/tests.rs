use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Value, json};

use super::*;
use crate::registry::{Limits, Snapshot, select::Query};

fn body(message: Message) -> (String, Value) {
    let whole = message.framed().concat();
    let payload = pb::Payload::decode(&whole[UNARY_PREFIX..]).unwrap();
    let value: Value = serde_json::from_slice(&payload.body.unwrap().value).unwrap();
    assert_no_null(&value);
    (payload.metadata.unwrap().r#type, value)
}

fn assert_no_null(value: &Value) {
    match value {
        Value::Null => panic!("a null was written"),
        Value::Array(items) => items.iter().for_each(assert_no_null),
        Value::Object(fields) => fields.values().for_each(assert_no_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn info() -> ServiceInfo {
    let service = Limits::default().service_key("", "", "orders").unwrap();
    let fragment = fragment(&service, &Snapshot::default(), &Query::default());
    ServiceInfo { clusters: "a,b".to_owned(), last_ref_time: 7, cache_millis: 10_000, fragment }
}

#[test]
fn every_request_of_the_server_has_what_sdks_need() {
    let sync_of = |contexts| Sync {
        sync_type: SyncType::Init,
        pattern: "public>>g>>*".to_owned(),
        contexts,
        total: 1,
        current: 1,
    };
    for message in [
        client_detection(1),
        connect_reset(2, "1_10.0.0.1_5"),
        notify_subscriber(3, info()),
        sync(4, &sync_of(vec![("public@@g@@s".to_owned(), Change::Added)])),
        change_notice(5, "public@@g@@s", Change::Deleted),
    ] {
        let (name, value) = body(message);
        assert!(value["requestId"].is_string(), "{name}");
        assert_eq!(value["headers"], json!({}), "{name}");
        assert!(value["module"].is_string(), "{name}");
    }
    let (name, ack) = body(setup_ack());
    assert_eq!(name, "SetupAckRequest");
    assert!(ack["abilityTable"]["fuzzyWatch"].as_bool().unwrap());
}

#[test]
fn every_answer_has_its_three_results() {
    let fault = || Fault { code: error_codes::INVALID, message: "no".to_owned() };
    for kind in Kind::ALL {
        for reply in
            [Reply::ok(kind, Extra::None), Reply::failed(kind, fault(), Extra::Service(Some(Box::new(info()))))]
        {
            let code = reply.code();
            let (name, value) = body(reply.into_message("9"));
            assert_eq!(name, kind.response());
            assert_eq!(value["errorCode"], code);
            assert_eq!(value["success"], code == 0);
            assert_eq!(value["resultCode"], if code == 0 { 200 } else { 500 });
            assert_eq!(value["requestId"], "9");
        }
    }
    let (name, value) = body(Reply::refused(fault()).into_message(""));
    assert_eq!(name, "ErrorResponse");
    assert_eq!(value, json!({"resultCode": 400, "errorCode": 400, "success": false, "message": "no"}));
}

#[test]
fn a_service_that_does_not_exist_has_the_full_form() {
    let (_, value) = body(Reply::ok(Kind::SubscribeService, Extra::Service(Some(Box::new(info())))).into_message(""));
    assert_eq!(
        value["serviceInfo"],
        json!({
            "name": "orders", "groupName": "DEFAULT_GROUP", "clusters": "a,b", "cacheMillis": 10000, "hosts": [],
            "lastRefTime": 7, "checksum": "", "allIPs": false, "allIps": false, "valid": true,
            "reachProtectionThreshold": false
        })
    );
    assert!(has_no_hosts(&info().fragment));
}

#[test]
fn requests_of_all_sdks_are_read() {
    let rust =
        br#"{"requestId":"5","headers":{},"namespace":"public","serviceName":"orders","groupName":"DEFAULT_GROUP",
        "type":"registerInstance","instance":{"instanceId":null,"serviceName":null,"ip":"10.0.0.7","port":8080.0,
        "weight":1,"healthy":true,"enabled":true,"ephemeral":true,"clusterName":null,"metadata":{"zone":"a","n":1}}}"#;
    let request: InstanceRequest = decode(rust).unwrap();
    let instance = request.instance.unwrap();
    assert_eq!((instance.port, instance.weight), (Some(8080), Some(1.0)));
    assert_eq!(instance.metadata, [("zone".to_owned(), "a".to_owned()), ("n".to_owned(), "1".to_owned())]);
    assert_eq!(decode::<Head>(rust).unwrap().request_id, "5");

    let go: InstanceRequest = decode(
        br#"{"headers":null,"requestId":"","namespace":"public","serviceName":"orders","type":"deregisterInstance",
        "instance":{"instanceId":"","ip":"10.0.0.7","port":8080,"weight":0,"healthy":false,"enabled":false,"metadata":null}}"#,
    )
    .unwrap();
    assert!(go.instance.unwrap().metadata.is_empty());

    let batch: BatchInstanceRequest = decode(br#"{"instances":null}"#).unwrap();
    assert!(batch.instances.is_empty());
    let setup: ConnectionSetupRequest = decode(br#"{"abilityTable":{},"labels":{"module":"naming"}}"#).unwrap();
    assert!(setup.negotiates);
    assert!(!decode::<ConnectionSetupRequest>(br#"{"abilityTable":null}"#).unwrap().negotiates);
    assert!(decode::<Ack>(br#"{"resultCode":200,"success":false}"#).unwrap().is_good());
    assert!(decode::<Ack>(b"{}").unwrap().is_good());
    assert!(!decode::<Ack>(br#"{"resultCode":500}"#).unwrap().is_good());
    let nan: InstanceRequest = decode(br#"{"instance":{"weight":"NaN"}}"#).unwrap();
    assert!(nan.instance.unwrap().weight.unwrap().is_nan());
}

#[test]
fn what_is_no_object_is_refused() {
    for body in [&b""[..], b"[]", b"null", b"7", b"{", b"\xff\xfe"] {
        assert!(decode::<Head>(body).is_err(), "{body:?}");
    }
    for body in [&br#"{"instance":{"port":1.5}}"#[..], br#"{"instance":{"port":{}}}"#, br#"{"serviceName":["a"]}"#] {
        assert!(decode::<InstanceRequest>(body).is_err(), "{body:?}");
    }
}

proptest! {
    #[test]
    fn no_input_panics(at in 0..Kind::ALL.len(), body: Vec<u8>) {
        probe(Kind::ALL[at].request(), &body);
    }

    #[test]
    fn no_payload_panics(at in 0..Kind::ALL.len(), body in any_json(), cut: usize, flip: (usize, u8)) {
        let mut bytes = Message::new(Kind::ALL[at].request(), &body.to_string()).framed().concat().split_off(UNARY_PREFIX);
        probe_payload(&bytes);
        let length = bytes.len();
        bytes[flip.0 % length] ^= flip.1;
        probe_payload(&bytes);
        bytes.truncate(cut % length);
        probe_payload(&bytes);
    }

    #[test]
    fn no_json_panics(at in 0..Kind::ALL.len(), body in any_json()) {
        probe(Kind::ALL[at].request(), body.to_string().as_bytes());
    }
}

/// JSON whose keys are mostly those of the protocol.
fn any_json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "requestId",
            "headers",
            "instance",
            "instances",
            "ip",
            "port",
            "weight",
            "metadata",
            "clusterName",
            "type",
            "subscribe",
            "clusters",
            "groupKeyPattern",
            "receivedGroupKeys",
            "abilityTable",
            "labels",
            "resultCode",
        ])
        .prop_map(str::to_owned),
        ".{0,6}",
    ];
    scalar.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
