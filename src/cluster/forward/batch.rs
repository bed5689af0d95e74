//! Beats that were answered at once, on their way to the owners of their instances.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use tokio::time::MissedTickBehavior;
use tracing::debug;

use super::{Forwarder, lanes::AT_ONCE};
use crate::{
    cluster::{epoch::Epoch, member::MemberName, routes::Hop},
    registry::{InstanceKey, ServiceKey, key::excerpt},
    wire::{
        pb::peer::{self as pb, forward_request::Request, forward_response::Outcome},
        peer as wire,
    },
};

impl Forwarder {
    /// Sends the beats that wait, at every interval and whenever there are enough, until the drain.
    pub(super) async fn send_beats(self) {
        let mut ticks = tokio::time::interval(self.inner.settings.flush);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut draining = std::pin::pin!(self.inner.shutdown.draining());
        loop {
            let least = tokio::select! {
                biased;
                () = &mut draining => break,
                () = self.inner.enough.notified() => AT_ONCE,
                _ = ticks.tick() => 1,
            };
            self.begin(least);
        }
        self.inner.lanes.lock().close();
        self.begin(1);
    }

    fn begin(&self, least: usize) {
        let owners = self.inner.lanes.lock().begin(least);
        for owner in owners {
            self.inner.shutdown.spawn(self.clone().empty(owner));
        }
    }

    /// Sends what waits for one owner, message by message.
    async fn empty(self, owner: MemberName) {
        let mut least = 1;
        loop {
            let Some(beats) = self.inner.lanes.lock().take(&owner, least) else { return };
            let mut names: Vec<_> =
                beats.iter().map(|beat| (beat.service.key().clone(), beat.instance.key())).collect();
            names.sort_unstable();
            names.dedup();
            self.deliver(names).await;
            // What has gathered meanwhile waits for its time, unless there is enough of it, or no time left.
            least = if self.inner.shutdown.is_draining() { 1 } else { AT_ONCE };
        }
    }

    /// Tells the owners of these beats, or who is next in line, or this node itself.
    async fn deliver(&self, beats: Vec<(ServiceKey, InstanceKey)>) {
        type Tried = SmallVec<[MemberName; 2]>;
        let mut rest: Vec<(Tried, Vec<_>)> = vec![(Tried::new(), beats)];
        while let Some((tried, beats)) = rest.pop() {
            let mut here = Vec::new();
            let mut there = BTreeMap::<_, (Epoch, Vec<_>)>::new();
            for beat in beats {
                let untried = |hop: &Hop| match hop {
                    Hop::Here => true,
                    Hop::There { member, .. } => !tried.contains(member),
                };
                match self.inner.routes.route(&beat.0, &beat.1.endpoint).find(untried) {
                    Some(Hop::There { member, epoch }) => {
                        there.entry(member).or_insert_with(|| (epoch, Vec::new())).1.push(beat);
                    }
                    Some(Hop::Here) | None => here.push(beat),
                }
            }
            for (member, (epoch, beats)) in there {
                if let Err(reason) = self.tell(&member, epoch, &beats).await {
                    debug!(peer = %member, beats = beats.len(), reason, "beats go on to the next in line");
                    let mut tried = tried.clone();
                    tried.push(member);
                    rest.push((tried, beats));
                }
            }
            if let Err(error) = self.inner.registry.renew_many(here).await {
                debug!(%error, "beats were lost");
            }
        }
    }

    async fn tell(&self, member: &MemberName, known: Epoch, beats: &[(ServiceKey, InstanceKey)]) -> Result<(), String> {
        let of_service = |beats: &[(ServiceKey, InstanceKey)]| pb::BeatsOfService {
            service: beats.first().map(|(service, _)| wire::service_name(service)),
            instances: beats.iter().map(|(_, instance)| wire::instance_name(instance)).collect(),
        };
        let services = beats.chunk_by(|(a, _), (b, _)| a == b).map(of_service).collect();
        let request = Request::Beats(pb::Beats { services });
        match self.call(member, request).await {
            Some(Outcome::Noted(noted)) => {
                let as_of = wire::order(noted.as_of_stamp, noted.as_of_minor);
                self.take_in(member, known, Epoch::new(noted.epoch), noted.services, as_of).await.map(|_| ())
            }
            Some(Outcome::Refused(refused)) => Err(excerpt(&refused.message)),
            Some(Outcome::Done(_) | Outcome::Unknown(_)) => Err("it answers another question".to_owned()),
            None => Err("no answer".to_owned()),
        }
    }
}
