//! What was removed explicitly does not come back: never on a node that knows of the removal, and nowhere once the nodes
//! have agreed again.
//!
//! Source: invariant 2 of the semantics paper, section 13.1, and its weakness W11; field case 59.

use std::{collections::BTreeSet, time::Duration};

use nomina::registry::owners::Incarnation;

use super::Look;
use crate::{
    oracle::{Kept, Life},
    world::service,
};

/// How long a removal may take to all nodes when nothing is wrong.
const SPREAD: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Removed {
    knew: BTreeSet<(Incarnation, usize)>,
}

impl Removed {
    pub fn check(&mut self, look: &Look<'_>) -> Result<(), String> {
        for (id, publisher) in look.publishers.iter().filter(|(_, publisher)| publisher.kept == Kept::Beats) {
            let Life::Removed(at) = publisher.life else { continue };
            if publisher.late {
                // What its publisher sent before may still arrive: that begins a new life, of one lease.
                continue;
            }
            for node in look.world.nodes() {
                let Some(incarnation) = node.incarnation() else { continue };
                let listed = node.find(&publisher.key).is_some();
                let place = (incarnation, *id);
                if listed && self.knew.contains(&place) {
                    return Err(format!("{} lists p{id} again, which was removed", node.name));
                }
                if !listed && node.registry.removal(&(service(), publisher.key.clone())).is_some() {
                    self.knew.insert(place);
                }
                if let Some(settled) = look.settled
                    && listed
                    && look.now.since(at.max(settled)) > SPREAD
                {
                    return Err(format!("{} lists p{id} still, which was removed", node.name));
                }
            }
        }
        Ok(())
    }
}
