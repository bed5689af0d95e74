//! Beat sources that come to another owner: taken over from members that are gone, handed over when members come or go.
//!
//! One task looks through all instances when it is told that something may have moved. It is one walk for everything that
//! is due, in steps, so that the registry's own work goes on.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::compose::ENTRIES;
use crate::{
    clock::Mono,
    cluster::{hub::Hub, member::MemberName, ownership::Eligible, stage::Stage},
    registry::{
        Command, Instance, ServiceKey, hash,
        journal::RecordName,
        replication::Replica,
        share::Share,
        version::{OwnerId, Stamp},
    },
    wire::{pb::peer as pb, peer::Grouped},
};

/// When what a member did not take is offered again.
const RETRY: Duration = Duration::from_secs(1);

/// What became of the instances of a walk.
#[derive(Debug, Default)]
struct Tally {
    adopted: usize,
    forgotten: usize,
    handed: usize,
}

/// Records that were handed to another owner and are kept here a little longer, so that nobody sees a gap.
struct Lingering {
    until: Mono,
    target: MemberName,
    records: Vec<(RecordName, Stamp)>,
}

/// Moves what is to be moved, until this node ends.
pub(in crate::cluster) async fn run(hub: Arc<Hub>) {
    let mut mover = Mover { hub: &hub, lingering: VecDeque::new(), settled: None, failed: false };
    loop {
        let lets_go = mover.lingering.front().map(|lingering| lingering.until.since(hub.now()));
        let next = lets_go.into_iter().chain(mover.failed.then_some(RETRY)).min();
        let wait = async {
            match next {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = hub.moving.notified() => {}
            () = wait => {}
        }
        mover.let_go().await;
        mover.walk().await;
    }
}

struct Mover<'a> {
    hub: &'a Hub,
    lingering: VecDeque<Lingering>,
    /// The owners for whom everything that this node keeps has been looked through and handed over.
    settled: Option<Arc<Eligible>>,
    /// Whether a member did not take what it was offered last.
    failed: bool,
}

/// What the walk decides by.
struct View {
    eligible: Arc<Eligible>,
    /// Former owners whose beat sources are taken over.
    orphans: BTreeSet<OwnerId>,
    /// Former owners of whom nothing stays.
    over: BTreeSet<OwnerId>,
    /// Whether what others own is handed over.
    hand_over: bool,
}

impl Mover<'_> {
    /// Gives up what another owner has had for long enough.
    async fn let_go(&mut self) {
        let now = self.hub.now();
        let eligible = self.hub.eligible.load_full();
        while self.lingering.front().is_some_and(|lingering| lingering.until <= now) {
            let Some(Lingering { target, records, .. }) = self.lingering.pop_front() else { return };
            let still_there = |name: &RecordName| {
                let (service, key) = name;
                let hash = hash::endpoint(service, &key.endpoint);
                eligible.owner(hash) == Some(&target)
            };
            let (gone, kept): (Vec<_>, Vec<_>) = records.into_iter().partition(|(name, _)| still_there(name));
            if !kept.is_empty() {
                // It moved on meanwhile, perhaps back to here.
                self.settled = None;
            }
            let yields = gone.into_iter().map(|((service, key), stamp)| (service, Replica::Yield { key, stamp }));
            self.apply(yields.collect()).await;
        }
    }

    async fn walk(&mut self) {
        const STEP: usize = 512;
        let view = self.view();
        if view.orphans.is_empty() && view.over.is_empty() && !view.hand_over {
            return;
        }
        let mut tally = Tally::default();
        let mut replicas = Vec::new();
        let mut handed: BTreeMap<MemberName, Vec<(RecordName, Share)>> = BTreeMap::new();
        let mut complete = true;
        for (number, service) in self.hub.registry.all_services().enumerate() {
            if number % STEP == STEP - 1 {
                tokio::task::yield_now().await;
            }
            for instance in service.snapshot().instances().iter() {
                self.look(&view, service.key(), instance, &mut replicas, &mut handed, &mut tally);
            }
            if replicas.len() >= ENTRIES {
                self.apply(std::mem::take(&mut replicas)).await;
            }
            let full: Vec<_> =
                handed.iter().filter(|(_, shares)| shares.len() >= ENTRIES).map(|(to, _)| to.clone()).collect();
            for target in full {
                let shares = handed.remove(&target).unwrap_or_default();
                complete &= self.hand_over(target, shares, &mut tally).await;
            }
        }
        self.apply(replicas).await;
        for (target, shares) in handed {
            complete &= self.hand_over(target, shares, &mut tally).await;
        }
        for owner in &view.over {
            self.hub.orphans.lock().remove(*owner);
            self.hub.registry.release_owner(*owner);
        }
        self.failed = !complete;
        if view.hand_over && complete {
            self.settled = Some(view.eligible);
        }
        // Only news: who leaves has another look made at once when it comes.
        self.hub.settled.send_if_modified(|settled| {
            let news = *settled != self.settled;
            settled.clone_from(&self.settled);
            news
        });
        let Tally { adopted, forgotten, handed } = tally;
        let moved = &self.hub.moved;
        for (count, more) in [(&moved.taken_over, adopted), (&moved.forgotten, forgotten), (&moved.handed_over, handed)]
        {
            count.fetch_add(more as u64, Ordering::Relaxed);
        }
        if adopted + forgotten + handed > 0 {
            info!(adopted, forgotten, handed, "beat sources have found their owners");
        }
    }

    fn view(&self) -> View {
        let hub = self.hub;
        let eligible = hub.eligible.load_full();
        let orphans = hub.orphans.lock();
        let over: BTreeSet<_> = orphans.over(hub.now()).into_iter().collect();
        let takes_over = orphans.has_majority() && hub.stage() == Stage::Ready;
        let ready = hub.stage() != Stage::Joining && !eligible.is_empty();
        View {
            orphans: orphans.iter().filter(|owner| takes_over && !over.contains(owner)).collect(),
            over,
            // One move after the other: what lingers here is looked at again when it has gone. Who leaves cannot wait.
            hand_over: ready
                && (self.lingering.is_empty() || hub.stage() == Stage::Draining)
                && self.settled.as_ref() != Some(&eligible),
            eligible,
        }
    }

    fn look(
        &self,
        view: &View,
        service: &ServiceKey,
        instance: &Instance,
        replicas: &mut Vec<(ServiceKey, Replica)>,
        handed: &mut BTreeMap<MemberName, Vec<(RecordName, Share)>>,
        tally: &mut Tally,
    ) {
        let key = instance.key();
        let hash = hash::endpoint(service, &key.endpoint);
        let owner = || view.eligible.owner(hash);
        for version in instance.versions() {
            let of = version.owner();
            if view.over.contains(&of) {
                let replica = Replica::Absent { key: key.clone(), owner: of, as_of: u64::MAX };
                replicas.push((service.clone(), replica));
                tally.forgotten += 1;
            } else if view.orphans.contains(&of)
                && instance.lease().is_none()
                && owner() == Some(&self.hub.me)
                && let Some(share) = instance.share(of).filter(|share| share.beats)
            {
                replicas.push((service.clone(), Replica::Adopt { key: key.clone(), share }));
                tally.adopted += 1;
            }
        }
        if view.hand_over
            && instance.lease().is_some()
            && let Some(target) = owner().filter(|owner| **owner != self.hub.me)
            && let Some(share) = instance.share(OwnerId::SELF)
        {
            handed.entry(target.clone()).or_default().push(((service.clone(), key), share));
        }
    }

    /// Hands records to their owner. Returns whether it took them.
    async fn hand_over(&mut self, target: MemberName, shares: Vec<(RecordName, Share)>, tally: &mut Tally) -> bool {
        let mut grouped = Grouped::default();
        for ((service, key), share) in &shares {
            grouped.record(service, key, share);
        }
        let adopt = pb::Adopt { services: grouped.into_services() };
        let request = pb::ForwardRequest {
            standing: Some(self.hub.standing()),
            request: Some(pb::forward_request::Request::Adopt(adopt)),
        };
        let answer = timeout(self.hub.settings.down_after, self.hub.transport.forward(&target, request)).await;
        match answer {
            Ok(Ok(pb::ForwardResponse { outcome: Some(pb::forward_response::Outcome::Done(_)), standing })) => {
                self.hub.registry.observe(Stamp::new(standing.unwrap_or_default().stamp));
                tally.handed += shares.len();
                let records = shares.into_iter().map(|(name, share)| (name, share.version.stamp())).collect();
                let until = self.hub.now() + self.hub.settings.handover_linger;
                self.lingering.push_back(Lingering { until, target, records });
                true
            }
            Ok(Ok(_)) | Err(_) => {
                warn!(peer = %target, records = shares.len(), "a member did not take over what it owns");
                false
            }
            Ok(Err(error)) => {
                warn!(peer = %target, records = shares.len(), %error, "a member could not be handed what it owns");
                false
            }
        }
    }

    async fn apply(&self, replicas: Vec<(ServiceKey, Replica)>) {
        if !replicas.is_empty() {
            // It fails only when the registry has stopped.
            let _ = self.hub.registry.apply_surely(Command::Replicate(replicas)).await;
        }
    }
}
