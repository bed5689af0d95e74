//! The one socket: sends datagrams, reads acks, sends again what was not acknowledged.

use std::{collections::HashSet, io, net::SocketAddr, time::Duration};

use parking_lot::Mutex;
use tokio::{net::UdpSocket, sync::Notify, time::sleep};
use tracing::{debug, warn};

use super::{
    Error,
    counters::Counters,
    datagram::{Datagram, Numbers, ack_number},
    pending::{Late, Pending},
    settings::Settings,
    subscription::{canonical, on_wire},
};
use crate::registry::RegistryHandle;

/// An ack has about 70 bytes; what is longer than this is none.
const MOST_ACK_BYTES: usize = 2_048;
/// What the socket should hold of acks that come all at once when many subscribers are pushed to; the system cuts it
/// down to its own limit (`net.core.rmem_max`).
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// Targets that failed and are remembered, so that each is told of once. Beyond it the memory begins anew.
const MOST_TOLD: usize = 4_096;
/// How long reading rests after an error of the socket, so that a lasting one does not keep a core busy.
const REST_AFTER_ERROR: Duration = Duration::from_millis(50);

/// Sends and is answered. Shared by the tasks of all services.
#[derive(Debug)]
pub(super) struct Udp {
    socket: UdpSocket,
    local: SocketAddr,
    registry: RegistryHandle,
    pub(super) counters: Counters,
    pub(super) numbers: Numbers,
    pending: Mutex<Pending>,
    /// There is something to watch the time of.
    armed: Notify,
    told: Mutex<HashSet<SocketAddr>>,
}

impl Udp {
    /// Binds the socket. Must be called inside a tokio runtime.
    pub(super) fn bind(registry: RegistryHandle, settings: &Settings) -> Result<Self, Error> {
        let address = settings.udp;
        let open = || -> io::Result<(UdpSocket, SocketAddr)> {
            let socket = std::net::UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            if let Err(error) = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES) {
                debug!(%error, "the receive buffer for acks keeps its size");
            }
            let local = socket.local_addr()?;
            Ok((UdpSocket::from_std(socket)?, local))
        };
        let (socket, local) = open().map_err(|source| Error::Bind { address, source })?;
        Ok(Self {
            socket,
            local,
            numbers: Numbers::new(registry.clock().wall_millis()),
            registry,
            counters: Counters::default(),
            pending: Mutex::new(Pending::new(settings.ack_timeout, settings.resends)),
            armed: Notify::new(),
            told: Mutex::default(),
        })
    }

    /// Where it is bound.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// How many pushes wait for their ack.
    pub(super) fn waiting(&self) -> usize {
        self.pending.lock().len()
    }

    /// Pushes `datagram` to one subscriber, in place of an earlier one that it has not acknowledged.
    pub(super) async fn push(&self, subscriber: u64, target: SocketAddr, datagram: &Datagram) {
        Counters::count(&self.counters.total);
        let noted = self.pending.lock().sent(subscriber, target, datagram.clone(), self.registry.now());
        if noted.superseded {
            Counters::count(&self.counters.superseded);
        }
        if noted.was_empty {
            self.armed.notify_one();
        }
        if let Err(error) = self.send(target, datagram).await {
            self.pending.lock().forget(target, datagram.number);
            self.failed(target, &error);
        }
    }

    /// Reads acks, for ever.
    pub(super) async fn read_acks(&self) {
        let mut buffer = [0; MOST_ACK_BYTES];
        loop {
            match self.socket.recv_from(&mut buffer).await {
                Ok((length, from)) => self.acknowledge(canonical(from), buffer.get(..length).unwrap_or_default()),
                Err(error) => {
                    // Some systems report here that an earlier datagram was refused.
                    debug!(%error, "reading acks failed");
                    sleep(REST_AFTER_ERROR).await;
                }
            }
        }
    }

    /// Sends again, and gives up, what is not acknowledged in time, for ever.
    pub(super) async fn watch_time(&self) {
        loop {
            let next = self.pending.lock().next();
            let Some(next) = next else {
                self.armed.notified().await;
                continue;
            };
            sleep(next.since(self.registry.now())).await;
            let late = self.pending.lock().late(self.registry.now());
            let enabled = self.registry.switches().push_enabled;
            for late in late {
                match late {
                    Late::Again(target, datagram) if enabled => {
                        Counters::count(&self.counters.resent);
                        if let Err(error) = self.send(target, &datagram).await {
                            self.pending.lock().forget(target, datagram.number);
                            self.failed(target, &error);
                        }
                    }
                    Late::Again(target, datagram) => {
                        self.pending.lock().forget(target, datagram.number);
                        Counters::count(&self.counters.failed);
                    }
                    Late::Failed(target) => self.failed(target, &"not acknowledged"),
                }
            }
        }
    }

    fn acknowledge(&self, from: SocketAddr, bytes: &[u8]) {
        let Some(number) = ack_number(bytes) else {
            Counters::count(&self.counters.malformed_acks);
            debug!(%from, bytes = bytes.len(), "a datagram came in that is no ack");
            return;
        };
        let cost = self.pending.lock().acked(from, number, self.registry.now());
        let Some(cost) = cost else {
            Counters::count(&self.counters.unmatched_acks);
            debug!(%from, number, "an ack came in that fits no push");
            return;
        };
        self.counters.acknowledged(cost);
        self.told.lock().remove(&from);
    }

    async fn send(&self, target: SocketAddr, datagram: &Datagram) -> io::Result<()> {
        let wire = on_wire(target, self.local).ok_or(io::ErrorKind::Unsupported)?;
        self.socket.send_to(&datagram.bytes, wire).await.map(drop)
    }

    /// Counts a failure, and tells of it if it is the target's first since it last answered.
    fn failed(&self, target: SocketAddr, reason: &dyn std::fmt::Display) {
        Counters::count(&self.counters.failed);
        let mut told = self.told.lock();
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        if told.insert(target) {
            warn!(%target, %reason, "push failed; further failures of this target are only counted");
        }
    }
}
