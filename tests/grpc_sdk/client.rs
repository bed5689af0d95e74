//! A bare client of the protocol: one channel, one stream, no will of its own.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nomina::wire::sdk::pb::{
    Metadata, Payload, bi_request_stream_client::BiRequestStreamClient, request_client::RequestClient,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

use super::server::SOON;

const LARGEST: usize = 64 * 1024 * 1024;

/// A message with its type.
pub type Named = (String, Value);

pub fn payload(kind: &str, body: &Value) -> Payload {
    raw_payload(kind, body.to_string().into_bytes())
}

pub fn raw_payload(kind: &str, value: Vec<u8>) -> Payload {
    let metadata = Metadata { r#type: kind.to_owned(), client_ip: "10.9.9.9".to_owned(), ..Metadata::default() };
    Payload { metadata: Some(metadata), body: Some(prost_types::Any { type_url: String::new(), value }) }
}

fn named(payload: Payload) -> Named {
    let value = serde_json::from_slice(&payload.body.unwrap().value).unwrap();
    assert_no_null(&value);
    (payload.metadata.unwrap().r#type, value)
}

fn assert_no_null(value: &Value) {
    match value {
        Value::Null => panic!("the server wrote a null"),
        Value::Array(items) => items.iter().for_each(assert_no_null),
        Value::Object(fields) => fields.values().for_each(assert_no_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub async fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// Asks one question on a channel.
pub async fn ask(channel: &Channel, request: Payload) -> Result<Named, Status> {
    let mut client =
        RequestClient::new(channel.clone()).max_decoding_message_size(LARGEST).max_encoding_message_size(LARGEST);
    let answer = client.request(request).await.map(|answer| named(answer.into_inner()));
    if let Ok((kind, body)) = &answer {
        for key in ["resultCode", "errorCode", "success"] {
            assert!(body.get(key).is_some(), "{kind} has no {key}");
        }
    }
    answer
}

/// The set-up of a Java client of version 3.
pub fn java() -> Value {
    json!({
        "headers": {}, "module": "internal", "clientVersion": "Nacos-Java-Client:v3.0.3",
        "labels": {"source": "sdk", "module": "naming", "AppName": "shop", "tls.enable": "false"},
        "abilityTable": {"fuzzyWatch": true, "lock": true, "mcp": true}
    })
}

/// The set-up of a Go client.
pub fn go() -> Value {
    json!({
        "requestId": "", "clientVersion": "Nacos-Go-Client:v2.3.5", "tenant": "",
        "labels": {"source": "sdk", "module": "naming"}, "clientAbilities": {}
    })
}

/// A stream without a set-up.
pub struct Stream {
    pub out: mpsc::UnboundedSender<Payload>,
    pub from: tonic::Streaming<Payload>,
}

pub async fn stream(channel: &Channel, first: Vec<Payload>) -> Result<Stream, Status> {
    let (out, outgoing) = mpsc::unbounded_channel();
    for payload in first {
        out.send(payload).unwrap();
    }
    let mut client = BiRequestStreamClient::new(channel.clone()).max_decoding_message_size(LARGEST);
    let from = client.request_bi_stream(UnboundedReceiverStream::new(outgoing)).await?.into_inner();
    Ok(Stream { out, from })
}

/// A connection that is set up.
pub struct Sdk {
    pub channel: Channel,
    pub out: Option<mpsc::UnboundedSender<Payload>>,
    pushes: mpsc::UnboundedReceiver<Result<Named, Status>>,
    answers: Arc<AtomicBool>,
    reader: tokio::task::JoinHandle<()>,
}

impl Sdk {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::with(address, &go()).await
    }

    /// Connects with this set-up, and acknowledges every push from then on.
    pub async fn with(address: SocketAddr, set_up: &Value) -> Self {
        let channel = channel(address).await;
        let Stream { out, mut from } = stream(&channel, vec![payload("ConnectionSetupRequest", set_up)]).await.unwrap();
        let (tell, pushes) = mpsc::unbounded_channel();
        let answers = Arc::new(AtomicBool::new(true));
        let (willing, back) = (answers.clone(), out.downgrade());
        let reader = tokio::spawn(async move {
            loop {
                let message = match from.message().await {
                    Ok(Some(message)) => Ok(named(message)),
                    Ok(None) => Err(Status::ok("")),
                    Err(status) => Err(status),
                };
                if let Ok((kind, body)) = &message
                    && kind != "SetupAckRequest"
                {
                    assert_eq!(body["headers"], json!({}), "{kind}");
                    let id = body["requestId"].as_str().expect("text");
                    assert!(body["module"].is_string(), "{kind}");
                    if willing.load(Ordering::SeqCst)
                        && let Some(back) = back.upgrade()
                    {
                        let ack = json!({"resultCode": 200, "errorCode": 0, "success": false, "requestId": id});
                        let _ = back.send(payload(&kind.replace("Request", "Response"), &ack));
                    }
                }
                let ended = message.is_err();
                if tell.send(message).is_err() || ended {
                    return;
                }
            }
        });
        Self { channel, out: Some(out), pushes, answers, reader }
    }

    /// Whether pushes are acknowledged from now on.
    pub fn answer(&self, answers: bool) {
        self.answers.store(answers, Ordering::SeqCst);
    }

    pub async fn ask(&self, kind: &str, body: Value) -> Named {
        ask(&self.channel, payload(kind, &body)).await.unwrap()
    }

    /// The next message of the server.
    pub async fn next(&mut self) -> Named {
        tokio::time::timeout(SOON, self.pushes.recv()).await.expect("a message").unwrap().unwrap()
    }

    /// The next message, if there is one within `bound`.
    pub async fn next_within(&mut self, bound: Duration) -> Option<Named> {
        tokio::time::timeout(bound, self.pushes.recv()).await.ok().flatten().and_then(Result::ok)
    }

    /// The status with which the stream ends; messages before it are passed over.
    pub async fn end(&mut self) -> Status {
        loop {
            match tokio::time::timeout(SOON, self.pushes.recv()).await.expect("the end") {
                Some(Ok(_)) => {}
                Some(Err(status)) => return status,
                None => panic!("the reader has ended"),
            }
        }
    }

    /// The next list of a service, as sorted ports.
    pub async fn next_ports(&mut self) -> Vec<u64> {
        let (kind, body) = self.next().await;
        assert_eq!(kind, "NotifySubscriberRequest");
        ports(&body)
    }

    /// Reads lists until one has these ports.
    pub async fn until_ports(&mut self, wanted: &[u64]) -> Value {
        loop {
            let (kind, body) = self.next().await;
            if kind == "NotifySubscriberRequest" && ports(&body) == wanted {
                return body;
            }
        }
    }

    pub async fn register(&self, service: &str, port: u64) {
        let (kind, body) = self.ask("InstanceRequest", instance_request("registerInstance", service, port)).await;
        assert_eq!((kind.as_str(), &body["errorCode"]), ("InstanceResponse", &json!(0)), "{body}");
        assert_eq!(body["type"], "registerInstance");
    }

    pub async fn deregister(&self, service: &str, port: u64) {
        let (kind, body) = self.ask("InstanceRequest", instance_request("deregisterInstance", service, port)).await;
        assert_eq!((kind.as_str(), &body["errorCode"]), ("InstanceResponse", &json!(0)), "{body}");
    }

    pub async fn batch(&self, service: &str, ports: &[u64]) {
        let instances: Vec<_> = ports.iter().map(|port| instance(*port)).collect();
        let body = json!({"namespace": "public", "serviceName": service, "groupName": "DEFAULT_GROUP",
            "type": "batchRegisterInstance", "instances": instances});
        let (kind, body) = self.ask("BatchInstanceRequest", body).await;
        assert_eq!((kind.as_str(), &body["errorCode"]), ("BatchInstanceResponse", &json!(0)), "{body}");
    }

    pub async fn subscribe(&self, service: &str, clusters: &str) -> Value {
        let (kind, body) = self.ask("SubscribeServiceRequest", subscribe_request(service, clusters, true)).await;
        assert_eq!((kind.as_str(), &body["errorCode"]), ("SubscribeServiceResponse", &json!(0)), "{body}");
        body
    }

    pub async fn query(&self, service: &str) -> Value {
        let body = json!({"namespace": "public", "serviceName": service, "groupName": "DEFAULT_GROUP",
            "cluster": "", "healthyOnly": false, "udpPort": 0});
        let (kind, body) = self.ask("ServiceQueryRequest", body).await;
        assert_eq!((kind.as_str(), &body["errorCode"]), ("QueryServiceResponse", &json!(0)), "{body}");
        body
    }

    /// Ends the stream from this side, as a client does that closes its half.
    pub fn half_close(&mut self) {
        self.out = None;
    }

    /// Ends the TCP connection.
    pub async fn cut(self) {
        self.reader.abort();
        let _ = self.reader.await;
        drop((self.out, self.channel, self.pushes));
    }
}

pub fn instance(port: u64) -> Value {
    json!({"ip": "10.0.0.7", "port": port, "weight": 1.0, "healthy": true, "enabled": true, "ephemeral": true,
        "clusterName": "DEFAULT", "metadata": {"zone": "a"}})
}

pub fn instance_request(operation: &str, service: &str, port: u64) -> Value {
    json!({"headers": {}, "namespace": "public", "serviceName": service, "groupName": "DEFAULT_GROUP",
        "type": operation, "module": "naming", "instance": instance(port)})
}

pub fn subscribe_request(service: &str, clusters: &str, subscribe: bool) -> Value {
    json!({"headers": {}, "namespace": "public", "serviceName": service, "groupName": "DEFAULT_GROUP",
        "subscribe": subscribe, "clusters": clusters, "module": "naming"})
}

/// The sorted ports of the list in an answer or a push.
pub fn ports(body: &Value) -> Vec<u64> {
    let info = &body["serviceInfo"];
    for key in ["name", "groupName", "clusters", "checksum"] {
        assert!(info[key].is_string(), "{key} in {info}");
    }
    for key in ["cacheMillis", "lastRefTime"] {
        assert!(info[key].is_u64(), "{key} in {info}");
    }
    for key in ["allIPs", "allIps", "reachProtectionThreshold", "valid"] {
        assert!(info[key].is_boolean(), "{key} in {info}");
    }
    let hosts = info["hosts"].as_array().expect("hosts");
    for key in ["instanceId", "ip", "port", "weight", "healthy", "enabled", "ephemeral", "clusterName", "serviceName"] {
        assert!(hosts.iter().all(|host| host.get(key).is_some()), "{key} in {info}");
    }
    let mut ports: Vec<_> = hosts.iter().map(|host| host["port"].as_u64().unwrap()).collect();
    ports.sort_unstable();
    ports
}
