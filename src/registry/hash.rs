//! A hash of names that is the same on every node and platform.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::key::{Address, InstanceKey, ServiceKey};

/// The hash of a service and an endpoint in it, without the cluster, which requests may leave out.
#[must_use]
pub fn endpoint(service: &ServiceKey, address: &Address, port: u16) -> u64 {
    let mut hasher = SipHasher13::new();
    for part in [service.namespace.as_str(), service.group.as_str(), service.name.as_str()] {
        text(&mut hasher, part);
    }
    match address {
        Address::V4(ip) => hasher.write(&[&[0], ip.octets().as_slice()].concat()),
        Address::Text(name) => text(&mut hasher, name),
    }
    hasher.write(&port.to_be_bytes());
    hasher.finish()
}

/// The hash of an instance, its cluster included.
#[must_use]
pub fn instance(service: &ServiceKey, key: &InstanceKey) -> u64 {
    let mut hasher = SipHasher13::new();
    text(&mut hasher, key.cluster.as_str());
    mix(endpoint(service, &key.endpoint.address, key.endpoint.port) ^ hasher.finish())
}

/// Spreads every bit of `value` over all bits (the finalizer of SplitMix64, Steele, Lea and Flood 2014).
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Text with its length before it, so that two names that touch cannot be cut in two ways.
fn text(hasher: &mut SipHasher13, text: &str) {
    hasher.write(&(text.len() as u64).to_be_bytes());
    hasher.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::limits::Limits;

    /// Nodes of different builds must agree: these numbers never change.
    #[test]
    fn the_hashes_stay_as_they_are() {
        let limits = Limits::default();
        let service = limits.service_key("", "", "demo").unwrap();
        let v4 = limits.endpoint("10.0.0.1", 8080).unwrap();
        let name = limits.endpoint("app-7.example", 80).unwrap();
        let key = InstanceKey { endpoint: v4.clone(), cluster: limits.cluster("c1").unwrap().unwrap() };
        let hashes = [
            endpoint(&service, &v4.address, v4.port),
            endpoint(&service, &name.address, name.port),
            instance(&service, &key),
        ];
        assert_eq!(hashes, [17_873_465_727_685_523_400, 7_395_128_539_348_552_276, 16_303_820_198_287_761_249]);
    }
}
