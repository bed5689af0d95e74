//! Accepts connections of the gRPC port, within a bound.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{Connected, TcpConnectInfo};
use tracing::warn;

use crate::shutdown::Shutdown;

/// The pause after a connection could not be accepted: out of descriptors, most likely, so others must close first.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection that holds its place among the permitted ones until it is closed.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// The connections of `listener`, at most `most` at a time; further ones wait in the system's queue. Ends when the drain
/// starts.
pub fn connections(
    listener: TcpListener,
    most: usize,
    shutdown: &Shutdown,
) -> ReceiverStream<Result<Connection, io::Error>> {
    let (accepted, connections) = mpsc::channel(1);
    let drain = shutdown.clone();
    shutdown.spawn(async move {
        let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        loop {
            let connection = tokio::select! {
                connection = accept(&listener, &places) => connection,
                () = drain.draining() => return,
            };
            match connection {
                Ok(connection) => {
                    if accepted.send(Ok(connection)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    warn!(%error, "a gRPC connection could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    });
    ReceiverStream::new(connections)
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> io::Result<Connection> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(Connection { stream, _place: place })
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
