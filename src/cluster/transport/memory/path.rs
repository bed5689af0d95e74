//! One direction between two members, and what carries messages along it.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Mono};

/// Messages that may be under way in one direction of a link; the sender waits beyond them, as TCP makes it wait.
const WINDOW: usize = 64;

/// What the way from one member to another does to messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Path {
    /// How long a message takes.
    pub delay: Duration,
    /// Nothing gets through; links break after the time, if there is one.
    pub cut: Option<Option<Duration>>,
}

/// How a link ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It has not.
    Open,
    /// It broke, and what was under way is lost.
    Lost,
    /// It broke, and what the dialler had sent arrives after this time.
    Late(Duration),
}

/// What has been sent from one member to another.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
}

impl Meter {
    pub(super) fn count(&self, message: &impl Message) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(message.encoded_len() as u64, Ordering::Relaxed);
    }
}

/// Carries messages along one path.
pub(super) struct Carrier {
    clock: Clock,
    path: watch::Receiver<Path>,
    meter: Arc<Meter>,
    jitter: Box<dyn FnMut() -> Duration + Send>,
}

impl Carrier {
    pub(super) fn new(
        clock: Clock,
        path: watch::Receiver<Path>,
        meter: Arc<Meter>,
        jitter: Box<dyn FnMut() -> Duration + Send>,
    ) -> Self {
        Self { clock, path, meter, jitter }
    }

    /// Takes one message along: waits for its delay, and while the path is cut.
    pub(super) async fn pass(&mut self) {
        let delay = self.path.borrow().delay + (self.jitter)();
        tokio::time::sleep(delay).await;
        // The network keeps the sender.
        let _ = self.path.wait_for(|path| path.cut.is_none()).await;
    }

    /// As [`Carrier::pass`]; `None` if the path was cut for so long that the connection breaks.
    pub(super) async fn pass_or_break(&mut self) -> Option<()> {
        let mut path = self.path.clone();
        tokio::select! {
            biased;
            () = self.pass() => Some(()),
            () = broken(&mut path) => None,
        }
    }

    /// Takes one direction of a link along until it ends.
    pub(super) async fn carry<T: Message>(mut self, mut direction: Direction<T>) {
        let mut ended = direction.end.subscribe();
        let mut broken_path = self.path.clone();
        // The last thing under way is that there is nothing more.
        let mut under_way: VecDeque<(Mono, Option<T>)> = VecDeque::new();
        let mut open = true;
        let mut unheard = false;
        let end = {
            let mut broken = std::pin::pin!(broken(&mut broken_path));
            let mut ended = std::pin::pin!(ended.wait_for(|end| *end != End::Open));
            let mut let_go = std::pin::pin!(direction.source_gone.cancelled());
            let mut told = false;
            loop {
                let due = under_way.front().map(|(at, _)| at.since(self.clock.now()));
                let cut = self.path.borrow_and_update().cut.is_some();
                tokio::select! {
                    biased;
                    end = &mut ended => break end.map_or(End::Lost, |end| *end),
                    () = &mut broken => {
                        direction.end.send_replace(End::Lost);
                        return;
                    }
                    _ = self.path.changed() => {}
                    // What it has sent already still goes.
                    () = &mut let_go, if !told => {
                        told = true;
                        direction.from.close();
                    }
                    message = direction.from.recv(), if open && under_way.len() < WINDOW => {
                        open = message.is_some();
                        if unheard && !open {
                            return;
                        }
                        if !unheard {
                            if let Some(message) = &message {
                                self.meter.count(message);
                            }
                            let arrives = self.clock.now() + self.path.borrow().delay + (self.jitter)();
                            let arrives = under_way.back().map_or(arrives, |(last, _)| arrives.max(*last));
                            under_way.push_back((arrives, message));
                        }
                    }
                    place = direction.to.reserve(), if !unheard && !cut && due == Some(Duration::ZERO) => {
                        match (place, under_way.pop_front()) {
                            (Ok(place), Some((_, Some(message)))) => place.send(message),
                            (Ok(_), Some((_, None)) | None) => return,
                            (Err(_), _) => {}
                        }
                    }
                    () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some_and(|due| due > Duration::ZERO) => {}
                    // The end over there has let go: what still comes falls away until this one has learned of it.
                    () = direction.to.closed(), if !unheard => {
                        direction.target_gone.cancel();
                        if !open {
                            return;
                        }
                        unheard = true;
                        under_way.clear();
                    }
                }
            }
        };
        if let End::Late(after) = end {
            direction.late(under_way, after).await;
        }
    }
}

/// One direction of a link.
pub(super) struct Direction<T> {
    /// From the end that sends.
    pub from: mpsc::Receiver<T>,
    /// To the end that receives.
    pub to: mpsc::Sender<T>,
    /// How the link ends; both directions share it.
    pub end: watch::Sender<End>,
    /// The end that sends has let go of the link.
    pub source_gone: CancellationToken,
    /// The end that receives has let go of the link.
    pub target_gone: CancellationToken,
    /// Whether it is the dialler that sends.
    pub forth: bool,
}

impl<T> Direction<T> {
    /// The end of a direction whose messages come late: the dialler's arrive `after` this time, and until then the acceptor
    /// speaks to nobody.
    async fn late(mut self, under_way: VecDeque<(Mono, Option<T>)>, after: Duration) {
        if !self.forth {
            drop(self.to);
            while self.from.recv().await.is_some() {}
            return;
        }
        self.from.close();
        let mut messages: Vec<T> = under_way.into_iter().filter_map(|(_, message)| message).collect();
        while let Ok(message) = self.from.try_recv() {
            messages.push(message);
        }
        drop(self.from);
        tokio::time::sleep(after).await;
        for message in messages {
            if self.to.send(message).await.is_err() {
                return;
            }
        }
    }
}

/// Completes when the path has been cut for as long as its links last.
async fn broken(path: &mut watch::Receiver<Path>) {
    loop {
        let cut = path.borrow_and_update().cut;
        match cut {
            Some(Some(after)) => {
                if tokio::time::timeout(after, path.wait_for(|path| path.cut.is_none())).await.is_err() {
                    return;
                }
            }
            Some(None) | None => {
                if path.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}
