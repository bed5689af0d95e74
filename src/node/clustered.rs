//! A node that is one of several: its members, its registry that is told of theirs, and the port that they come to.

use std::{io, path::Path, sync::Arc};

use tracing::info;

use crate::{
    clock::Clock,
    cluster::{
        self, Cluster, Epoch, Parts,
        epoch::{self, EpochFile},
        network::{
            dial::{self, Dialer},
            handshake::{Identity, ShortSecret},
            listen::{self, Entrance},
            tls::{self, Files, Tls},
        },
        resolve::{Resolve, ResolveError},
        source::Members,
    },
    config::Settings,
    registry::{RegistryHandle, replication::Replication, version::Stamp},
    shutdown::Shutdown,
};

/// Removals that are remembered: with names of 100 bytes about 40 MB at most.
const REMOVALS: usize = 200_000;

/// Names of changed records that wait to be handed to the outboxes: 20 s of changes at 50,000 a second.
const JOURNAL: usize = 1_000_000;

/// Why a node cannot be one of several.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its epochs cannot be read or kept.
    #[error(transparent)]
    Epoch(#[from] epoch::Error),
    /// The secret is too short.
    #[error(transparent)]
    Secret(#[from] ShortSecret),
    /// The files for TLS cannot be used.
    #[error("the members cannot be reached by TLS")]
    Tls(#[from] tls::Error),
    /// The system has no randomness to give.
    #[error("the system gives no random numbers")]
    Random,
}

/// The registry of a member, and its part in the cluster.
pub struct Clustered {
    /// The registry.
    pub registry: RegistryHandle,
    /// The part in the cluster.
    pub cluster: Cluster,
}

/// Begins to live among `members`, and lets them in at `listener`. The tasks are those of `shutdown`, which must outlive
/// the front ends: what clients leave behind has to be told to the others.
///
/// # Errors
/// [`Error`]; nothing was begun then.
pub fn start(
    settings: &Settings,
    data: &Path,
    members: Members,
    listener: tokio::net::TcpListener,
    clock: Clock,
    shutdown: &Shutdown,
) -> Result<Clustered, Error> {
    let epoch = EpochFile::open(data, first_epoch()?)?;
    let identity = Identity::new(members.me().clone(), &settings.cluster.secret)?;
    let tls = tls(&settings.cluster)?;
    let replication = Replication {
        floor: Stamp::new(epoch.stamp_floor()),
        removal_ttl: settings.cluster.tombstone_ttl,
        removal_limit: REMOVALS,
        journal_limit: JOURNAL,
    };
    let (registry, journal) = RegistryHandle::start_replicated(
        settings.registry.clone(),
        settings.limits.clone(),
        clock,
        shutdown,
        replication,
    );
    if let Some(tls) = &tls {
        let (tls, until) = (tls.clone(), shutdown.clone());
        shutdown.spawn(async move { tls.follow(until).await });
    }
    let connect_timeout = settings.cluster.suspect_after;
    let resolve = resolve(Resolve::like(settings.server.http, settings.server.peer));
    let dialer = Dialer::new(identity.clone(), resolve, tls.clone(), connect_timeout, shutdown.clone());
    let cluster = Cluster::start(Parts {
        me: members.me().clone(),
        members: members.watch(),
        settings: settings.cluster.clone(),
        clock,
        registry: registry.clone(),
        journal,
        transport: Arc::new(dialer),
        epoch,
        shutdown: shutdown.clone(),
    });
    let knows = Arc::new(move |name: &cluster::MemberName| members.list().contains(name));
    let (entrance, door, until) = (Entrance { own: identity, tls, knows }, cluster.door(), shutdown.clone());
    if let Ok(peer) = listener.local_addr() {
        info!(%peer, "members are let in");
    }
    shutdown.spawn(async move { listen::serve(listener, entrance, door, clock, &until).await });
    Ok(Clustered { registry, cluster })
}

fn tls(settings: &cluster::Settings) -> Result<Option<Arc<Tls>>, Error> {
    if !settings.has_tls() {
        return Ok(None);
    }
    let (cert, key, ca) = (settings.tls_cert.clone(), settings.tls_key.clone(), settings.tls_ca.clone());
    Ok(Some(Arc::new(Tls::load(Files { cert, key, ca })?)))
}

/// The addresses of members, asked for anew for each connection.
fn resolve(by: Resolve) -> dial::Resolve {
    Arc::new(move |member| {
        let member = member.clone();
        Box::pin(async move {
            by.addresses(&member).await.map_err(|error| match error {
                ResolveError::Unknown { .. } => io::Error::new(io::ErrorKind::NotFound, error),
                ResolveError::NoPort { .. } | ResolveError::Failed { .. } => io::Error::other(error),
            })
        })
    })
}

/// What the first epoch of a node follows: drawn, so that one that has lost its disk is not taken for the one that it was.
fn first_epoch() -> Result<Epoch, Error> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(Epoch::new(u64::from(u32::from_le_bytes(bytes) >> 2)))
}
