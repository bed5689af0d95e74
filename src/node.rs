//! The running node: takes the data directory, opens the listeners, and serves until it is told to stop.

use std::io;

use tokio::signal;
use tracing::info;

use crate::{config::Settings, data_dir, data_dir::DataDir, listen};

/// Why a node cannot start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] listen::Error),
    /// The system does not let the process wait for signals.
    #[error("cannot wait for signals")]
    Signal(#[source] io::Error),
}

/// Runs a node until the process is told to stop.
///
/// # Errors
/// [`Error`] if the data directory is in use or a listener cannot be opened; nothing was served then.
pub async fn run(settings: Settings) -> Result<(), Error> {
    let data = DataDir::open(&settings.server.data_dir)?;
    let http = listen::bind("server.http", settings.server.http)?;
    let grpc = listen::bind("server.grpc", settings.server.grpc)?;
    let local = |listener: &tokio::net::TcpListener| listener.local_addr().ok().map(tracing::field::display);
    info!(http = local(&http), grpc = local(&grpc), data_dir = %data.path().display(), "node started");
    stopped().await.map_err(Error::Signal)
}

/// Completes at SIGTERM or SIGINT.
async fn stopped() -> io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = signal::unix::signal(signal::unix::SignalKind::terminate())?;
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            interrupted = signal::ctrl_c() => interrupted,
        }
    }
    #[cfg(not(unix))]
    signal::ctrl_c().await
}
