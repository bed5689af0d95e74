//! One instance as JSON, for the lists of all protocols that write them so.

use std::fmt::Write;

use super::json::{push_pairs, push_string, truth};
use crate::registry::{Instance, Kind, ServiceKey};

/// How much of an instance is written; each has all that those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What no SDK can do without.
    Least,
    /// And its periods, which the lists of SDKs have.
    Periods,
    /// And what only the v1 HTTP API shows.
    All,
}

/// Appends `instance`, with `healthy` as its health.
///
/// * `grouped`: `service` as text, which is the same for all its instances.
pub fn push_host(
    json: &mut String,
    service: &ServiceKey,
    grouped: &str,
    instance: &Instance,
    healthy: bool,
    detail: Detail,
) {
    json.push_str("{\"instanceId\":");
    push_string(json, &instance.id(service));
    // Writing to a String cannot fail, and an address has nothing to escape. Debug prints a float as Java and JSON do:
    // always with a fraction or an exponent.
    let (address, port, weight) = (instance.address(), instance.port(), instance.weight().value());
    let _ = write!(json, ",\"ip\":\"{address}\",\"port\":{port},\"weight\":{weight:?},\"healthy\":{healthy}");
    if detail >= Detail::All {
        let _ = write!(json, ",\"valid\":{healthy},\"marked\":false");
    }
    json.push_str(",\"enabled\":");
    json.push_str(truth(instance.enabled()));
    json.push_str(",\"ephemeral\":");
    json.push_str(truth(instance.kind() == Kind::Ephemeral));
    json.push_str(",\"clusterName\":");
    push_string(json, instance.cluster().as_str());
    json.push_str(",\"serviceName\":");
    push_string(json, grouped);
    json.push_str(",\"metadata\":");
    push_pairs(json, instance.metadata().iter());
    if detail >= Detail::Periods {
        let periods = instance.periods();
        let _ = write!(
            json,
            ",\"instanceHeartBeatInterval\":{},\"instanceHeartBeatTimeOut\":{},\"ipDeleteTimeout\":{}",
            periods.interval.as_millis(),
            periods.timeout.as_millis(),
            periods.delete.as_millis()
        );
    }
    if detail >= Detail::All {
        // Nacos 2.5: `simple` without metadata, the value if there is one, nothing otherwise.
        let generator = instance.metadata().value("preserved.instance.id.generator");
        if let Some(generator) = generator.or(instance.metadata().is_empty().then_some("simple")) {
            json.push_str(",\"instanceIdGenerator\":");
            push_string(json, generator);
        }
    }
    json.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::registry::{ClusterName, InstanceKey, Limits, Publication, Weight, overlay::Overlay};

    #[test]
    fn a_host_has_every_key_that_its_readers_know() {
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
        let written = |detail| {
            let mut text = String::new();
            push_host(&mut text, &service, "DEFAULT_GROUP@@demo", &instance, true, detail);
            assert!(text.contains("\"weight\":2.0"));
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let mut wanted = json!({
            "instanceId": "10.0.0.7#8080#DEFAULT#DEFAULT_GROUP@@demo", "ip": "10.0.0.7", "port": 8080, "weight": 2.0,
            "healthy": true, "enabled": true, "ephemeral": true, "clusterName": "DEFAULT",
            "serviceName": "DEFAULT_GROUP@@demo", "metadata": {"zone": "a"}
        });
        let mut with = |more: Value| {
            wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            wanted.clone()
        };
        assert_eq!(written(Detail::Least), with(json!({})));
        let periods =
            json!({"instanceHeartBeatInterval": 5000, "instanceHeartBeatTimeOut": 15000, "ipDeleteTimeout": 30000});
        assert_eq!(written(Detail::Periods), with(periods));
        assert_eq!(written(Detail::All), with(json!({"valid": true, "marked": false})));
    }
}
