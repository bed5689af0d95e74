//! Ends open streams when the process drains, for services that know nothing of a drain themselves.
//!
//! tonic's graceful shutdown waits for every open stream, so one idle client could hold it up for ever.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::Frame;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::{Status, body::Body, server::NamedService};
use tower::Service;

use crate::api::reply::{self, Draining};

/// A gRPC service whose requests end when `drain` is cancelled, and whose answers then end with UNAVAILABLE.
#[derive(Debug, Clone)]
pub struct EndOnDrain<S> {
    inner: S,
    drain: CancellationToken,
}

impl<S> EndOnDrain<S> {
    /// `inner`, ended by `drain`.
    pub fn new(inner: S, drain: CancellationToken) -> Self {
        Self { inner, drain }
    }
}

impl<S: NamedService> NamedService for EndOnDrain<S> {
    const NAME: &'static str = S::NAME;
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl<S> Service<http::Request<Body>> for EndOnDrain<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        // Both directions: a task of the service that waits for the client's next message keeps the call open as well.
        let drain = self.drain.clone();
        let ending = move |inner, goodbye| {
            let end = Box::pin(drain.clone().cancelled_owned());
            Body::new(Ending { inner, end, goodbye, ended: false })
        };
        let answer = self.inner.call(request.map(|inner| ending(inner, false)));
        Box::pin(async move { answer.await.map(|response| response.map(|inner| ending(inner, true))) })
    }
}

/// A body that ends early when the drain starts.
struct Ending {
    inner: Body,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether it ends with trailers that say why.
    goodbye: bool,
    ended: bool,
}

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // What is there already goes out first.
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        ready!(self.end.as_mut().poll(cx));
        self.ended = true;
        if !self.goodbye {
            return Poll::Ready(None);
        }
        let trailers = reply::status(&Draining).into_http::<()>().into_parts().0.headers;
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[derive(Clone)]
    struct Silent;

    impl Service<http::Request<Body>> for Silent {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<http::Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: http::Request<Body>) -> Self::Future {
            let silent = http_body_util::StreamBody::new(tokio_stream::pending::<Result<Frame<Bytes>, Status>>());
            std::future::ready(Ok(http::Response::new(Body::new(silent))))
        }
    }

    #[tokio::test]
    async fn an_open_stream_ends_with_unavailable() {
        let drain = CancellationToken::new();
        let response = EndOnDrain::new(Silent, drain.clone()).call(http::Request::new(Body::empty())).await.unwrap();
        drain.cancel();
        let trailers = response.into_body().collect().await.unwrap().trailers().cloned().unwrap();
        assert_eq!(Status::from_header_map(&trailers).unwrap().code(), tonic::Code::Unavailable);
    }
}
