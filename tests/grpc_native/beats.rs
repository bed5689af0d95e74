//! The stream of beats.

use nomina::wire::pb::{self, BeatResult, beat_failure::Target};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::{Native, assert_refused, in_cluster, instance, list_of, millis};

struct Beats {
    send: mpsc::Sender<pb::StreamBeatsRequest>,
    answers: Streaming<pb::StreamBeatsResponse>,
    sequence: u64,
}

impl Beats {
    async fn open(native: &mut Native) -> Self {
        let (send, requests) = mpsc::channel(4);
        let answers = native.registry.stream_beats(ReceiverStream::new(requests)).await.unwrap().into_inner();
        Self { send, answers, sequence: 0 }
    }

    async fn ask(&mut self, request: pb::StreamBeatsRequest) -> Result<pb::StreamBeatsResponse, Status> {
        self.sequence += 1;
        self.send.send(pb::StreamBeatsRequest { sequence: self.sequence, ..request }).await.unwrap();
        let answer = self.answers.message().await?.expect("an answer");
        assert_eq!(answer.sequence, self.sequence);
        Ok(answer)
    }
}

fn target(key: pb::InstanceKey, handle: u32) -> pb::BeatTarget {
    pb::BeatTarget { key: Some(key), handle }
}

fn failures(answer: &pb::StreamBeatsResponse) -> Vec<(Target, BeatResult)> {
    answer.failures.iter().map(|failure| (failure.target.unwrap(), failure.result())).collect()
}

#[tokio::test]
async fn names_and_handles_renew_and_only_failures_are_listed() {
    let mut native = Native::start().await;
    for port in 1..=3 {
        native.register(instance("s", port), Default::default()).await;
    }
    let mut beats = Beats::open(&mut native).await;
    let mut wrong_port = instance("s", 4);
    wrong_port.port = 70_000;
    let named = pb::StreamBeatsRequest {
        targets: vec![
            target(instance("s", 1), 11),
            target(instance("s", 9), 19),
            target(wrong_port, 0),
            target(instance("s", 2), 12),
            pb::BeatTarget::default(),
        ],
        ..Default::default()
    };
    let answer = beats.ask(named).await.unwrap();
    assert_eq!(answer.renewed, 2);
    assert_eq!(answer.beat_interval, millis(5_000));
    assert_eq!(
        failures(&answer),
        [
            (Target::Index(1), BeatResult::Unknown),
            (Target::Index(2), BeatResult::Invalid),
            (Target::Index(4), BeatResult::Invalid),
        ]
    );
    assert!(answer.failures[1].detail.contains("70000"), "{}", answer.failures[1].detail);

    let by_handle = pb::StreamBeatsRequest { renew: vec![11, 12, 13, 19], ..Default::default() };
    let answer = beats.ask(by_handle.clone()).await.unwrap();
    assert_eq!(answer.renewed, 2);
    assert_eq!(
        failures(&answer),
        [(Target::Handle(13), BeatResult::Invalid), (Target::Handle(19), BeatResult::Unknown),]
    );

    native.register(instance("s", 9), Default::default()).await;
    let forget = pb::StreamBeatsRequest { forget: vec![11, 77], ..by_handle };
    let answer = beats.ask(forget).await.unwrap();
    assert_eq!(answer.renewed, 2, "an unknown one that was registered keeps its handle");
    assert_eq!(
        failures(&answer),
        [(Target::Handle(11), BeatResult::Invalid), (Target::Handle(13), BeatResult::Invalid),]
    );

    assert_eq!(beats.ask(Default::default()).await.unwrap().renewed, 0);
    drop(beats.send);
    assert!(beats.answers.message().await.unwrap().is_none(), "the stream ends with its client");
}

#[tokio::test]
async fn an_ambiguous_target_fails_alone() {
    let mut native = Native::start().await;
    for cluster in ["a", "b"] {
        native.register(in_cluster("s", 1, cluster), Default::default()).await;
    }
    let mut beats = Beats::open(&mut native).await;
    let targets = vec![target(instance("s", 1), 0), target(in_cluster("s", 1, "a"), 0)];
    let answer = beats.ask(pb::StreamBeatsRequest { targets, ..Default::default() }).await.unwrap();
    assert_eq!((answer.renewed, failures(&answer)), (1, vec![(Target::Index(0), BeatResult::Invalid)]));
}

#[tokio::test]
async fn handles_are_bounded() {
    let mut native = Native::with(&["grpc.max_beat_handles=2"]).await;
    for port in 1..=3 {
        native.register(instance("s", port), Default::default()).await;
    }
    let mut beats = Beats::open(&mut native).await;
    let targets = (1..=3).map(|port| target(instance("s", port), port)).collect();
    let answer = beats.ask(pb::StreamBeatsRequest { targets, ..Default::default() }).await.unwrap();
    assert_eq!((answer.renewed, failures(&answer)), (2, vec![(Target::Index(2), BeatResult::Invalid)]));
    assert!(answer.failures[0].detail.contains("grpc.max_beat_handles"));
    let again = pb::StreamBeatsRequest { targets: vec![target(instance("s", 3), 2)], ..Default::default() };
    assert_eq!(beats.ask(again).await.unwrap().renewed, 1, "a handle can be given anew");

    let many = pb::StreamBeatsRequest {
        targets: (0..65_537).map(|_| pb::BeatTarget::default()).collect(),
        ..Default::default()
    };
    assert_refused(beats.ask(many).await, Code::InvalidArgument, "targets");
}

#[tokio::test]
async fn a_crowd_of_late_instances_recovers_by_one_batch() {
    let mut native = Native::start().await;
    let late = pb::InstanceSpec { healthy: Some(false), ..Default::default() };
    for port in 0..2_000 {
        native.register(instance("s", port), late.clone()).await;
    }
    let mut operator = native.operator.clone();
    let summary = operator.get_metrics_summary(pb::GetMetricsSummaryRequest {}).await.unwrap().into_inner();
    assert_eq!(summary.late_lease_count, 2_000);
    let mut beats = Beats::open(&mut native).await;
    let targets = (0..2_000).map(|port| target(instance("s", port), port + 1)).collect();
    let answer = beats.ask(pb::StreamBeatsRequest { targets, ..Default::default() }).await.unwrap();
    assert_eq!((answer.renewed, answer.failures.len()), (2_000, 0));
    let listed = native.list(pb::ListInstancesRequest { healthy_only: true, ..list_of("s") }).await;
    assert_eq!(listed.total_size, 2_000);
    let summary = operator.get_metrics_summary(pb::GetMetricsSummaryRequest {}).await.unwrap().into_inner();
    assert_eq!(summary.late_lease_count, 0);
}
