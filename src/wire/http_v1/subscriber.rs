//! Subscribers as `/service/subscribers` shows them.

use serde_json::{Value, json};

use crate::registry::ServiceKey;

/// What is shown of one who is told of the changes of a service.
#[derive(Debug, Clone, Copy)]
pub struct SubscriberRow<'a> {
    /// The service.
    pub service: &'a ServiceKey,
    /// Where it is, `ip:port`.
    pub address: &'a str,
    /// What it calls itself.
    pub agent: &'a str,
    /// The application that it belongs to; blank if it did not say so.
    pub app: &'a str,
    /// The clusters that it listens to, as it wrote them.
    pub clusters: &'a str,
}

/// A subscriber with the keys of Nacos 1.4 and 2.5.
#[must_use]
pub fn subscriber_json(row: &SubscriberRow<'_>) -> Value {
    let (ip, port) = row.address.rsplit_once(':').unwrap_or((row.address, ""));
    json!({
        "addrStr": row.address,
        "ip": ip.trim_start_matches('[').trim_end_matches(']'),
        "port": port.parse::<u16>().unwrap_or(0),
        "agent": row.agent,
        "app": if row.app.is_empty() { "unknown" } else { row.app },
        "namespaceId": row.service.namespace.as_str(),
        "serviceName": row.service.to_string(),
        "cluster": row.clusters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Limits;

    #[test]
    fn addresses_of_both_families_are_taken_apart() {
        let service = Limits::default().service_key("dev", "g", "demo").unwrap();
        let shown = |address| {
            subscriber_json(&SubscriberRow { service: &service, address, agent: "A:v1", app: "", clusters: "c1,c2" })
        };
        assert_eq!(
            shown("10.0.0.9:55123"),
            json!({
                "addrStr": "10.0.0.9:55123", "ip": "10.0.0.9", "port": 55123, "agent": "A:v1", "app": "unknown",
                "namespaceId": "dev", "serviceName": "g@@demo", "cluster": "c1,c2"
            })
        );
        assert_eq!((&shown("[::1]:80")["ip"], &shown("[::1]:80")["port"]), (&json!("::1"), &json!(80)));
    }
}
