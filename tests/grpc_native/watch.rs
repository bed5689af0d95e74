//! Watching a service.

use std::collections::BTreeMap;

use nomina::wire::pb::{self, watch_service_response::Event};
use tonic::{Code, Streaming};

use crate::{Native, assert_refused, connect, in_cluster, instance, map, service, wait_until};

/// A watcher that believes what it is told.
struct Watcher {
    stream: Streaming<pb::WatchServiceResponse>,
    view: BTreeMap<(String, u32), pb::Instance>,
    service: Option<pb::Service>,
    revision: u64,
    protected: bool,
    messages: usize,
}

impl Watcher {
    async fn open(native: &mut Native, request: pb::WatchServiceRequest) -> Self {
        let stream = native.registry.watch_service(request).await.unwrap().into_inner();
        let (view, service) = Default::default();
        Self { stream, view, service, revision: 0, protected: false, messages: 0 }
    }

    /// Takes one message in.
    async fn hear(&mut self) -> Event {
        let message = self.stream.message().await.unwrap().expect("the watch goes on");
        self.messages += 1;
        self.revision = message.revision;
        self.protected = message.protected;
        let event = message.event.expect("an event");
        match event.clone() {
            Event::Full(full) => {
                self.view.clear();
                self.service = full.service;
                self.put(full.instances);
            }
            Event::Delta(delta) => {
                for gone in delta.removals {
                    assert!(self.view.remove(&(gone.cluster, gone.port)).is_some(), "a removal of what was not there");
                }
                self.put(delta.upserts);
                if delta.service.is_some() {
                    self.service = delta.service;
                }
                if delta.service_deleted {
                    self.view.clear();
                    self.service = None;
                }
            }
        }
        if message.more { Box::pin(self.hear()).await } else { event }
    }

    fn put(&mut self, instances: Vec<pb::Instance>) {
        for instance in instances {
            assert!(instance.since_last_beat.is_none());
            self.view.insert((instance.cluster.clone(), instance.port), instance);
        }
    }

    fn ports(&self) -> Vec<u32> {
        self.view.keys().map(|(_, port)| *port).collect()
    }
}

fn watch_of(name: &str) -> pb::WatchServiceRequest {
    pb::WatchServiceRequest { key: Some(service(name)), ..Default::default() }
}

#[tokio::test]
async fn a_watch_begins_with_everything_and_goes_on_with_changes() {
    let mut native = Native::start().await;
    let mut watcher = Watcher::open(&mut native, watch_of("s")).await;
    assert!(matches!(watcher.hear().await, Event::Full(full) if full.service.is_none()));
    assert_eq!(watcher.revision, 0, "there is no such service yet");

    let first = native.register(instance("s", 1), Default::default()).await.revision;
    watcher.hear().await;
    assert_eq!((watcher.ports(), watcher.revision), (vec![1], first));
    assert!(watcher.service.is_some());

    native.register(instance("s", 2), Default::default()).await;
    assert!(matches!(watcher.hear().await, Event::Delta(delta) if delta.upserts.len() == 1));
    let again = pb::InstanceSpec { metadata: map(&[("zone", "b")]), ..Default::default() };
    native.register(instance("s", 1), again).await;
    assert!(matches!(watcher.hear().await, Event::Delta(delta) if delta.upserts[0].metadata["zone"] == "b"));

    let leave = pb::DeregisterInstanceRequest { key: Some(instance("s", 2)), ..Default::default() };
    let left = native.registry.deregister_instance(leave).await.unwrap().into_inner().revision;
    assert!(matches!(watcher.hear().await, Event::Delta(delta) if delta.upserts.is_empty()));
    assert_eq!((watcher.ports(), watcher.revision), (vec![1], left));

    let disable = pb::UpdateInstanceRequest { key: Some(instance("s", 1)), enabled: Some(false), ..Default::default() };
    native.registry.update_instance(disable).await.unwrap();
    watcher.hear().await;
    assert_eq!(watcher.ports(), [] as [u32; 0], "a disabled one is gone for consumers");

    let settings = pb::ServiceSettings { metadata: map(&[("owner", "x")]), ..Default::default() };
    let update = pb::UpdateServiceRequest { key: Some(service("s")), settings: Some(settings), update_mask: None };
    native.catalog.update_service(update).await.unwrap();
    watcher.hear().await;
    assert_eq!(watcher.service.as_ref().unwrap().settings.as_ref().unwrap().metadata["owner"], "x");

    let leave = pb::DeregisterInstanceRequest { key: Some(instance("s", 1)), ..Default::default() };
    native.registry.deregister_instance(leave).await.unwrap();
    native.catalog.delete_service(pb::DeleteServiceRequest { key: Some(service("s")) }).await.unwrap();
    assert!(matches!(watcher.hear().await, Event::Delta(delta) if delta.service_deleted));
    let back = native.register(instance("s", 3), Default::default()).await.revision;
    assert!(matches!(watcher.hear().await, Event::Full(_)));
    assert_eq!((watcher.ports(), watcher.revision), (vec![3], back));
}

#[tokio::test]
async fn a_watch_sees_its_clusters_and_healthy_ones_only() {
    let mut native = Native::start().await;
    let request = pb::WatchServiceRequest { clusters: vec!["a".into()], healthy_only: true, ..watch_of("s") };
    let mut watcher = Watcher::open(&mut native, request).await;
    watcher.hear().await;
    native.register(in_cluster("s", 1, "b"), Default::default()).await;
    let sick = pb::InstanceSpec { healthy: Some(false), ..Default::default() };
    native.register(in_cluster("s", 2, "a"), sick).await;
    native.register(in_cluster("s", 3, "a"), Default::default()).await;
    while watcher.ports() != [3] {
        watcher.hear().await;
    }
    native.registry.beat(pb::BeatRequest { key: Some(in_cluster("s", 2, "a")) }).await.unwrap();
    watcher.hear().await;
    assert_eq!(watcher.ports(), [2, 3], "healed by a beat");
}

#[tokio::test]
async fn the_flag_of_protection_comes_with_a_full_state() {
    let mut native = Native::start().await;
    let settings = pb::ServiceSettings { protect_threshold: Some(0.5), ..Default::default() };
    let create = pb::CreateServiceRequest { key: Some(service("s")), settings: Some(settings) };
    native.catalog.create_service(create).await.unwrap();
    native.register(instance("s", 1), Default::default()).await;
    let mut watcher = Watcher::open(&mut native, watch_of("s")).await;
    watcher.hear().await;
    assert!(!watcher.protected);
    native.register(instance("s", 2), pb::InstanceSpec { healthy: Some(false), ..Default::default() }).await;
    assert!(matches!(watcher.hear().await, Event::Full(_)));
    assert!(watcher.protected && watcher.view.values().all(|instance| instance.healthy));
}

#[tokio::test]
async fn a_slow_watcher_gets_the_newest_state_and_few_messages() {
    let mut native = Native::start().await;
    let spec = |round: usize| pb::InstanceSpec {
        metadata: map(&[("round", &round.to_string()), ("bulk", &"v".repeat(60_000))]),
        ..Default::default()
    };
    // On a connection of its own, so that what it does not read holds nothing else up.
    let slow = connect(&native.node).await;
    let mut registry = nomina::wire::pb::registry_service_client::RegistryServiceClient::new(slow);
    let stream = registry.watch_service(watch_of("s")).await.unwrap().into_inner();
    for round in 0..400 {
        native.register(instance("s", round % 4), spec(round as usize)).await;
    }
    let mut watcher =
        Watcher { stream, view: BTreeMap::new(), service: None, revision: 0, protected: false, messages: 0 };
    let newest = native.list(crate::list_of("s")).await;
    while watcher.revision < newest.revision {
        watcher.hear().await;
    }
    assert!(watcher.messages < 200, "{} messages for 400 changes", watcher.messages);
    let rounds: Vec<_> = watcher.view.values().map(|instance| instance.metadata["round"].clone()).collect();
    assert_eq!(rounds, ["396", "397", "398", "399"]);
}

#[tokio::test]
async fn a_large_state_comes_in_parts_that_every_client_takes() {
    let mut native = Native::start().await;
    let spec = pb::InstanceSpec { metadata: map(&[("bulk", &"v".repeat(60_000))]), ..Default::default() };
    for port in 0..150 {
        native.register(instance("s", port), spec.clone()).await;
    }
    let mut watcher = Watcher::open(&mut native, watch_of("s")).await;
    watcher.hear().await;
    assert!(watcher.messages > 1);
    assert_eq!(watcher.ports(), (0..150).collect::<Vec<_>>());
}

#[tokio::test]
async fn watchers_are_listed_while_they_watch() {
    let mut native = Native::start().await;
    let subscribers = |native: &Native| {
        let catalog = native.catalog.clone();
        move || {
            let mut catalog = catalog.clone();
            async move {
                let request = pb::ListSubscribersRequest { key: Some(service("s")), ..Default::default() };
                let mut seen = catalog.list_subscribers(request).await.unwrap().into_inner();
                seen.subscribers.iter_mut().for_each(|subscriber| assert!(subscriber.age.take().is_some()));
                seen
            }
        }
    };
    let consumer = pb::Consumer { ip: "192.0.2.7".into(), ..Default::default() };
    let named =
        pb::WatchServiceRequest { consumer: Some(consumer), clusters: vec!["a".into(), "b".into()], ..watch_of("s") };
    let watchers = [Watcher::open(&mut native, watch_of("s")).await, Watcher::open(&mut native, named).await];
    let ask = subscribers(&native);
    let seen = ask().await;
    assert_eq!(seen.total_size, 2);
    assert!(seen.subscribers[0].address.starts_with("127.0.0.1:"), "{:?}", seen.subscribers[0]);
    assert!(seen.subscribers[0].agent.contains("tonic"));
    assert_eq!((seen.subscribers[1].address.as_str(), seen.subscribers[1].clusters.as_str()), ("192.0.2.7", "a,b"));
    assert_eq!(seen.subscribers[1].protocol(), pb::SubscriberProtocol::Watch);
    let page = pb::ListSubscribersRequest { key: Some(service("s")), page_size: 1, ..Default::default() };
    let first = native.catalog.list_subscribers(page.clone()).await.unwrap().into_inner();
    let second = pb::ListSubscribersRequest { page_token: first.next_page_token, ..page };
    let mut second = native.catalog.list_subscribers(second).await.unwrap().into_inner();
    second.subscribers[0].age = None;
    assert_eq!((&second.subscribers[..], second.next_page_token.as_str()), (&seen.subscribers[1..], ""));
    drop(watchers);
    wait_until("they are gone", || {
        let seen = ask();
        async move {
            let left = seen.await.total_size;
            if left == 0 { Ok(()) } else { Err(left) }
        }
    })
    .await;
}

#[tokio::test]
async fn bad_watches_are_refused() {
    let mut native = Native::start().await;
    for (field, request) in [
        ("key", pb::WatchServiceRequest::default()),
        ("key.service", watch_of("")),
        ("cluster", pb::WatchServiceRequest { clusters: vec!["a b".into()], ..watch_of("s") }),
        ("clusters", pb::WatchServiceRequest { clusters: vec!["a".into(); 1_025], ..watch_of("s") }),
    ] {
        assert_refused(native.registry.watch_service(request).await, Code::InvalidArgument, field);
    }
}
