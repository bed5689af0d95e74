//! Which of this node's own records changed: what the apply loop tells those who replicate.
//!
//! Names only; the state is read when it is sent. Bounded: past the bound the names are forgotten, and the reader is told
//! that anything may have changed.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::key::{InstanceKey, ServiceKey};

/// The name of a record of this node.
pub type RecordName = (ServiceKey, InstanceKey);

/// What changed since the last reading.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The records, in the order of their changes; one that changed twice may stand here twice.
    pub names: Vec<RecordName>,
    /// Whether names were forgotten, because there were too many.
    pub overflown: bool,
}

/// The end of the apply loop.
#[derive(Debug, Clone)]
pub(super) struct Journal(Arc<Shared>);

/// The end of the reader.
#[derive(Debug)]
pub struct JournalReader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    changes: Mutex<Changes>,
    some: Notify,
    limit: usize,
}

/// A journal that holds at most `limit` names.
pub(super) fn journal(limit: usize) -> (Journal, JournalReader) {
    let shared = Arc::new(Shared { changes: Mutex::default(), some: Notify::new(), limit });
    (Journal(shared.clone()), JournalReader(shared))
}

impl Journal {
    /// Adds `names` and leaves the vector empty.
    pub(super) fn write(&self, names: &mut Vec<RecordName>) {
        if names.is_empty() {
            return;
        }
        let mut changes = self.0.changes.lock();
        if changes.names.len() + names.len() > self.0.limit {
            changes.names = Vec::new();
            changes.overflown = true;
            names.clear();
        } else {
            changes.names.append(names);
        }
        drop(changes);
        self.0.some.notify_one();
    }
}

impl JournalReader {
    /// Waits until something has changed, and takes all of it. May be dropped at any point without loss.
    pub async fn take(&mut self) -> Changes {
        loop {
            let changes = std::mem::take(&mut *self.0.changes.lock());
            if changes != Changes::default() {
                return changes;
            }
            self.0.some.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::limits::Limits;

    fn name(port: i64) -> RecordName {
        let limits = Limits::default();
        let endpoint = limits.endpoint("10.0.0.1", port).unwrap();
        let cluster = crate::registry::ClusterName::default();
        (limits.service_key("", "", "s").unwrap(), InstanceKey { endpoint, cluster })
    }

    #[tokio::test]
    async fn past_the_bound_names_are_forgotten_and_that_is_told() {
        let (journal, mut reader) = journal(2);
        journal.write(&mut vec![name(1), name(2)]);
        assert_eq!(reader.take().await, Changes { names: vec![name(1), name(2)], overflown: false });
        journal.write(&mut vec![name(1), name(2)]);
        journal.write(&mut vec![name(3)]);
        journal.write(&mut vec![name(4)]);
        assert_eq!(reader.take().await, Changes { names: vec![name(4)], overflown: true });
    }
}
