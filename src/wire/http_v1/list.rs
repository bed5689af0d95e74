//! The body of `/instance/list`, which is also what a UDP push carries.

use bytes::Bytes;

use crate::{
    registry::{
        ServiceKey, Snapshot,
        select::{Query, select},
        snapshot::Form,
    },
    wire::{
        host::{Detail, push_host},
        json::{push_pairs, push_string, truth},
    },
};

/// What of a list depends on who asks.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The `clusters` parameter to the letter: it is part of the key under which clients cache.
    pub clusters: &'a str,
    /// Milliseconds after which the client should ask again.
    pub cache_millis: u64,
    /// The `env` parameter to the letter.
    pub env: &'a str,
    /// Wall time now, in milliseconds: the `lastRefTime` of a service that does not exist.
    pub now: u64,
}

/// The list of `service` that `query` asks for: the union of what Nacos 1.4 and 2.5 answer.
///
/// `lastRefTime` is the time of the snapshot, so that it never runs backwards between answers and pushes. The part that
/// does not depend on the reader is encoded once for each snapshot and shared.
#[must_use]
pub fn list_body(service: &ServiceKey, snapshot: &Snapshot, query: &Query, frame: &Frame<'_>) -> Bytes {
    let form = if query.healthy_only { Form::HttpHealthy } else { Form::HttpAll };
    let tail = if snapshot.revision() > 0 && query.is_plain() {
        snapshot.encoded(form, || tail(service, snapshot, query, snapshot.changed_at()))
    } else if snapshot.revision() > 0 {
        tail(service, snapshot, query, snapshot.changed_at())
    } else {
        tail(service, snapshot, query, frame.now)
    };
    let mut body = String::with_capacity(tail.len() + 128 + frame.clusters.len() + frame.env.len());
    body.push_str("{\"clusters\":");
    push_string(&mut body, frame.clusters);
    body.push_str(",\"env\":");
    push_string(&mut body, frame.env);
    body.push_str(",\"cacheMillis\":");
    body.push_str(&frame.cache_millis.to_string());
    let mut body = body.into_bytes();
    body.extend_from_slice(&tail);
    body.into()
}

/// Everything but the frame, from the first comma to the closing brace.
fn tail(service: &ServiceKey, snapshot: &Snapshot, query: &Query, last_ref_time: u64) -> Bytes {
    let selected = select(snapshot, query);
    let grouped = service.to_string();
    let mut json = String::with_capacity(256 + 384 * selected.instances.len());
    json.push_str(",\"name\":");
    push_string(&mut json, &grouped);
    json.push_str(",\"groupName\":");
    push_string(&mut json, service.group.as_str());
    json.push_str(",\"dom\":");
    push_string(&mut json, &grouped);
    json.push_str(",\"hosts\":[");
    for (position, instance) in selected.instances.iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        push_host(&mut json, service, &grouped, instance, selected.protected || instance.healthy(), Detail::All);
    }
    json.push_str("],\"lastRefTime\":");
    json.push_str(&last_ref_time.to_string());
    json.push_str(",\"checksum\":\"\",\"allIPs\":false,\"useSpecifiedURL\":false,\"valid\":true");
    json.push_str(",\"reachProtectionThreshold\":");
    json.push_str(truth(selected.protected));
    json.push_str(",\"metadata\":");
    match snapshot.settings() {
        Some(settings) => push_pairs(&mut json, settings.metadata.iter()),
        None => json.push_str("{}"),
    }
    json.push('}');
    json.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::registry::Limits;

    #[test]
    fn an_unknown_service_has_the_full_envelope() {
        let service = Limits::default().service_key("", "", "nope").unwrap();
        let frame = Frame { clusters: "a,b", cache_millis: 3_000, env: "", now: 7 };
        let body = list_body(&service, &Snapshot::default(), &Query::default(), &frame);
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({
                "name": "DEFAULT_GROUP@@nope", "groupName": "DEFAULT_GROUP", "dom": "DEFAULT_GROUP@@nope",
                "clusters": "a,b", "cacheMillis": 3000, "hosts": [], "lastRefTime": 7, "checksum": "", "allIPs": false,
                "reachProtectionThreshold": false, "valid": true, "useSpecifiedURL": false, "env": "", "metadata": {}
            })
        );
    }
}
