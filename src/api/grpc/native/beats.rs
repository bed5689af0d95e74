//! `StreamBeats`: very many leases renewed over one stream.
//!
//! A beat of a healthy instance is a look-up and a store, here on the spot. Instances that were unhealthy go through the
//! apply loop, many at once, so that a registry full of late ones recovers in seconds.

use std::{collections::HashMap, future::Future, pin::pin, task::Poll};

use tonic::{Status, Streaming};

use super::{NativeApi, outbox::Outbox};
use crate::{
    api::reply,
    error::{Classify, Code},
    naming::{Beat, BeatResult, Error, Held, Pulse},
    registry::{ServiceKey, Target},
    wire::{
        native::{DecodeError, duration, instance},
        pb::{self, beat_failure::Target as Which},
    },
};

/// Most named targets of one request. Bounds the answer, which may have to list each.
const MOST_TARGETS: usize = 65_536;
/// Most handles of one request, for the same reason; a failure costs less to list.
const MOST_HANDLES: usize = 1_048_576;
/// Failures of one answer that are explained; the rest has its result only.
const MOST_DETAILS: usize = 100;
/// Late instances that are renewed at once: what the apply loop takes as one batch.
const AT_ONCE: usize = 256;
/// Beats between two moments at which other tasks get their turn: about 1 ms.
const TURN: usize = 4_096;

/// What one stream of beats knows.
struct Session {
    api: NativeApi,
    held: HashMap<u32, Held, ahash::RandomState>,
}

/// The answer that is being put together.
#[derive(Default)]
struct Answer {
    renewed: u32,
    failures: Vec<pb::BeatFailure>,
    late: Vec<(Which, ServiceKey, Target)>,
}

impl Answer {
    fn fail(&mut self, which: Which, result: pb::BeatResult, detail: impl FnOnce() -> String) {
        let detail = if self.failures.len() < MOST_DETAILS { detail() } else { String::new() };
        self.failures.push(pb::BeatFailure { result: result.into(), detail, target: Some(which) });
    }

    fn refuse(&mut self, which: Which, error: &impl Classify) {
        let result = match error.code() {
            Code::ResourceExhausted | Code::Unavailable | Code::Internal => pb::BeatResult::Retry,
            Code::NotFound => pb::BeatResult::Unknown,
            Code::InvalidArgument
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::PermissionDenied
            | Code::Unimplemented => pb::BeatResult::Invalid,
        };
        self.fail(which, result, || error.to_string());
    }

    fn note(&mut self, which: Which, pulse: Result<Pulse, Error>) {
        match pulse {
            Ok(Pulse::Renewed) => self.renewed += 1,
            Ok(Pulse::Late(service, target)) => self.late.push((which, service, target)),
            Ok(Pulse::Unknown) => self.fail(which, pb::BeatResult::Unknown, String::new),
            Err(error) => self.refuse(which, &error),
        }
    }
}

impl NativeApi {
    pub(super) fn start_beats(&self, requests: Streaming<pb::StreamBeatsRequest>) -> Outbox<pb::StreamBeatsResponse> {
        // 1: an answer waits while the next request is worked; a client that reads none is read no further.
        let (out, outbox) = Outbox::new(1, self.shutdown.clone());
        let session = Session { api: self.clone(), held: HashMap::default() };
        let shutdown = self.shutdown.clone();
        self.shutdown.spawn(async move {
            let work = session.answer_all(requests, |answer| out.send(answer));
            tokio::select! {
                () = work => {}
                () = shutdown.draining() => {}
                () = out.closed() => {}
            }
        });
        outbox
    }
}

impl Session {
    /// Answers every request until there is no more, or one cannot be read.
    async fn answer_all<E, F: Future<Output = Result<(), E>>>(
        mut self,
        mut requests: Streaming<pb::StreamBeatsRequest>,
        send: impl Fn(Result<pb::StreamBeatsResponse, Status>) -> F,
    ) {
        loop {
            let answer = match requests.message().await {
                Ok(Some(request)) => self.answer(request).await,
                Ok(None) => return,
                Err(status) => Err(reply::unreadable(&status)),
            };
            let last = answer.is_err();
            if send(answer).await.is_err() || last {
                return;
            }
        }
    }

    async fn answer(&mut self, request: pb::StreamBeatsRequest) -> Result<pb::StreamBeatsResponse, Status> {
        let pb::StreamBeatsRequest { sequence, targets, renew, forget } = request;
        within("targets", targets.len(), MOST_TARGETS, "at most 65536 targets")?;
        within("renew", renew.len(), MOST_HANDLES, "at most 1048576 handles")?;
        for handle in forget {
            self.held.remove(&handle);
        }
        let mut answer = Answer::default();
        for (index, target) in (0_u32..).zip(targets) {
            self.beat_target(index, target, &mut answer);
            take_turns(index as usize).await;
        }
        for (index, handle) in renew.into_iter().enumerate() {
            match self.held.get_mut(&handle) {
                Some(held) => answer.note(Which::Handle(handle), self.api.naming.pulse_held(held)),
                None => answer.fail(Which::Handle(handle), pb::BeatResult::Invalid, || {
                    format!("handle {handle} was not declared in this stream")
                }),
            }
            take_turns(index).await;
        }
        self.renew_late(&mut answer).await;
        let interval = std::time::Duration::from_millis(self.api.naming.switches().client_beat_interval);
        Ok(pb::StreamBeatsResponse {
            sequence,
            renewed: answer.renewed,
            failures: answer.failures,
            beat_interval: Some(duration(interval)),
        })
    }

    fn beat_target(&mut self, index: u32, target: pb::BeatTarget, answer: &mut Answer) {
        let which = Which::Index(index);
        let naming = &self.api.naming;
        let (service, named) = match instance::key(naming.limits(), target.key.as_ref()) {
            Ok(key) => key,
            Err(error) => return answer.refuse(which, &error),
        };
        if target.handle == 0 {
            return answer.note(which, naming.pulse(&service, &named));
        }
        let limit = self.api.settings.max_beat_handles;
        if self.held.len() >= limit && !self.held.contains_key(&target.handle) {
            return answer.fail(which, pb::BeatResult::Invalid, || {
                format!("this stream has declared {limit} handles, the setting grpc.max_beat_handles allows no more")
            });
        }
        let mut held = Held::new(service, named);
        answer.note(which, naming.pulse_held(&mut held));
        self.held.insert(target.handle, held);
    }

    /// Has the apply loop make the late instances healthy, or asks their owners.
    async fn renew_late(&self, answer: &mut Answer) {
        let mut late = std::mem::take(&mut answer.late).into_iter();
        loop {
            let (names, beats): (Vec<_>, Vec<_>) = late
                .by_ref()
                .take(AT_ONCE)
                .map(|(which, service, target)| {
                    let naming = self.api.naming.clone();
                    (which, async move { naming.beat(service, &target, None).await })
                })
                .unzip();
            if names.is_empty() {
                return;
            }
            for (which, beat) in names.into_iter().zip(join(beats).await) {
                match beat {
                    Ok(Beat { result: BeatResult::Renewed(_) | BeatResult::Registered(_), .. }) => answer.renewed += 1,
                    Ok(Beat { result: BeatResult::Unknown, .. }) => {
                        answer.fail(which, pb::BeatResult::Unknown, String::new);
                    }
                    Err(error) => answer.refuse(which, &error),
                }
            }
        }
    }
}

/// Lets other tasks run now and then.
async fn take_turns(count: usize) {
    if count % TURN == TURN - 1 {
        tokio::task::yield_now().await;
    }
}

fn within(field: &'static str, count: usize, most: usize, allowed: &'static str) -> Result<(), Status> {
    if count <= most {
        return Ok(());
    }
    let value = i64::try_from(count).unwrap_or(i64::MAX);
    Err(reply::status(&DecodeError::Range { field, value, allowed }))
}

/// Runs all `futures` at once; their results in order.
async fn join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    let all = std::future::poll_fn(|cx| {
        let mut waiting = false;
        for (future, result) in &mut running {
            if result.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(output) => *result = Some(output),
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    });
    pin!(all).await;
    running.into_iter().filter_map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn joined_futures_run_at_once_and_answer_in_order() {
        let clock = crate::clock::Clock::start();
        let sleep = |ms| async move {
            tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
            ms
        };
        assert_eq!(join(vec![sleep(30), sleep(10), sleep(20)]).await, [30, 10, 20]);
        assert!(clock.now().as_millis() < 60);
    }
}
