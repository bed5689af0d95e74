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
use crate::registry::key::{Address, Endpoint, ServiceKey};

/// Changing a key, or what is hashed, moves every beat source: nodes of both kinds then disagree on owners.
const BEAT_SOURCE_KEY: (u64, u64) = (0x6e6f_6d69_6e61_2d62, 0x6561_742d_736f_7572);
const MEMBER_KEY: (u64, u64) = (0x6e6f_6d69_6e61_2d6d, 0x656d_6265_722d_6e61);

/// The hash of a beat source: namespace, group, service, address and port. The name of the cluster is not part of it,
/// since a request may leave it out and must find the same owner.
#[must_use]
pub fn key_hash(service: &ServiceKey, endpoint: &Endpoint) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(BEAT_SOURCE_KEY.0, BEAT_SOURCE_KEY.1);
    part(&mut hasher, service.namespace.as_str().as_bytes());
    part(&mut hasher, service.group.as_str().as_bytes());
    part(&mut hasher, service.name.as_str().as_bytes());
    match &endpoint.address {
        Address::V4(ip) => part(&mut hasher, &ip.octets()),
        Address::Text(text) => {
            // A text of four bytes is not the address of these octets.
            hasher.write(b"t");
            part(&mut hasher, text.as_bytes());
        }
    }
    hasher.write(&endpoint.port.to_le_bytes());
    hasher.finish()
}

/// Length and bytes: no two different sequences of parts are written alike. Only `write` is used, whose bytes simply
/// follow each other; the methods for numbers follow the platform.
fn part(hasher: &mut SipHasher13, bytes: &[u8]) {
    hasher.write(&(bytes.len() as u64).to_le_bytes());
    hasher.write(bytes);
}

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

    /// The owner of the beat source with this [`key_hash`]; `None` if nobody is eligible.
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
    use crate::registry::Limits;

    fn set(count: usize) -> Eligible {
        Eligible::new((0..count).map(|n| MemberName::parse(&format!("nomina-{n}.nomina:8848")).expect("a name")))
    }

    fn hash_of(service: &str, address: &str, port: u16) -> u64 {
        let limits = Limits::default();
        let service = limits.service_key("public", "DEFAULT_GROUP", service).expect("a key");
        key_hash(&service, &limits.endpoint(address, port.into()).expect("an endpoint"))
    }

    /// Owners are part of what nodes agree on: if this test fails, nodes of two builds disagree. The numbers were computed
    /// by another implementation of `SipHash`.
    #[test]
    fn hashes_are_those_of_every_build() {
        assert_eq!(hash_of("orders", "10.0.0.7", 8080), 0x54a0_a3df_6250_4864);
        assert_eq!(hash_of("orders", "10.0.0.7", 8081), 0x884a_1519_31e3_96f0);
        assert_eq!(hash_of("orders", "2001:db8::1", 8080), 0xfee5_f23b_f200_152a);
        assert_eq!(hash_of("orders", "orders.example", 8080), 0x6340_e1c4_5349_fc19);
        let member = MemberName::parse("nomina-0.nomina:8848").expect("a name");
        assert_eq!(member_hash(&member), 0xe94b_0cad_8cc8_8657);
        assert_eq!(score(1, 2), 0x0b51_81c5_09f8_d8ce);
        let set = set(3);
        let line: Vec<_> = set.in_line(hash_of("orders", "10.0.0.7", 8080)).map(MemberName::as_str).collect();
        assert_eq!(line, ["nomina-2.nomina:8848", "nomina-1.nomina:8848", "nomina-0.nomina:8848"]);
    }

    #[test]
    fn every_part_counts_and_parts_do_not_run_together() {
        let limits = Limits::default();
        let of = |namespace: &str, group: &str, service: &str, address: &str, port: i64| {
            let service = limits.service_key(namespace, group, service).expect("a key");
            key_hash(&service, &limits.endpoint(address, port).expect("an endpoint"))
        };
        let all = [
            of("n", "g", "s", "10.0.0.1", 1),
            of("m", "g", "s", "10.0.0.1", 1),
            of("n", "gs", "s", "10.0.0.1", 1),
            of("n", "g", "ss", "10.0.0.1", 1),
            of("ng", "s", "s", "10.0.0.1", 1),
            of("n", "g", "s", "10.0.0.10", 1),
            of("n", "g", "s", "10.0.0.1", 256),
            of("n", "g", "s", "host", 1),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
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
