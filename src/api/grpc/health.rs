//! `grpc.health.v1`: whether this node serves, for the whole server ("") and for each service by its name.
//!
//! All follow one readiness. A Watch stream is told NOT_SERVING when the drain starts, and then ends.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus, health_server::Health,
};

use crate::{
    api::reply,
    error::{Classify, Code},
    readiness::{Readiness, ReadinessWatch},
    shutdown::Shutdown,
};

/// Answers `grpc.health.v1.Health`.
#[derive(Debug, Clone)]
pub struct HealthService {
    /// Written by the node only.
    readiness: ReadinessWatch,
    services: Arc<[&'static str]>,
    shutdown: Shutdown,
}

/// The server has no service of this name.
#[derive(Debug, thiserror::Error)]
#[error("this server has no such service")]
struct UnknownService;

impl Classify for UnknownService {
    fn code(&self) -> Code {
        Code::NotFound
    }

    fn field(&self) -> Option<&'static str> {
        Some("service")
    }
}

impl HealthService {
    /// Answers for `services` by what `readiness` holds.
    #[must_use]
    pub fn new(readiness: ReadinessWatch, services: &[&'static str], shutdown: Shutdown) -> Self {
        Self { readiness, services: services.into(), shutdown }
    }

    fn knows(&self, service: &str) -> bool {
        service.is_empty() || self.services.contains(&service)
    }
}

fn answer(ready: bool) -> HealthCheckResponse {
    let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        if !self.knows(&service) {
            return Err(reply::status(&UnknownService));
        }
        Ok(Response::new(answer(*self.readiness.borrow() == Readiness::Ready && !self.shutdown.is_draining())))
    }

    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let known = self.knows(&request.into_inner().service);
        // 1: only the newest status matters, and it is read when there is room for it.
        let (told, stream) = mpsc::channel(1);
        let mut readiness = self.readiness.clone();
        let shutdown = self.shutdown.clone();
        self.shutdown.spawn(async move {
            if !known {
                // The protocol keeps the call open: the service could be added later. Ours never are.
                let unknown = HealthCheckResponse { status: ServingStatus::ServiceUnknown.into() };
                if told.send(Ok(unknown)).await.is_ok() {
                    tokio::select! { () = shutdown.draining() => {}, () = told.closed() => {} }
                }
                return;
            }
            let mut last = None;
            loop {
                let draining = shutdown.is_draining();
                let now = *readiness.borrow_and_update() == Readiness::Ready && !draining;
                if last != Some(now) && told.send(Ok(answer(now))).await.is_err() {
                    return;
                }
                last = Some(now);
                if draining {
                    return;
                }
                tokio::select! {
                    changed = readiness.changed() => if changed.is_err() { return },
                    () = shutdown.draining() => {}
                    () = told.closed() => return,
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;
    use tokio_stream::StreamExt;

    use super::*;

    fn request(service: &str) -> Request<HealthCheckRequest> {
        Request::new(HealthCheckRequest { service: service.to_owned() })
    }

    async fn next(stream: &mut ReceiverStream<Result<HealthCheckResponse, Status>>) -> Option<ServingStatus> {
        stream.next().await.map(|told| told.unwrap().status())
    }

    #[tokio::test]
    async fn watchers_follow_readiness_and_end_on_drain() {
        let (ready, follow) = watch::channel(Readiness::Starting);
        let shutdown = Shutdown::new();
        let health = HealthService::new(follow, &["a.B"], shutdown.clone());
        for service in ["", "a.B"] {
            let status = health.check(request(service)).await.unwrap().into_inner().status();
            assert_eq!(status, ServingStatus::NotServing);
        }
        let mut stream = health.watch(request("a.B")).await.unwrap().into_inner();
        assert_eq!(next(&mut stream).await, Some(ServingStatus::NotServing));
        ready.send(Readiness::Ready).unwrap();
        assert_eq!(next(&mut stream).await, Some(ServingStatus::Serving));
        shutdown.drain();
        assert_eq!(next(&mut stream).await, Some(ServingStatus::NotServing));
        assert_eq!(next(&mut stream).await, None);
    }

    #[tokio::test]
    async fn an_unknown_service_is_not_found_and_watched_as_unknown() {
        let (_ready, follow) = watch::channel(Readiness::Ready);
        let health = HealthService::new(follow, &["a.B"], Shutdown::new());
        let error = health.check(request("a.C")).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::NotFound);
        let mut stream = health.watch(request("a.C")).await.unwrap().into_inner();
        assert_eq!(next(&mut stream).await, Some(ServingStatus::ServiceUnknown));
    }
}
