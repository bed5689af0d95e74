use std::{
    num::NonZeroU64,
    task::{Context, Poll, Waker},
    time::Duration,
};

use prost::Message as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    clock::Clock,
    naming::Naming,
    registry::{
        ClusterName, InstanceKey, Limits, Publication, ServiceKey, instance::ConnectionId, select::Query,
        switches::SwitchChange,
    },
    wire::sdk::{Ack, UNARY_PREFIX, pb},
};

struct Place {
    naming: Naming,
    push: SdkPush,
    subscribers: Subscribers,
    clock: Clock,
}

const PUBLISHER: ConnectionId = ConnectionId::new(NonZeroU64::MIN);

async fn place(settings: Settings) -> Place {
    let (shutdown, clock, limits) = (Shutdown::new(), Clock::start(), Limits::default());
    let registry = RegistryHandle::start(crate::registry::Settings::default(), limits.clone(), clock, &shutdown);
    let subscribers = Subscribers::default();
    let push = SdkPush::new(registry.clone(), subscribers.clone(), settings, shutdown);
    let naming = Naming::new(registry, limits);
    naming.open_connection(PUBLISHER).await.unwrap();
    Place { naming, push, subscribers, clock }
}

fn service() -> ServiceKey {
    Limits::default().service_key("", "", "s").unwrap()
}

impl Place {
    async fn publish(&self, ports: std::ops::Range<i64>, cluster: &str) {
        let limits = Limits::default();
        let cluster = limits.cluster(cluster).unwrap().unwrap_or_else(ClusterName::default);
        let instance = |port| {
            let endpoint = limits.endpoint("10.0.0.1", port).unwrap();
            (InstanceKey { endpoint, cluster: cluster.clone() }, Publication::default())
        };
        self.naming.publish(PUBLISHER, service(), ports.map(instance).collect()).await.unwrap();
    }
}

fn next(line: &Line) -> Option<(String, Value)> {
    match line.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Next::Message(message)) => {
            let whole = message.framed().concat();
            let payload = pb::Payload::decode(&whole[UNARY_PREFIX..]).unwrap();
            let body = serde_json::from_slice(&payload.body.unwrap().value).unwrap();
            Some((payload.metadata.unwrap().r#type, body))
        }
        Poll::Ready(Next::End) => panic!("the line has ended"),
        Poll::Pending => None,
    }
}

fn ack(line: &Line, message: &Value, result: i64) {
    let request_id = message["requestId"].as_str().unwrap().to_owned();
    line.acknowledge(&Ack { request_id, result_code: Some(result) });
}

fn hosts(message: &Value) -> usize {
    message["serviceInfo"]["hosts"].as_array().unwrap().len()
}

/// Lets every task run that can.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn one_push_at_a_time_and_the_newest_state_wins() {
    let place = place(Settings::default()).await;
    let line = place.push.line();
    let first = line.subscribe(&service(), "", Query::default(), None).unwrap();
    assert_eq!(place.subscribers.count(), 1);
    settle().await;
    assert!(next(&line).is_none());
    place.publish(0..1, "").await;
    settle().await;
    let (name, push) = next(&line).unwrap();
    assert_eq!((name.as_str(), hosts(&push)), ("NotifySubscriberRequest", 1));
    for count in 2..6 {
        place.publish(0..count, "").await;
        settle().await;
        assert!(next(&line).is_none(), "the first is not acknowledged");
    }
    ack(&line, &push, 200);
    let (_, second) = next(&line).unwrap();
    assert_eq!(hosts(&second), 5);
    let times = [&push, &second].map(|push| push["serviceInfo"]["lastRefTime"].as_u64().unwrap());
    assert!(first.last_ref_time < times[0] && times[0] < times[1]);
    ack(&line, &second, 200);
    assert!(next(&line).is_none());
    assert!(line.unsubscribe(&service(), ""));
    assert_eq!((place.subscribers.count(), place.push.figures().topics), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_merged_and_a_single_change_is_not_delayed() {
    let place = place(Settings::default()).await;
    let line = place.push.line();
    let _ = line.subscribe(&service(), "", Query::default(), None).unwrap();
    place.publish(0..1, "").await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let (_, push) = next(&line).unwrap();
    ack(&line, &push, 200);
    let mut pushes = 0;
    for count in 2..1_000 {
        place.publish(0..count % 7 + 1, "").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        if let Some((_, push)) = next(&line) {
            ack(&line, &push, 200);
            pushes += 1;
        }
    }
    assert!((3..12).contains(&pushes), "{pushes}");
}

#[tokio::test(start_paused = true)]
async fn clusters_come_back_to_the_letter_and_other_clusters_are_not_pushed() {
    let place = place(Settings::default()).await;
    let line = place.push.line();
    let query = Query { clusters: Some(vec![Limits::default().cluster("c1").unwrap().unwrap()]), ..Query::default() };
    let answer = line.subscribe(&service(), " c1", query, None).unwrap();
    assert_eq!(answer.clusters, " c1");
    place.publish(0..3, "c2").await;
    settle().await;
    assert!(next(&line).is_none());
    place.publish(0..2, "c1").await;
    settle().await;
    let (_, push) = next(&line).unwrap();
    assert_eq!((hosts(&push), &push["serviceInfo"]["clusters"]), (2, &json!(" c1")));
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_while_pushing_was_off_is_pushed_when_it_is_on_again() {
    let place = place(Settings::default()).await;
    let (line, other) = (place.push.line(), place.push.line());
    let _ = line.subscribe(&service(), "", Query::default(), None).unwrap();
    let switch = |on| place.naming.turn_switch(SwitchChange::PushEnabled(on));
    switch(false).await.unwrap();
    place.publish(0..2, "").await;
    settle().await;
    assert!(next(&line).is_none());
    // This one was told when it subscribed.
    let _ = other.subscribe(&service(), "", Query::default(), None).unwrap();
    switch(true).await.unwrap();
    settle().await;
    assert_eq!(hosts(&next(&line).unwrap().1), 2);
    assert!(next(&other).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_acknowledges_is_given_up() {
    let place = place(Settings::default()).await;
    let line = place.push.line();
    let _ = line.subscribe(&service(), "", Query::default(), None).unwrap();
    place.publish(0..1, "").await;
    let mut sent = 0;
    for _ in 0..60 {
        settle().await;
        line.heard();
        sent += usize::from(next(&line).is_some());
        if line.sweep(place.clock.now(), Mono::ZERO) == Verdict::Unresponsive {
            assert_eq!(sent, 4);
            assert_eq!(place.push.figures().repeated, 3);
            return;
        }
    }
    panic!("never given up");
}

#[tokio::test(start_paused = true)]
async fn a_refused_push_is_repeated_and_then_left() {
    let place = place(Settings::default()).await;
    let line = place.push.line();
    let _ = line.subscribe(&service(), "", Query::default(), None).unwrap();
    place.publish(0..1, "").await;
    let mut sent = 0;
    for _ in 0..20 {
        settle().await;
        if let Some((_, push)) = next(&line) {
            ack(&line, &push, 500);
            sent += 1;
        }
        assert_eq!(line.sweep(place.clock.now(), Mono::ZERO), Verdict::Keep);
    }
    assert_eq!(sent, 4);
    place.publish(0..2, "").await;
    settle().await;
    assert_eq!(hosts(&next(&line).unwrap().1), 2);
}

#[tokio::test(start_paused = true)]
async fn silence_is_asked_about_and_a_frozen_process_asks_nobody() {
    let place = place(Settings::default()).await;
    let line = place.push.line();
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(line.sweep(place.clock.now(), Mono::ZERO), Verdict::Keep);
    assert!(next(&line).is_none());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(line.sweep(place.clock.now(), Mono::ZERO), Verdict::Keep);
    let (name, question) = next(&line).unwrap();
    assert_eq!(name, "ClientDetectionRequest");
    tokio::time::sleep(Duration::from_secs(4)).await;
    ack(&line, &question, 200);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(line.sweep(place.clock.now(), Mono::ZERO), Verdict::Keep);

    tokio::time::sleep(Duration::from_secs(100)).await;
    let thaw = place.clock.now();
    assert_eq!(line.sweep(place.clock.now(), thaw), Verdict::Keep);
    assert!(next(&line).is_none());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(line.sweep(place.clock.now(), thaw), Verdict::Keep);
    assert!(next(&line).is_some());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(line.sweep(place.clock.now(), thaw), Verdict::Silent);
}

#[tokio::test(start_paused = true)]
async fn names_are_told_as_they_come_and_go() {
    let place = place(Settings::default()).await;
    let line = place.push.line();
    let text = "public>>DEFAULT_GROUP>>*";
    let pattern = Pattern::parse(&Limits::default(), text).unwrap();
    assert_eq!(line.watch_names(text, pattern, &BTreeSet::new(), true), Ok(false));
    let (_, finish) = next(&line).unwrap();
    assert_eq!(finish["syncType"], "FINISH_FUZZY_WATCH_INIT_NOTIFY");
    ack(&line, &finish, 200);
    for (ports, change) in [(0..1, "ADD_SERVICE"), (0..0, "DELETE_SERVICE")] {
        place.publish(ports, "").await;
        settle().await;
        let (_, notice) = next(&line).unwrap();
        assert_eq!(notice["changedType"], change);
        assert_eq!(notice["serviceKey"], "public@@DEFAULT_GROUP@@s");
        ack(&line, &notice, 200);
    }
    line.end();
    assert_eq!(place.push.figures().name_watchers, 0);
}

#[tokio::test(start_paused = true)]
async fn limits_and_the_end_are_told() {
    let settings = Settings { max_subscriptions: 1, max_patterns: 0, ..Settings::default() };
    let place = place(settings).await;
    let line = place.push.line();
    let _ = line.subscribe(&service(), "", Query::default(), None).unwrap();
    let _ = line.subscribe(&service(), "", Query::default(), None).unwrap();
    let refused = line.subscribe(&service(), "a", Query::default(), None).unwrap_err();
    assert_eq!(refused, Refusal::TooManySubscriptions { most: 1 });
    let pattern = Pattern::parse(&Limits::default(), "a>>b>>c").unwrap();
    let refused = line.watch_names("a>>b>>c", pattern, &BTreeSet::new(), false).unwrap_err();
    assert_eq!(refused, Refusal::TooManyPatterns { most: 0 });
    line.end();
    assert_eq!(place.subscribers.count(), 0);
    assert!(matches!(line.poll_next(&mut Context::from_waker(Waker::noop())), Poll::Ready(Next::End)));
}

#[tokio::test(start_paused = true)]
async fn empty_pushes_can_be_held_back() {
    let place = place(Settings { hold_empty_pushes: true, ..Settings::default() }).await;
    place.publish(0..2, "").await;
    let line = place.push.line();
    let _ = line.subscribe(&service(), "", Query::default(), None).unwrap();
    place.publish(0..0, "").await;
    settle().await;
    assert!(next(&line).is_none());
    place.publish(0..1, "").await;
    settle().await;
    assert_eq!(hosts(&next(&line).unwrap().1), 1);
}
