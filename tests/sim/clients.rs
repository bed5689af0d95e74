//! Publishers, as SDKs are: they register, beat, reconnect, and end well or badly.

use std::{sync::Arc, time::Duration};

use nomina::registry::{Command, InstanceKey, ServiceCommand, instance::ConnectionId};

use crate::{
    front::Wrote,
    oracle::{Kept, Life, Oracle, publication},
    rng::Rng,
    world::{Node, World, key, service},
};

const BEAT: Duration = Duration::from_secs(5);

/// How long a client waits for one node.
const PATIENCE: Duration = Duration::from_secs(3);

/// After which a node gives up a connection that has fallen silent.
pub const IDLE: Duration = Duration::from_secs(20);

/// When a publisher begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub begins: Duration,
    pub ends: Option<(Duration, End)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Explicit,
    Silent,
}

pub fn spawn(world: &Arc<World>, oracle: &Arc<Oracle>, id: usize, kept: Kept, span: Span, rng: Rng) {
    let key = key("10.0.0.1", i64::try_from(id).unwrap());
    oracle.add(id, key.clone(), kept);
    let client = Client { world: world.clone(), oracle: oracle.clone(), id, key, rng, number: 1 };
    world.tasks.spawn_detached(async move {
        tokio::time::sleep(span.begins).await;
        match kept {
            Kept::Beats => client.beat(span).await,
            Kept::Connection => client.connect(span).await,
        }
    });
}

struct Client {
    world: Arc<World>,
    oracle: Arc<Oracle>,
    id: usize,
    key: InstanceKey,
    rng: Rng,
    number: u64,
}

impl Client {
    fn note(&self, what: &str) {
        self.world.log.note(format!("p{} {what}", self.id));
    }

    fn ends(&self, span: Span) -> Option<End> {
        span.ends.filter(|(at, _)| self.world.clock.now() >= nomina::clock::Mono::ZERO + *at).map(|(_, end)| end)
    }

    /// Has one of the nodes do something, three at most.
    async fn anywhere(&mut self, what: What) -> bool {
        let publication = publication(self.number);
        if what != What::Remove {
            self.oracle.change(self.id, |publisher| publisher.tried = self.number);
        }
        let names = self.world.names.clone();
        for name in self.rng.shuffled(&names).into_iter().take(3) {
            let Some(node) = self.world.serving(&name) else { continue };
            let work = async {
                match what {
                    What::Register => node.list(&self.key, &publication).await,
                    What::Beat => node.beat(&self.key, &publication).await,
                    What::Remove => node.remove(&self.key).await,
                }
            };
            let unanswered = Wrote { done: false, late: true };
            let wrote = tokio::time::timeout(PATIENCE, work).await.unwrap_or(unanswered);
            if wrote.late && what != What::Remove {
                let number = self.number;
                self.oracle.change(self.id, |publisher| {
                    publisher.late = true;
                    publisher.late_before = number + 1;
                });
            }
            if wrote.done && !self.world.is_hidden(&name) {
                if what != What::Beat {
                    self.note(&format!("{what:?} {} at {name}", self.number));
                }
                return true;
            }
        }
        self.note(&format!("{what:?} {} fails", self.number));
        false
    }

    async fn beat(mut self, span: Span) {
        while !self.anywhere(What::Register).await {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.oracle.acknowledged(self.id, self.number, self.world.clock.now());
        loop {
            tokio::time::sleep(BEAT).await;
            match self.ends(span) {
                Some(End::Silent) => {
                    self.note("falls silent");
                    self.oracle.ended(self.id, Life::Silent(self.world.clock.now()));
                    return;
                }
                Some(End::Explicit) => {
                    self.oracle.change(self.id, |publisher| publisher.held = false);
                    let removed = self.anywhere(What::Remove).await;
                    let now = self.world.clock.now();
                    self.oracle.ended(self.id, if removed { Life::Removed(now) } else { Life::Silent(now) });
                    return;
                }
                None => {}
            }
            if self.rng.percent(15) {
                self.number += 1;
                if self.anywhere(What::Register).await {
                    self.oracle.acknowledged(self.id, self.number, self.world.clock.now());
                }
            } else {
                self.anywhere(What::Beat).await;
            }
        }
    }

    async fn connect(mut self, span: Span) {
        loop {
            let names = self.world.names.clone();
            let name = self.rng.pick(&names);
            let Some(node) = self.world.serving(&name) else {
                tokio::time::sleep(Duration::from_millis(300)).await;
                continue;
            };
            let connection = self.world.connection();
            if !self.publish(&node, connection, true).await {
                continue;
            }
            self.note(&format!("publishes {} at {name}", self.number));
            match self.hold(&node, connection, span).await {
                Held::Ended => return,
                Held::Moves(within) => tokio::time::sleep(within).await,
            }
        }
    }

    async fn publish(&mut self, node: &Node, connection: ConnectionId, first: bool) -> bool {
        self.oracle.change(self.id, |publisher| publisher.tried = self.number);
        let wanted = vec![(self.key.clone(), publication(self.number))];
        let publish = Command::Service(service(), ServiceCommand::Publish(connection, wanted));
        let work = async {
            if first {
                let _ = node.registry.apply(Command::Open(connection)).await;
            }
            node.registry.apply(publish).await.is_ok()
        };
        let done = tokio::select! {
            biased;
            () = node.shutdown.draining() => false,
            done = work => done,
        };
        if done {
            self.oracle.acknowledged(self.id, self.number, self.world.clock.now());
        }
        done
    }

    /// Holds a connection until it ends.
    async fn hold(&mut self, node: &Arc<Node>, connection: ConnectionId, span: Span) -> Held {
        let breaks = self.rng.percent(40).then(|| self.rng.millis(5_000, 60_000));
        let breaks = breaks.map(|after| self.world.clock.now() + after);
        loop {
            tokio::time::sleep(self.rng.millis(300, 700)).await;
            if node.shutdown.is_draining() {
                return Held::Moves(self.rng.millis(200, 3_000));
            }
            if self.world.is_hidden(&node.name) {
                // The node answers no more: it is given up here first, and closed there when that notices.
                let within = self.rng.millis(2_000, 6_000);
                self.close_later(node, connection, IDLE);
                return Held::Moves(within);
            }
            if !node.is_ready() {
                let within = self.rng.millis(0, 1_000);
                self.close_later(node, connection, within + Duration::from_secs(2));
                return Held::Moves(within);
            }
            match self.ends(span) {
                Some(End::Explicit) => {
                    self.note("disconnects");
                    let _ = node.registry.apply_surely(Command::Close(connection)).await;
                    self.oracle.ended(self.id, Life::Silent(self.world.clock.now()));
                    return Held::Ended;
                }
                Some(End::Silent) => {
                    self.note("falls silent");
                    self.oracle.change(self.id, |publisher| publisher.held = false);
                    tokio::time::sleep(IDLE).await;
                    let _ = node.registry.apply_surely(Command::Close(connection)).await;
                    self.oracle.ended(self.id, Life::Silent(self.world.clock.now()));
                    return Held::Ended;
                }
                None => {}
            }
            if breaks.is_some_and(|at| self.world.clock.now() >= at) {
                if self.rng.percent(50) {
                    // Both ends see it.
                    self.note("is cut off");
                    self.oracle.change(self.id, |publisher| publisher.held = false);
                    let _ = node.registry.apply_surely(Command::Close(connection)).await;
                } else {
                    self.note("is cut off half-open");
                    self.close_later(node, connection, IDLE);
                }
                return Held::Moves(self.rng.millis(200, 3_000));
            }
            if self.rng.percent(2) {
                self.number += 1;
                self.publish(node, connection, false).await;
                self.note(&format!("publishes {}", self.number));
            }
        }
    }

    fn close_later(&self, node: &Arc<Node>, connection: ConnectionId, after: Duration) {
        let node = node.clone();
        self.world.tasks.spawn_detached(async move {
            tokio::time::sleep(after).await;
            let _ = node.registry.apply_surely(Command::Close(connection)).await;
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Register,
    Beat,
    Remove,
}

/// How it goes on after a connection.
enum Held {
    Ended,
    Moves(Duration),
}
