//! Switches and figures.

use nomina::wire::pb;
use tonic::Code;

use crate::{Native, assert_refused, instance, mask, millis};

#[tokio::test]
async fn switches_turn_one_by_one() {
    let mut native = Native::start().await;
    let now = native.operator.get_switches(pb::GetSwitchesRequest {}).await.unwrap().into_inner().switches.unwrap();
    assert_eq!((now.client_beat_interval, now.health_check_enabled), (millis(5_000), true));
    let new = pb::Switches { client_beat_interval: millis(1_500), ..Default::default() };
    let update = |paths: &[&str]| pb::UpdateSwitchesRequest { switches: Some(new), update_mask: mask(paths) };
    let after = native.operator.update_switches(update(&["client_beat_interval"])).await.unwrap().into_inner();
    assert_eq!(after.switches, Some(pb::Switches { client_beat_interval: millis(1_500), ..now }));

    native.register(instance("s", 1), Default::default()).await;
    let beat = native.registry.beat(pb::BeatRequest { key: Some(instance("s", 1)) }).await.unwrap().into_inner();
    assert_eq!(beat.beat_interval, millis(1_500));

    for (field, request) in [
        ("update_mask", update(&[])),
        ("update_mask", update(&["nonsense"])),
        ("switches.push_cache_interval", update(&["push_cache_interval"])),
        ("switches", pb::UpdateSwitchesRequest::default()),
    ] {
        assert_refused(native.operator.update_switches(request).await, Code::InvalidArgument, field);
    }
    let kept = native.operator.get_switches(pb::GetSwitchesRequest {}).await.unwrap().into_inner();
    assert_eq!(kept.switches, after.switches, "a refused change changes nothing");
}

#[tokio::test]
async fn the_summary_counts() {
    let mut native = Native::with(&["registry.brake=true", "registry.brake_share=0.75"]).await;
    for port in 0..3 {
        native.register(instance("s", port), Default::default()).await;
    }
    native.register(instance("t", 1), Default::default()).await;
    let summary = native.operator.get_metrics_summary(pb::GetMetricsSummaryRequest {}).await.unwrap().into_inner();
    assert_eq!((summary.namespace_count, summary.service_count, summary.instance_count), (1, 2, 4));
    assert_eq!((summary.lease_count, summary.late_lease_count, summary.subscriber_count), (4, 0, 0));
    assert!(summary.ready && summary.not_ready_reason.is_empty());
    assert_eq!(summary.version, env!("CARGO_PKG_VERSION"));
    assert!(summary.uptime.is_some());
    let brake = summary.eviction_brake.unwrap();
    assert_eq!((brake.enabled, brake.engaged, brake.threshold), (true, false, 0.75));
    assert!(summary.write_queue.unwrap().capacity > 0);
    assert_eq!(summary.freeze_guard.unwrap().freezes, 0);
}
