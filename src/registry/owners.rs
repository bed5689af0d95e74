//! Who owns records: incarnations of members under small numbers, so that an instance needs two bytes for its owner.

use std::sync::Arc;

use parking_lot::RwLock;

use super::version::OwnerId;

/// A member between two of its starts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// The member's name.
    pub name: Arc<str>,
    /// Grows with each start of the member.
    pub epoch: u64,
}

/// The owners that this node knows. Written by the cluster only; read by anyone.
#[derive(Debug)]
pub struct Owners(RwLock<Vec<Option<Incarnation>>>);

impl Default for Owners {
    fn default() -> Self {
        Self(RwLock::new(vec![Some(Incarnation { name: "".into(), epoch: 0 })]))
    }
}

impl Owners {
    /// Says which incarnation this node is.
    pub fn set_self(&self, incarnation: Incarnation) {
        if let Some(first) = self.0.write().first_mut() {
            *first = Some(incarnation);
        }
    }

    /// The number of `incarnation`: the one that it has, or a new one. `None` if all are taken.
    pub fn number(&self, incarnation: &Incarnation) -> Option<OwnerId> {
        let mut owners = self.0.write();
        let known = owners.iter().position(|owner| owner.as_ref() == Some(incarnation));
        let free = || owners.iter().position(Option::is_none).unwrap_or(owners.len());
        let number = known.unwrap_or_else(free);
        let id = OwnerId::new(number)?;
        match owners.get_mut(number) {
            Some(place) => *place = Some(incarnation.clone()),
            None => owners.push(Some(incarnation.clone())),
        }
        Some(id)
    }

    /// The number of an incarnation, if it has one.
    #[must_use]
    pub fn find(&self, name: &str, epoch: u64) -> Option<OwnerId> {
        let is = |owner: &Incarnation| owner.epoch == epoch && *owner.name == *name;
        OwnerId::new(self.0.read().iter().position(|owner| owner.as_ref().is_some_and(is))?)
    }

    /// Frees the number of an owner of whom no record is left.
    pub fn release(&self, owner: OwnerId) {
        if let (false, Some(place)) = (owner.is_self(), self.0.write().get_mut(owner.number())) {
            *place = None;
        }
    }

    /// Who has this number.
    #[must_use]
    pub fn incarnation(&self, owner: OwnerId) -> Option<Incarnation> {
        self.0.read().get(owner.number()).cloned().flatten()
    }

    /// All owners but this node.
    #[must_use]
    pub fn others(&self) -> Vec<(OwnerId, Incarnation)> {
        let owners = self.0.read();
        let numbered = owners.iter().enumerate().skip(1);
        numbered.filter_map(|(number, owner)| Some((OwnerId::new(number)?, owner.clone()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incarnation(name: &str, epoch: u64) -> Incarnation {
        Incarnation { name: name.into(), epoch }
    }

    #[test]
    fn each_incarnation_has_its_number_until_it_is_released() {
        let owners = Owners::default();
        owners.set_self(incarnation("a", 1));
        let b = owners.number(&incarnation("b", 1)).unwrap();
        let later = owners.number(&incarnation("b", 2)).unwrap();
        assert_eq!((b.number(), later.number()), (1, 2));
        assert_eq!(owners.number(&incarnation("b", 1)), Some(b));
        assert_eq!((owners.find("b", 2), owners.find("b", 3)), (Some(later), None));
        assert_eq!(owners.number(&incarnation("a", 1)), Some(OwnerId::SELF));
        owners.release(b);
        owners.release(OwnerId::SELF);
        assert_eq!(owners.incarnation(b), None);
        assert_eq!(owners.incarnation(OwnerId::SELF), Some(incarnation("a", 1)));
        assert_eq!(owners.number(&incarnation("c", 1)), Some(b));
        assert_eq!(owners.others().len(), 2);
    }
}
