//! Whether this node serves clients, and what probes are told of it.

use std::{fmt::Write, sync::Arc};

use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::{info, warn};

use super::{detector::TICK, hub::Hub, member::MemberName, stage::Stage};
use crate::readiness::Readiness;

/// Whether a node serves that is in this stage.
///
/// * `listed`: whether the list of members names it: one that does not find itself there serves nobody.
/// * `waiting_for`: whose records it still waits for.
#[must_use]
pub(super) fn readiness(me: &MemberName, stage: Stage, listed: bool, waiting_for: &[MemberName]) -> Readiness {
    match (stage, listed) {
        (Stage::Draining, _) => Readiness::Draining,
        (_, false) => Readiness::Joining(format!("{me} is not in the list of members").into()),
        (Stage::Ready, true) => Readiness::Ready,
        (Stage::Joining, true) => {
            let mut reason = "loading snapshot".to_owned();
            for (index, member) in waiting_for.iter().enumerate() {
                // It cannot fail: a text grows.
                let _ = write!(reason, "{} {member}", if index == 0 { " from" } else { "," });
            }
            Readiness::Joining(reason.into())
        }
    }
}

/// Keeps `ready` as the node of `hub` stands, until it drains: what the node itself says of its drain stays.
pub(super) async fn keep(
    hub: Arc<Hub>,
    waiting_for: watch::Receiver<Vec<MemberName>>,
    ready: watch::Sender<Readiness>,
) {
    let mut stage = hub.stage.subscribe();
    // The list has no signal of its own that comes after the detector has it.
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_listed = true;
    loop {
        tokio::select! {
            biased;
            _ = stage.changed() => {}
            _ = ticks.tick() => {}
        }
        let listed = hub.detector.lock().is_listed();
        if listed != was_listed {
            was_listed = listed;
            if listed {
                info!(name = %hub.me, "this node is in the list of members");
            } else {
                warn!(name = %hub.me, "this node is not in the list of members, and does not serve");
            }
        }
        let now = readiness(&hub.me, hub.stage(), listed, &waiting_for.borrow());
        ready.send_if_modified(|present| {
            let changed = *present != Readiness::Draining && *present != now;
            if changed {
                *present = now;
            }
            changed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_serves_when_it_is_ready_and_listed_and_says_why_else() {
        let [me, b, c] = ["a", "b", "c"].map(|name| MemberName::parse(name).expect(name));
        let reason = |stage, listed, waiting: &[MemberName]| {
            readiness(&me, stage, listed, waiting).reason().unwrap_or_default().to_owned()
        };
        assert_eq!(readiness(&me, Stage::Ready, true, &[]), Readiness::Ready);
        assert_eq!(readiness(&me, Stage::Draining, false, &[]), Readiness::Draining);
        assert_eq!(reason(Stage::Joining, true, &[]), "loading snapshot");
        assert_eq!(reason(Stage::Joining, true, std::slice::from_ref(&b)), "loading snapshot from b:8848");
        assert_eq!(reason(Stage::Joining, true, &[b, c]), "loading snapshot from b:8848, c:8848");
        for stage in [Stage::Joining, Stage::Ready] {
            assert_eq!(reason(stage, false, &[]), "a:8848 is not in the list of members");
        }
    }
}
