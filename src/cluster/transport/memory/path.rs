//! One direction between two members, and what carries messages along it.

use std::{collections::VecDeque, time::Duration};

use tokio::sync::{mpsc, watch};

use crate::clock::{Clock, Mono};

/// Messages that may be under way in one direction of a link; the sender waits beyond them, as TCP makes it wait.
const WINDOW: usize = 64;

/// How long an end that has been let go of keeps the other direction, for what the other end still has to say.
const LINGER: Duration = Duration::from_secs(1);

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

/// Carries messages along one path.
pub(super) struct Carrier {
    clock: Clock,
    path: watch::Receiver<Path>,
    jitter: Box<dyn FnMut() -> Duration + Send>,
}

impl Carrier {
    pub(super) fn new(clock: Clock, path: watch::Receiver<Path>, jitter: Box<dyn FnMut() -> Duration + Send>) -> Self {
        Self { clock, path, jitter }
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
    ///
    /// * `forth`: whether it is the direction of the dialler, of which messages may come late.
    pub(super) async fn carry<T>(
        mut self,
        mut from: mpsc::Receiver<T>,
        to: mpsc::Sender<T>,
        end: watch::Sender<End>,
        forth: bool,
    ) {
        let mut ended = end.subscribe();
        let mut broken_path = self.path.clone();
        let mut under_way: VecDeque<(Mono, T)> = VecDeque::new();
        let mut open = true;
        let late = {
            let mut broken = std::pin::pin!(broken(&mut broken_path));
            let mut ended = std::pin::pin!(ended.wait_for(|end| *end != End::Open));
            loop {
                let now = self.clock.now();
                let due = under_way.front().map(|(at, _)| at.since(now));
                if !open && due.is_none() {
                    return;
                }
                let cut = self.path.borrow_and_update().cut.is_some();
                tokio::select! {
                    biased;
                    end = &mut ended => break end.map_or(End::Lost, |end| *end),
                    () = &mut broken => {
                        end.send_replace(End::Lost);
                        return;
                    }
                    _ = self.path.changed() => {}
                    message = from.recv(), if open && under_way.len() < WINDOW => match message {
                        Some(message) => {
                            let arrives = now + self.path.borrow().delay + (self.jitter)();
                            let arrives = under_way.back().map_or(arrives, |(last, _)| arrives.max(*last));
                            under_way.push_back((arrives, message));
                        }
                        None => open = false,
                    },
                    place = to.reserve(), if !cut && due == Some(Duration::ZERO) => match (place, under_way.pop_front()) {
                        (Ok(place), Some((_, message))) => place.send(message),
                        // The other end has let go: this one's sender fails, and what is under way falls away.
                        (Ok(_) | Err(_), _) => return,
                    },
                    () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some_and(|due| due > Duration::ZERO) => {}
                    () = to.closed(), if !cut => return,
                }
            }
        };
        match late {
            End::Late(after) if forth => {
                from.close();
                while let Ok(message) = from.try_recv() {
                    under_way.push_back((Mono::ZERO, message));
                }
                drop(from);
                tokio::time::sleep(after).await;
                for (_, message) in under_way {
                    if to.send(message).await.is_err() {
                        return;
                    }
                }
            }
            End::Open | End::Lost | End::Late(_) => {}
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
