//! Between the two halves of a [`Link`](crate::cluster::transport::Link) and the two streams of the call that carries it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Streaming;
use tracing::debug;

use crate::cluster::member::MemberName;
use crate::quiet::Quiet;

/// How long an end that was let go of keeps the call, so that what it has sent arrives and the other end can let go too.
const LINGER: Duration = Duration::from_secs(2);

/// What one end sends: the messages of its sender. Once it is let go of, what was sent before still goes.
pub struct Outgoing<T> {
    messages: mpsc::Receiver<T>,
    let_go: Quiet<WaitForCancellationFutureOwned>,
    closed: bool,
}

impl<T> Outgoing<T> {
    /// The messages that `messages` gets until its senders are gone or `let_go` is cancelled.
    pub fn new(messages: mpsc::Receiver<T>, let_go: &CancellationToken) -> Self {
        Self { messages, let_go: Quiet::new(let_go.clone().cancelled_owned()), closed: false }
    }
}

impl<T> Stream for Outgoing<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if !self.closed && Pin::new(&mut self.let_go).poll(cx).is_ready() {
            self.closed = true;
            self.messages.close();
        }
        self.messages.poll_recv(cx)
    }
}

/// Delivers what the other end sends, until one of the two lets go or the call breaks; then `let_go` is cancelled, unless
/// the other end has only said its last and may still listen.
///
/// * `dialled`: whether this end has dialled. The call of a dialler is over when its answers are.
/// * `end`: ends the link from outside.
pub async fn deliver<T>(
    member: &MemberName,
    mut incoming: Streaming<T>,
    to: mpsc::Sender<T>,
    let_go: CancellationToken,
    dialled: bool,
    end: impl Future<Output = ()> + Send,
) {
    let mut end = std::pin::pin!(end);
    loop {
        tokio::select! {
            biased;
            () = &mut end => break,
            () = to.closed() => break,
            message = incoming.message() => match message {
                Ok(Some(message)) => tokio::select! {
                    biased;
                    () = &mut end => break,
                    sent = to.send(message) => if sent.is_err() {
                        break;
                    },
                },
                Ok(None) => {
                    if dialled {
                        let_go.cancel();
                    }
                    return;
                }
                Err(status) => {
                    debug!(peer = %member, dialled, code = ?status.code(), reason = status.message(), "link broke");
                    let_go.cancel();
                    return;
                }
            },
        }
    }
    drop(to);
    let_go.cancel();
    let unheard = async { while let Ok(Some(_)) = incoming.message().await {} };
    let _ = tokio::time::timeout(LINGER, unheard).await;
}
