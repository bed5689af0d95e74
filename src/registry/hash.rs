//! A hash of names that is the same on every node and platform.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::key::{Address, Endpoint, InstanceKey, ServiceKey};

/// Changing a key, or what is hashed, moves every beat source and every bucket: nodes of both kinds then disagree.
const BEAT_SOURCE_KEY: (u64, u64) = (0x6e6f_6d69_6e61_2d62, 0x6561_742d_736f_7572);
const CLUSTER_KEY: (u64, u64) = (0x6e6f_6d69_6e61_2d63, 0x6c75_7374_6572_2d6e);

/// The hash of a beat source: namespace, group, service, address and port. The name of the cluster is not part of it,
/// since a request may leave it out and must find the same owner.
#[must_use]
pub fn endpoint(service: &ServiceKey, endpoint: &Endpoint) -> u64 {
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

/// The hash of an instance, its cluster included.
#[must_use]
pub fn instance(service: &ServiceKey, key: &InstanceKey) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(CLUSTER_KEY.0, CLUSTER_KEY.1);
    part(&mut hasher, key.cluster.as_str().as_bytes());
    mix(endpoint(service, &key.endpoint) ^ hasher.finish())
}

/// Spreads every bit of `value` over all bits (the finalizer of SplitMix64, Steele, Lea and Flood 2014).
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{ClusterName, limits::Limits};

    fn of(namespace: &str, group: &str, service: &str, address: &str, port: i64) -> u64 {
        let limits = Limits::default();
        let service = limits.service_key(namespace, group, service).unwrap();
        endpoint(&service, &limits.endpoint(address, port).unwrap())
    }

    /// Nodes of two builds must agree. The hashes of endpoints were computed by another implementation of `SipHash`.
    #[test]
    fn hashes_are_those_of_every_build() {
        let orders = |address, port| of("", "", "orders", address, port);
        assert_eq!(orders("10.0.0.7", 8080), 0x54a0_a3df_6250_4864);
        assert_eq!(orders("10.0.0.7", 8081), 0x884a_1519_31e3_96f0);
        assert_eq!(orders("2001:db8::1", 8080), 0xfee5_f23b_f200_152a);
        assert_eq!(orders("orders.example", 8080), 0x6340_e1c4_5349_fc19);
        let limits = Limits::default();
        let service = limits.service_key("", "", "orders").unwrap();
        let endpoint = limits.endpoint("10.0.0.7", 8080).unwrap();
        let of = |cluster| instance(&service, &InstanceKey { endpoint: endpoint.clone(), cluster });
        let hashes = [of(ClusterName::default()), of(limits.cluster("c1").unwrap().unwrap())];
        assert_eq!(hashes, [0xc1ab_3a97_4037_1871, 0x7545_5a4f_3aff_0fb0]);
    }

    #[test]
    fn every_part_counts_and_parts_do_not_run_together() {
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
}
