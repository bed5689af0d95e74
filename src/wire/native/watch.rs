//! Messages of `WatchService`.

use std::{slice, sync::Arc};

use super::{
    instance::{self, View},
    page::Page,
    service::service_in_watch,
};
use crate::{
    registry::{Instance, InstanceKey, ServiceKey, Snapshot, follow::News},
    wire::pb,
};

/// The messages that tell one piece of news, each of a size that every client takes.
#[derive(Debug)]
pub struct Letters<'a> {
    key: &'a ServiceKey,
    snapshot: &'a Snapshot,
    upserts: slice::Iter<'a, Arc<Instance>>,
    removals: slice::Iter<'a, InstanceKey>,
    first: Option<First>,
    protected: bool,
    done: bool,
}

/// What the first message has beside a share of the instances.
#[derive(Debug)]
enum First {
    Full,
    Delta { settings_changed: bool },
    Deleted,
}

impl<'a> Letters<'a> {
    /// The messages for `news` about the service of `key`, which brought it to the state `snapshot`.
    #[must_use]
    pub fn new(key: &'a ServiceKey, snapshot: &'a Snapshot, news: &'a News) -> Self {
        let (upserts, removals, first, protected) = match news {
            News::Full(selected) => (selected.instances.as_slice(), &[][..], First::Full, selected.protected),
            News::Delta { upserts, removals, settings_changed, protected } => {
                let first = First::Delta { settings_changed: *settings_changed };
                (upserts.as_slice(), removals.as_slice(), first, *protected)
            }
            News::Deleted => (&[][..], &[][..], First::Deleted, false),
        };
        Self {
            key,
            snapshot,
            upserts: upserts.iter(),
            removals: removals.iter(),
            first: Some(first),
            protected,
            done: false,
        }
    }

    fn share(&mut self) -> (Vec<pb::Instance>, Vec<pb::InstanceAddress>) {
        let mut removals = Page::new(usize::MAX);
        while let Some(key) = self.removals.clone().next() {
            if removals.add(instance::address(key)).is_err() {
                return (Vec::new(), removals.into_rows());
            }
            self.removals.next();
        }
        let mut upserts = Page::new(usize::MAX).after(&removals);
        let view = View { protected: self.protected, ..View::default() };
        while let Some(next) = self.upserts.clone().next() {
            if upserts.add(instance::instance(self.key, next, view)).is_err() {
                break;
            }
            self.upserts.next();
        }
        (upserts.into_rows(), removals.into_rows())
    }
}

impl Iterator for Letters<'_> {
    type Item = pb::WatchServiceResponse;

    fn next(&mut self) -> Option<pb::WatchServiceResponse> {
        use pb::watch_service_response::Event;
        if self.done {
            return None;
        }
        let (upserts, removals) = self.share();
        let more = self.upserts.len() + self.removals.len() > 0;
        self.done = !more;
        let service = || Some(service_in_watch(self.key, self.snapshot));
        let event = match self.first.take() {
            Some(First::Full) => {
                let service = if self.snapshot.revision() == 0 { None } else { service() };
                Event::Full(pb::FullState { service, instances: upserts })
            }
            Some(First::Delta { settings_changed }) => Event::Delta(pb::Delta {
                upserts,
                removals,
                service: if settings_changed { service() } else { None },
                service_deleted: false,
            }),
            Some(First::Deleted) => Event::Delta(pb::Delta { service_deleted: true, ..pb::Delta::default() }),
            None => Event::Delta(pb::Delta { upserts, removals, service: None, service_deleted: false }),
        };
        Some(pb::WatchServiceResponse {
            revision: self.snapshot.revision(),
            protected: self.protected,
            more,
            event: Some(event),
        })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::{
        registry::{ClusterName, Kind, Limits, Publication, overlay::Overlay, select::Selected},
        wire::native::page::ANSWER_BYTES,
    };

    fn instances(count: i64, metadata: usize) -> Vec<Arc<Instance>> {
        let limits = Limits::default();
        let publication =
            Publication { metadata: limits.metadata([("k", "v".repeat(metadata))]).unwrap(), ..Publication::default() };
        (1..=count)
            .map(|port| {
                let endpoint = limits.endpoint("10.0.0.1", port).unwrap();
                let key = InstanceKey { endpoint, cluster: ClusterName::default() };
                let overlay = Overlay::default();
                Arc::new(Instance::new(key, Kind::Ephemeral, publication.clone(), overlay, None, None))
            })
            .collect()
    }

    #[test]
    fn a_large_state_comes_in_parts_that_fit() {
        let key = Limits::default().service_key("", "", "s").unwrap();
        let snapshot = Snapshot::default();
        let news = News::Full(Selected { instances: instances(200, 60_000), protected: false });
        let letters: Vec<_> = Letters::new(&key, &snapshot, &news).collect();
        assert!(letters.len() > 1);
        assert!(letters.iter().all(|letter| letter.encoded_len() < ANSWER_BYTES + 4_096));
        let more: Vec<_> = letters.iter().map(|letter| letter.more).collect();
        assert_eq!(more.iter().position(|more| !more), Some(letters.len() - 1));
        let ports: Vec<_> = letters
            .iter()
            .flat_map(|letter| match letter.event.as_ref().unwrap() {
                pb::watch_service_response::Event::Full(full) => &full.instances,
                pb::watch_service_response::Event::Delta(delta) => &delta.upserts,
            })
            .map(|instance| instance.port)
            .collect();
        assert_eq!(ports, (1..=200).collect::<Vec<_>>());
    }

    #[test]
    fn an_empty_state_is_one_message() {
        let key = Limits::default().service_key("", "", "s").unwrap();
        let snapshot = Snapshot::default();
        let news = News::Full(Selected::default());
        let letters: Vec<_> = Letters::new(&key, &snapshot, &news).collect();
        assert_eq!(letters.len(), 1);
        assert!(!letters[0].more);
    }
}
