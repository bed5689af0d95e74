//! What a streaming call sends: a bounded queue that says goodbye when the process drains.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

use crate::{
    api::reply::{self, Draining},
    shutdown::Shutdown,
};

/// The receiving end, read by tonic. When the task that fills it has ended because of the drain, the call ends with
/// UNAVAILABLE, so that the client goes on elsewhere.
#[derive(Debug)]
pub struct Outbox<T> {
    messages: mpsc::Receiver<Result<T, Status>>,
    shutdown: Shutdown,
    ended: bool,
}

impl<T> Outbox<T> {
    /// A queue of `capacity` messages: its sending end and the stream for tonic.
    pub fn new(capacity: usize, shutdown: Shutdown) -> (mpsc::Sender<Result<T, Status>>, Self) {
        let (sender, messages) = mpsc::channel(capacity);
        (sender, Self { messages, shutdown, ended: false })
    }
}

impl<T> Stream for Outbox<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.messages.poll_recv(cx) {
            Poll::Ready(None) if self.shutdown.is_draining() => {
                self.ended = true;
                Poll::Ready(Some(Err(reply::status(&Draining))))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test]
    async fn says_goodbye_only_when_the_process_drains() {
        let shutdown = Shutdown::new();
        let (sender, mut outbox) = Outbox::<u8>::new(1, shutdown.clone());
        sender.send(Ok(1)).await.unwrap();
        drop(sender);
        assert_eq!(outbox.next().await.unwrap().unwrap(), 1);
        assert!(outbox.next().await.is_none());

        let (sender, mut outbox) = Outbox::<u8>::new(1, shutdown.clone());
        shutdown.drain();
        drop(sender);
        assert_eq!(outbox.next().await.unwrap().unwrap_err().code(), tonic::Code::Unavailable);
        assert!(outbox.next().await.is_none());
    }
}
