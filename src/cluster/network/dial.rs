//! Reaches the other members over the network: one HTTP/2 connection to each, made when it is first needed, shared by all
//! that is said to that member, and made anew after it broke.

use std::{
    collections::HashMap,
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, body::Body};
use tower::Service;
use tracing::debug;

use super::{
    handshake::{self, Identity},
    http2, secure,
    severable::Severable,
    stream::{Outgoing, deliver},
    tls::Tls,
};
use crate::cluster::{
    member::MemberName,
    transport::{BoxFuture, Dialled, LINK_CAPACITY, Link, Transport, Unreachable},
};
use crate::{
    shutdown::Shutdown,
    wire::pb::peer::{self as pb, peer_service_client::PeerServiceClient},
};

/// Finds the addresses of a member's peer port. Asked anew for each connection, so that a member that has moved is found.
pub type Resolve = Arc<dyn Fn(&MemberName) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// How long a member may take to take up a link on a connection that stands. One that needs longer is not there any more,
/// and its connection is given up with it.
const LINK_BOUND: Duration = Duration::from_secs(5);

/// Addresses of one member that are tried for one connection: those of both families, and one that is old.
const MOST_ADDRESSES: usize = 4;

/// The transport over the network. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct Dialer {
    inner: Arc<Inner>,
}

struct Inner {
    own: Identity,
    resolve: Resolve,
    tls: Option<Arc<Tls>>,
    connect_timeout: Duration,
    shutdown: Shutdown,
    /// The last attempt to reach each member, under way, successful or not. Written by whoever wants to reach it.
    attempts: Mutex<HashMap<MemberName, Attempt>>,
}

/// Empty while the attempt is under way.
type Attempt = watch::Receiver<Option<Result<Channel, Unreachable>>>;

type Client = PeerServiceClient<Channel>;

impl Dialer {
    /// A transport of the node `own`, which is connected to nobody yet.
    ///
    /// * `connect_timeout`: how long a name may take to be resolved, and how long one address may take to answer.
    #[must_use]
    pub fn new(
        own: Identity,
        resolve: Resolve,
        tls: Option<Arc<Tls>>,
        connect_timeout: Duration,
        shutdown: Shutdown,
    ) -> Self {
        let attempts = Mutex::default();
        Self { inner: Arc::new(Inner { own, resolve, tls, connect_timeout, shutdown, attempts }) }
    }

    /// Closes the connection to `member`, with every link and call on it: it is no member any more.
    pub fn forget(&self, member: &MemberName) {
        let attempt = self.inner.attempts.lock().remove(member);
        if let Some(Some(Ok(channel))) = attempt.map(|attempt| attempt.borrow().clone()) {
            channel.broken.cancel();
        }
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("own", &self.inner.own).finish_non_exhaustive()
    }
}

impl Transport for Dialer {
    fn link(&self, to: &MemberName) -> BoxFuture<'static, Result<Dialled, Unreachable>> {
        let (inner, to) = (self.inner.clone(), to.clone());
        Box::pin(async move { inner.link(to).await })
    }

    fn forward(
        &self,
        to: &MemberName,
        request: pb::ForwardRequest,
    ) -> BoxFuture<'static, Result<pb::ForwardResponse, Unreachable>> {
        let (inner, to) = (self.inner.clone(), to.clone());
        Box::pin(async move {
            let channel = inner.channel(&to).await?;
            let answer = channel.client().forward(request).await;
            answer.map(tonic::Response::into_inner).map_err(|status| failed(to, &status))
        })
    }

    fn address(&self, to: &MemberName) -> Option<SocketAddr> {
        let attempts = self.inner.attempts.lock();
        match &*attempts.get(to)?.borrow() {
            Some(Ok(channel)) => Some(channel.address),
            Some(Err(_)) | None => None,
        }
    }

    fn list_orphans(
        &self,
        to: &MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, Result<pb::ListOrphansResponse, Unreachable>> {
        let (inner, to) = (self.inner.clone(), to.clone());
        Box::pin(async move {
            let channel = inner.channel(&to).await?;
            let answer = channel.client().list_orphans(request).await;
            answer.map(tonic::Response::into_inner).map_err(|status| failed(to, &status))
        })
    }
}

impl Inner {
    async fn link(self: Arc<Self>, to: MemberName) -> Result<Dialled, Unreachable> {
        let channel = self.channel(&to).await?;
        let (sender, messages) = mpsc::channel(LINK_CAPACITY);
        let (deliver_to, receiver) = mpsc::channel(LINK_CAPACITY);
        let let_go = CancellationToken::new();
        let mut client = channel.client();
        let opening = client.link(Outgoing::new(messages, &let_go));
        let Ok(opened) = tokio::time::timeout(LINK_BOUND, opening).await else {
            channel.broken.cancel();
            return Err(Unreachable::Timeout { member: to, waited: LINK_BOUND });
        };
        let incoming = opened.map_err(|status| failed(to.clone(), &status))?.into_inner();
        self.shutdown.spawn_detached(async move {
            deliver(&to, incoming, deliver_to, let_go, true, std::future::pending()).await;
        });
        Ok(Link { sender, receiver })
    }

    /// The connection to `to`, which callers that come at the same time share; one who gives up does not end the attempt.
    async fn channel(self: &Arc<Self>, to: &MemberName) -> Result<Channel, Unreachable> {
        let mut attempt = self.attempt(to);
        let ended = attempt.wait_for(Option::is_some).await.ok().and_then(|attempt| attempt.clone());
        // It ends without a result only with the runtime.
        ended.unwrap_or_else(|| Err(Unreachable::Broken { member: to.clone(), reason: "the process ends".to_owned() }))
    }

    fn attempt(self: &Arc<Self>, to: &MemberName) -> Attempt {
        let mut attempts = self.attempts.lock();
        if let Some(attempt) = attempts.get(to).filter(|attempt| is_of_use(attempt)) {
            return attempt.clone();
        }
        let (ends, attempt) = watch::channel(None);
        attempts.insert(to.clone(), attempt.clone());
        let (inner, to) = (self.clone(), to.clone());
        self.shutdown.spawn_detached(async move {
            ends.send_replace(Some(inner.connect(&to).await));
        });
        attempt
    }

    async fn connect(&self, to: &MemberName) -> Result<Channel, Unreachable> {
        let waited = self.connect_timeout;
        let unresolved = |reason| Unreachable::Unresolved { member: to.clone(), reason };
        let addresses = match tokio::time::timeout(waited, (self.resolve)(to)).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => return Err(unresolved(error.to_string())),
            Err(_) => return Err(Unreachable::Timeout { member: to.clone(), waited }),
        };
        let mut failure: Option<Failure> = None;
        for address in addresses.into_iter().take(MOST_ADDRESSES) {
            match self.reach(to, address).await {
                Ok(channel) => return Ok(channel),
                Err(new) => {
                    debug!(peer = %to, %address, error = %new.error, "member not reached");
                    if failure.as_ref().is_none_or(|old| old.telling <= new.telling) {
                        failure = Some(new);
                    }
                }
            }
        }
        Err(failure.map_or_else(|| unresolved("the name has no address".to_owned()), |failure| failure.error))
    }

    async fn reach(&self, to: &MemberName, address: SocketAddr) -> Result<Channel, Failure> {
        let member = to.clone();
        let waited = self.connect_timeout;
        let tcp = match tokio::time::timeout(waited, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => tcp,
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(Failure::new(Telling::Refused, Unreachable::Refused { member, address }));
            }
            Ok(Err(error)) => {
                let error = Unreachable::Broken { member, reason: error.to_string() };
                return Err(Failure::new(Telling::NoWay, error));
            }
            Err(_) => return Err(Failure::new(Telling::Silence, Unreachable::Timeout { member, waited })),
        };
        let broken = |reason| {
            let error = Unreachable::Broken { member: to.clone(), reason };
            Failure::new(Telling::Answer, error)
        };
        tcp.set_nodelay(true).map_err(|error| broken(error.to_string()))?;
        let stream = secure::dial(tcp, &self.own, self.tls.as_ref(), to).await.map_err(|reason| match reason {
            handshake::Error::Timeout => {
                let waited = handshake::BOUND;
                Failure::new(Telling::Silence, Unreachable::Timeout { member: to.clone(), waited })
            }
            handshake::Error::Io { kind } => broken(kind.to_string()),
            reason => Failure::new(Telling::Answer, Unreachable::Denied { member: to.clone(), reason }),
        })?;
        let given_up = CancellationToken::new();
        let stream = TokioIo::new(Severable::new(stream, given_up.clone()));
        let (requests, connection) =
            http2::client().handshake(stream).await.map_err(|error| broken(error.to_string()))?;
        let channel = Channel { requests, address, broken: given_up.clone() };
        self.shutdown.spawn_detached(async move {
            let ended = connection.await;
            given_up.cancel();
            debug!(peer = %member, error = ended.err().map(tracing::field::display), "connection to a member ended");
        });
        debug!(peer = %to, %address, "connected to a member");
        Ok(channel)
    }
}

/// Whether to wait for an attempt, or to use what came of it.
fn is_of_use(attempt: &Attempt) -> bool {
    match &*attempt.borrow() {
        // Without a sender it was torn off.
        None => attempt.has_changed().is_ok(),
        Some(Ok(channel)) => channel.stands(),
        Some(Err(_)) => false,
    }
}

/// Why one address of a member did not lead to it.
struct Failure {
    telling: Telling,
    error: Unreachable,
}

/// How much an address tells of its member: when all fail, the member's failure is that of the most telling one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Telling {
    /// There is no way to it from here, so it says nothing of the member.
    NoWay,
    /// There is a machine, and nothing listens there.
    Refused,
    /// Perhaps there is something.
    Silence,
    /// There is something.
    Answer,
}

impl Failure {
    fn new(telling: Telling, error: Unreachable) -> Self {
        Self { telling, error }
    }
}

/// What a call that failed says of its member: the other end answers each with success.
fn failed(member: MemberName, status: &Status) -> Unreachable {
    if status.code() == Code::PermissionDenied {
        return Unreachable::Denied { member, reason: handshake::Error::Expelled };
    }
    let mut reason = status.message().to_owned();
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        reason = format!("{reason}: {error}");
        source = error.source();
    }
    Unreachable::Broken { member, reason }
}

/// One connection, as the generated client wants it.
#[derive(Debug, Clone)]
struct Channel {
    requests: SendRequest<Body>,
    /// Where it leads.
    address: SocketAddr,
    /// Cancelled when the connection has ended, or is to.
    broken: CancellationToken,
}

impl Channel {
    fn stands(&self) -> bool {
        !self.broken.is_cancelled() && !self.requests.is_closed()
    }

    fn client(&self) -> Client {
        // HTTP/2 wants an authority. The connection is proved, and nothing reads it.
        PeerServiceClient::with_origin(self.clone(), Uri::from_static("http://member"))
            .max_decoding_message_size(http2::MAX_MESSAGE)
            .max_encoding_message_size(http2::MAX_MESSAGE)
    }
}

impl Service<http::Request<Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.requests.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.requests.send_request(request))
    }
}
