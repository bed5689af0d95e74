//! How often the log says that somebody was not let in: whoever may knock may not fill it.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use crate::clock::Mono;

/// Time between two lines about one address.
const PAUSE: Duration = Duration::from_secs(10);

/// Addresses that are remembered, about 64 bytes each; those beyond them are passed over until others are forgotten.
const MOST: usize = 1_024;

/// Decides which complaints are written.
#[derive(Debug, Default)]
pub struct Complaints {
    recent: HashMap<IpAddr, Recent>,
}

#[derive(Debug)]
struct Recent {
    written: Mono,
    left_out: u64,
}

impl Complaints {
    /// Whether to complain about `address` now, and then how many complaints about it were left out since the last one.
    pub fn admit(&mut self, address: IpAddr, now: Mono) -> Option<u64> {
        if let Some(recent) = self.recent.get_mut(&address) {
            if now.since(recent.written) < PAUSE {
                recent.left_out += 1;
                return None;
            }
            recent.written = now;
            return Some(std::mem::take(&mut recent.left_out));
        }
        if self.recent.len() >= MOST {
            self.recent.retain(|_, recent| now.since(recent.written) < PAUSE);
        }
        if self.recent.len() >= MOST {
            return None;
        }
        self.recent.insert(address, Recent { written: now, left_out: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_millis(seconds * 1_000)
    }

    #[test]
    fn one_address_is_complained_about_once_in_a_while() {
        let mut complaints = Complaints::default();
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        assert_eq!(complaints.admit(a, at(0)), Some(0));
        assert_eq!(complaints.admit(b, at(1)), Some(0));
        for second in 1..10 {
            assert_eq!(complaints.admit(a, at(second)), None);
        }
        assert_eq!(complaints.admit(a, at(10)), Some(9));
        assert_eq!(complaints.admit(a, at(20)), Some(0));
    }

    #[test]
    fn many_addresses_are_not_remembered_for_ever() {
        let mut complaints = Complaints::default();
        let lines =
            (0..10_000_u32).filter(|n| complaints.admit(IpAddr::from(n.to_be_bytes()), at(0)).is_some()).count();
        assert_eq!(lines, MOST);
        assert_eq!(complaints.admit(IpAddr::from([10, 0, 0, 1]), at(10)), Some(0));
        assert_eq!(complaints.recent.len(), 1);
    }
}
