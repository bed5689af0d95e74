//! While a majority remains and clients reach it, nothing that lives goes missing there, and nothing that is well is shown
//! otherwise: whoever dies, hangs, leaves or comes back.
//!
//! Source: invariant 3 of the semantics paper, section 13.1, and its weaknesses W7 and W33; field case 50.

use std::collections::BTreeSet;

use nomina::registry::owners::Incarnation;

use super::Look;
use crate::faults::Mood;

/// What nodes list: an instance that lives has to stay.
#[derive(Default)]
pub struct Failover {
    seen: BTreeSet<(Incarnation, usize)>,
}

impl Failover {
    pub fn check(&mut self, look: &Look<'_>) -> Result<(), String> {
        if look.mood != Mood::Gentle {
            return Ok(());
        }
        for node in look.world.nodes() {
            let Some(incarnation) = node.incarnation() else { continue };
            if !node.is_ready() || look.world.is_shaky(&node.name) {
                self.seen.retain(|(seen, _)| *seen != incarnation);
                continue;
            }
            let listed = node.listed();
            for (id, publisher) in look.publishers {
                let place = (incarnation.clone(), *id);
                if !publisher.held {
                    self.seen.remove(&place);
                    continue;
                }
                match listed.get(&publisher.key) {
                    Some(instance) if instance.healthy() => {
                        self.seen.insert(place);
                    }
                    Some(_) if self.seen.contains(&place) => {
                        return Err(format!("{} lists p{id}, which is well, as unhealthy", node.name));
                    }
                    None if self.seen.contains(&place) => {
                        return Err(format!("{} lost p{id}, which lives", node.name));
                    }
                    Some(_) | None => {}
                }
            }
        }
        Ok(())
    }
}
