//! `BiRequestStream/requestBiStream`: the stream that makes a connection, and lives and ends with it.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderValue, header::CONTENT_TYPE};
use http_body::Frame;
use tonic::{Status, Streaming, body::Body, server::NamedService};
use tower::Service;
use tracing::debug;

use super::{
    Inner, SdkApi,
    envelope::{Envelope, encoding, parts},
};
use crate::{
    api::{
        grpc::transport::{Opening, Transport},
        reply::{self, Draining},
    },
    error::{Classify, Code},
    push::sdk::{ClientFacts, Line, Next},
    readiness::Readiness,
    registry::key::excerpt,
    wire::sdk::{Ack, ConnectionSetupRequest, decode, is_ack, pb::Payload},
};

/// The stream service of the protocol.
#[derive(Debug, Clone)]
pub(super) struct StreamService(SdkApi);

impl StreamService {
    pub(super) fn new(api: SdkApi) -> Self {
        Self(api)
    }
}

impl NamedService for StreamService {
    const NAME: &'static str = super::SERVICES[1];
}

/// The connection has ended; its SDK is to connect anew.
#[derive(Debug, thiserror::Error)]
#[error("this connection has ended; connect anew")]
struct Ended;

impl Classify for Ended {
    fn code(&self) -> Code {
        Code::Unavailable
    }
}

impl Service<http::Request<Body>> for StreamService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        std::future::ready(Ok(self.open(request).unwrap_or_else(|status| status.into_http())))
    }
}

impl StreamService {
    fn open(&self, mut request: http::Request<Body>) -> Result<http::Response<Body>, Status> {
        if request.uri().path() != crate::api::grpc::transport::STREAM_PATH {
            return Err(Status::unimplemented("no such service or method"));
        }
        let Some(transport) = request.extensions().get::<Arc<Transport>>().cloned() else {
            return Err(Status::failed_precondition("this service is on the gRPC port only"));
        };
        let api = self.0.inner.clone();
        if let Some(status) = reply::not_serving(&api.readiness.borrow()) {
            return Err(status);
        }
        if *api.readiness.borrow() == Readiness::Draining || api.shutdown.is_draining() {
            return Err(reply::status(&Draining));
        }
        let opening = request.extensions_mut().remove::<Arc<Opening>>();
        let encoding = encoding(request.headers())?;
        let messages = Streaming::new_request(Envelope, request.into_body(), encoding, Some(api.max_message_bytes));
        let line = api.connections.push().line();
        let outgoing = Outgoing { line: line.clone(), rest: Bytes::new(), ended: false };
        let shutdown = api.shutdown.clone();
        shutdown.spawn(Incoming { api, transport, line, messages, opening }.run());
        let mut response = http::Response::new(Body::new(outgoing));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        Ok(response)
    }
}

/// What the client says on the stream.
struct Incoming {
    api: Arc<Inner>,
    transport: Arc<Transport>,
    line: Arc<Line>,
    messages: Streaming<Payload>,
    /// Of the first stream on a transport. A second one is read, and changes nothing.
    opening: Option<Arc<Opening>>,
}

impl Incoming {
    async fn run(mut self) {
        let mut set_up = false;
        let mut draining = self.api.shutdown.draining();
        loop {
            let message = tokio::select! {
                message = self.messages.message() => message,
                // Who has not set a connection up by then is not waited for.
                () = &mut draining, if !set_up => break,
            };
            let payload = match message {
                Ok(Some(payload)) => payload,
                Ok(None) => break,
                Err(status) => {
                    debug!(connection = self.transport.id(), %status, "the stream of a connection failed");
                    break;
                }
            };
            let (metadata, body) = parts(payload);
            match metadata.r#type.as_str() {
                "ConnectionSetupRequest" if !set_up && self.opening.is_some() => {
                    if !self.set_up(&body).await {
                        break;
                    }
                    set_up = true;
                }
                name if is_ack(name) => match decode::<Ack>(&body) {
                    Ok(ack) => self.line.acknowledge(&ack),
                    Err(unreadable) => debug!(connection = self.transport.id(), %unreadable, "an answer was broken"),
                },
                name => debug!(connection = self.transport.id(), name = excerpt(name), "passed over"),
            }
        }
        // The end of the stream is the end of the connection, and so of the transport.
        self.line.end();
        if set_up {
            self.transport.close();
        }
    }

    /// Returns whether there is a connection now.
    async fn set_up(&mut self, body: &[u8]) -> bool {
        let request: ConnectionSetupRequest = match decode(body) {
            Ok(request) => request,
            Err(unreadable) => {
                debug!(connection = self.transport.id(), %unreadable, "a set-up was broken");
                return false;
            }
        };
        let app = request.labels.iter().find(|(key, _)| key == "AppName").map(|(_, app)| excerpt(app));
        let facts = ClientFacts {
            agent: excerpt(&request.client_version),
            app: app.unwrap_or_default(),
            address: self.transport.peer().to_string(),
        };
        let connections = &self.api.connections;
        match connections.set_up(&self.transport, self.line.clone(), facts, request.negotiates).await {
            Ok(()) => true,
            Err(error) => {
                debug!(connection = self.transport.id(), %error, "a connection was not set up");
                false
            }
        }
    }
}

/// What the client is told: pulls from the line, so that nothing waits in between, and copies nothing.
struct Outgoing {
    line: Arc<Line>,
    /// The part of a message that is still to be sent.
    rest: Bytes,
    ended: bool,
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match ready!(self.line.poll_next(cx)) {
            Next::Message(message) => {
                let [head, shared] = message.framed();
                self.rest = shared;
                Poll::Ready(Some(Ok(Frame::data(head))))
            }
            Next::End => {
                self.ended = true;
                let trailers = reply::status(&Ended).into_http::<()>().into_parts().0.headers;
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
        }
    }
}

impl Drop for Outgoing {
    /// The client has given the stream up, or the transport is gone.
    fn drop(&mut self) {
        self.line.end();
    }
}
