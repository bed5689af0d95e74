//! `WatchService`: one task for each watcher, which tells it what differs from what it was told before.
//!
//! Nothing is queued but the message that is on its way: while a slow watcher does not take it, changes pile up nowhere,
//! and what it is told next is the difference to the newest state.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::{NativeApi, outbox::Outbox, peer, refuse};
use crate::{
    push::subscriber::{Protocol, Subscriber},
    registry::{
        ServiceKey, Snapshot,
        follow::{Follower, News},
        key::excerpt,
    },
    wire::{
        native::{Shape, instance, service, watch::Letters},
        pb,
    },
};

/// The shortest time between two messages about changes: a burst of changes is told as one, and costs one comparison.
/// The first change after a quiet time goes out at once.
const MERGE: Duration = Duration::from_millis(20);

/// Messages that may wait for a watcher, beside what the transport buffers. One is enough to keep the task and the
/// transport both busy; more would be older states.
const WAITING: usize = 1;

impl NativeApi {
    pub(super) fn start_watch(
        &self,
        request: Request<pb::WatchServiceRequest>,
    ) -> Result<Response<Outbox<pb::WatchServiceResponse>>, Status> {
        let peer = peer(&request);
        let agent = request.metadata().get("user-agent").and_then(|agent| agent.to_str().ok()).map(excerpt);
        let request = request.into_inner();
        let limits = self.naming.limits();
        let key = service::key(limits, request.key.as_ref()).map_err(refuse(Shape::Keyed))?;
        let subscriber = Subscriber {
            address: address(request.consumer.as_ref(), peer),
            agent: agent.unwrap_or_default(),
            app: String::new(),
            clusters: excerpt(&request.clusters.join(",")),
            protocol: Protocol::Watch,
            since: self.node.clock.now(),
        };
        let query = instance::query(limits, &request.clusters, request.healthy_only, request.raw, request.consumer)
            .map_err(refuse(Shape::Flat))?;
        let subscription = self.subscribers.add(key.clone(), subscriber);
        // Before the first state is read, so that no change is missed.
        let watch = self.naming.watch(key.clone());
        let (out, outbox) = Outbox::new(WAITING, self.shutdown.clone());
        let api = self.clone();
        self.shutdown.spawn(async move {
            tokio::select! {
                () = api.tell(key, watch, Follower::new(query), &out) => {}
                () = api.shutdown.draining() => {}
                () = out.closed() => {}
            }
            drop(subscription);
        });
        Ok(Response::new(outbox))
    }

    /// Tells a watcher of every change, until it is gone.
    async fn tell(
        &self,
        key: ServiceKey,
        mut watch: crate::registry::watches::Watch,
        mut follower: Follower,
        out: &mpsc::Sender<Result<pb::WatchServiceResponse, Status>>,
    ) {
        loop {
            let snapshot = self.naming.snapshot(&key);
            if let Some(news) = follower.follow(snapshot.clone()) {
                if !send(&key, &snapshot, &news, out).await {
                    return;
                }
                tokio::time::sleep(MERGE).await;
            }
            watch.changed().await;
        }
    }
}

/// Sends one piece of news in as many messages as it needs. Returns whether the watcher is still there.
async fn send(
    key: &ServiceKey,
    snapshot: &Arc<Snapshot>,
    news: &News,
    out: &mpsc::Sender<Result<pb::WatchServiceResponse, Status>>,
) -> bool {
    for letter in Letters::new(key, snapshot, news) {
        if out.send(Ok(letter)).await.is_err() {
            return false;
        }
    }
    true
}

/// Where a watcher is: what it says of itself, else where its connection comes from.
fn address(consumer: Option<&pb::Consumer>, peer: Option<SocketAddr>) -> String {
    match (consumer.filter(|consumer| !consumer.ip.is_empty()), peer) {
        (Some(consumer), _) => excerpt(&consumer.ip),
        (None, Some(peer)) => peer.to_string(),
        (None, None) => String::new(),
    }
}
