//! Who waits for the next change of a service. Waiting costs a service nothing that nobody watches, and a service need
//! not exist to be waited for.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::watch;

use super::key::ServiceKey;

/// The revisions that watchers wait for. Written by the apply loop; watchers come and go.
#[derive(Debug, Default)]
pub struct Watches(DashMap<ServiceKey, watch::Sender<u64>, ahash::RandomState>);

impl Watches {
    /// Starts to wait for changes of `key` that come after this call.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, key: ServiceKey) -> Watch {
        let receiver = self.0.entry(key.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe();
        Watch { key, receiver: Some(receiver), watches: self.clone() }
    }

    /// Tells those who wait for `key`.
    pub(super) fn notify(&self, key: &ServiceKey, revision: u64) {
        if let Some(sender) = self.0.get(key) {
            sender.send_replace(revision);
        }
    }

    /// Tells all who wait, whatever they wait for, to look again.
    pub(super) fn notify_all(&self) {
        for sender in &self.0 {
            sender.send_modify(|_| ());
        }
    }

    /// How many services are waited for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Waits for the changes of one service. Holds no changes back: who is slow finds the newest state and nothing else.
#[derive(Debug)]
pub struct Watch {
    key: ServiceKey,
    receiver: Option<watch::Receiver<u64>>,
    watches: Arc<Watches>,
}

impl Watch {
    /// The service.
    #[must_use]
    pub fn key(&self) -> &ServiceKey {
        &self.key
    }

    /// Completes when the service has changed since the last call, or since the watch began, and when it may have done so
    /// while nothing was pushed. The snapshot to read is the one that is there then. Cancelling loses nothing.
    pub async fn changed(&mut self) {
        let alive = match &mut self.receiver {
            Some(receiver) => receiver.changed().await.is_ok(),
            None => false,
        };
        if !alive {
            // The sender lives as long as a watch does, so this is never reached; waiting is right all the same.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.receiver = None;
        self.watches.0.remove_if(&self.key, |_, sender| sender.receiver_count() == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::limits::Limits;

    #[tokio::test]
    async fn a_slow_watcher_is_told_once_and_the_last_one_cleans_up() {
        let watches = Arc::new(Watches::default());
        let key = Limits::default().service_key("", "", "s").unwrap();
        let mut watch = watches.subscribe(key.clone());
        for revision in 1..100 {
            watches.notify(&key, revision);
        }
        watch.changed().await;
        assert!(tokio::time::timeout(std::time::Duration::from_millis(10), watch.changed()).await.is_err());
        let second = watches.subscribe(key);
        watches.notify_all();
        watch.changed().await;
        drop(watch);
        assert_eq!(watches.len(), 1);
        drop(second);
        assert!(watches.is_empty());
    }
}
