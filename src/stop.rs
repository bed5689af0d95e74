//! The signals that stop a process: SIGTERM and SIGINT.

use std::io;

use tokio::signal;

/// Waits for the signals. From its making on they no longer end the process by themselves.
#[derive(Debug)]
pub struct Stop {
    #[cfg(unix)]
    terminate: signal::unix::Signal,
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
}

impl Stop {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the system does not let the process wait for signals.
    pub fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        return Ok(Self {
            terminate: signal::unix::signal(signal::unix::SignalKind::terminate())?,
            interrupt: signal::unix::signal(signal::unix::SignalKind::interrupt())?,
        });
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Completes when the process is told to stop; each call waits for a further signal.
    pub async fn requested(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        if signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
