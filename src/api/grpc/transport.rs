//! One TCP connection to the gRPC port, as the services on it see it: SDKs identify a client by the connection that its
//! requests come in on.

use std::{
    net::SocketAddr,
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use crate::registry::instance::ConnectionId;

/// The path of the stream that makes a connection of an SDK.
pub const STREAM_PATH: &str = "/BiRequestStream/requestBiStream";

/// What an SDK has made of a transport.
#[derive(Debug, Clone, Default)]
pub enum Stage {
    /// Nothing yet: only requests that need no connection are answered.
    #[default]
    Bare,
    /// The stream is open, and the first message on it is awaited or is being dealt with.
    Opening,
    /// A connection is set up.
    Registered(Arc<Connection>),
    /// The connection has ended, and the transport is about to.
    Closed,
}

/// See the module. Shared by everything that came in on it.
#[derive(Debug)]
pub struct Transport {
    number: ConnectionId,
    id: String,
    peer: SocketAddr,
    stage: watch::Sender<Stage>,
    closing: CancellationToken,
}

/// Numbers transports. One for each process.
#[derive(Debug, Default)]
pub struct Numbers(AtomicU64);

impl Numbers {
    /// A number that no transport of this process has or had.
    pub fn next(&self) -> ConnectionId {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        ConnectionId::new(NonZeroU64::MIN.saturating_add(number))
    }
}

impl Transport {
    /// A transport that was accepted at `wall_millis`.
    #[must_use]
    pub fn new(number: ConnectionId, peer: SocketAddr, wall_millis: u64) -> Self {
        let id = format!("{wall_millis}_{}_{}", peer.ip().to_canonical(), peer.port());
        Self { number, id, peer, stage: watch::Sender::default(), closing: CancellationToken::new() }
    }

    /// Its number, under which the registry knows the connection on it.
    #[must_use]
    pub fn number(&self) -> ConnectionId {
        self.number
    }

    /// What clients are told as the id of their connection: `<accepted at>_<ip>_<port>`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The other end.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What there is on it now.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    /// Completes when no SDK uses it, or is about to.
    pub async fn free(&self) {
        let mut stage = self.stage.subscribe();
        // The sender is in here.
        let _ = stage.wait_for(|stage| matches!(stage, Stage::Bare | Stage::Closed)).await;
    }

    /// The connection on it; waits at most `bound` for one that is being set up, and not at all without a stream for it.
    pub async fn connection(&self, bound: Duration) -> Option<Arc<Connection>> {
        let mut stage = self.stage.subscribe();
        let opened = tokio::time::timeout(bound, stage.wait_for(|stage| !matches!(stage, Stage::Opening))).await;
        match opened {
            Ok(Ok(stage)) => match &*stage {
                Stage::Registered(connection) => Some(connection.clone()),
                Stage::Bare | Stage::Opening | Stage::Closed => None,
            },
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Notes a request as it arrives, before anything waits: what comes after a stream on one transport must see it.
    /// For the first stream, what is returned speaks for it until a connection is set up.
    #[must_use]
    pub fn arriving(self: &Arc<Self>, path: &str) -> Option<Opening> {
        if path != STREAM_PATH {
            return None;
        }
        let first = self.stage.send_if_modified(|stage| {
            let bare = matches!(stage, Stage::Bare);
            if bare {
                *stage = Stage::Opening;
            }
            bare
        });
        first.then(|| Opening(self.clone()))
    }

    /// A connection is set up. `false`: the transport has ended in the meantime.
    #[must_use]
    pub fn register(&self, connection: Arc<Connection>) -> bool {
        self.stage.send_if_modified(|stage| {
            let opening = matches!(stage, Stage::Opening);
            if opening {
                *stage = Stage::Registered(connection);
            }
            opening
        })
    }

    /// Ends it: what is being answered may be finished shortly, then the TCP connection is closed.
    pub fn close(&self) {
        let before = self.stage.send_replace(Stage::Closed);
        self.closing.cancel();
        if let Stage::Registered(connection) = before {
            connection.end();
        }
    }

    /// Completes when it is to be ended.
    pub async fn closing(&self) {
        self.closing.cancelled().await;
    }
}

/// The first stream of a transport while no connection is set up. When it is dropped, there is no such stream any more.
#[derive(Debug)]
pub struct Opening(Arc<Transport>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.stage.send_if_modified(|stage| {
            let opening = matches!(stage, Stage::Opening);
            if opening {
                *stage = Stage::Bare;
            }
            opening
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport() -> Arc<Transport> {
        Arc::new(Transport::new(
            Numbers::default().next(),
            SocketAddr::from(([10, 1, 2, 3], 51_234)),
            1_764_499_200_123,
        ))
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_stream_is_waited_for() {
        let transport = transport();
        assert_eq!(transport.id(), "1764499200123_10.1.2.3_51234");
        assert!(transport.arriving("/Request/request").is_none());
        assert!(transport.connection(Duration::MAX).await.is_none());
        let opening = transport.arriving(STREAM_PATH).unwrap();
        assert!(transport.arriving(STREAM_PATH).is_none());
        assert!(transport.connection(Duration::from_secs(1)).await.is_none());
        drop(opening);
        transport.free().await;
        transport.close();
        transport.closing().await;
        assert!(transport.arriving(STREAM_PATH).is_none());
    }
}
