//! What the rest of the process holds of the cluster.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::watch;
use tracing::info;

use super::{
    detector::Standing,
    distro::{compose, distribute, moves, receive, stream},
    epoch::EpochFile,
    forward::{self, Forwarder},
    forwarded::Forwarded,
    hub::Hub,
    life,
    member::{MemberList, MemberName},
    ownership::Eligible,
    settings::Settings,
    stage::Stage,
    transport::{Accept, Accepted, BoxFuture, Transport},
};
use crate::{
    clock::Clock,
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

    /// Has this node serve with what it has. Does nothing if it serves already.
    pub fn hurry(&self) {
        self.hurried.send_replace(true);
    }

    /// Where this node stands in its life.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.hub.stage()
    }

    /// Who may own beat sources now, as this node sees it.
    #[must_use]
    pub fn eligible(&self) -> Arc<Eligible> {
        self.hub.eligible.load_full()
    }

    /// How a member stands, as this node sees it; `None` for itself and for strangers.
    #[must_use]
    pub fn standing(&self, member: &MemberName) -> Option<Standing> {
        self.hub.detector.lock().standing(member)
    }

    /// How many changed records each of the others has still to be told, or has not acknowledged.
    #[must_use]
    pub fn backlog(&self) -> BTreeMap<MemberName, usize> {
        let outgoing = self.hub.all_outgoing();
        outgoing.iter().map(|outgoing| (outgoing.peer.clone(), outgoing.outbox.lock().len())).collect()
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
