//! Beats that have been answered and wait to be told to the owners of their instances.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    cluster::member::MemberName,
    registry::{Instance, service::Service},
};

/// Beats that leave in one message. 4,096: 400 KiB with names of usual length, 3 MiB with the longest.
pub(super) const AT_ONCE: usize = 4_096;

/// Beats that may wait for one owner, 16 bytes each. 2^18: a fleet of that size may beat in one instant; beyond it a beat is
/// sent by itself, and answered when its owner has answered.
const MOST_WAITING: usize = 1 << 18;

/// A beat that has been answered.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) service: Arc<Service>,
    pub(super) instance: Arc<Instance>,
}

/// What became of a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits.
    Waits,
    /// It waits, and with it there are enough for a message.
    Enough,
    /// There is no room.
    Full,
}

/// What waits, by owner. One message at a time is under way to each, so that a slow one gathers its beats here and holds
/// up nobody else's.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: BTreeMap<MemberName, Lane>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: Vec<Waiting>,
    sending: bool,
}

impl Lanes {
    pub(super) fn push(&mut self, owner: &MemberName, beat: Waiting) -> Pushed {
        if self.closed {
            return Pushed::Full;
        }
        let lane = match self.lanes.get_mut(owner) {
            Some(lane) => lane,
            None => self.lanes.entry(owner.clone()).or_default(),
        };
        if lane.waiting.len() >= MOST_WAITING {
            return Pushed::Full;
        }
        lane.waiting.push(beat);
        if lane.waiting.len() == AT_ONCE { Pushed::Enough } else { Pushed::Waits }
    }

    /// The owners for whom at least `least` beats wait and nothing is under way; from now on something is.
    pub(super) fn begin(&mut self, least: usize) -> Vec<MemberName> {
        // Owners that left the cluster would stay for ever.
        self.lanes.retain(|_, lane| lane.sending || !lane.waiting.is_empty());
        let ready = self.lanes.iter_mut().filter(|(_, lane)| !lane.sending && lane.waiting.len() >= least);
        ready
            .map(|(owner, lane)| {
                lane.sending = true;
                owner.clone()
            })
            .collect()
    }

    /// The next message for `owner`, if at least `least` beats wait; if not, nothing is under way to it any more.
    pub(super) fn take(&mut self, owner: &MemberName, least: usize) -> Option<Vec<Waiting>> {
        let lane = self.lanes.get_mut(owner)?;
        if lane.waiting.len() < least {
            lane.sending = false;
            return None;
        }
        let rest = lane.waiting.split_off(lane.waiting.len().min(AT_ONCE));
        Some(std::mem::replace(&mut lane.waiting, rest))
    }

    /// Nothing is taken any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.values().map(|lane| lane.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{
        ClusterName, InstanceKey, Kind, Limits, Publication, RegistryHandle, Settings, overlay::Overlay,
    };

    async fn beat() -> Waiting {
        let limits = Limits::default();
        let clock = crate::clock::Clock::start();
        let shutdown = crate::shutdown::Shutdown::new();
        let registry = RegistryHandle::start(Settings::default(), limits.clone(), clock, &shutdown);
        let key = limits.service_key("", "", "s").unwrap();
        let instance = InstanceKey { endpoint: limits.endpoint("h", 1).unwrap(), cluster: ClusterName::default() };
        let register =
            crate::registry::ServiceCommand::Register(instance.clone(), Kind::Ephemeral, Publication::default());
        registry.apply(crate::registry::Command::Service(key.clone(), register)).await.unwrap();
        let (kind, publication, overlay) = (Kind::Ephemeral, Publication::default(), Overlay::default());
        let instance = Arc::new(Instance::new(instance, kind, publication, overlay, None, None));
        Waiting { service: registry.service(&key).unwrap(), instance }
    }

    #[tokio::test]
    async fn one_message_at_a_time_is_under_way_to_an_owner() {
        let (beat, mut lanes) = (beat().await, Lanes::default());
        let [a, b] = ["a", "b"].map(|host| [MemberName::parse(host).unwrap()]);
        let pushed: Vec<_> = (0..=AT_ONCE).map(|_| lanes.push(&a[0], beat.clone())).collect();
        assert_eq!(pushed[AT_ONCE - 2..], [Pushed::Waits, Pushed::Enough, Pushed::Waits]);
        lanes.push(&b[0], beat.clone());
        assert_eq!(lanes.begin(AT_ONCE), a);
        assert_eq!(lanes.begin(1), b);
        assert_eq!(lanes.take(&a[0], 1).unwrap().len(), AT_ONCE);
        assert!(lanes.take(&a[0], AT_ONCE).is_none(), "one is left for the next round");
        assert_eq!(lanes.begin(1), a);
        assert_eq!(lanes.take(&a[0], 1).unwrap().len(), 1);
        assert_eq!(lanes.len(), 1);
    }

    #[tokio::test]
    async fn what_waits_is_bounded() {
        let (beat, mut lanes) = (beat().await, Lanes::default());
        let a = MemberName::parse("a").unwrap();
        for _ in 0..MOST_WAITING {
            assert_ne!(lanes.push(&a, beat.clone()), Pushed::Full);
        }
        assert_eq!(lanes.push(&a, beat.clone()), Pushed::Full);
        lanes.close();
        assert_eq!(lanes.push(&MemberName::parse("b").unwrap(), beat), Pushed::Full);
    }
}
