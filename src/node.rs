//! The running node: takes the data directory, opens the listeners, serves until it is told to stop, and drains.

mod clustered;

use std::{io, sync::Arc};

use tokio::sync::watch;
use tonic::service::Routes;
use tracing::{info, warn};

use crate::{
    api::{
        self,
        grpc::{
            accept,
            native::{self, NativeApi, NodeFacts},
            sdk::{self, SdkApi},
            server::with_standard_services,
        },
    },
    clock::Clock,
    cluster::source::{self, Members},
    config::Settings,
    data_dir::{self, DataDir},
    listen,
    machine::Machine,
    naming::{Naming, Roster},
    push::{self, Push, sdk::SdkPush},
    readiness::Readiness,
    registry::RegistryHandle,
    shutdown::Shutdown,
    stop::Stop,
    telemetry::LogControl,
};

/// Why a node cannot start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] listen::Error),
    /// The descriptors for server reflection cannot be read.
    #[error("the descriptors that were compiled in are broken")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The socket for pushes cannot be opened.
    #[error(transparent)]
    Push(#[from] push::Error),
    /// The members are not known, or this node is not among them.
    #[error(transparent)]
    Members(#[from] source::Error),
    /// The node cannot be one of several.
    #[error(transparent)]
    Cluster(#[from] clustered::Error),
    /// The system does not let the process wait for signals.
    #[error("cannot wait for signals")]
    Signal(#[source] io::Error),
}

/// Runs a node until the process is told to stop. Told a second time, it ends at once.
///
/// # Errors
/// [`Error`] if the data directory is in use or a listener cannot be opened; nothing was served then.
pub async fn run(settings: Settings, log: LogControl) -> Result<(), Error> {
    let mut stop = Stop::listen().map_err(Error::Signal)?;
    let data = DataDir::open(&settings.server.data_dir)?;
    let http = listen::bind("server.http", settings.server.http)?;
    let grpc = listen::bind("server.grpc", settings.server.grpc)?;
    let shutdown = Shutdown::new();
    // What is between the members ends after the front ends: they leave something to be told.
    let peers = Shutdown::new();
    let (ready, readiness) = watch::channel(Readiness::Starting);
    let clock = Clock::start();
    let members = tokio::select! {
        members = Members::start(&settings.cluster, clock, &peers) => members?,
        () = stop.requested() => return Ok(()),
    };
    let (registry, cluster) = match members {
        Some(members) => {
            let listener = listen::bind("server.peer", settings.server.peer)?;
            let parts = clustered::start(&settings, data.path(), members, listener, clock, &peers)?;
            (parts.registry, Some(parts.cluster))
        }
        None => {
            let (registry, limits) = (settings.registry.clone(), settings.limits.clone());
            (RegistryHandle::start(registry, limits, clock, &shutdown), None)
        }
    };
    let push = Push::start(registry.clone(), settings.push.clone(), &shutdown)?;
    let subscribers = push.subscribers().clone();
    let sdk_push = SdkPush::new(registry.clone(), subscribers.clone(), settings.sdk.clone(), shutdown.clone());
    let naming = match &cluster {
        Some(cluster) => {
            Naming::clustered(registry.clone(), settings.limits.clone(), cluster.forwarder()).of(cluster.clone())
        }
        None => Naming::new(registry.clone(), settings.limits.clone()),
    };
    let local = |listener: &tokio::net::TcpListener| listener.local_addr().ok().map(tracing::field::display);
    info!(http = local(&http), grpc = local(&grpc), data_dir = %data.path().display(), "node started");
    let name = name(&settings.cluster.advertise, &http);
    let mut metrics = prometheus_client::registry::Registry::default();
    let roster = match &cluster {
        Some(cluster) => Roster::of(cluster.clone(), registry),
        None => Roster::alone(&name, registry, readiness.clone()),
    };
    let requests = api::http::metrics::register(&mut metrics, naming.clone(), push.clone(), roster.clone());
    let native = NativeApi::new(
        naming.clone(),
        subscribers,
        settings.grpc.clone(),
        NodeFacts { roster: roster.clone(), readiness: readiness.clone(), brake: settings.registry.brake(), clock },
        shutdown.clone(),
    );
    let routes = native.add_to(Routes::default());
    let web = with_standard_services(routes.clone(), &native::SERVICES, readiness.clone(), &shutdown)?;
    let sdk = SdkApi::new(naming.clone(), sdk_push, &settings.grpc, readiness.clone(), shutdown.clone());
    api::grpc::metrics::register(&mut metrics, sdk.clone());
    let services = [&native::SERVICES[..], &sdk::SERVICES].concat();
    let routes = with_standard_services(sdk.add_to(routes), &services, readiness.clone(), &shutdown)?;
    let state = Arc::new(api::http::Gateway {
        naming,
        push,
        readiness,
        roster,
        settings: settings.http.clone(),
        machine: Machine::default(),
        log: Box::new(log),
        metrics,
        requests,
    });
    let router = api::http::router(&state, api::grpc::server::web(web));
    // The HTTP port ends last: as long as SDKs are moving away it answers probes, and everybody else with 503.
    let gateway = Shutdown::new();
    let serving = gateway.clone();
    gateway.spawn(async move { api::http::server::serve(router, http, &settings.http, &serving).await });
    let serving = shutdown.clone();
    shutdown.spawn(async move { accept::serve(routes, grpc, &settings.grpc, clock, &serving).await });
    match &cluster {
        Some(cluster) => cluster.keep_ready(ready.clone()),
        None => {
            ready.send_replace(Readiness::Ready);
        }
    }
    stop.requested().await;
    ready.send_replace(Readiness::Draining);
    info!("node draining");
    let (time, begun) = (settings.server.drain_timeout, clock.now());
    let remaining = || time.saturating_sub(clock.now().since(begun));
    let drained = async {
        // Beat sources go to their next owners while clients move away.
        let handed = async {
            if let Some(cluster) = &cluster {
                cluster.hand_over(time / 2).await;
            }
        };
        let moved = async {
            shutdown.drain();
            shutdown.drained(time / 2).await
        };
        let ((), left) = tokio::join!(handed, moved);
        if let Some(cluster) = &cluster {
            cluster.part(remaining() / 2).await;
        }
        peers.drain();
        gateway.drain();
        let (peers, gateway) = tokio::join!(peers.drained(remaining()), gateway.drained(remaining()));
        left + peers + gateway
    };
    tokio::select! {
        left = drained => {
            if left > 0 {
                warn!(tasks = left, "drain timeout passed, ending anyway");
            }
        }
        () = stop.requested() => warn!("told to stop again, ending at once"),
    }
    info!("node stopped");
    Ok(())
}

/// This node's name. A name with port 0, which no other node can write down, gets the port that the system chose.
fn name(advertise: &str, http: &tokio::net::TcpListener) -> String {
    match (advertise.strip_suffix(":0"), http.local_addr()) {
        (Some(host), Ok(address)) => format!("{host}:{}", address.port()),
        (Some(_), Err(_)) | (None, _) => advertise.to_owned(),
    }
}
