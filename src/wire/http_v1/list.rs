//! The body of `/instance/list`, which is also what a UDP push carries.

use bytes::Bytes;

use crate::registry::{
    Instance, ServiceKey, Snapshot,
    select::{Query, select},
    snapshot::Form,
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
        host(&mut json, service, &grouped, instance, selected.protected || instance.healthy());
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

/// One instance as the list shows it, with `healthy` as its health.
pub fn host(json: &mut String, service: &ServiceKey, grouped: &str, instance: &Instance, healthy: bool) {
    let periods = instance.periods();
    json.push_str("{\"instanceId\":");
    push_string(json, &instance.id(service));
    json.push_str(",\"ip\":");
    push_string(json, &instance.address().to_string());
    json.push_str(",\"port\":");
    json.push_str(&instance.port().to_string());
    json.push_str(",\"weight\":");
    // Debug prints a float as Java and JSON do: always with a fraction or an exponent.
    json.push_str(&format!("{:?}", instance.weight().value()));
    json.push_str(",\"healthy\":");
    json.push_str(truth(healthy));
    json.push_str(",\"valid\":");
    json.push_str(truth(healthy));
    json.push_str(",\"marked\":false,\"enabled\":");
    json.push_str(truth(instance.enabled()));
    json.push_str(",\"ephemeral\":");
    json.push_str(truth(instance.kind() == crate::registry::Kind::Ephemeral));
    json.push_str(",\"clusterName\":");
    push_string(json, instance.cluster().as_str());
    json.push_str(",\"serviceName\":");
    push_string(json, grouped);
    json.push_str(",\"metadata\":");
    push_pairs(json, instance.metadata().iter());
    for (key, period) in [
        ("instanceHeartBeatInterval", periods.interval),
        ("instanceHeartBeatTimeOut", periods.timeout),
        ("ipDeleteTimeout", periods.delete),
    ] {
        json.push_str(",\"");
        json.push_str(key);
        json.push_str("\":");
        json.push_str(&period.as_millis().to_string());
    }
    // Nacos 2.5: `simple` without metadata, the value if there is one, nothing otherwise.
    let generator = instance.metadata().value("preserved.instance.id.generator");
    if let Some(generator) = generator.or(instance.metadata().is_empty().then_some("simple")) {
        json.push_str(",\"instanceIdGenerator\":");
        push_string(json, generator);
    }
    json.push('}');
}

/// Appends `text` as a JSON string.
pub fn push_string(json: &mut String, text: &str) {
    json.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        json.push_str(text.get(plain..at).unwrap_or_default());
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            control => json.push_str(&format!("\\u{control:04x}")),
        }
        plain = at + 1;
    }
    json.push_str(text.get(plain..).unwrap_or_default());
    json.push('"');
}

fn push_pairs<'a>(json: &mut String, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    json.push('{');
    for (position, (key, value)) in pairs.enumerate() {
        if position > 0 {
            json.push(',');
        }
        push_string(json, key);
        json.push(':');
        push_string(json, value);
    }
    json.push('}');
}

const fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::registry::{ClusterName, InstanceKey, Kind, Limits, Publication, Weight, overlay::Overlay};

    proptest! {
        #[test]
        fn strings_are_escaped_as_json_wants(text: String) {
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn weights_are_json_numbers(weight in 0.0_f64..=10_000.0) {
            prop_assert_eq!(serde_json::from_str::<f64>(&format!("{weight:?}")).unwrap(), weight);
        }
    }

    #[test]
    fn a_host_has_every_key_that_clients_read() {
        let limits = Limits::default();
        let service = limits.service_key("", "", "demo").unwrap();
        let instance = Instance::new(
            InstanceKey { endpoint: limits.endpoint("10.0.0.7", 8080).unwrap(), cluster: ClusterName::default() },
            Kind::Ephemeral,
            Publication {
                weight: Weight::new(2.0).unwrap(),
                metadata: limits.metadata([("zone", "a")]).unwrap(),
                ..Publication::default()
            },
            Overlay::default(),
            None,
            None,
        );
        let mut text = String::new();
        host(&mut text, &service, "DEFAULT_GROUP@@demo", &instance, true);
        assert!(text.contains("\"weight\":2.0"));
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({
                "instanceId": "10.0.0.7#8080#DEFAULT#DEFAULT_GROUP@@demo", "ip": "10.0.0.7", "port": 8080, "weight": 2.0,
                "healthy": true, "valid": true, "marked": false, "enabled": true, "ephemeral": true,
                "clusterName": "DEFAULT", "serviceName": "DEFAULT_GROUP@@demo", "metadata": {"zone": "a"},
                "instanceHeartBeatInterval": 5000, "instanceHeartBeatTimeOut": 15000, "ipDeleteTimeout": 30000
            })
        );
    }

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
