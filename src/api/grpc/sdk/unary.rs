//! `Request/request`: every question of an SDK, through one gate.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tonic::{
    Request, Response, Status,
    body::Body,
    codec::CompressionEncoding,
    server::{Grpc, NamedService, UnaryService as Handler},
};
use tower::Service;

use super::{
    Inner, SdkApi,
    envelope::{Envelope, parts},
};
use crate::{
    api::grpc::{connection::Connection, transport::Transport},
    error::{Classify, Code},
    naming,
    readiness::Readiness,
    registry::{self, Kind as InstanceKind},
    wire::sdk::{
        Extra, Fault, Head, Kind, Message, Reply, decode, error_code, error_codes as codes, is_between_servers,
        pb::Payload,
    },
};

/// How long an answer waits that says "too much", so that clients which try again at once do not make it worse (Nacos).
const COOL_DOWN: Duration = Duration::from_secs(1);

/// The unary service of the protocol.
#[derive(Debug, Clone)]
pub(super) struct UnaryService(SdkApi);

impl UnaryService {
    pub(super) fn new(api: SdkApi) -> Self {
        Self(api)
    }
}

impl NamedService for UnaryService {
    const NAME: &'static str = super::SERVICES[0];
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl Service<http::Request<Body>> for UnaryService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        if request.uri().path() != "/Request/request" {
            return Box::pin(async { Ok(Status::unimplemented("no such service or method").into_http()) });
        }
        let handler = Question(self.0.inner.clone());
        Box::pin(async move {
            let mut grpc = Grpc::new(Envelope)
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(handler.0.max_message_bytes);
            Ok(grpc.unary(handler, request).await)
        })
    }
}

struct Question(Arc<Inner>);

impl Handler<Payload> for Question {
    type Response = Message;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Message>, Status>> + Send>>;

    fn call(&mut self, request: Request<Payload>) -> Self::Future {
        let api = self.0.clone();
        Box::pin(async move {
            let Some(transport) = request.extensions().get::<Arc<Transport>>().cloned() else {
                return Err(Status::failed_precondition("this service is on the gRPC port only"));
            };
            let (metadata, body) = parts(request.into_inner());
            let kind = Kind::named(&metadata.r#type);
            let head = decode::<Head>(&body);
            let request_id = head.as_ref().map_or("", |head| head.request_id.as_str()).to_owned();
            let readable = head.map(|_| ());
            let reply = match api.admit(&transport, &metadata.r#type, readable.is_ok()).await {
                Ok((kind, connection)) => api.answer(kind, &connection, &metadata, &body).await,
                Err(reply) => reply,
            };
            api.counters.note(kind, reply.code());
            if reply.code() == codes::OVER_THRESHOLD {
                tokio::time::sleep(COOL_DOWN).await;
            }
            Ok(Response::new(reply.into_message(&request_id)))
        })
    }
}

impl Inner {
    /// What stands before every handler, in the order in which SDKs rely on it.
    ///
    /// # Errors
    /// The answer in place of the handler's.
    async fn admit(&self, transport: &Transport, name: &str, readable: bool) -> Result<(Kind, Arc<Connection>), Reply> {
        let kind = Kind::named(name);
        if is_between_servers(name) {
            return Err(error(codes::BAD_GATEWAY, format!(" invoke {name} from sdk is forbidden")));
        }
        let readiness = self.readiness.borrow().clone();
        let turned_away = match readiness {
            Readiness::Starting => true,
            // Who is connected and asks whether it should stay must not hear 3xx: see below.
            Readiness::Joining(_) => kind != Some(Kind::HealthCheck),
            // Who is connected is served to the end.
            Readiness::Draining => kind == Some(Kind::ServerCheck),
            Readiness::Ready => false,
        };
        if turned_away {
            return Err(error(codes::NOT_READY, "Server is starting,please try later.".to_owned()));
        }
        let Some(kind) = kind else {
            return Err(error(codes::NO_HANDLER, "RequestHandler Not Found".to_owned()));
        };
        if kind == Kind::ServerCheck {
            return Err(Reply::ok(kind, Extra::Check(transport.id().to_owned())));
        }
        let bound = self.connections.push().settings().setup_wait;
        let connection = transport.connection(bound).await;
        let Some(connection) = connection.filter(|connection| connection.is_open()) else { return Err(gone(kind)) };
        if kind == Kind::HealthCheck {
            connection.line().heard();
            // Go and Python take 3xx for healthy; anything else makes them look for another server.
            return Err(match readiness {
                Readiness::Draining => error(codes::SERVER, "Server is shutting down.".to_owned()),
                Readiness::Joining(reason) => error(codes::SERVER, format!("Server does not serve: {reason}.")),
                Readiness::Ready | Readiness::Starting => Reply::ok(kind, Extra::None),
            });
        }
        if !readable {
            return Err(error(codes::BAD_GATEWAY, "the body of the request is not a JSON object".to_owned()));
        }
        connection.line().heard();
        Ok((kind, connection))
    }

    async fn answer(
        &self,
        kind: Kind,
        connection: &Arc<Connection>,
        metadata: &crate::wire::sdk::pb::Metadata,
        body: &[u8],
    ) -> Reply {
        let answered = match kind {
            Kind::Instance => self.instance(connection, InstanceKind::Ephemeral, body).await,
            Kind::PersistentInstance => self.instance(connection, InstanceKind::Persistent, body).await,
            Kind::BatchInstance => self.batch(connection, body).await,
            Kind::ServiceQuery => self.query(connection, body),
            Kind::SubscribeService => self.subscribe(connection, metadata, body),
            Kind::ServiceList => self.list(body),
            Kind::FuzzyWatch => self.watch_names(connection, body),
            Kind::ServerCheck | Kind::HealthCheck => Ok(Reply::ok(kind, Extra::None)),
            Kind::ConfigBatchListen => Ok(Reply::ok(kind, Extra::NoConfigs)),
            Kind::ConfigQuery => {
                // 300 is "not found" there; Java then goes on without a configuration.
                let fault = Fault { code: codes::NOT_READY, message: "config data not exist".to_owned() };
                Ok(Reply::failed(kind, fault, Extra::None))
            }
            Kind::ConfigPublish | Kind::ConfigRemove => {
                let message = "this server keeps no configurations, only services".to_owned();
                Ok(Reply::failed(kind, Fault { code: codes::UNSUPPORTED, message }, Extra::None))
            }
        };
        answered.unwrap_or_else(|refused| refused)
    }
}

/// An `ErrorResponse`.
pub(super) fn error(code: u16, message: String) -> Reply {
    Reply::error(Fault { code, message })
}

/// The body of a request that was admitted cannot be read after all: a field has a value of another type.
pub(super) fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Reply> {
    decode(body).map_err(|unreadable| error(codes::BAD_GATEWAY, unreadable.to_string()))
}

/// The answer where there is no connection. For a health check not 301: Go and Python read every 3xx as healthy, and
/// would never come back.
pub(super) fn gone(kind: Kind) -> Reply {
    let code = if kind == Kind::HealthCheck { codes::SERVER } else { codes::UNREGISTERED };
    error(code, "Connection is unregistered.".to_owned())
}

/// The answer for an error of ours: typed where SDKs are to show it to their caller, an `ErrorResponse` where they are to
/// try again or to connect anew. `extra` is what a typed answer needs to be readable.
pub(super) fn refuse(kind: Kind, fault: &(impl Classify + ?Sized), extra: Extra) -> Reply {
    let code = error_code(fault.code());
    let message = fault.to_string();
    match fault.code() {
        Code::InvalidArgument => {
            let message = format!("Param check invalid:{message}");
            Reply::failed(kind, Fault { code, message }, extra)
        }
        Code::ResourceExhausted | Code::PermissionDenied | Code::Unimplemented | Code::AlreadyExists => {
            Reply::failed(kind, Fault { code, message }, extra)
        }
        Code::FailedPrecondition | Code::NotFound => Reply::refused(Fault { code, message }),
        Code::Unavailable | Code::Internal => error(code, message),
    }
}

/// As [`refuse`], for the errors of `naming`.
pub(super) fn refuse_naming(kind: Kind, fault: &naming::Error, extra: Extra) -> Reply {
    match fault {
        naming::Error::Registry(registry::Error::ConnectionGone) => gone(kind),
        naming::Error::Registry(registry::Error::KindConflict { service, present, asked }) => {
            let message = format!(
                "errCode: 400, errMsg: Current service {service} is {present} service, can't register {asked} instance. "
            );
            Reply::refused(Fault { code: codes::INVALID, message })
        }
        other => refuse(kind, other, extra),
    }
}
