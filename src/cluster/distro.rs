//! Distro: how the records of every member come to all the others.
//!
//! Each member sends what it owns over one link to each peer (`stream`), as tasks that merge while they wait (`task`); the
//! peer applies and acknowledges (`receive`). Digests find what a broken link lost (`verify`). What a member leaves behind
//! is kept for a while (`orphans`), and its beat sources, and those that the next change of members moves, find their new
//! owner (`moves`).

pub(super) mod compose;
pub(super) mod moves;
pub(super) mod orphans;
pub(super) mod receive;
pub(super) mod stream;
pub(super) mod task;
mod verify;

use std::sync::Arc;

use super::hub::Hub;
use crate::registry::journal::JournalReader;

/// Hands what changes here to the outbox of every peer, until this node ends.
pub(super) async fn distribute(hub: Arc<Hub>, mut journal: JournalReader) {
    loop {
        let changes = journal.take().await;
        let now = hub.now();
        for outgoing in hub.all_outgoing() {
            let mut outbox = outgoing.outbox.lock();
            if changes.overflown {
                outbox.forget();
            }
            for name in &changes.names {
                outbox.add(name.clone(), now);
            }
            drop(outbox);
            outgoing.filled.notify_one();
        }
        hub.reserve_stamps();
    }
}
