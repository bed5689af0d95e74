//! The gRPC listener: accepts connections within the limits, serves each, and ends them.
//!
//! It stands on hyper rather than on tonic's server because a request must be noted in the order in which it arrives on
//! its connection, before tasks take over: a request right behind the stream of an SDK waits for the set-up.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{body::Incoming, server::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tonic::{body::Body, service::Routes, transport::server::TcpConnectInfo};
use tower::{Layer, ServiceExt, util::MapResponseLayer};
use tracing::{debug, warn};

use super::{
    gather::Gather,
    server::Settings,
    transport::{Numbers, Transport},
};
use crate::{api::reply, clock::Clock, quiet::Quiet, shutdown::Shutdown};

/// How long a client may take to make its first request.
const FIRST_WORD: Duration = Duration::from_secs(30);

/// How long a connection that is being ended may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Serves `routes` on `listener` until the drain starts, and then until every open call has ended.
pub async fn serve(routes: Routes, listener: TcpListener, settings: &Settings, clock: Clock, shutdown: &Shutdown) {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(settings.max_streams)
        .keep_alive_interval(settings.ping_interval)
        .keep_alive_timeout(settings.ping_timeout);
    let router = routes.prepare().into_axum_router();
    let numbers = Numbers::default();
    let places = Arc::new(Places::new(settings));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((stream, peer)) => match places.take(peer.ip()) {
                Some(place) => {
                    let transport = Arc::new(Transport::new(numbers.next(), peer, clock.wall_millis()));
                    let serving = connection(http.clone(), router.clone(), stream, transport, shutdown.clone());
                    shutdown.spawn(async move {
                        serving.await;
                        drop(place);
                    });
                }
                None => warn!(%peer, "a connection was closed: there are as many as the settings [grpc] allow"),
            },
            // Out of descriptors, most likely: others will close.
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Ends what there is on a transport when its TCP connection is gone, however that came about.
struct Gone(Arc<Transport>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Why this side ends a connection.
enum End {
    /// Nothing was asked on it.
    Mute,
    /// No further request is to be taken.
    Asked,
}

async fn connection(
    http: http2::Builder<TokioExecutor>,
    router: axum::Router,
    stream: TcpStream,
    transport: Arc<Transport>,
    shutdown: Shutdown,
) {
    let peer = transport.peer();
    let gone = Gone(transport.clone());
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "a connection was gone before it was served");
        return;
    }
    let info = TcpConnectInfo { local_addr: stream.local_addr().ok(), remote_addr: Some(peer) };
    let arriving = transport.clone();
    let begun = Arc::new(AtomicBool::new(false));
    let begins = begun.clone();
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        begins.store(true, Ordering::Relaxed);
        // Here, and not in the future: futures of several requests run in any order.
        if let Some(opening) = arriving.arriving(request.uri().path()) {
            request.extensions_mut().insert(Arc::new(opening));
        }
        request.extensions_mut().insert(arriving.clone());
        request.extensions_mut().insert(info.clone());
        MapResponseLayer::new(reply::complete::<axum::body::Body>).layer(router.clone()).oneshot(request.map(Body::new))
    });
    let stream = Gather::new(stream);
    let mut serving = std::pin::pin!(http.serve_connection(TokioIo::new(stream.clone()), service));
    let end = async {
        tokio::select! {
            () = mute(&begun, &shutdown) => End::Mute,
            () = ending(&transport, &shutdown) => End::Asked,
        }
    };
    let served = tokio::select! {
        served = poll_fn(|context| stream.after(serving.as_mut().poll(context), context)) => served,
        // A busy connection is polled thousands of times for each time that there is something to see here.
        end = Quiet::new(end) => match end {
            End::Mute => {
                debug!(%peer, "a connection was closed on which nothing was asked");
                return;
            }
            End::Asked => {
                serving.as_mut().graceful_shutdown();
                tokio::select! {
                    served = poll_fn(|context| stream.after(serving.as_mut().poll(context), context)) => served,
                    () = closed(&transport) => Ok(()),
                }
            }
        },
    };
    if let Err(error) = served {
        debug!(%peer, %error, "a connection ended early");
    }
    drop(gone);
}

/// Completes when no first request has come in time, or before the drain. A client speaks first; who says nothing, or
/// stops in the middle of its first words, takes up no room for ever and holds no drain up.
async fn mute(begun: &AtomicBool, shutdown: &Shutdown) {
    let _ = tokio::time::timeout(FIRST_WORD, shutdown.draining()).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// Completes when no further request is to be taken: the transport is being ended, or the process drains and no SDK is on
/// it, which is told by itself.
async fn ending(transport: &Transport, shutdown: &Shutdown) {
    let draining = async {
        shutdown.draining().await;
        transport.free().await;
    };
    tokio::select! {
        () = transport.closing() => {}
        () = draining => {}
    }
}

/// Completes when a transport that is being ended has had time to say so.
async fn closed(transport: &Transport) {
    transport.closing().await;
    tokio::time::sleep(GOODBYE).await;
}

/// How many connections there are, in all and from each address.
#[derive(Debug)]
struct Places {
    most: usize,
    most_each: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    each: HashMap<IpAddr, usize>,
}

/// Room for one connection, until it is dropped.
#[derive(Debug)]
struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    fn new(settings: &Settings) -> Self {
        Self {
            most: settings.max_connections,
            most_each: settings.max_connections_per_address,
            taken: Mutex::default(),
        }
    }

    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut taken = self.taken.lock();
        let each = taken.each.get(&address).copied().unwrap_or(0);
        if taken.all >= self.most || each >= self.most_each {
            return None;
        }
        taken.all += 1;
        taken.each.insert(address, each + 1);
        Some(Place { places: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all -= 1;
        if let Some(each) = taken.each.get_mut(&self.address) {
            *each -= 1;
            if *each == 0 {
                taken.each.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_all_and_for_each_address() {
        let settings = Settings { max_connections: 3, max_connections_per_address: 2, ..Settings::default() };
        let places = Arc::new(Places::new(&settings));
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = places.take(a).unwrap();
        let _second = places.take(a).unwrap();
        assert!(places.take(a).is_none());
        let _third = places.take(b).unwrap();
        assert!(places.take(b).is_none());
        drop(first);
        assert!(places.take(b).is_some());
        assert_eq!(places.taken.lock().each.len(), 2);
    }
}
