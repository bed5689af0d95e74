//! The running node: takes the data directory, opens the listeners, serves until it is told to stop, and drains.

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
    config::Settings,
    data_dir::{self, DataDir},
    listen,
    naming::Naming,
    push::{sdk::SdkPush, subscriber::Subscribers},
    readiness::Readiness,
    registry::RegistryHandle,
    shutdown::Shutdown,
    stop::Stop,
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
    /// The system does not let the process wait for signals.
    #[error("cannot wait for signals")]
    Signal(#[source] io::Error),
}

/// Runs a node until the process is told to stop. Told a second time, it ends at once.
///
/// # Errors
/// [`Error`] if the data directory is in use or a listener cannot be opened; nothing was served then.
pub async fn run(settings: Settings) -> Result<(), Error> {
    let mut stop = Stop::listen().map_err(Error::Signal)?;
    let data = DataDir::open(&settings.server.data_dir)?;
    let http = listen::bind("server.http", settings.server.http)?;
    let grpc = listen::bind("server.grpc", settings.server.grpc)?;
    let shutdown = Shutdown::new();
    let (ready, readiness) = watch::channel(Readiness::Starting);
    let clock = Clock::start();
    let registry = RegistryHandle::start(settings.registry.clone(), settings.limits.clone(), clock, &shutdown);
    let subscribers = Subscribers::default();
    let push = SdkPush::new(registry.clone(), subscribers.clone(), settings.sdk.clone(), shutdown.clone());
    let naming = Naming::new(registry, settings.limits.clone());
    let local = |listener: &tokio::net::TcpListener| listener.local_addr().ok().map(tracing::field::display);
    info!(http = local(&http), grpc = local(&grpc), data_dir = %data.path().display(), "node started");
    let native = NativeApi::new(
        naming.clone(),
        subscribers,
        settings.grpc.clone(),
        NodeFacts {
            name: settings.server.http.to_string(),
            readiness: readiness.clone(),
            brake: settings.registry.brake(),
            clock,
        },
        shutdown.clone(),
    );
    let routes = native.add_to(Routes::default());
    let web = with_standard_services(routes.clone(), &native::SERVICES, readiness.clone(), &shutdown)?;
    let sdk = SdkApi::new(naming.clone(), push, &settings.grpc, readiness.clone(), shutdown.clone());
    let services = [&native::SERVICES[..], &sdk::SERVICES].concat();
    let routes = with_standard_services(sdk.add_to(routes), &services, readiness.clone(), &shutdown)?;
    let state = api::http::State {
        naming,
        readiness,
        name: settings.server.http.to_string().into(),
        settings: Arc::new(settings.http.clone()),
    };
    let router = api::http::router(&state).merge(api::grpc::server::web(web, &settings.grpc));
    let serving = shutdown.clone();
    shutdown.spawn(async move { api::http::server::serve(router, http, &settings.http, &serving).await });
    let serving = shutdown.clone();
    shutdown.spawn(async move { accept::serve(routes, grpc, &settings.grpc, clock, &serving).await });
    ready.send_replace(Readiness::Ready);

    stop.requested().await;
    ready.send_replace(Readiness::Draining);
    info!("node draining");
    shutdown.drain();
    tokio::select! {
        left = shutdown.drained(settings.server.drain_timeout) => {
            if left > 0 {
                warn!(tasks = left, "drain timeout passed, ending anyway");
            }
        }
        () = stop.requested() => warn!("told to stop again, ending at once"),
    }
    info!("node stopped");
    Ok(())
}
