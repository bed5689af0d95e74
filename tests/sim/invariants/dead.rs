//! What is dead goes within a stated bound, on all nodes.
//!
//! Source: the aim "correct" of the design, section 1; leases of semantics 5.1; takeover and grace of the design,
//! section 4.
//!
//! The bound, once the faults are over: members find each other, and each move of a beat source begins its lease anew (15 s);
//! then it ends by itself (30 s and a look at the leases). What a dead member left goes 30 s after it was judged dead (6 s).

use std::time::Duration;

use super::Look;
use crate::oracle::Life;

const SETTLE: Duration = Duration::from_secs(25);
const LEASE: Duration = Duration::from_secs(32);

pub fn check(look: &Look<'_>) -> Result<(), String> {
    let Some(calm) = look.calm else { return Ok(()) };
    for (id, publisher) in look.publishers {
        let (Life::Silent(at) | Life::Removed(at)) = publisher.life else { continue };
        if look.now.since(at.max(calm + SETTLE)) <= LEASE {
            continue;
        }
        for node in look.world.nodes() {
            if let Some(instance) = node.find(&publisher.key) {
                let shares: Vec<_> = instance.shares().collect();
                let shares: Vec<_> =
                    shares.iter().map(|share| (share.version, share.beats, share.connections)).collect();
                return Err(format!("{} lists p{id}, which is dead, by {shares:?}", node.name));
            }
        }
    }
    Ok(())
}
