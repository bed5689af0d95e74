//! What an operator set on an instance, kept apart from what its publisher said.
//!
//! Precedence: the overlay wins over every registration and beat until it is reset, or the instance is removed
//! explicitly. After an expiry it is kept for a stated time, in case the instance comes back.

use std::collections::{BTreeMap, BTreeSet};

use super::publication::Weight;
use crate::clock::Mono;

/// An operator's settings of one instance. Empty means: everything as the publisher says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overlay {
    weight: Option<Weight>,
    enabled: Option<bool>,
    metadata: BTreeMap<String, String>,
    origin: Box<str>,
    changed_at: Mono,
}

/// One change of an overlay. What is `None` or empty stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OverlayChange {
    /// Who makes the change: the way in and the address, `http 10.0.0.9`.
    pub origin: Box<str>,
    /// Set the weight.
    pub weight: Option<Weight>,
    /// Set whether clients may see the instance.
    pub enabled: Option<bool>,
    /// Set these pairs.
    pub set_metadata: BTreeMap<String, String>,
    /// Forget what the operator set under these keys; the publisher's own values show again.
    pub unset_metadata: BTreeSet<String>,
    /// Forget these whole parts, before anything is set.
    pub unset: Parts,
}

/// Parts of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// The weight.
    pub weight: bool,
    /// Whether clients may see the instance.
    pub enabled: bool,
    /// All pairs.
    pub metadata: bool,
}

impl Parts {
    /// The whole overlay.
    pub const ALL: Self = Self { weight: true, enabled: true, metadata: true };
}

impl Overlay {
    /// Who made the last change.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// When the last change was made.
    #[must_use]
    pub fn changed_at(&self) -> Mono {
        self.changed_at
    }

    /// Whether both set the same, whoever did and whenever.
    #[must_use]
    pub fn sets_the_same(&self, other: &Self) -> bool {
        self.weight == other.weight && self.enabled == other.enabled && self.metadata == other.metadata
    }

    /// The operator's weight, if set.
    #[must_use]
    pub fn weight(&self) -> Option<Weight> {
        self.weight
    }

    /// The operator's word on whether clients may see the instance, if given.
    #[must_use]
    pub fn enabled(&self) -> Option<bool> {
        self.enabled
    }

    /// The operator's pairs.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.weight.is_none() && self.enabled.is_none() && self.metadata.is_empty()
    }

    /// This overlay after `change`, which is made now.
    #[must_use]
    pub fn changed(&self, change: &OverlayChange, now: Mono) -> Self {
        let mut next = Self { origin: change.origin.clone(), changed_at: now, ..self.clone() };
        if change.unset.weight {
            next.weight = None;
        }
        if change.unset.enabled {
            next.enabled = None;
        }
        if change.unset.metadata {
            next.metadata.clear();
        }
        next.weight = change.weight.or(next.weight);
        next.enabled = change.enabled.or(next.enabled);
        next.metadata.retain(|key, _| !change.unset_metadata.contains(key));
        next.metadata.extend(change.set_metadata.clone());
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn a_change_leaves_alone_what_it_does_not_name() {
        let first = Overlay::default().changed(
            &OverlayChange { enabled: Some(false), set_metadata: pairs(&[("a", "1")]), ..Default::default() },
            Mono::ZERO,
        );
        let second =
            first.changed(&OverlayChange { set_metadata: pairs(&[("b", "2")]), ..Default::default() }, Mono::ZERO);
        assert_eq!(second.enabled(), Some(false));
        assert_eq!(second.metadata(), &pairs(&[("a", "1"), ("b", "2")]));
    }

    #[test]
    fn unset_forgets() {
        let set = OverlayChange {
            weight: Some(Weight::default()),
            set_metadata: pairs(&[("a", "1"), ("b", "2")]),
            origin: "http 10.0.0.9".into(),
            ..Default::default()
        };
        let overlay = Overlay::default().changed(&set, Mono::from_millis(7));
        assert_eq!((overlay.origin(), overlay.changed_at()), ("http 10.0.0.9", Mono::from_millis(7)));
        let unset = OverlayChange { unset_metadata: BTreeSet::from(["a".to_owned()]), ..Default::default() };
        let unset = overlay.changed(&unset, Mono::ZERO);
        assert_eq!(unset.metadata(), &pairs(&[("b", "2")]));
        let reset = OverlayChange { unset: Parts::ALL, ..Default::default() };
        assert!(unset.changed(&reset, Mono::ZERO).is_empty());
    }
}
