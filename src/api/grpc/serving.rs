//! Turns calls away while this node does not serve, before a service sees them.

use std::{
    convert::Infallible,
    future::{self, Future},
    pin::Pin,
    task::{Context, Poll},
};

use tonic::{body::Body, server::NamedService};
use tower::Service;

use crate::{api::reply, readiness::ReadinessWatch};

/// A gRPC service whose calls are answered UNAVAILABLE, with the reason, until this node serves. A call that has begun is
/// not ended, nor is one turned away during the drain: those who are connected are served to the end.
#[derive(Debug, Clone)]
pub struct WhenServing<S> {
    inner: S,
    readiness: ReadinessWatch,
}

impl<S> WhenServing<S> {
    /// `inner`, while `readiness` lets it be called.
    pub fn new(inner: S, readiness: ReadinessWatch) -> Self {
        Self { inner, readiness }
    }
}

impl<S: NamedService> NamedService for WhenServing<S> {
    const NAME: &'static str = S::NAME;
}

/// What services that tonic generates answer with.
type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl<S> Service<http::Request<Body>> for WhenServing<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future = Answer>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let refusal = reply::not_serving(&self.readiness.borrow());
        match refusal {
            None => self.inner.call(request),
            Some(status) => Box::pin(future::ready(Ok(status.into_http()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;
    use tonic::Status;
    use tonic_types::StatusExt;

    use super::*;
    use crate::readiness::Readiness;

    #[derive(Debug, Clone)]
    struct Empty;

    impl Service<http::Request<Body>> for Empty {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = Answer;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: http::Request<Body>) -> Answer {
            Box::pin(future::ready(Ok(http::Response::new(Body::empty()))))
        }
    }

    #[tokio::test]
    async fn calls_pass_when_the_node_serves_and_are_told_why_not_else() {
        let (ready, readiness) = watch::channel(Readiness::Starting);
        let mut service = WhenServing::new(Empty, readiness);
        let mut refusal = async || {
            let response = service.call(http::Request::new(Body::empty())).await.unwrap();
            Status::from_header_map(response.headers())
        };
        assert_eq!(refusal().await.unwrap().message(), "this node does not serve: starting");
        ready.send_replace(Readiness::Joining("loading snapshot from b:8848".into()));
        let status = refusal().await.unwrap();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert_eq!(status.message(), "this node does not serve: loading snapshot from b:8848");
        assert!(status.get_error_details().retry_info().is_some());
        for serves in [Readiness::Ready, Readiness::Draining] {
            ready.send_replace(serves);
            assert!(refusal().await.is_none());
        }
    }
}
