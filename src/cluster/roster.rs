//! What front ends ask of the cluster: how its members stand and who owns what. A node that is alone answers as the only
//! member.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::{
    detector::Standing,
    handle::Cluster,
    stage::Stage,
    view::{ClusterView, CopyView, MemberView, MovedView},
};
use crate::{
    clock::Mono,
    error::{Classify, Code},
    readiness::{Readiness, ReadinessWatch},
    registry::{Endpoint, RegistryHandle, ServiceKey, hash, version::OwnerId},
};

/// How long [`Roster::owned_services`] may be old: clients poll the page that shows it, and counting walks all services.
const OWNED_AGE: Duration = Duration::from_secs(5);

/// The members, as front ends see them. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Roster {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    place: Place,
    registry: RegistryHandle,
    /// The services of which this node owns instances, and when they were counted.
    owned_services: Mutex<Option<(usize, Mono)>>,
}

enum Place {
    Alone(ReadinessWatch),
    Clustered(Cluster),
}

/// Something was asked that only a cluster can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node runs alone: it joins nobody")]
pub struct Alone;

impl Classify for Alone {
    fn code(&self) -> Code {
        Code::FailedPrecondition
    }
}

impl Roster {
    /// The only member: a node that runs alone, under `name`.
    #[must_use]
    pub fn alone(name: &str, registry: RegistryHandle, readiness: ReadinessWatch) -> Self {
        Self::new(name.to_owned(), Place::Alone(readiness), registry)
    }

    /// The members of `cluster`, one of which is this node.
    #[must_use]
    pub fn of(cluster: Cluster, registry: RegistryHandle) -> Self {
        Self::new(cluster.name().to_string(), Place::Clustered(cluster), registry)
    }

    fn new(name: String, place: Place, registry: RegistryHandle) -> Self {
        Self { inner: Arc::new(Inner { name, place, registry, owned_services: Mutex::default() }) }
    }

    /// This node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether this node is one of several.
    #[must_use]
    pub fn is_clustered(&self) -> bool {
        matches!(self.inner.place, Place::Clustered(_))
    }

    /// How the members stand, as this node sees it.
    #[must_use]
    pub fn view(&self) -> ClusterView {
        match &self.inner.place {
            Place::Alone(readiness) => self.inner.alone(&readiness.borrow()),
            Place::Clustered(cluster) => cluster.view(),
        }
    }

    /// Who answers for the beats of an instance at `endpoint`; `None` while nobody may.
    #[must_use]
    pub fn owner(&self, service: &ServiceKey, endpoint: &Endpoint) -> Option<String> {
        match &self.inner.place {
            Place::Alone(_) => Some(self.inner.name.clone()),
            Place::Clustered(cluster) => cluster.owner(hash::endpoint(service, endpoint)).map(|name| name.to_string()),
        }
    }

    /// How many instances this node itself keeps.
    #[must_use]
    pub fn owned_instances(&self) -> u64 {
        match &self.inner.place {
            Place::Alone(_) => self.inner.registry.figures().instances as u64,
            Place::Clustered(_) => self.inner.registry.digests(OwnerId::SELF).count(),
        }
    }

    /// Of how many services this node itself keeps instances, some seconds old; alone it keeps all.
    #[must_use]
    pub fn owned_services(&self) -> usize {
        match &self.inner.place {
            Place::Alone(_) => self.inner.registry.figures().services,
            Place::Clustered(_) => self.inner.owned_services(),
        }
    }

    /// Has this node serve with what it has, whoever has not told it everything yet. Returns who that is; nobody if it
    /// serves already.
    ///
    /// # Errors
    /// [`Alone`].
    pub fn end_join(&self) -> Result<Vec<String>, Alone> {
        match &self.inner.place {
            Place::Alone(_) => Err(Alone),
            Place::Clustered(cluster) => Ok(cluster.hurry().iter().map(ToString::to_string).collect()),
        }
    }
}

impl Inner {
    fn alone(&self, readiness: &Readiness) -> ClusterView {
        let stage = match readiness {
            Readiness::Starting | Readiness::Joining(_) => Stage::Joining,
            Readiness::Ready => Stage::Ready,
            Readiness::Draining => Stage::Draining,
        };
        let eligible = stage == Stage::Ready;
        let records = self.registry.figures().instances as u64;
        let own = MemberView {
            name: self.name.clone(),
            own: true,
            address: None,
            standing: Standing::Up,
            reason: String::new(),
            silence: Duration::ZERO,
            stage,
            epoch: None,
            eligible,
            share: f64::from(u8::from(eligible)),
            link: None,
            copy: CopyView { records, synced: true, agreement: None },
        };
        ClusterView {
            name: self.name.clone(),
            clustered: false,
            epoch: 0,
            stage,
            listed: true,
            waiting_for: Vec::new(),
            majority: true,
            members: vec![own],
            orphans: Vec::new(),
            moved: MovedView::default(),
        }
    }

    fn owned_services(&self) -> usize {
        let now = self.registry.now();
        let mut known = self.owned_services.lock();
        match *known {
            Some((services, at)) if now.since(at) < OWNED_AGE => services,
            Some(_) | None => {
                let owned = self.registry.all_services().filter(|service| {
                    let snapshot = service.snapshot();
                    snapshot.instances().iter().any(|instance| instance.version(OwnerId::SELF).is_some())
                });
                let services = owned.count();
                *known = Some((services, now));
                services
            }
        }
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster")
            .field("name", &self.inner.name)
            .field("clustered", &self.is_clustered())
            .finish_non_exhaustive()
    }
}
