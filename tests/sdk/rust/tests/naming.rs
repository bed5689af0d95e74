//! What the SDK can do.

use std::{collections::HashMap, fmt::Debug, sync::Arc, time::Duration};

use nacos_sdk::api::{
    naming::{NamingService, NamingServiceBuilder, ServiceInstance},
    props::ClientProps,
};
use nomina_sdk_rust::{IP, Told, connect, instance, ports, props};
use tokio::time::{Instant, sleep};

/// Far above what anything here needs on a loaded machine of two cores; only a failure ever waits that long.
const DEADLINE: Duration = Duration::from_secs(15);

fn unique(kind: &str) -> String {
    format!("{kind}-{}", uuid::Uuid::new_v4().simple())
}

fn to(namespace: &str) -> ClientProps {
    let server = std::env::var("NOMINA_HTTP").expect("NOMINA_HTTP is not set: run this through tests/run");
    props(&server, namespace)
}

/// `count` clients in one new namespace.
async fn clients<const COUNT: usize>() -> [NamingService; COUNT] {
    let namespace = unique("ns");
    let mut made = Vec::new();
    for _ in 0..COUNT {
        made.push(connect(to(&namespace)).await.unwrap());
    }
    made.try_into().unwrap_or_else(|_| unreachable!())
}

async fn register(naming: &NamingService, service: &str, instance: ServiceInstance) {
    naming.register_instance(service.to_owned(), None, instance).await.unwrap();
}

async fn deregister(naming: &NamingService, service: &str, instance: ServiceInstance) {
    naming.deregister_instance(service.to_owned(), None, instance).await.unwrap();
}

async fn listed(naming: &NamingService, service: &str, clusters: &[&str]) -> Vec<ServiceInstance> {
    let clusters = clusters.iter().map(ToString::to_string).collect();
    naming.get_all_instances(service.to_owned(), None, clusters, false).await.unwrap()
}

async fn subscribe(naming: &NamingService, service: &str, clusters: &[&str]) -> Arc<Told> {
    let told = Arc::new(Told::default());
    let clusters = clusters.iter().map(ToString::to_string).collect();
    naming.subscribe(service.to_owned(), None, clusters, told.clone()).await.unwrap();
    told
}

async fn until<T: Debug>(read: impl AsyncFn() -> T, accept: impl Fn(&T) -> bool, what: &str) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        let value = read().await;
        if accept(&value) {
            return value;
        }
        assert!(Instant::now() < end, "not within {DEADLINE:?}: {what}; the last value: {value:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn told_of(told: &Told, wanted: &[i32]) {
    let last = async || told.events().last().map(|last| ports(last));
    until(last, |last| last.as_deref() == Some(wanted), &format!("the ports are {wanted:?}")).await;
}

fn changed(port: i32, cluster: &str) -> ServiceInstance {
    ServiceInstance { metadata: HashMap::from([("v".to_owned(), "2".to_owned())]), ..instance(port, cluster) }
}

async fn told_of_the_change(told: &Told) {
    let last = async || told.events().last().cloned().unwrap_or_default();
    let is_changed = |instance: &ServiceInstance| instance.metadata.contains_key("v");
    until(last, |last| last.iter().any(is_changed), "changed metadata").await;
}

#[tokio::test]
async fn an_instance_is_read_back_as_registered() {
    let [naming] = clients().await;
    let metadata =
        HashMap::from([("zone", "a"), ("text", "ä=&+ \"quoted\" 北京")].map(|(k, v)| (k.to_owned(), v.to_owned())));
    let sent = ServiceInstance { weight: 2.5, metadata, ..instance(8080, "c1") };
    register(&naming, "svc", sent.clone()).await;
    let found = listed(&naming, "svc", &[]).await;
    let [got] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((got.ip(), got.port, got.weight, got.cluster_name().map(String::as_str)), (IP, 8080, 2.5, Some("c1")));
    assert_eq!(got.metadata, sent.metadata);
    assert_eq!(got.service_name().map(String::as_str), Some("DEFAULT_GROUP@@svc"));
    assert!(got.healthy && got.enabled && got.ephemeral && got.instance_id().is_some());
}

#[tokio::test]
async fn an_acknowledged_registration_is_read_at_once() {
    let [naming, reader] = clients().await;
    for port in 1001..1011 {
        register(&naming, "svc", instance(port, "DEFAULT")).await;
        assert_eq!(ports(&listed(&reader, "svc", &[]).await), [port]);
        deregister(&naming, "svc", instance(port, "DEFAULT")).await;
        assert!(listed(&reader, "svc", &[]).await.is_empty());
    }
}

#[tokio::test]
async fn clusters_select() {
    let [naming, other, reader] = clients().await;
    register(&naming, "svc", instance(1001, "c1")).await;
    register(&other, "svc", instance(1002, "c2")).await;
    assert_eq!(ports(&listed(&reader, "svc", &[]).await), [1001, 1002]);
    assert_eq!(ports(&listed(&reader, "svc", &["c2"]).await), [1002]);
    assert_eq!(ports(&listed(&reader, "svc", &["c1", "c2"]).await), [1001, 1002]);
    let one = reader.select_one_healthy_instance("svc".to_owned(), None, vec!["c2".to_owned()], false).await.unwrap();
    assert_eq!(one.port, 1002);
}

#[tokio::test]
async fn a_listener_is_told_added_changed_and_removed() {
    let [naming, other, reader] = clients().await;
    register(&naming, "svc", instance(1001, "DEFAULT")).await;
    let told = subscribe(&reader, "svc", &[]).await;
    told_of(&told, &[1001]).await;
    register(&other, "svc", instance(1002, "DEFAULT")).await;
    told_of(&told, &[1001, 1002]).await;
    register(&naming, "svc", changed(1001, "DEFAULT")).await;
    told_of_the_change(&told).await;
    deregister(&naming, "svc", instance(1001, "DEFAULT")).await;
    told_of(&told, &[1002]).await;
    deregister(&other, "svc", instance(1002, "DEFAULT")).await;
    told_of(&told, &[]).await;
}

#[tokio::test]
async fn a_subscription_to_a_cluster_is_told_of_its_changes() {
    let [naming, second, other, reader] = clients().await;
    register(&naming, "svc", instance(1001, "c1")).await;
    register(&other, "svc", instance(2001, "c2")).await;
    let told = subscribe(&reader, "svc", &["c1"]).await;
    told_of(&told, &[1001]).await;
    register(&second, "svc", instance(1002, "c1")).await;
    told_of(&told, &[1001, 1002]).await;
    register(&naming, "svc", changed(1001, "c1")).await;
    told_of_the_change(&told).await;
    deregister(&naming, "svc", instance(1001, "c1")).await;
    told_of(&told, &[1002]).await;
}

#[tokio::test]
async fn an_unsubscribed_listener_hears_nothing_more() {
    let [naming, reader, witness] = clients().await;
    register(&naming, "svc", instance(1001, "DEFAULT")).await;
    let gone = subscribe(&reader, "svc", &[]).await;
    told_of(&gone, &[1001]).await;
    reader.unsubscribe("svc".to_owned(), None, Vec::new(), gone.clone()).await.unwrap();
    let heard = gone.events().len();
    let told = subscribe(&witness, "svc", &[]).await;
    register(&naming, "svc", instance(1002, "DEFAULT")).await;
    told_of(&told, &[1002]).await;
    assert_eq!(gone.events().len(), heard);
}

#[tokio::test]
async fn a_subscribed_query_follows_changes() {
    let [naming, reader] = clients().await;
    let read = async || ports(&reader.get_all_instances("svc".to_owned(), None, Vec::new(), true).await.unwrap());
    register(&naming, "svc", instance(1001, "DEFAULT")).await;
    assert_eq!(read().await, [1001]);
    register(&naming, "svc", instance(1002, "DEFAULT")).await;
    until(read, |found| found == &[1002], "the change arrives").await;
    deregister(&naming, "svc", instance(1002, "DEFAULT")).await;
    until(read, Vec::is_empty, "the removal arrives").await;
}

#[tokio::test]
async fn a_batch_replaces_what_the_client_had_registered() {
    let [naming, other, reader] = clients().await;
    let batch = async |ports: &[i32]| {
        let instances = ports.iter().map(|port| instance(*port, "DEFAULT")).collect();
        naming.batch_register_instance("svc".to_owned(), None, instances).await.unwrap();
    };
    let told = subscribe(&reader, "svc", &[]).await;
    register(&other, "svc", instance(2001, "DEFAULT")).await;
    register(&naming, "svc", instance(1001, "DEFAULT")).await;
    batch(&[1002, 1003]).await;
    assert_eq!(ports(&listed(&reader, "svc", &[]).await), [1002, 1003, 2001]);
    batch(&[1003, 1004]).await;
    assert_eq!(ports(&listed(&reader, "svc", &[]).await), [1003, 1004, 2001]);
    told_of(&told, &[1003, 1004, 2001]).await;
}

#[tokio::test]
async fn the_service_list_pages() {
    let [naming] = clients().await;
    for name in ["a", "b", "c"] {
        register(&naming, name, instance(1001, "DEFAULT")).await;
    }
    naming.register_instance("d".to_owned(), Some("g1".to_owned()), instance(1001, "DEFAULT")).await.unwrap();
    let page = async |number, size, group: Option<&str>| {
        naming.get_service_list(number, size, group.map(ToOwned::to_owned)).await.unwrap()
    };
    assert_eq!(page(1, 2, None).await, (vec!["a".to_owned(), "b".to_owned()], 3));
    assert_eq!(page(2, 2, None).await, (vec!["c".to_owned()], 3));
    assert_eq!(page(1, 10, Some("g1")).await, (vec!["d".to_owned()], 1));
    assert_eq!(page(1, 10, Some("none")).await, (Vec::new(), 0));
}

#[tokio::test]
async fn a_persistent_registration_is_refused_clearly() {
    let [naming] = clients().await;
    let persistent = ServiceInstance { ephemeral: false, ..instance(1001, "DEFAULT") };
    let refusal = naming.register_instance("svc".to_owned(), None, persistent).await.unwrap_err();
    assert!(refusal.to_string().contains("persistent"), "{refusal}");
    register(&naming, "other", instance(1002, "DEFAULT")).await;
    assert_eq!(ports(&listed(&naming, "other", &[]).await), [1002]);
}

#[tokio::test]
async fn a_client_with_a_password_works_though_nobody_asks() {
    let props = to(&unique("ns")).auth_username("somebody").auth_password("secret+word & more");
    let naming = NamingServiceBuilder::new(props).enable_auth_plugin_http().build().await.unwrap();
    let told = subscribe(&naming, "svc", &[]).await;
    register(&naming, "svc", instance(1001, "DEFAULT")).await;
    told_of(&told, &[1001]).await;
}
