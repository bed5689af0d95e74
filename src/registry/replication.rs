//! How the records of several members meet in one registry: which of them a node keeps, and which it gives up.
//!
//! The rules stand here; what they are needed for is told in [`crate::registry`]'s users. A record is written by its owner only, so
//! two nodes never disagree on one; they only know it at different ages.

use std::time::Duration;

use super::{
    apply::{Context, Edit, View, bumped, put_or_remove, shared, strike},
    instance::{Own, Parts},
    key::InstanceKey,
    overlay::Overlay,
    publication::Kind,
    share::Share,
    version::{OwnerId, Stamp, Version},
};

/// What a clustered registry is told at its start.
#[derive(Debug, Clone)]
pub struct Replication {
    /// Stamps begin above this one.
    pub floor: Stamp,
    /// How long explicit removals are remembered.
    pub removal_ttl: Duration,
    /// How many explicit removals are remembered.
    pub removal_limit: usize,
    /// How many names of changed records may wait for those who replicate them.
    pub journal_limit: usize,
}

/// One step by which the records of members move between nodes.
#[derive(Debug, Clone)]
pub enum Replica {
    /// A record of another member, as it was when that member had published all up to `as_of` ([`Version::order`]).
    Put {
        /// The instance.
        key: InstanceKey,
        /// The record.
        share: Share,
        /// What is held of that member and is not newer than this gives way, whatever its version.
        as_of: u64,
    },
    /// Another member says nothing of the instance, as of that [`Version::order`].
    Absent {
        /// The instance.
        key: InstanceKey,
        /// The member.
        owner: OwnerId,
        /// What is held of that member and is not newer than this goes.
        as_of: u64,
    },
    /// The instance was removed explicitly: what beats kept with a smaller stamp is dead, whoever's record it is.
    Removed {
        /// The instance.
        key: InstanceKey,
        /// The stamp of the removal.
        stamp: Stamp,
    },
    /// This node answers for the beats of the instance from now on, with a fresh lease.
    Adopt {
        /// The instance.
        key: InstanceKey,
        /// What the member said that answered for it before.
        share: Share,
    },
    /// Another member answers for the beats of the instance now, with data of this stamp.
    Yield {
        /// The instance.
        key: InstanceKey,
        /// What is newer than this stays.
        stamp: Stamp,
    },
}

impl Replica {
    /// The highest stamp in it, which this node has then seen.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        match self {
            Self::Put { share, .. } | Self::Adopt { share, .. } => share.version.stamp(),
            Self::Removed { stamp, .. } | Self::Yield { stamp, .. } => *stamp,
            Self::Absent { .. } => Stamp::default(),
        }
    }
}

/// What `replica` does to the service in `view`. It cannot fail: what does not apply changes nothing.
pub(super) fn replicate(view: View<'_>, replica: Replica, context: &impl Context) -> Vec<Edit> {
    let edit = match replica {
        Replica::Put { key, share, as_of } => put(view, key, share, as_of, context),
        Replica::Absent { key, owner, as_of } => absent(view, key, owner, as_of, context),
        Replica::Removed { key, stamp } => {
            let effect = view.instances.find(&key).map(|instance| strike(instance, stamp, context));
            return [Edit::Removed { key, stamp, here: false }].into_iter().chain(effect).collect();
        }
        Replica::Adopt { key, share } => adopt(view, key, share, context),
        Replica::Yield { key, stamp } => give_up(view, &key, stamp, context),
    };
    edit.into_iter().collect()
}

fn put(view: View<'_>, key: InstanceKey, share: Share, as_of: u64, context: &impl Context) -> Option<Edit> {
    if is_dead(view, &key, &share, context) {
        return None;
    }
    let (key, publication) = shared(view, key, share.publication);
    let share = Share { publication, ..share };
    let mut parts = parts(view, key, share.snowflake, context)?;
    match parts.others.iter_mut().find(|other| other.version.owner() == share.version.owner()) {
        Some(held) if *held == share => return None,
        Some(held) if held.version.order() > as_of && held.version.order() >= share.version.order() => return None,
        Some(held) => *held = share,
        None => parts.others.push(share),
    }
    Some(put_or_remove(parts, true, context))
}

fn absent(view: View<'_>, key: InstanceKey, owner: OwnerId, as_of: u64, context: &impl Context) -> Option<Edit> {
    let instance = view.instances.find(&key)?;
    if owner.is_self() || instance.version(owner)?.order() > as_of {
        return None;
    }
    let mut parts = instance.parts();
    parts.others.retain(|share| share.version.owner() != owner);
    Some(put_or_remove(parts, true, context))
}

fn adopt(view: View<'_>, key: InstanceKey, share: Share, context: &impl Context) -> Option<Edit> {
    if is_dead(view, &key, &share, context) {
        return None;
    }
    let mut parts = parts(view, key, share.snowflake, context)?;
    let version = Version::new(share.version.stamp(), share.version.minor(), OwnerId::SELF);
    match &mut parts.own {
        Some(own) if own.lease.is_some() && own.version.stamp() >= version.stamp() => return None,
        Some(own) if own.version.stamp() >= version.stamp() => own.version = bumped(own.version, context),
        Some(own) => (own.version, own.publication) = (version, share.publication),
        None => {
            let connections = smallvec::SmallVec::new();
            parts.own = Some(Own { version, publication: share.publication, lease: None, connections });
        }
    }
    Some(Edit::Put { instance: parts.assemble(context.owners())?, beat: true })
}

fn give_up(view: View<'_>, key: &InstanceKey, stamp: Stamp, context: &impl Context) -> Option<Edit> {
    let instance = view.instances.find(key)?;
    let mut parts = instance.parts();
    let own = parts.own.as_mut().filter(|own| own.lease.is_some() && own.version.stamp() <= stamp)?;
    own.lease = None;
    own.version = bumped(own.version, context);
    Some(put_or_remove(parts, true, context))
}

/// Whether the instance was removed after `share` was said, and only beats could have kept it.
fn is_dead(view: View<'_>, key: &InstanceKey, share: &Share, context: &impl Context) -> bool {
    let removed = context.removed(view.key, key);
    !share.connections && removed.is_some_and(|removed| removed > share.version.stamp())
}

/// The parts of the instance, or those of a new one; `None` if the place is taken by a persistent one.
fn parts(view: View<'_>, key: InstanceKey, snowflake: Option<u64>, context: &impl Context) -> Option<Parts> {
    if let Some(present) = view.instances.find(&key) {
        return (present.kind() == Kind::Ephemeral).then(|| present.parts());
    }
    let overlay: Overlay = context.retained(view.key, &key).unwrap_or_default();
    let others = smallvec::SmallVec::new();
    Some(Parts { key, kind: Kind::Ephemeral, own: None, others, overlay, snowflake })
}

#[cfg(test)]
mod tests;
