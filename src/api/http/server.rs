//! The HTTP listener: keeps connections, bounds their number, and drains them.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::connect_info::ConnectInfo};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tower::ServiceBuilder;
use tower_http::{add_extension::AddExtensionLayer, normalize_path::NormalizePathLayer};
use tracing::{debug, warn};

use super::Settings;
use crate::shutdown::Shutdown;

/// Serves `router` on `listener` until the drain starts, and then until every request that was begun has been answered.
pub async fn serve(router: Router, listener: TcpListener, settings: &Settings, shutdown: &Shutdown) {
    let places = Arc::new(Semaphore::new(settings.max_connections));
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(settings.header_timeout);
    http.http2().timer(TokioTimer::new()).keep_alive_interval(settings.header_timeout / 3);
    let http = Arc::new(http);
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = Connection { stream, peer, patience: settings.header_timeout };
                let connection = connection.serve(http.clone(), router.clone(), shutdown.clone());
                shutdown.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            // Out of descriptors, most likely: others will close.
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection that was accepted.
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    /// How long its first request may take to come (hyper's own clock starts only when it knows the version of HTTP), and
    /// how long the client may leave an answer unread.
    patience: Duration,
}

impl Connection {
    async fn serve(self, http: Arc<auto::Builder<TokioExecutor>>, router: Router, shutdown: Shutdown) {
        let Self { stream, peer, patience } = self;
        if let Err(error) = stream.set_nodelay(true).and_then(|()| give_up_after(&stream, patience)) {
            debug!(%error, "a connection was gone before it was served");
            return;
        }
        let begun = Arc::new(AtomicBool::new(false));
        let begins = begun.clone();
        let service = ServiceBuilder::new()
            .map_request(move |request| {
                begins.store(true, Ordering::Relaxed);
                request
            })
            .layer(AddExtensionLayer::new(ConnectInfo(peer)))
            .layer(NormalizePathLayer::trim_trailing_slash())
            .service(router);
        let mut connection = std::pin::pin!(
            http.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service))
        );
        let mut first_request = std::pin::pin!(tokio::time::sleep(patience));
        let mut waiting = true;
        let ended = loop {
            tokio::select! {
                ended = connection.as_mut() => break ended,
                () = shutdown.draining() => {
                    connection.as_mut().graceful_shutdown();
                    break connection.await;
                }
                () = first_request.as_mut(), if waiting => {
                    if !begun.load(Ordering::Relaxed) {
                        debug!(%peer, "a connection sent no request in time");
                        return;
                    }
                    waiting = false;
                }
            }
        };
        if let Err(error) = ended {
            debug!(%peer, %error, "a connection ended early");
        }
    }
}

/// Has the system end the connection when the other end has taken nothing of what was sent to it for `time`.
fn give_up_after(stream: &TcpStream, time: Duration) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(time))?;
    #[cfg(not(target_os = "linux"))]
    let _ = (stream, time);
    Ok(())
}
