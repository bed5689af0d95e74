//! The bodies that SDKs send.

use serde::{Deserialize, de::DeserializeOwned};

use super::lenient::{flag, list, number, pairs, present, text, whole};
use crate::registry::key::excerpt;

/// A body that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the body of the request cannot be read: {0}")]
pub struct Unreadable(String);

/// Reads a body.
///
/// # Errors
/// [`Unreadable`] if it is no JSON object in UTF-8, or a field that matters has a value of another type.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Unreadable> {
    // serde reads a struct from an array too.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Unreadable("it is not a JSON object".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| Unreadable(excerpt(&error.to_string())))
}

/// What every request may have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Head {
    /// The client's number of the request, to be echoed; empty: none.
    #[serde(deserialize_with = "text")]
    pub request_id: String,
}

/// An answer of a client to a request of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ack {
    /// The server's number of the request.
    #[serde(deserialize_with = "text")]
    pub request_id: String,
    /// 200 if it went well; absent counts as 200. `success` is not looked at: Go says `false` with 200.
    #[serde(deserialize_with = "whole")]
    pub result_code: Option<i64>,
}

impl Ack {
    /// Whether the client could do what it was asked.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.result_code.is_none_or(|code| code == 200)
    }
}

/// The first message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConnectionSetupRequest {
    /// What the client calls itself: `Nacos-Java-Client:v3.0.3`.
    #[serde(deserialize_with = "text")]
    pub client_version: String,
    /// `source`, `module`, `AppName` and others.
    #[serde(deserialize_with = "pairs")]
    pub labels: Vec<(String, String)>,
    /// Whether the client negotiates abilities: the key `abilityTable` is there.
    #[serde(rename = "abilityTable", deserialize_with = "present")]
    pub negotiates: bool,
}

/// Register or deregister one instance.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of the wire")]
pub struct InstanceRequest {
    #[serde(deserialize_with = "text")]
    pub namespace: String,
    #[serde(deserialize_with = "text")]
    pub service_name: String,
    #[serde(deserialize_with = "text")]
    pub group_name: String,
    #[serde(deserialize_with = "text")]
    pub r#type: String,
    pub instance: Option<InstanceBody>,
}

/// An instance as a client describes it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of the wire")]
pub struct InstanceBody {
    #[serde(deserialize_with = "text")]
    pub ip: String,
    #[serde(deserialize_with = "whole")]
    pub port: Option<i64>,
    #[serde(deserialize_with = "number")]
    pub weight: Option<f64>,
    #[serde(deserialize_with = "flag")]
    pub healthy: Option<bool>,
    #[serde(deserialize_with = "flag")]
    pub enabled: Option<bool>,
    #[serde(deserialize_with = "text")]
    pub cluster_name: String,
    #[serde(deserialize_with = "pairs")]
    pub metadata: Vec<(String, String)>,
}

/// Replace all that this connection publishes in a service.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of the wire")]
pub struct BatchInstanceRequest {
    #[serde(deserialize_with = "text")]
    pub namespace: String,
    #[serde(deserialize_with = "text")]
    pub service_name: String,
    #[serde(deserialize_with = "text")]
    pub group_name: String,
    #[serde(deserialize_with = "text")]
    pub r#type: String,
    #[serde(deserialize_with = "list")]
    pub instances: Vec<InstanceBody>,
}

/// Ask for the instances of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of the wire")]
pub struct ServiceQueryRequest {
    #[serde(deserialize_with = "text")]
    pub namespace: String,
    #[serde(deserialize_with = "text")]
    pub service_name: String,
    #[serde(deserialize_with = "text")]
    pub group_name: String,
    #[serde(deserialize_with = "text")]
    pub cluster: String,
    #[serde(deserialize_with = "flag")]
    pub healthy_only: Option<bool>,
    /// As Python 3 spells it.
    #[serde(deserialize_with = "flag")]
    pub health_only: Option<bool>,
}

/// Begin or end to be told of the changes of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of the wire")]
pub struct SubscribeServiceRequest {
    #[serde(deserialize_with = "text")]
    pub namespace: String,
    #[serde(deserialize_with = "text")]
    pub service_name: String,
    #[serde(deserialize_with = "text")]
    pub group_name: String,
    #[serde(deserialize_with = "flag")]
    pub subscribe: Option<bool>,
    #[serde(deserialize_with = "text")]
    pub clusters: String,
}

/// Ask for the names of the services of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of the wire")]
pub struct ServiceListRequest {
    #[serde(deserialize_with = "text")]
    pub namespace: String,
    #[serde(deserialize_with = "text")]
    pub group_name: String,
    #[serde(deserialize_with = "whole")]
    pub page_no: Option<i64>,
    #[serde(deserialize_with = "whole")]
    pub page_size: Option<i64>,
}

/// Begin or end to be told which services there are whose names fit a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of the wire")]
pub struct FuzzyWatchRequest {
    #[serde(deserialize_with = "text")]
    pub group_key_pattern: String,
    #[serde(deserialize_with = "list")]
    pub received_group_keys: Vec<String>,
    #[serde(deserialize_with = "text")]
    pub watch_type: String,
    #[serde(deserialize_with = "flag")]
    pub initializing: Option<bool>,
}
