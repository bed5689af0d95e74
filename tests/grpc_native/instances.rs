//! Register, update, find, list, deregister.

use nomina::wire::pb::{self, InstanceKind};
use tonic::Code;
use tonic_types::StatusExt;

use crate::{Native, assert_refused, in_cluster, instance, list_of, map, mask, millis, service, wait_until};

#[tokio::test]
async fn a_registered_instance_is_found_as_it_was_said_until_it_leaves() {
    let mut native = Native::start().await;
    let spec = pb::InstanceSpec {
        weight: Some(2.5),
        metadata: map(&[("zone", "a"), ("🦀", "ß")]),
        heartbeat_interval: millis(1_000),
        heartbeat_timeout: millis(60_500),
        ..Default::default()
    };
    let key = pb::InstanceKey { namespace: "dev".into(), group: "g1".into(), ..instance("pay", 8080) };
    let registered = native.register(key.clone(), spec).await;
    let shown = registered.instance.unwrap();
    assert!(registered.revision > 0);
    assert_eq!((shown.ip.as_str(), shown.port, shown.cluster.as_str()), ("10.0.0.1", 8080, "DEFAULT"));
    assert_eq!((shown.weight, shown.enabled, shown.healthy), (2.5, true, true));
    assert_eq!(shown.kind(), InstanceKind::Ephemeral);
    assert_eq!(shown.metadata["🦀"], "ß");
    assert_eq!(shown.metadata["preserved.heart.beat.timeout"], "60500");
    assert_eq!(shown.instance_id, "10.0.0.1#8080#DEFAULT#g1@@pay");
    assert_eq!(shown.heartbeat_interval, millis(1_000));
    assert_eq!(shown.heartbeat_timeout, millis(60_500));
    assert_eq!(shown.delete_timeout, millis(30_000));
    assert!(shown.since_last_beat.is_some() && shown.overlay.is_none());

    let got = native.registry.get_instance(pb::GetInstanceRequest { key: Some(key.clone()) }).await.unwrap();
    assert_eq!(got.get_ref().revision, registered.revision);
    assert_eq!(pb::Instance { since_last_beat: None, ..got.into_inner().instance.unwrap() }, {
        pb::Instance { since_last_beat: None, ..shown.clone() }
    });

    let of_service = pb::ListInstancesRequest {
        key: Some(pb::ServiceKey { namespace: "dev".into(), group: "g1".into(), service: "pay".into() }),
        ..Default::default()
    };
    let listed = native.list(of_service.clone()).await;
    assert_eq!(listed.instances, [pb::Instance { since_last_beat: None, ..shown }]);
    assert_eq!((listed.total_size, listed.revision, listed.protected), (1, registered.revision, false));
    assert_eq!(native.list(list_of("pay")).await.total_size, 0, "namespaces and groups keep services apart");

    let leave = pb::DeregisterInstanceRequest { key: Some(key.clone()), ..Default::default() };
    let left = native.registry.deregister_instance(leave.clone()).await.unwrap().into_inner();
    assert!(left.revision > registered.revision);
    assert_eq!(native.list(of_service).await.total_size, 0);
    assert_refused(native.registry.deregister_instance(leave).await, Code::NotFound, "");
    assert_refused(native.registry.get_instance(pb::GetInstanceRequest { key: Some(key) }).await, Code::NotFound, "");
}

#[tokio::test]
async fn registering_again_replaces_and_an_equal_one_changes_nothing() {
    let mut native = Native::start().await;
    let spec = |zone| pb::InstanceSpec { metadata: map(&[("zone", zone)]), ..Default::default() };
    let first = native.register(instance("s", 1), spec("a")).await.revision;
    assert_eq!(native.register(instance("s", 1), spec("a")).await.revision, first);
    let second = native.register(instance("s", 1), spec("b")).await;
    assert!(second.revision > first);
    assert_eq!(second.instance.unwrap().metadata["zone"], "b");
    assert_eq!(native.list(list_of("s")).await.total_size, 1);
}

#[tokio::test]
async fn an_empty_cluster_means_default_or_the_only_one() {
    let mut native = Native::start().await;
    native.register(in_cluster("s", 1, "a"), Default::default()).await;
    let get = |key| pb::GetInstanceRequest { key: Some(key) };
    let only = native.registry.get_instance(get(instance("s", 1))).await.unwrap().into_inner().instance.unwrap();
    assert_eq!(only.cluster, "a");

    native.register(in_cluster("s", 1, "b"), Default::default()).await;
    let answer = native.registry.get_instance(get(instance("s", 1))).await;
    let status = assert_refused(answer, Code::InvalidArgument, "key.cluster");
    assert!(status.message().contains("a, b"), "{}", status.message());
    let beat = native.registry.beat(pb::BeatRequest { key: Some(instance("s", 1)) }).await;
    assert_refused(beat, Code::InvalidArgument, "key.cluster");

    native.register(instance("s", 1), Default::default()).await;
    let default = native.registry.get_instance(get(instance("s", 1))).await.unwrap().into_inner().instance.unwrap();
    assert_eq!(default.cluster, "DEFAULT");
    assert_eq!(native.list(list_of("s")).await.total_size, 3);
}

#[tokio::test]
async fn refusals_name_the_field_and_store_nothing() {
    let mut native = Native::start().await;
    let good = instance("s", 80);
    let key = |change: fn(&mut pb::InstanceKey)| {
        let mut key = good.clone();
        change(&mut key);
        (Some(key), None)
    };
    let spec = |change: fn(&mut pb::InstanceSpec)| {
        let mut spec = pb::InstanceSpec::default();
        change(&mut spec);
        (Some(good.clone()), Some(spec))
    };
    let cases = [
        ("key", (None, None)),
        ("key.service", key(|key| key.service.clear())),
        ("key.service", key(|key| key.service = "a@@b".into())),
        ("key.service", key(|key| key.service = "x".repeat(513))),
        ("key.namespace", key(|key| key.namespace = "a b".into())),
        ("key.group", key(|key| key.group = "g@".into())),
        ("key.cluster", key(|key| key.cluster = "c,d".into())),
        ("key.ip", key(|key| key.ip.clear())),
        ("key.ip", key(|key| key.ip = "300.1.1.1".into())),
        ("key.ip", key(|key| key.ip = "x".repeat(129))),
        ("key.port", key(|key| key.port = 65_536)),
        ("key.port", key(|key| key.port = u32::MAX)),
        ("spec.weight", spec(|spec| spec.weight = Some(f64::NAN))),
        ("spec.weight", spec(|spec| spec.weight = Some(f64::INFINITY))),
        ("spec.weight", spec(|spec| spec.weight = Some(f64::NEG_INFINITY))),
        ("spec.weight", spec(|spec| spec.weight = Some(-0.1))),
        ("spec.weight", spec(|spec| spec.weight = Some(10_000.1))),
        ("spec.kind", spec(|spec| spec.kind = 99)),
        ("spec.metadata", spec(|spec| spec.metadata = map(&[("k", &"v".repeat(65_536))]))),
        ("spec.metadata", spec(|spec| spec.metadata = map(&[("preserved.heart.beat.timeout", "soon")]))),
        ("spec.metadata", spec(|spec| spec.heartbeat_interval = millis(20_000))),
        ("spec.heartbeat_timeout", spec(|spec| spec.heartbeat_timeout = millis(-5))),
        ("spec.delete_timeout", {
            spec(|spec| spec.delete_timeout = Some(prost_types::Duration { seconds: 1, nanos: 1 }))
        }),
    ];
    for (field, (key, spec)) in cases {
        let answer = native.registry.register_instance(pb::RegisterInstanceRequest { key, spec }).await;
        assert_refused(answer, Code::InvalidArgument, field);
    }
    let persistent = pb::RegisterInstanceRequest {
        key: Some(good.clone()),
        spec: Some(pb::InstanceSpec { kind: InstanceKind::Persistent.into(), ..Default::default() }),
    };
    assert_refused(native.registry.register_instance(persistent).await, Code::Unimplemented, "spec.kind");
    assert_eq!(native.list(list_of("s")).await.revision, 0, "nothing was stored");

    let edges =
        pb::InstanceSpec { weight: Some(10_000.0), metadata: map(&[("k", &"v".repeat(65_535))]), ..Default::default() };
    native.register(pb::InstanceKey { port: 0, ip: "host-1.example".into(), ..good.clone() }, edges).await;
    native.register(pb::InstanceKey { port: 65_535, ip: "fe80::1".into(), ..good }, Default::default()).await;
    assert_eq!(native.list(list_of("s")).await.total_size, 2);
}

#[tokio::test]
async fn an_overlay_wins_until_it_is_reset_or_the_instance_leaves() {
    let mut native = Native::start().await;
    let key = instance("s", 1);
    let published = pb::InstanceSpec { metadata: map(&[("v", "1"), ("zone", "a")]), ..Default::default() };
    native.register(key.clone(), published.clone()).await;
    let update = |change: fn(&mut pb::UpdateInstanceRequest)| {
        let mut request = pb::UpdateInstanceRequest { key: Some(instance("s", 1)), ..Default::default() };
        change(&mut request);
        request
    };
    let set = update(|request| {
        request.weight = Some(0.0);
        request.enabled = Some(false);
        request.metadata = map(&[("v", "2"), ("note", "x")]);
    });
    let shown = native.registry.update_instance(set).await.unwrap().into_inner().instance.unwrap();
    assert_eq!((shown.weight, shown.enabled), (0.0, false));
    assert_eq!(shown.metadata, map(&[("note", "x"), ("v", "2"), ("zone", "a")]));
    let overlay = shown.overlay.unwrap();
    assert!(overlay.origin == "grpc 127.0.0.1" && overlay.age.is_some(), "{overlay:?}");
    assert_eq!((overlay.weight, overlay.enabled, overlay.metadata), {
        (Some(0.0), Some(false), map(&[("note", "x"), ("v", "2")]))
    });

    let again = native.register(key.clone(), published).await.instance.unwrap();
    assert_eq!((again.weight, again.enabled, again.metadata["v"].as_str()), (0.0, false, "2"));
    assert_eq!(native.list(list_of("s")).await.total_size, 0, "disabled ones are not for consumers");
    let raw = native.list(pb::ListInstancesRequest { raw: true, ..list_of("s") }).await;
    assert_eq!(raw.total_size, 1);
    assert!(raw.instances[0].since_last_beat.is_some());

    let clear = update(|request| request.update_mask = mask(&["weight", "metadata"]));
    let shown = native.registry.update_instance(clear).await.unwrap().into_inner().instance.unwrap();
    assert_eq!((shown.weight, shown.enabled, shown.metadata["v"].as_str()), (1.0, false, "1"));

    let reset = pb::ResetInstanceOverlayRequest { key: Some(key.clone()) };
    let shown = native.registry.reset_instance_overlay(reset.clone()).await.unwrap().into_inner();
    assert!(shown.instance.clone().unwrap().overlay.is_none());
    let same = native.registry.reset_instance_overlay(reset).await.unwrap().into_inner();
    assert_eq!(same.revision, shown.revision);

    for (field, request) in [
        ("update_mask", update(|_| {})),
        ("update_mask", update(|request| request.update_mask = mask(&["healthy"]))),
        ("weight", update(|request| request.weight = Some(f64::NAN))),
        ("metadata", update(|request| request.metadata = map(&[("k", &"v".repeat(70_000))]))),
        ("key.port", update(|request| request.key.as_mut().unwrap().port = 70_000)),
        ("key", update(|request| request.key = None)),
    ] {
        assert_refused(native.registry.update_instance(request).await, Code::InvalidArgument, field);
    }
    let unknown = update(|request| {
        request.key.as_mut().unwrap().port = 2;
        request.weight = Some(1.0);
    });
    assert_refused(native.registry.update_instance(unknown).await, Code::NotFound, "");

    native.registry.update_instance(update(|request| request.weight = Some(7.0))).await.unwrap();
    let leave = pb::DeregisterInstanceRequest { key: Some(key.clone()), ..Default::default() };
    native.registry.deregister_instance(leave).await.unwrap();
    assert_eq!(native.register(key, Default::default()).await.instance.unwrap().weight, 1.0);
    assert_refused(
        native.registry.reset_instance_overlay(pb::ResetInstanceOverlayRequest { key: Some(instance("s", 9)) }).await,
        Code::NotFound,
        "",
    );
}

#[tokio::test]
async fn lists_filter_by_cluster_and_health_and_protect() {
    let mut native = Native::start().await;
    let sick = pb::InstanceSpec { healthy: Some(false), ..Default::default() };
    native.register(in_cluster("s", 1, "a"), Default::default()).await;
    native.register(in_cluster("s", 2, "a"), sick.clone()).await;
    native.register(in_cluster("s", 3, "b"), sick).await;
    let ports = |answer: &pb::ListInstancesResponse| answer.instances.iter().map(|i| i.port).collect::<Vec<_>>();
    let of = |clusters: &[&str], healthy_only| pb::ListInstancesRequest {
        clusters: clusters.iter().map(|&name| name.to_owned()).collect(),
        healthy_only,
        ..list_of("s")
    };
    assert_eq!(ports(&native.list(of(&[], false)).await), [1, 2, 3]);
    assert_eq!(ports(&native.list(of(&["a"], false)).await), [1, 2]);
    assert_eq!(ports(&native.list(of(&["a", "b", "none"], true)).await), [1]);
    assert_eq!(ports(&native.list(of(&["none"], false)).await), [] as [u32; 0]);
    assert_refused(native.registry.list_instances(of(&["a b"], false)).await, Code::InvalidArgument, "cluster");

    let settings = pb::ServiceSettings { protect_threshold: Some(0.5), ..Default::default() };
    let update = pb::UpdateServiceRequest { key: Some(service("s")), settings: Some(settings), update_mask: None };
    native.catalog.update_service(update).await.unwrap();
    let protected = native.list(of(&[], true)).await;
    assert!(protected.protected && protected.instances.iter().all(|instance| instance.healthy));
    assert_eq!(ports(&protected), [1, 2, 3]);
    let raw = native.list(pb::ListInstancesRequest { raw: true, ..of(&[], false) }).await;
    assert_eq!(raw.instances.iter().map(|i| i.healthy).collect::<Vec<_>>(), [true, false, false]);
}

#[tokio::test]
async fn a_label_selector_picks_by_the_labels_of_the_consumer() {
    let mut native = Native::start().await;
    for (port, zone) in [(1, "a"), (2, "b")] {
        let spec = pb::InstanceSpec { metadata: map(&[("zone", zone)]), ..Default::default() };
        native.register(instance("s", port), spec).await;
    }
    let rule = pb::selector::Rule::Label(pb::LabelSelector { labels: vec!["zone".into()] });
    let settings = pb::ServiceSettings { selector: Some(pb::Selector { rule: Some(rule) }), ..Default::default() };
    let update = pb::UpdateServiceRequest { key: Some(service("s")), settings: Some(settings), update_mask: None };
    native.catalog.update_service(update).await.unwrap();
    for (zone, ports) in [(Some("a"), vec![1]), (Some("b"), vec![2]), (Some("c"), vec![1, 2]), (None, vec![1, 2])] {
        let consumer =
            pb::Consumer { labels: zone.map(|zone| map(&[("zone", zone)])).unwrap_or_default(), ..Default::default() };
        let answer = native.list(pb::ListInstancesRequest { consumer: Some(consumer), ..list_of("s") }).await;
        assert_eq!(answer.instances.iter().map(|i| i.port).collect::<Vec<_>>(), ports, "{zone:?}");
    }
}

#[tokio::test]
async fn pages_give_every_instance_once_and_fit_every_client() {
    let mut native = Native::start().await;
    // 100 of 60 KB each: more than a client takes in one message.
    let spec = pb::InstanceSpec { metadata: map(&[("k", &"v".repeat(60_000))]), ..Default::default() };
    for port in 0..100 {
        native.register(instance("s", port), spec.clone()).await;
    }
    for page_size in [0, 7, 100, i32::MAX] {
        let mut request = pb::ListInstancesRequest { page_size, ..list_of("s") };
        let (mut ports, mut pages) = (Vec::new(), 0);
        loop {
            let answer = native.list(request.clone()).await;
            assert_eq!(answer.total_size, 100);
            assert!(page_size != 7 || answer.instances.len() <= 7);
            ports.extend(answer.instances.iter().map(|instance| instance.port));
            pages += 1;
            if answer.next_page_token.is_empty() {
                break;
            }
            request.page_token = answer.next_page_token;
        }
        assert_eq!(ports, (0..100).collect::<Vec<_>>());
        assert!(pages > 1);
    }
    let bad = pb::ListInstancesRequest { page_size: -1, ..list_of("s") };
    assert_refused(native.registry.list_instances(bad).await, Code::InvalidArgument, "page_size");
    let bad = pb::ListInstancesRequest { page_token: "nonsense".into(), ..list_of("s") };
    assert_refused(native.registry.list_instances(bad).await, Code::InvalidArgument, "page_token");
}

#[tokio::test]
async fn a_silent_instance_becomes_unhealthy_and_goes() {
    let mut native = Native::with(&["registry.expiry_scan=50ms"]).await;
    let spec = pb::InstanceSpec {
        heartbeat_interval: millis(100),
        heartbeat_timeout: millis(300),
        delete_timeout: millis(1_500),
        ..Default::default()
    };
    native.register(instance("s", 1), spec).await;
    let list = native.registry.clone();
    let state = |wanted: Option<bool>| {
        let list = list.clone();
        move || {
            let mut list = list.clone();
            let wanted = wanted;
            async move {
                let seen = list.list_instances(list_of("s")).await.unwrap().into_inner();
                let healthy = seen.instances.first().map(|instance| instance.healthy);
                if healthy == wanted { Ok(()) } else { Err(healthy) }
            }
        }
    };
    wait_until("it is unhealthy", state(Some(false))).await;
    let beat = native.registry.beat(pb::BeatRequest { key: Some(instance("s", 1)) }).await.unwrap().into_inner();
    assert_eq!((beat.result(), beat.beat_interval), (pb::BeatResult::Renewed, millis(100)));
    let now = native.list(list_of("s")).await;
    assert!(now.instances[0].healthy, "a beat heals at once");
    wait_until("it is gone", state(None)).await;
    let beat = native.registry.beat(pb::BeatRequest { key: Some(instance("s", 1)) }).await.unwrap().into_inner();
    assert_eq!((beat.result(), beat.beat_interval), (pb::BeatResult::Unknown, millis(5_000)));
}

#[tokio::test]
async fn many_at_once_all_come_through() {
    let mut native = Native::start().await;
    let mut calls = tokio::task::JoinSet::new();
    for port in 0..500 {
        let mut registry = native.registry.clone();
        calls.spawn(async move {
            let request = pb::RegisterInstanceRequest { key: Some(instance("s", port)), spec: None };
            registry.register_instance(request).await.unwrap();
        });
    }
    calls.join_all().await;
    assert_eq!(native.list(list_of("s")).await.total_size, 500);
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_back() {
    let native = Native::with(&["registry.queue=1"]).await;
    let mut calls = tokio::task::JoinSet::new();
    for port in 0..2_000 {
        let mut registry = native.registry.clone();
        calls.spawn(async move {
            let request = pb::RegisterInstanceRequest { key: Some(instance("s", port)), spec: None };
            registry.register_instance(request).await.err()
        });
    }
    let refused: Vec<_> = calls.join_all().await.into_iter().flatten().collect();
    for status in &refused {
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.get_error_details().retry_info().is_some());
    }
    assert!(!refused.is_empty(), "2,000 calls at once overrun a queue of one");
}
