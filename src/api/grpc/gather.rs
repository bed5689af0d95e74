//! Gathers what HTTP/2 writes frame by frame, so that a list of several frames goes to the system in one call, and to its
//! reader in one piece.
//!
//! hyper flushes after each large frame, which says nothing about whether another one follows. So a flush does nothing
//! here, and what was gathered is written when the connection has done all it could: [`Gather::after`].

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is gathered at most: four frames of the usual size. More is written at once.
const MOST: usize = 64 * 1024;

thread_local! {
    /// Room that no connection of this thread gathers in: they do so one after the other, and nearly always write all of it.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A stream whose writes are gathered. All clones are the same stream.
#[derive(Debug)]
pub(super) struct Gather<S>(Arc<Mutex<State<S>>>);

#[derive(Debug)]
struct State<S> {
    stream: S,
    waiting: Vec<u8>,
    /// How much of it has been written.
    written: usize,
}

impl<S> Clone for Gather<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: AsyncWrite + Unpin> Gather<S> {
    /// Nothing is gathered yet.
    pub(super) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(State { stream, waiting: Vec::new(), written: 0 })))
    }

    /// To be called with what every poll of the connection returned: writes what it has gathered. An error is left for the
    /// connection to find, which reads and writes the same stream.
    pub(super) fn after<T>(&self, polled: Poll<T>, context: &mut Context<'_>) -> Poll<T> {
        let _ = self.0.lock().drain(context);
        polled
    }
}

impl<S: AsyncWrite + Unpin> State<S> {
    fn drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.waiting.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest)) {
                Ok(0) => return self.fail(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) => return self.fail(error),
            }
        }
        if self.waiting.capacity() > 0 {
            let mut room = std::mem::take(&mut self.waiting);
            room.clear();
            self.written = 0;
            SPARE.set(room);
        }
        Poll::Ready(Ok(()))
    }

    fn fail(&mut self, error: io::Error) -> Poll<io::Result<()>> {
        (self.waiting, self.written) = (Vec::new(), 0);
        Poll::Ready(Err(error))
    }

    fn write(&mut self, context: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum();
        if self.waiting.len() + length > MOST {
            ready!(self.drain(context))?;
            if length > MOST {
                return Pin::new(&mut self.stream).poll_write_vectored(context, parts);
            }
        }
        if self.waiting.is_empty() {
            self.waiting = SPARE.take();
            self.waiting.reserve(MOST);
        }
        for part in parts {
            self.waiting.extend_from_slice(part);
        }
        Poll::Ready(Ok(length))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gather<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gather<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().write(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().write(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        ready!(state.drain(context))?;
        Pin::new(&mut state.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Waker};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn all_that_was_written_goes_out_after_a_poll_and_in_order() {
        let (near, mut far) = duplex(1_000_000);
        let mut gather = Gather::new(near);
        let sent: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        for part in sent[..60_000].chunks(16_384) {
            gather.write_all(part).await.unwrap();
            gather.flush().await.unwrap();
        }
        let mut seen = vec![0; 200_000];
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut far).poll_read(&mut context, &mut ReadBuf::new(&mut seen)).is_pending());
        assert!(gather.after(Poll::<()>::Pending, &mut context).is_pending());
        far.read_exact(&mut seen[..60_000]).await.unwrap();
        // Beyond the bound, and larger than the bound at once.
        gather.write_all(&sent[60_000..70_000]).await.unwrap();
        gather.write_all(&sent[70_000..]).await.unwrap();
        gather.shutdown().await.unwrap();
        far.read_exact(&mut seen[60_000..]).await.unwrap();
        assert_eq!(seen, sent);
        assert_eq!(gather.0.lock().waiting.capacity(), 0);
    }

    #[tokio::test]
    async fn who_does_not_read_holds_the_writer_up() {
        let (near, mut far) = duplex(1_000);
        let mut gather = Gather::new(near);
        gather.write_all(&[1; MOST]).await.unwrap();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut gather).poll_write(&mut context, &[2]).is_pending());
        let handle = gather.clone();
        let reader = async {
            let mut seen = vec![0; MOST];
            far.read_exact(&mut seen).await.unwrap();
            seen
        };
        let drained = poll_fn(|context| handle.0.lock().drain(context));
        let (seen, drained) = tokio::join!(reader, drained);
        drained.unwrap();
        assert_eq!(seen, [1; MOST]);
        drop(far);
        assert!(gather.write_all(&[3]).await.is_ok());
        assert!(gather.shutdown().await.is_err());
    }
}
