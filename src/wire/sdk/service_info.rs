//! `ServiceInfo`: the list of a service as SDKs get it, in answers and in pushes.

use std::fmt::Write;

use bytes::Bytes;

use crate::{
    registry::{
        ServiceKey, Snapshot,
        select::{Query, select},
        snapshot::Form,
    },
    wire::{
        host::{Detail, push_host},
        json::{push_string, truth},
    },
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
    /// Writes what comes before the shared part to `json`, which must be one open object whose last key waits for this
    /// value; the shared part that is returned ends both.
    pub(super) fn before(self, json: &mut String) -> Bytes {
        json.push_str("{\"clusters\":");
        push_string(json, &self.clusters);
        // Writing to a String cannot fail.
        let _ = write!(json, ",\"cacheMillis\":{},\"lastRefTime\":{},", self.cache_millis, self.last_ref_time);
        self.fragment
    }
}

/// What all readers of one query share: the hosts and everything that follows from the service, to the end of the body in
/// which the list stands last, so that nothing follows a large part that is sent by itself. Encoded once for each snapshot
/// if the query is a plain one.
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
    let full = write_all(service, snapshot, query, Detail::Periods);
    let json = if full.len() > SPARE_BEYOND { write_all(service, snapshot, query, Detail::Least) } else { full };
    json.into()
}

fn write_all(service: &ServiceKey, snapshot: &Snapshot, query: &Query, detail: Detail) -> String {
    let selected = select(snapshot, query);
    let grouped = service.to_string();
    let mut json = String::with_capacity(256 + 340 * selected.instances.len());
    json.push_str("\"hosts\":[");
    for (position, instance) in selected.instances.iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        push_host(&mut json, service, &grouped, instance, selected.protected || instance.healthy(), detail);
    }
    json.push_str("],\"name\":");
    push_string(&mut json, service.name.as_str());
    json.push_str(",\"groupName\":");
    push_string(&mut json, service.group.as_str());
    json.push_str(",\"checksum\":\"\",\"allIPs\":false,\"allIps\":false,\"valid\":true,\"reachProtectionThreshold\":");
    json.push_str(truth(selected.protected));
    json.push_str("}}");
    json
}
