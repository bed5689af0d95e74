//! `ServiceInfo`: the list of a service as SDKs get it, in answers and in pushes.

use std::fmt::Write;

use bytes::Bytes;

use crate::{
    registry::{
        Instance, Kind, ServiceKey, Snapshot,
        select::{Query, select},
        snapshot::Form,
    },
    wire::http_v1::push_string,
};

/// A list beyond this many bytes is written without the fields that no SDK needs: the SDKs of Rust and Python read no
/// message of more than 4 MiB.
const SPARE_BEYOND: usize = 3 * 1024 * 1024;

/// The list, with what depends on who gets it and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceInfo {
    /// The clusters that were asked for, to the letter: SDKs cache by them.
    pub clusters: String,
    /// When the message was composed, in wall milliseconds; greater than in every message before on this connection.
    pub last_ref_time: u64,
    /// Milliseconds after which a client may ask by itself.
    pub cache_millis: u64,
    /// What [`fragment`] made.
    pub fragment: Bytes,
}

impl ServiceInfo {
    /// Writes what comes before the shared part to `json`; returns the shared part and what comes after it.
    pub(super) fn around(self, json: &mut String) -> (Bytes, &'static str) {
        json.push_str("{\"clusters\":");
        push_string(json, &self.clusters);
        // Writing to a String cannot fail.
        let _ = write!(json, ",\"cacheMillis\":{},\"lastRefTime\":{},", self.cache_millis, self.last_ref_time);
        (self.fragment, "}")
    }
}

/// What all readers of one query share: the hosts and everything that follows from the service. Encoded once for each
/// snapshot if the query is a plain one.
#[must_use]
pub fn fragment(service: &ServiceKey, snapshot: &Snapshot, query: &Query) -> Bytes {
    if snapshot.revision() == 0 || !query.is_plain() {
        return encode(service, snapshot, query);
    }
    let form = if query.healthy_only { Form::SdkHealthy } else { Form::SdkAll };
    snapshot.encoded(form, || encode(service, snapshot, query))
}

/// Whether a list has no instance at all.
#[must_use]
pub fn has_no_hosts(fragment: &[u8]) -> bool {
    fragment.starts_with(b"\"hosts\":[]")
}

fn encode(service: &ServiceKey, snapshot: &Snapshot, query: &Query) -> Bytes {
    let full = write_all(service, snapshot, query, true);
    let json = if full.len() > SPARE_BEYOND { write_all(service, snapshot, query, false) } else { full };
    json.into()
}

fn write_all(service: &ServiceKey, snapshot: &Snapshot, query: &Query, spare: bool) -> String {
    let selected = select(snapshot, query);
    let grouped = service.to_string();
    let mut json = String::with_capacity(256 + 340 * selected.instances.len());
    json.push_str("\"hosts\":[");
    for (position, instance) in selected.instances.iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        host(&mut json, service, &grouped, instance, selected.protected || instance.healthy(), spare);
    }
    json.push_str("],\"name\":");
    push_string(&mut json, service.name.as_str());
    json.push_str(",\"groupName\":");
    push_string(&mut json, service.group.as_str());
    json.push_str(",\"checksum\":\"\",\"allIPs\":false,\"allIps\":false,\"valid\":true,\"reachProtectionThreshold\":");
    json.push_str(truth(selected.protected));
    json
}

/// One instance, with `healthy` as its health; without the fields that can be spared if not `spare`.
fn host(json: &mut String, service: &ServiceKey, grouped: &str, instance: &Instance, healthy: bool, spare: bool) {
    json.push_str("{\"instanceId\":");
    push_string(json, &instance.id(service));
    json.push_str(",\"ip\":");
    push_string(json, &instance.address().to_string());
    // Writing to a String cannot fail. Debug prints a float as JSON wants it: always with a fraction or an exponent.
    let _ = write!(json, ",\"port\":{},\"weight\":{:?}", instance.port(), instance.weight().value());
    json.push_str(",\"healthy\":");
    json.push_str(truth(healthy));
    json.push_str(",\"enabled\":");
    json.push_str(truth(instance.enabled()));
    json.push_str(",\"ephemeral\":");
    json.push_str(truth(instance.kind() == Kind::Ephemeral));
    json.push_str(",\"clusterName\":");
    push_string(json, instance.cluster().as_str());
    json.push_str(",\"serviceName\":");
    push_string(json, grouped);
    json.push_str(",\"metadata\":{");
    for (position, (key, value)) in instance.metadata().iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        push_string(json, key);
        json.push(':');
        push_string(json, value);
    }
    json.push('}');
    if spare {
        let periods = instance.periods();
        let _ = write!(
            json,
            ",\"instanceHeartBeatInterval\":{},\"instanceHeartBeatTimeOut\":{},\"ipDeleteTimeout\":{}",
            periods.interval.as_millis(),
            periods.timeout.as_millis(),
            periods.delete.as_millis()
        );
    }
    json.push('}');
}

const fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
