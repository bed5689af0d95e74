//! The task of one service that has UDP subscribers: waits for changes and pushes them.

use std::{str, sync::Arc};

use tokio::time::sleep;
use tracing::{error, warn};

use super::{
    Inner,
    audience::{Audience, Group},
    counters::Counters,
    datagram::Datagram,
    schedule::{Schedule, Scope},
};
use crate::{
    registry::{Snapshot, watches::Watch},
    wire::http_v1::{Frame, list_body},
};

/// Sweeps are at least this part of a subscriber's lifetime apart (Nacos 2.5: 5 s of 30 s).
const SWEEPS_OF_A_LIFETIME: u32 = 6;

/// Pushes the changes of one service to its audience, until nobody is left or the process drains.
pub(super) struct Deliver {
    push: Arc<Inner>,
    audience: Arc<Audience>,
    /// What was pushed to all last.
    pushed: Option<Arc<Snapshot>>,
    told_too_large: bool,
}

impl Deliver {
    /// The task of `audience`.
    pub(super) fn new(push: Arc<Inner>, audience: Arc<Audience>) -> Self {
        Self { push, audience, pushed: None, told_too_large: false }
    }

    /// Runs it. `watch` must have begun before the first subscriber was let in.
    pub(super) async fn run(mut self, mut watch: Watch) {
        let settings = &self.push.settings;
        let lifetime = settings.subscriber_lifetime;
        let pause = lifetime / SWEEPS_OF_A_LIFETIME;
        let mut schedule = Schedule::new(settings.merge_delay);
        let mut sweep_at = self.push.registry.now() + pause;
        loop {
            let now = self.push.registry.now();
            let wake = schedule.next().map_or(sweep_at, |next| next.min(sweep_at));
            tokio::select! {
                () = self.push.shutdown.draining() => return,
                () = watch.changed() => schedule.changed(self.push.registry.now()),
                () = self.audience.joined() => schedule.joined(self.push.registry.now()),
                () = sleep(wake.since(now)) => {}
            }
            let now = self.push.registry.now();
            let scope = schedule.take(now);
            if scope.is_some() || now >= sweep_at {
                let Some(oldest) = self.audience.sweep(now, lifetime) else { return };
                sweep_at = (oldest + lifetime).max(now + pause);
            }
            if let Some(scope) = scope {
                self.push_to(scope).await;
            }
        }
    }

    async fn push_to(&mut self, scope: Scope) {
        if !self.push.registry.switches().push_enabled {
            return;
        }
        let snapshot = self.push.registry.snapshot(self.audience.service());
        // A change that came after the last wake and before its snapshot was read has been pushed already.
        let repeated = self.pushed.as_ref().is_some_and(|pushed| Arc::ptr_eq(pushed, &snapshot));
        let scope = if repeated { Scope::Newcomers } else { scope };
        for group in self.audience.take(scope) {
            let Some(datagram) = self.encode(&group, &snapshot) else { continue };
            for (subscriber, target) in group.members {
                self.push.udp.push(subscriber, target, &datagram).await;
            }
        }
        if scope == Scope::All {
            self.pushed = Some(snapshot);
        }
    }

    fn encode(&mut self, group: &Group, snapshot: &Snapshot) -> Option<Datagram> {
        let (service, udp) = (self.audience.service(), &self.push.udp);
        let frame = Frame {
            clusters: &group.clusters,
            cache_millis: self.push.registry.switches().push_cache_millis,
            env: "",
            now: self.push.registry.clock().wall_millis(),
        };
        let list = list_body(service, snapshot, &group.query, &frame);
        let text = match str::from_utf8(&list) {
            Ok(text) => text,
            Err(error) => {
                error!(%service, %error, "the encoded list is not text");
                return None;
            }
        };
        match Datagram::encode(text, udp.numbers.next()) {
            Ok(datagram) => Some(datagram),
            Err(too_large) => {
                Counters::count(&udp.counters.too_large);
                if !std::mem::replace(&mut self.told_too_large, true) {
                    let instances = snapshot.instances().len();
                    warn!(%service, instances, reason = %too_large, "cannot push; UDP clients see changes when they poll");
                }
                None
            }
        }
    }
}

/// However the task ends, nobody is left waiting for it: the next call that asks for pushes starts another.
impl Drop for Deliver {
    fn drop(&mut self) {
        self.audience.close();
        self.push.retire(&self.audience);
    }
}
