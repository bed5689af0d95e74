//! The connections of SDKs: set up, watched for silence, ended once.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

use dashmap::DashMap;
use tokio::time::MissedTickBehavior;
use tracing::{debug, info, warn};

use super::transport::Transport;
use crate::{
    clock::Mono,
    naming::{self, Naming},
    push::sdk::{ClientFacts, Line, SdkPush, Verdict},
    registry::{instance::ConnectionId, lease::FreezeGuard},
    shutdown::Shutdown,
};

/// How much later than due a sweep may be before this process counts as frozen: half of the shortest sensible idle time
/// would still not be mistaken for silence.
const FREEZE_TOLERANCE: std::time::Duration = std::time::Duration::from_secs(1);

/// All connections that are set up. Cheap to clone; all clones share one table.
#[derive(Debug, Clone)]
pub struct Connections {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    open: DashMap<ConnectionId, Arc<Connection>, ahash::RandomState>,
    naming: Naming,
    push: SdkPush,
    shutdown: Shutdown,
    opened: AtomicU64,
    dropped: AtomicU64,
}

/// One connection of an SDK.
#[derive(Debug)]
pub struct Connection {
    id: ConnectionId,
    transport: Arc<Transport>,
    line: Arc<Line>,
    table: Arc<Table>,
    /// Whoever sets it ends the connection in the registry.
    ended: AtomicBool,
}

/// How many connections there are and were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionFigures {
    /// Set up now.
    pub open: usize,
    /// Set up since the process started.
    pub opened: u64,
    /// Ended by this server because of silence, since the process started.
    pub dropped: u64,
}

impl Connections {
    /// An empty table; looks for silent connections until the drain, and then asks all to go elsewhere.
    #[must_use]
    pub fn start(naming: Naming, push: SdkPush, shutdown: &Shutdown) -> Self {
        let table = Arc::new(Table {
            open: DashMap::default(),
            naming,
            push,
            shutdown: shutdown.clone(),
            opened: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let (sweeping, draining) = (table.clone(), shutdown.clone());
        shutdown.spawn(async move {
            tokio::select! {
                () = sweeping.sweep() => {}
                () = draining.draining() => {}
            }
            sweeping.drain().await;
        });
        Self { table }
    }

    /// Sets a connection up on `transport`, whose outgoing half is `line`. When this returns, the registry knows it.
    ///
    /// # Errors
    /// Connection gone if the transport has ended in the meantime.
    pub async fn set_up(
        &self,
        transport: &Arc<Transport>,
        line: Arc<Line>,
        facts: ClientFacts,
        negotiates: bool,
    ) -> Result<(), naming::Error> {
        let table = &self.table;
        let id = transport.number();
        table.naming.open_connection(id).await?;
        debug!(connection = transport.id(), agent = %facts.agent, "connection set up");
        line.set_up(facts, negotiates);
        let (transport, table) = (transport.clone(), table.clone());
        let connection = Arc::new(Connection { id, transport, line, table, ended: AtomicBool::new(false) });
        connection.table.open.insert(id, connection.clone());
        connection.table.opened.fetch_add(1, Relaxed);
        // After the insertion, so that the drain sees it or it sees the drain.
        let draining = connection.table.shutdown.is_draining();
        if draining || !connection.transport.register(connection.clone()) {
            connection.end();
            return Err(crate::registry::Error::ConnectionGone.into());
        }
        Ok(())
    }

    /// Asks up to `count` connections to go to another server, for example after one came back. Returns how many were.
    pub fn ask_to_move(&self, count: usize) -> usize {
        let asked = self.table.open.iter().take(count).map(|entry| entry.value().clone()).collect::<Vec<_>>();
        for connection in &asked {
            connection.ask_to_move();
        }
        asked.len()
    }

    /// How many connections there are and were.
    #[must_use]
    pub fn figures(&self) -> ConnectionFigures {
        ConnectionFigures {
            open: self.table.open.len(),
            opened: self.table.opened.load(Relaxed),
            dropped: self.table.dropped.load(Relaxed),
        }
    }

    /// What is pushed on them.
    #[must_use]
    pub fn push(&self) -> &SdkPush {
        &self.table.push
    }
}

impl Connection {
    /// Under which the registry knows it.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Its outgoing half.
    #[must_use]
    pub fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Whether it may still publish.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.ended.load(Acquire)
    }

    /// Ends it, with its transport and all that it published and subscribed to. Has an effect once.
    pub fn end(&self) {
        if self.ended.swap(true, AcqRel) {
            return;
        }
        self.table.open.remove(&self.id);
        self.line.end();
        self.transport.close();
        let (table, id) = (self.table.clone(), self.id);
        self.table.shutdown.spawn(async move {
            if let Err(error) = table.naming.close_connection(id).await {
                debug!(%error, "a connection ended after the registry");
            }
        });
    }

    fn ask_to_move(&self) {
        self.line.ask_to_move(self.transport.id());
    }
}

impl Table {
    /// Looks at all connections again and again.
    async fn sweep(&self) {
        let settings = self.push.settings();
        let clock = self.naming.clock();
        let mut guard = FreezeGuard::new(settings.sweep, FREEZE_TOLERANCE, clock.now());
        let mut looks = tokio::time::interval(settings.sweep);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let now = clock.now();
            guard.observe(now);
            for connection in self.all() {
                self.look_at(&connection, now, guard.thaw());
            }
        }
    }

    fn look_at(&self, connection: &Connection, now: Mono, thaw: Mono) {
        let why = match connection.line.sweep(now, thaw) {
            Verdict::Keep => return,
            Verdict::Silent => "it is silent",
            Verdict::Unresponsive => "it does not acknowledge what it is sent",
        };
        let facts = connection.line.facts();
        warn!(client = %facts.address, agent = %facts.agent, why, "connection dropped");
        self.dropped.fetch_add(1, Relaxed);
        connection.end();
    }

    /// Asks all to go elsewhere, waits a while, and ends those that stay.
    async fn drain(&self) {
        let all = self.all();
        for connection in &all {
            connection.ask_to_move();
        }
        let clock = self.naming.clock();
        let until = clock.now() + self.push.settings().drain_wait;
        while !self.open.is_empty() && clock.now() < until {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let left = self.all();
        if !all.is_empty() {
            info!(asked = all.len(), left = left.len(), "connections of SDKs were asked to move");
        }
        for connection in left {
            connection.end();
        }
    }

    fn all(&self) -> Vec<Arc<Connection>> {
        self.open.iter().map(|entry| entry.value().clone()).collect()
    }
}
