//! What the rest of the process holds of the cluster.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::sleep};
use tracing::info;

use super::{
    detector::TICK,
    distro::{compose, distribute, moves, receive, stream},
    epoch::EpochFile,
    forward::{self, Forwarder},
    forwarded::Forwarded,
    hub::Hub,
    life,
    member::{MemberList, MemberName},
    serving,
    settings::Settings,
    stage::Stage,
    transport::{Accept, Accepted, BoxFuture, Transport},
    view::{self, ClusterView},
};
use crate::{
    clock::Clock,
    readiness::Readiness,
    registry::{RegistryHandle, journal::JournalReader},
    shutdown::Shutdown,
    wire::{pb::peer as pb, peer as wire},
};

/// What a cluster node is made of.
pub struct Parts {
    /// This node's name.
    pub me: MemberName,
    /// All members, this node included, and every change of them.
    pub members: watch::Receiver<Arc<MemberList>>,
    /// The settings of the cluster.
    pub settings: Settings,
    /// The process's clock.
    pub clock: Clock,
    /// The registry.
    pub registry: RegistryHandle,
    /// What changes in it.
    pub journal: JournalReader,
    /// The way to the other members.
    pub transport: Arc<dyn Transport>,
    /// The epochs of this node.
    pub epoch: EpochFile,
    /// Whose tasks the cluster's are.
    pub shutdown: Shutdown,
}

/// This node's part in the cluster. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Cluster {
    hub: Arc<Hub>,
    waiting_for: watch::Sender<Vec<MemberName>>,
    hurried: watch::Sender<bool>,
}

impl Cluster {
    /// Begins to live among the others: dials them, listens to their silence, and joins. [`Cluster::joined`] tells when
    /// that has come to an end.
    #[must_use]
    pub fn start(parts: Parts) -> Self {
        let Parts { me, mut members, settings, clock, registry, journal, transport, epoch, shutdown } = parts;
        let list = members.borrow_and_update().clone();
        info!(name = %me, epoch = epoch.epoch().number(), members = list.len(), "this node is one of several");
        let hub = Hub::new(me, &list, settings, clock, registry, transport, epoch, shutdown);
        let cluster =
            Self { hub: hub.clone(), waiting_for: watch::Sender::new(Vec::new()), hurried: watch::Sender::new(false) };
        let link = |hub: &Arc<Hub>, list: &MemberList| {
            for outgoing in hub.follow(list) {
                hub.spawn(stream::run(hub.clone(), outgoing));
            }
        };
        link(&hub, &list);
        hub.spawn(distribute(hub.clone(), journal));
        hub.spawn(life::tick(hub.clone()));
        hub.spawn(moves::run(hub.clone()));
        let following = hub.clone();
        hub.spawn(async move {
            while members.changed().await.is_ok() {
                let list = members.borrow_and_update().clone();
                info!(members = list.len(), "the list of members has changed");
                link(&following, &list);
            }
        });
        hub.spawn(life::join(hub.clone(), cluster.waiting_for.clone(), cluster.hurried.subscribe()));
        cluster
    }

    /// What answers the other members.
    #[must_use]
    pub fn door(&self) -> Arc<dyn Accept> {
        Arc::new(Door { hub: self.hub.clone() })
    }

    /// Begins to send writes to the members that own them.
    #[must_use]
    pub fn forwarder(&self) -> Forwarder {
        let hub = &self.hub;
        let settings = forward::Settings { timeout: hub.settings.forward_timeout, ..forward::Settings::default() };
        Forwarder::start(hub.routes.clone(), hub.transport.clone(), hub.registry.clone(), settings, &hub.shutdown)
    }

    /// Completes when this node serves.
    pub async fn joined(&self) {
        let mut stage = self.hub.stage.subscribe();
        // The sender is held by the hub.
        let _ = stage.wait_for(|stage| *stage != Stage::Joining).await;
    }

    /// Whose records this node still waits for before it serves.
    #[must_use]
    pub fn waiting_for(&self) -> watch::Receiver<Vec<MemberName>> {
        self.waiting_for.subscribe()
    }

    /// Has this node serve with what it has, and returns whose records it was waiting for. Does nothing if it serves
    /// already.
    #[expect(clippy::must_use_candidate, reason = "it is called for what it does")]
    pub fn hurry(&self) -> Vec<MemberName> {
        let waiting_for = self.waiting_for.borrow().clone();
        self.hurried.send_replace(true);
        waiting_for
    }

    /// This node's name.
    #[must_use]
    pub fn name(&self) -> &MemberName {
        &self.hub.me
    }

    /// How the members stand, as this node sees it.
    #[must_use]
    pub fn view(&self) -> ClusterView {
        view::view(&self.hub, &self.waiting_for.borrow())
    }

    /// Who owns the beat source with this [`hash::endpoint`](crate::registry::hash::endpoint); `None` while nobody may.
    #[must_use]
    pub fn owner(&self, key: u64) -> Option<MemberName> {
        self.hub.eligible.load().owner(key).cloned()
    }

    /// Whether this node serves, and if not, why.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let listed = self.hub.detector.lock().is_listed();
        serving::readiness(&self.hub.me, self.hub.stage(), listed, &self.waiting_for.borrow())
    }

    /// Keeps `ready` up with [`Cluster::readiness`] from now on, until this node drains. What the node itself says of its
    /// drain stays.
    pub fn keep_ready(&self, ready: watch::Sender<Readiness>) {
        self.hub.spawn(serving::keep(self.hub.clone(), self.waiting_for.subscribe(), ready));
    }

    /// Where this node stands in its life.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.hub.stage()
    }

    /// Begins to leave: this node owns nothing new from now on, and what it keeps for beats goes to the next owners; what
    /// connections published is kept until they have come back elsewhere. Returns whether all of it went within `bound`.
    pub async fn hand_over(&self, bound: Duration) -> bool {
        life::hand_over(&self.hub, bound).await
    }

    /// Whether this node has begun to leave.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.hub.stage() == Stage::Draining
    }

    /// Completes when this node knows what the others do: at once, unless it was frozen a moment ago; then when they have
    /// told it what happened meanwhile, after `down_after` at the latest.
    pub async fn caught_up(&self) {
        while !self.is_leaving() && !self.hub.has_caught_up() {
            sleep(TICK / 4).await;
        }
    }

    /// Tells the others what they have not been told yet, and says goodbye. Returns whether that was done within `bound`.
    pub async fn part(&self, bound: Duration) -> bool {
        life::part(&self.hub, bound).await
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("me", &self.hub.me).field("stage", &self.hub.stage()).finish_non_exhaustive()
    }
}

/// What answers the other members.
struct Door {
    hub: Arc<Hub>,
}

impl Accept for Door {
    fn link(&self, from: MemberName, link: Accepted) {
        self.hub.spawn(receive::run(self.hub.clone(), from, link));
    }

    fn forward(&self, from: MemberName, request: pb::ForwardRequest) -> BoxFuture<'static, pb::ForwardResponse> {
        let hub = self.hub.clone();
        Box::pin(async move {
            hub.reported(&from, request.standing.clone());
            let response = Forwarded::new(hub.registry.clone()).handle(&from, request).await;
            pb::ForwardResponse { standing: Some(hub.standing()), ..response }
        })
    }

    fn list_orphans(
        &self,
        _from: MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, pb::ListOrphansResponse> {
        let hub = self.hub.clone();
        Box::pin(async move {
            let cursor = wire::service_at(&request.cursor).unwrap_or_default();
            compose::orphans(&hub.registry, &hub.gone(), cursor)
        })
    }
}
