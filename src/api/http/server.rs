//! The HTTP listener: keeps connections, bounds their number, and drains them.

use std::{net::SocketAddr, sync::Arc};

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
                let connection = connection(http.clone(), router.clone(), stream, peer, shutdown.clone());
                shutdown.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            // Out of descriptors, most likely: others will close.
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(
    http: Arc<auto::Builder<TokioExecutor>>,
    router: Router,
    stream: TcpStream,
    peer: SocketAddr,
    shutdown: Shutdown,
) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "a connection was gone before it was served");
        return;
    }
    let service = ServiceBuilder::new()
        .layer(AddExtensionLayer::new(ConnectInfo(peer)))
        .layer(NormalizePathLayer::trim_trailing_slash())
        .service(router);
    let mut connection =
        std::pin::pin!(http.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service)));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.draining() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%peer, %error, "a connection ended early");
    }
}
