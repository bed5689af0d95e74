//! The peer listener: accepts connections, lets members in and nobody else, and serves them.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tonic::body::Body;
use tower::Service;
use tracing::{debug, warn};

use super::{
    complaints::Complaints,
    handshake::{self, Identity},
    http2, secure,
    service::PeerApi,
    tls::Tls,
};
use crate::cluster::{member::MemberName, transport::Accept};
use crate::{clock::Clock, shutdown::Shutdown, wire::pb::peer::peer_service_server::PeerServiceServer};

/// Connections that may be open before their ends are proved. Each may last [`handshake::BOUND`] and holds a few KiB;
/// further ones are closed, and a member tries again.
const MOST_UNPROVED: usize = 256;

/// Of these, those from one address, so that one address cannot keep all others out.
const MOST_UNPROVED_EACH: usize = 16;

/// Connections of members. Each member needs one, and for a moment a second one after the first broke.
const MOST_PROVED: usize = 1_024;

/// How long a connection may take to end once the drain has started and its links have ended.
const GOODBYE: Duration = Duration::from_millis(500);

/// Whether a name is in the member list, now.
pub type Knows = Arc<dyn Fn(&MemberName) -> bool + Send + Sync>;

/// Whom the listener lets in.
#[derive(Clone)]
pub struct Entrance {
    /// This node, and what members prove themselves to it with.
    pub own: Identity,
    /// TLS, if connections between members are encrypted.
    pub tls: Option<Arc<Tls>>,
    /// The member list.
    pub knows: Knows,
}

impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("own", &self.own).field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

/// Serves `accept` to the members that connect to `listener`, until `shutdown` drains; then links end, and calls that are
/// open are answered.
pub async fn serve(
    listener: TcpListener,
    entrance: Entrance,
    accept: Arc<dyn Accept>,
    clock: Clock,
    shutdown: &Shutdown,
) {
    let api = PeerApi::new(accept, entrance.knows.clone(), shutdown.clone());
    let service = PeerServiceServer::new(api)
        .max_decoding_message_size(http2::MAX_MESSAGE)
        .max_encoding_message_size(http2::MAX_MESSAGE);
    let door = Arc::new(Door {
        entrance,
        clock,
        unproved: Arc::default(),
        proved: Arc::new(Semaphore::new(MOST_PROVED)),
        complaints: Mutex::default(),
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((tcp, address)) => match Unproved::take(&door.unproved, address.ip()) {
                Some(place) => {
                    let (door, service, end) = (door.clone(), service.clone(), shutdown.clone());
                    shutdown.spawn(async move { connection(&door, tcp, address, place, service, end).await });
                }
                None => door.complain(address, "too many connections that have not proved themselves"),
            },
            // Out of descriptors, most likely: others will close.
            Err(error) => {
                warn!(%error, "a connection of a member could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// What all connections share.
struct Door {
    entrance: Entrance,
    clock: Clock,
    unproved: Arc<Mutex<Unproved>>,
    proved: Arc<Semaphore>,
    complaints: Mutex<Complaints>,
}

impl Door {
    /// Says why a connection was closed, unless its address has just been complained about.
    fn complain(&self, address: SocketAddr, reason: impl fmt::Display) {
        if let Some(left_out) = self.complaints.lock().admit(address.ip(), self.clock.now()) {
            warn!(%address, %reason, left_out, "a connection to the peer port was refused");
        }
    }
}

async fn connection(
    door: &Door,
    tcp: TcpStream,
    address: SocketAddr,
    place: Place,
    service: PeerServiceServer<PeerApi>,
    shutdown: Shutdown,
) {
    if let Err(error) = tcp.set_nodelay(true) {
        debug!(%address, %error, "a connection was gone before it was served");
        return;
    }
    let knows = door.entrance.knows.clone();
    let proving = secure::accept(tcp, &door.entrance.own, door.entrance.tls.as_ref(), move |name| knows(name));
    let proved = tokio::select! {
        proved = proving => proved,
        () = shutdown.draining() => return,
    };
    drop(place);
    let (member, stream) = match proved {
        Ok(proved) => proved,
        Err(handshake::Error::Silent) => return debug!(%address, "a connection to the peer port said nothing"),
        Err(reason) => return door.complain(address, reason),
    };
    let Ok(_place) = door.proved.try_acquire() else {
        return door.complain(address, "too many connections of members");
    };
    debug!(peer = %member, %address, "a member has connected");
    let from = member.clone();
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(from.clone());
        // Always ready.
        service.clone().call(request.map(Body::new))
    });
    let mut serving = std::pin::pin!(http2::server().serve_connection(TokioIo::new(stream), service));
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = shutdown.draining() => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(GOODBYE, serving).await.unwrap_or(Ok(()))
        }
    };
    debug!(peer = %member, error = served.err().map(tracing::field::display), "a connection of a member ended");
}

/// How many connections have not proved themselves yet, in all and by address.
#[derive(Debug, Default)]
struct Unproved {
    all: usize,
    each: HashMap<IpAddr, usize>,
}

/// Room for one of them, until it is dropped.
#[derive(Debug)]
struct Place {
    unproved: Arc<Mutex<Unproved>>,
    address: IpAddr,
}

impl Unproved {
    fn take(unproved: &Arc<Mutex<Self>>, address: IpAddr) -> Option<Place> {
        let mut taken = unproved.lock();
        let each = taken.each.get(&address).copied().unwrap_or(0);
        if taken.all >= MOST_UNPROVED || each >= MOST_UNPROVED_EACH {
            return None;
        }
        taken.all += 1;
        taken.each.insert(address, each + 1);
        Some(Place { unproved: unproved.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.unproved.lock();
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
    fn one_address_cannot_take_every_place() {
        let unproved = Arc::default();
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let places: Vec<_> = (0..MOST_UNPROVED).filter_map(|_| Unproved::take(&unproved, a)).collect();
        assert_eq!(places.len(), MOST_UNPROVED_EACH);
        assert!(Unproved::take(&unproved, b).is_some());
        drop(places);
        assert!(Unproved::take(&unproved, a).is_some());
        assert_eq!(unproved.lock().all, 0);
        assert!(unproved.lock().each.is_empty());
    }
}
