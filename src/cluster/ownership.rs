//! Which member owns a beat source: rendezvous hashing over the members that are eligible.
//!
//! Every node computes the same owner from the same set, on every platform: hashes are of fixed keys over bytes in a
//! fixed order. A member that leaves the set moves its own keys and no others.
//!
//! Source: rendezvous hashing, Thaler and Ravishankar 1998.

use std::{hash::Hasher, sync::Arc};

use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

use super::member::MemberName;
use crate::registry::hash::mix;

/// Changing it moves every beat source: nodes of both kinds then disagree on owners.
const MEMBER_KEY: (u64, u64) = (0x6e6f_6d69_6e61_2d6d, 0x656d_6265_722d_6e61);

/// Keys that [`Eligible::shares`] looks at: a share is right to within 2 % of the whole.
pub const SAMPLE: u32 = 4_096;

fn member_hash(name: &MemberName) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(MEMBER_KEY.0, MEMBER_KEY.1);
    hasher.write(name.as_str().as_bytes());
    hasher.finish()
}

/// How well a member suits a key. The finalizer of `MurmurHash3` makes all bits of both count.
const fn score(key: u64, member: u64) -> u64 {
    let mut mixed = key ^ member;
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// The members that may own beat sources: an immutable set. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Eligible {
    /// Sorted by name.
    members: Arc<[(MemberName, u64)]>,
}

impl Eligible {
    /// The set of `members`; the order in which they come and duplicates do not matter.
    pub fn new(members: impl IntoIterator<Item = MemberName>) -> Self {
        let mut members: Vec<_> = members.into_iter().map(|name| (member_hash(&name), name)).collect();
        members.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        members.dedup();
        Self { members: members.into_iter().map(|(hash, name)| (name, hash)).collect() }
    }

    /// The owner of the beat source with this [`hash::endpoint`](crate::registry::hash::endpoint); `None` if nobody is eligible.
    ///
    /// Cost: a few nanoseconds a member; allocates nothing.
    #[must_use]
    pub fn owner(&self, key: u64) -> Option<&MemberName> {
        // Of equal scores the greater name wins, as in `in_line`.
        self.members.iter().max_by_key(|(_, hash)| score(key, *hash)).map(|(name, _)| name)
    }

    /// All eligible members, the owner of `key` first, then who is next in line if it cannot be reached.
    pub fn in_line(&self, key: u64) -> impl Iterator<Item = &MemberName> + use<'_> {
        let mut line: SmallVec<[(u64, usize); 8]> =
            self.members.iter().enumerate().map(|(index, (_, hash))| (score(key, *hash), index)).collect();
        line.sort_unstable_by(|a, b| b.cmp(a));
        line.into_iter().filter_map(|(_, index)| self.members.get(index)).map(|(name, _)| name)
    }

    /// How much of all beat sources each member owns, 0 to 1, in the order of their names: counted over [`SAMPLE`] keys that
    /// are the same at every call.
    ///
    /// Cost: 4,096 times that of [`Eligible::owner`].
    #[must_use]
    pub fn shares(&self) -> Vec<(MemberName, f64)> {
        let mut owned = vec![0_u32; self.members.len()];
        for key in (0..SAMPLE).map(|number| mix(u64::from(number))) {
            let best = self.members.iter().zip(&mut owned).max_by_key(|((_, hash), _)| score(key, *hash));
            if let Some((_, owned)) = best {
                *owned += 1;
            }
        }
        self.iter().cloned().zip(owned.into_iter().map(|owned| f64::from(owned) / f64::from(SAMPLE))).collect()
    }

    /// Whether `name` is eligible.
    #[must_use]
    pub fn contains(&self, name: &MemberName) -> bool {
        self.members.binary_search_by(|(member, _)| member.cmp(name)).is_ok()
    }

    /// The members in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &MemberName> {
        self.members.iter().map(|(name, _)| name)
    }

    /// How many members are eligible.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nobody is eligible.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::btree_set, prelude::*};

    use super::*;
    use crate::registry::{Limits, hash};

    fn set(count: usize) -> Eligible {
        Eligible::new((0..count).map(|n| MemberName::parse(&format!("nomina-{n}.nomina:8848")).expect("a name")))
    }

    fn hash_of(service: &str, address: &str, port: u16) -> u64 {
        let limits = Limits::default();
        let service = limits.service_key("public", "DEFAULT_GROUP", service).expect("a key");
        hash::endpoint(&service, &limits.endpoint(address, port.into()).expect("an endpoint"))
    }

    /// Owners are part of what nodes agree on: if this test fails, nodes of two builds disagree. The numbers were computed
    /// by another implementation of `SipHash`.
    #[test]
    fn hashes_are_those_of_every_build() {
        let member = MemberName::parse("nomina-0.nomina:8848").expect("a name");
        assert_eq!(member_hash(&member), 0xe94b_0cad_8cc8_8657);
        assert_eq!(score(1, 2), 0x0b51_81c5_09f8_d8ce);
        let set = set(3);
        let line: Vec<_> = set.in_line(hash_of("orders", "10.0.0.7", 8080)).map(MemberName::as_str).collect();
        assert_eq!(line, ["nomina-2.nomina:8848", "nomina-1.nomina:8848", "nomina-0.nomina:8848"]);
    }

    #[test]
    fn nobody_owns_anything_in_an_empty_set() {
        assert_eq!(Eligible::default().owner(7), None);
        assert_eq!(Eligible::default().in_line(7).count(), 0);
    }

    #[test]
    fn order_and_duplicates_do_not_matter() {
        let names = ["b", "a", "c", "A."].map(|name| MemberName::parse(name).expect(name));
        let set = Eligible::new(names.clone());
        assert_eq!(set, Eligible::new(names.into_iter().rev()));
        assert_eq!(set.iter().map(MemberName::host).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn shares_are_those_of_a_sample_and_sum_up() {
        assert_eq!(Eligible::default().shares(), []);
        assert_eq!(set(1).shares().first().map(|(_, share)| *share), Some(1.0));
        let shares = set(3).shares();
        assert!(shares.iter().all(|(_, share)| (share - 1.0 / 3.0).abs() < 0.02), "{shares:?}");
        assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    /// Few ports of few addresses, as real fleets have them, within 5 % of an equal share.
    #[test]
    fn shares_are_equal() {
        for members in [3_u32, 5] {
            let set = set(members as usize);
            let mut counts = BTreeMap::new();
            for service in 0..30 {
                for host in 0..100 {
                    for port in [8080, 8081] {
                        let key = hash_of(&format!("service-{service}"), &format!("10.0.0.{host}"), port);
                        *counts.entry(set.owner(key).expect("an owner")).or_insert(0_u32) += 1;
                    }
                }
            }
            let fair = 6_000 / members;
            for (name, count) in &counts {
                assert!(count.abs_diff(fair) * 20 <= fair, "{name}: {count} of {fair}");
            }
            assert_eq!(counts.len(), members as usize);
        }
    }

    proptest! {
        #[test]
        fn the_line_starts_with_the_owner_and_has_everybody_once(key: u64, count in 1_usize..20) {
            let set = set(count);
            let line: Vec<_> = set.in_line(key).collect();
            prop_assert_eq!(line.first().copied(), set.owner(key));
            let mut sorted = line;
            sorted.sort();
            prop_assert_eq!(sorted, set.iter().collect::<Vec<_>>());
        }

        #[test]
        fn who_leaves_moves_its_own_keys_and_no_others(
            names in btree_set("[a-z]{1,8}", 2..12), gone in 0_usize..12, keys in prop::collection::vec(any::<u64>(), 1..200),
        ) {
            let names: Vec<_> = names.iter().map(|name| MemberName::parse(name).expect(name)).collect();
            let gone = &names[gone % names.len()];
            let before = Eligible::new(names.clone());
            let after = Eligible::new(names.iter().filter(|name| *name != gone).cloned());
            for key in keys {
                let owner = before.owner(key).expect("an owner");
                if owner == gone {
                    prop_assert_eq!(after.owner(key), before.in_line(key).nth(1));
                } else {
                    prop_assert_eq!(after.owner(key), Some(owner));
                }
            }
        }
    }
}
