//! Services as `/service` and `/catalog` show them.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{checker_json, selector_json};
use crate::{
    registry::{
        ClusterName, Instance, Metadata, ServiceKey, Snapshot,
        select::{Query, select},
        selector::Selector,
        service::ClusterSettings,
    },
    wire::{
        host::{Detail, push_host},
        json::push_string,
    },
};

/// The answer of `GET /service`.
#[must_use]
pub fn service_body(key: &ServiceKey, snapshot: &Snapshot) -> Value {
    let clusters: Vec<_> = clusters(snapshot)
        .into_iter()
        .map(|(name, cluster)| {
            json!({
                "name": name.as_str(),
                "healthChecker": checker_json(&cluster.checker),
                "metadata": pairs(&cluster.metadata),
            })
        })
        .collect();
    let mut body = about(key, snapshot);
    if let Value::Object(body) = &mut body {
        body.insert("namespaceId".to_owned(), json!(key.namespace.as_str()));
        body.insert("clusters".to_owned(), json!(clusters));
    }
    body
}

/// The answer of `GET /catalog/service`.
#[must_use]
pub fn catalog_service_body(key: &ServiceKey, snapshot: &Snapshot) -> Value {
    let clusters: Vec<_> = clusters(snapshot)
        .into_iter()
        .map(|(name, cluster)| {
            json!({
                "serviceName": key.to_string(),
                "name": name.as_str(),
                "healthChecker": checker_json(&cluster.checker),
                "metadata": pairs(&cluster.metadata),
                "defaultPort": 80,
                "defaultCheckPort": cluster.check_port,
                "useIPPort4Check": cluster.use_instance_port,
                "sitegroup": "",
                "defCkport": cluster.check_port,
                "defIPPort": 80,
                "empty": false,
            })
        })
        .collect();
    json!({"service": about(key, snapshot), "clusters": clusters})
}

/// One row of `GET /catalog/services`. `triggerFlag` tells whether readers of the whole service get all of its instances
/// as healthy at present.
#[must_use]
pub fn service_row(key: &ServiceKey, snapshot: &Snapshot) -> Value {
    let instances = snapshot.instances();
    json!({
        "name": key.name.as_str(),
        "groupName": key.group.as_str(),
        "clusterCount": clusters(snapshot).len(),
        "ipCount": instances.len(),
        "healthyInstanceCount": instances.iter().filter(|instance| instance.healthy()).count(),
        "triggerFlag": select(snapshot, &Query::default()).protected.to_string(),
    })
}

/// One row of `GET /catalog/services?withInstances=true`.
#[must_use]
pub fn service_row_with_instances(key: &ServiceKey, snapshot: &Snapshot) -> Value {
    let mut hosts: BTreeMap<_, Vec<Value>> =
        clusters(snapshot).into_keys().map(|name| (name.to_string(), Vec::new())).collect();
    for instance in snapshot.instances().iter() {
        hosts.entry(instance.cluster().to_string()).or_default().push(json!({
            "ip": instance.address().to_string(),
            "port": instance.port(),
            "valid": instance.healthy(),
            "healthy": instance.healthy(),
            "weight": instance.weight().value(),
            "enabled": instance.enabled(),
            "metadata": pairs(instance.metadata()),
        }));
    }
    let clusters: BTreeMap<_, _> = hosts.into_iter().map(|(name, hosts)| (name, json!({ "hosts": hosts }))).collect();
    json!({
        "serviceName": key.name.as_str(),
        "groupName": key.group.as_str(),
        "metadata": snapshot.settings().map_or_else(|| json!({}), |settings| pairs(&settings.metadata)),
        "clusterMap": clusters,
    })
}

/// Appends one row of `GET /catalog/instances`: what a list shows of an instance, with its real health, when it was last
/// heard of (wall time in milliseconds, 0 if it is not kept by beats), and what of it an operator laid over it, who that
/// was, and how long ago.
pub fn instance_row(
    json: &mut String,
    service: &ServiceKey,
    instance: &Instance,
    last_beat: u64,
    overlay_age: Option<Duration>,
) {
    push_host(json, service, &service.to_string(), instance, instance.healthy(), Detail::All);
    json.pop();
    json.push_str(",\"lastBeat\":");
    json.push_str(&last_beat.to_string());
    json.push_str(",\"app\":");
    push_string(json, instance.app().unwrap_or("unknown"));
    if let Some(overlay) = instance.overlay() {
        let overlay = json!({
            "weight": overlay.weight().map(crate::registry::Weight::value),
            "enabled": overlay.enabled(),
            "metadata": overlay.metadata(),
            "origin": overlay.origin(),
            "ageMillis": overlay_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        });
        json.push_str(",\"overlay\":");
        json.push_str(&overlay.to_string());
    }
    json.push('}');
}

/// The clusters that exist: those with instances, and those that were set up.
#[must_use]
pub fn clusters(snapshot: &Snapshot) -> BTreeMap<ClusterName, ClusterSettings> {
    let mut clusters = snapshot.settings().map(|settings| settings.clusters.clone()).unwrap_or_default();
    for instance in snapshot.instances().iter() {
        if !clusters.contains_key(instance.cluster()) {
            clusters.insert(instance.cluster().clone(), ClusterSettings::default());
        }
    }
    clusters
}

/// What an operator says of a service. One that nobody created shows the defaults.
fn about(key: &ServiceKey, snapshot: &Snapshot) -> Value {
    let settings = snapshot.settings();
    let threshold = settings.and_then(|settings| settings.protect_threshold).unwrap_or_default();
    json!({
        "name": key.name.as_str(),
        "groupName": key.group.as_str(),
        "protectThreshold": shortest(threshold.value()),
        "metadata": settings.map_or_else(|| json!({}), |settings| pairs(&settings.metadata)),
        "selector": settings.map_or_else(|| selector_json(&Selector::None), |settings| selector_json(&settings.selector)),
    })
}

/// The shortest number that reads back as `value`: 0.3, where widening would give 0.30000001192092896.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(0.0)
}

fn pairs(metadata: &Metadata) -> Value {
    metadata.iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect::<serde_json::Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Clock,
        registry::{
            Command, InstanceKey, Kind, Limits, Publication, RegistryHandle, ServiceCommand, Settings, Target, Weight,
            overlay::OverlayChange,
            service::{Checker, ServiceSettings, Threshold},
        },
        shutdown::Shutdown,
    };

    /// A registry with one service: a threshold, two unhealthy instances, and a cluster without any.
    async fn registry() -> (RegistryHandle, ServiceKey) {
        let registry = RegistryHandle::start(Settings::default(), Limits::default(), Clock::start(), &Shutdown::new());
        let limits = Limits::default();
        let key = limits.service_key("", "g1", "pay").unwrap();
        let settings = ServiceSettings {
            protect_threshold: Some(Threshold::new(0.3).unwrap()),
            metadata: limits.metadata([("owner", "<b>")]).unwrap(),
            ..ServiceSettings::default()
        };
        let mut commands = vec![ServiceCommand::Create(settings)];
        for port in [1, 2] {
            let instance =
                InstanceKey { endpoint: limits.endpoint("10.0.0.1", port).unwrap(), cluster: ClusterName::default() };
            let publication = Publication { healthy: false, ..Publication::default() };
            commands.push(ServiceCommand::Register(instance, Kind::Ephemeral, publication));
        }
        let cluster = limits.cluster("c2").unwrap().unwrap();
        let settings = ClusterSettings { checker: Checker::None, check_port: 81, ..ClusterSettings::default() };
        commands.push(ServiceCommand::SetCluster(cluster, settings));
        for command in commands {
            registry.apply(Command::Service(key.clone(), command)).await.unwrap();
        }
        (registry, key)
    }

    #[tokio::test]
    async fn a_service_is_shown_with_the_clusters_that_exist() {
        let (registry, key) = registry().await;
        assert_eq!(
            service_body(&key, &registry.snapshot(&key)),
            json!({
                "name": "pay", "groupName": "g1", "namespaceId": "public", "protectThreshold": 0.3,
                "metadata": {"owner": "<b>"}, "selector": {"type": "none", "contextType": "NONE"},
                "clusters": [
                    {"name": "DEFAULT", "healthChecker": {"type": "TCP"}, "metadata": {}},
                    {"name": "c2", "healthChecker": {"type": "NONE"}, "metadata": {}}
                ]
            })
        );
        let catalog = catalog_service_body(&key, &registry.snapshot(&key));
        assert_eq!(catalog.pointer("/service/protectThreshold"), Some(&json!(0.3)));
        assert_eq!(catalog.pointer("/clusters/1/defaultCheckPort"), Some(&json!(81)));
    }

    #[tokio::test]
    async fn rows_count_and_tell_of_protection() {
        let (registry, key) = registry().await;
        assert_eq!(
            service_row(&key, &registry.snapshot(&key)),
            json!({
                "name": "pay", "groupName": "g1", "clusterCount": 2, "ipCount": 2, "healthyInstanceCount": 0,
                "triggerFlag": "true"
            })
        );
        let row = service_row_with_instances(&key, &registry.snapshot(&key));
        assert_eq!(row.pointer("/clusterMap/DEFAULT/hosts/1/port"), Some(&json!(2)));
        assert_eq!(row.pointer("/clusterMap/c2/hosts"), Some(&json!([])));
    }

    #[tokio::test]
    async fn an_instance_row_tells_what_an_operator_set() {
        let (registry, key) = registry().await;
        let target = Target { endpoint: Limits::default().endpoint("10.0.0.1", 1).unwrap(), cluster: None };
        let weight = Some(Weight::new(0.0).unwrap());
        let change = OverlayChange { origin: "http ::1".into(), weight, ..OverlayChange::default() };
        let overlay = ServiceCommand::Overlay(target, change);
        let reply = registry.apply(Command::Service(key.clone(), overlay)).await.unwrap();
        let mut text = String::new();
        instance_row(&mut text, &key, &reply.instances[0], 9, Some(Duration::from_millis(5)));
        let row: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(row.get("lastBeat"), Some(&json!(9)));
        assert_eq!(row.get("app"), Some(&json!("unknown")));
        assert_eq!(
            row.get("overlay"),
            Some(&json!({"weight": 0.0, "enabled": null, "metadata": {}, "origin": "http ::1", "ageMillis": 5}))
        );
    }
}
