//! Who may be pushed to, and where: the rules for a list call that asks for pushes.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use super::{agent::Agent, settings::OtherAddresses};
use crate::registry::{ClusterName, ServiceKey, switches::Switches};

/// Longest `clusters` parameter that is kept for pushes, in bytes: some dozens of names.
const MOST_CLUSTERS_BYTES: usize = 4_096;

/// A list call that asks for pushes, as it came. The peer's address is the transport's; the texts are the caller's.
#[derive(Debug, Clone, Copy)]
pub struct UdpSubscription<'a> {
    /// The service; it need not exist and is not created.
    pub service: &'a ServiceKey,
    /// The `clusters` parameter to the letter; it comes back in each push.
    pub clusters_text: &'a str,
    /// The clusters that it means; `None`: all.
    pub clusters: Option<&'a [ClusterName]>,
    /// Where the call came from.
    pub peer: SocketAddr,
    /// The `clientIP` parameter.
    pub client_ip: &'a str,
    /// The `udpPort` parameter.
    pub udp_port: i64,
    /// What the client calls itself: `User-Agent`, else `Client-Version`.
    pub agent: &'a str,
    /// The `app` parameter.
    pub app: &'a str,
}

/// Whether the caller will be told of changes. Either way the call itself is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscribed {
    /// It will be; it may poll at leisure.
    Yes,
    /// It will not be, and must poll.
    No(Refusal),
}

/// Why a caller is not subscribed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The switch `pushEnabled` is off.
    #[error("pushes are switched off")]
    Disabled,
    /// The process is about to end.
    #[error("this server is shutting down")]
    Draining,
    /// The client library, or its version, has no socket for pushes.
    #[error("clients of this kind or version get no pushes")]
    Agent,
    /// The port is not one.
    #[error("udpPort must be from 1 to 65535")]
    Port,
    /// `clientIP` is not an IP literal. Names are never resolved.
    #[error("clientIP is not an IP address")]
    NotAnAddress,
    /// `clientIP` is not where the call came from, and the setting does not allow that.
    #[error("clientIP is not the caller's address, and push.other_addresses does not allow others")]
    OtherAddress,
    /// The socket cannot reach an address of this kind.
    #[error("no pushes can be sent to an address of this kind")]
    Unreachable,
    /// The `clusters` parameter is too long to be kept.
    #[error("clusters is longer than {MOST_CLUSTERS_BYTES} bytes")]
    ClustersTooLong,
    /// As many distinct `clusters` parameters of this service are subscribed as are kept.
    #[error("too many different lists of clusters of this service are subscribed")]
    TooManyFilters,
    /// `push.max_subscribers_of_service` is reached.
    #[error("push.max_subscribers_of_service is reached")]
    ServiceFull,
    /// `push.max_subscribers` is reached.
    #[error("push.max_subscribers is reached")]
    Full,
}

/// Where a subscriber is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Where its datagrams go.
    pub(super) target: SocketAddr,
    /// What operators are shown: the address that it gave.
    pub(super) shown: SocketAddr,
}

/// Decides where pushes for this call would go, from a socket bound to `local`.
pub(super) fn place(
    call: &UdpSubscription<'_>,
    switches: &Switches,
    others: OtherAddresses,
    local: SocketAddr,
) -> Result<Place, Refusal> {
    if !switches.push_enabled {
        return Err(Refusal::Disabled);
    }
    if !Agent::parse(call.agent).pushable(&switches.push_versions) {
        return Err(Refusal::Agent);
    }
    if call.clusters_text.len() > MOST_CLUSTERS_BYTES {
        return Err(Refusal::ClustersTooLong);
    }
    let port = u16::try_from(call.udp_port).ok().filter(|port| *port > 0).ok_or(Refusal::Port)?;
    let mut own = canonical(call.peer);
    own.set_port(port);
    let named = call.client_ip.trim().parse::<IpAddr>().map(|ip| SocketAddr::new(ip.to_canonical(), port));
    let blank = call.client_ip.trim().is_empty();
    let place = match (named, others) {
        (Ok(named), _) if named.ip() == own.ip() => Place { target: own, shown: own },
        (Ok(named), OtherAddresses::Peer) => Place { target: own, shown: named },
        (Err(_), OtherAddresses::Peer) if blank => Place { target: own, shown: own },
        // A caller on this machine has no translator before it, so its own address is the peer's, whichever of its
        // interfaces it names (npm nacos-naming names one that is not the loopback).
        (Ok(named), OtherAddresses::Refuse) if own.ip().is_loopback() => Place { target: own, shown: named },
        (Err(_), OtherAddresses::Refuse) if own.ip().is_loopback() && blank => Place { target: own, shown: own },
        (Ok(named), OtherAddresses::Allow) => Place { target: named, shown: named },
        (Ok(_), OtherAddresses::Refuse) => return Err(Refusal::OtherAddress),
        (Err(_), OtherAddresses::Refuse | OtherAddresses::Peer | OtherAddresses::Allow) => {
            return Err(Refusal::NotAnAddress);
        }
    };
    if is_one_host(place.target.ip()) && on_wire(place.target, local).is_some() {
        Ok(place)
    } else {
        Err(Refusal::Unreachable)
    }
}

/// The address with an IPv4 address in its own form, and without what does not belong to the peer.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match (address, address.ip().to_canonical()) {
        (SocketAddr::V6(v6), IpAddr::V6(ip)) => SocketAddrV6::new(ip, v6.port(), 0, v6.scope_id()).into(),
        (_, ip) => SocketAddr::new(ip, address.port()),
    }
}

/// `target` as a socket bound to `local` takes it; `None` if it cannot reach addresses of this kind.
pub(super) fn on_wire(target: SocketAddr, local: SocketAddr) -> Option<SocketAddr> {
    match (target, local) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) | (SocketAddr::V6(_), SocketAddr::V6(_)) => Some(target),
        (SocketAddr::V4(v4), SocketAddr::V6(local)) => {
            let both = local.ip().is_unspecified() || local.ip().to_ipv4_mapped().is_some();
            both.then(|| SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into())
        }
        (SocketAddr::V6(_), SocketAddr::V4(_)) => None,
    }
}

fn is_one_host(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !(ip.is_unspecified() || ip.is_multicast() || broadcast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Limits;

    struct Case {
        peer: &'static str,
        client_ip: &'static str,
        port: i64,
        others: OtherAddresses,
        local: &'static str,
    }

    const CASE: Case = Case {
        peer: "10.0.0.9:40000",
        client_ip: "10.0.0.9",
        port: 55_123,
        others: OtherAddresses::Refuse,
        local: "0.0.0.0:9000",
    };

    fn decide(case: &Case, switches: &Switches, agent: &str) -> Result<Place, Refusal> {
        let service = Limits::default().service_key("", "", "demo").unwrap();
        let call = UdpSubscription {
            service: &service,
            clusters_text: "",
            clusters: None,
            peer: case.peer.parse().unwrap(),
            client_ip: case.client_ip,
            udp_port: case.port,
            agent,
            app: "unknown",
        };
        place(&call, switches, case.others, case.local.parse().unwrap())
    }

    /// `target/shown`, or the refusal.
    fn told(case: &Case) -> String {
        match decide(case, &Switches::default(), "Nacos-Java-Client:v1.4.6") {
            Ok(place) => format!("{}/{}", place.target, place.shown),
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    #[test]
    fn pushes_go_to_the_callers_own_address() {
        assert_eq!(told(&CASE), "10.0.0.9:55123/10.0.0.9:55123");
        assert_eq!(told(&Case { client_ip: " 10.0.0.9 ", ..CASE }), "10.0.0.9:55123/10.0.0.9:55123");
        let mapped = Case { peer: "[::ffff:10.0.0.9]:40000", local: "[::]:9000", ..CASE };
        assert_eq!(told(&mapped), "10.0.0.9:55123/10.0.0.9:55123");
        let v6 = Case { peer: "[fe80::1%3]:40000", client_ip: "fe80::1", local: "[::]:9000", ..CASE };
        assert_eq!(told(&v6), "[fe80::1%3]:55123/[fe80::1%3]:55123");
    }

    #[test]
    fn another_address_follows_the_setting() {
        let other = Case { client_ip: "192.0.2.7", ..CASE };
        assert_eq!(told(&other), "OtherAddress");
        assert_eq!(told(&Case { others: OtherAddresses::Peer, ..other }), "10.0.0.9:55123/192.0.2.7:55123");
        assert_eq!(told(&Case { others: OtherAddresses::Allow, ..other }), "192.0.2.7:55123/192.0.2.7:55123");
        for client_ip in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "ff02::1"] {
            assert_eq!(told(&Case { client_ip, others: OtherAddresses::Allow, ..CASE }), "Unreachable", "{client_ip}");
        }
    }

    #[test]
    fn a_caller_on_this_machine_gets_its_pushes_whatever_interface_it_names() {
        let own = Case { peer: "127.0.0.1:40000", local: "127.0.0.1:9000", ..CASE };
        assert_eq!(told(&Case { client_ip: "192.0.2.7", ..own }), "127.0.0.1:55123/192.0.2.7:55123");
        assert_eq!(told(&Case { client_ip: "", ..own }), "127.0.0.1:55123/127.0.0.1:55123");
        assert_eq!(told(&Case { client_ip: "resolve_failed", ..own }), "NotAnAddress");
    }

    #[test]
    fn what_is_no_address_is_never_resolved() {
        for client_ip in ["", "localhost", "not-an-ip", "resolve_failed", "10.0.0", "010.0.0.9", "10.0.0.9:80"] {
            for others in [OtherAddresses::Refuse, OtherAddresses::Peer, OtherAddresses::Allow] {
                if client_ip.is_empty() && others == OtherAddresses::Peer {
                    continue;
                }
                assert_eq!(told(&Case { client_ip, others, ..CASE }), "NotAnAddress", "{client_ip}");
            }
        }
        let blank = Case { client_ip: " ", others: OtherAddresses::Peer, ..CASE };
        assert_eq!(told(&blank), "10.0.0.9:55123/10.0.0.9:55123");
    }

    #[test]
    fn ports_and_kinds_of_address_are_checked() {
        for port in [i64::MIN, -1, 0, 65_536, i64::MAX] {
            assert_eq!(told(&Case { port, ..CASE }), "Port", "{port}");
        }
        let v6 = Case { peer: "[2001:db8::1]:4", client_ip: "2001:db8::1", ..CASE };
        assert_eq!(told(&v6), "Unreachable");
        assert_eq!(told(&Case { local: "[::1]:9000", ..CASE }), "Unreachable");
    }

    #[test]
    fn switch_and_agent_decide() {
        let agent = "Nacos-Java-Client:v1.4.6";
        let off = Switches { push_enabled: false, ..Switches::default() };
        assert_eq!(decide(&CASE, &off, agent), Err(Refusal::Disabled));
        assert_eq!(decide(&CASE, &Switches::default(), "Nacos-Python-Client:v1.0.0"), Err(Refusal::Agent));
    }

    #[test]
    fn a_socket_of_both_families_reaches_ipv4_in_mapped_form() {
        let target = "10.0.0.9:1".parse().unwrap();
        let local = "[::]:9000".parse().unwrap();
        let wire = on_wire(target, local).unwrap();
        assert_eq!(wire, "[::ffff:10.0.0.9]:1".parse().unwrap());
        assert_eq!(canonical(wire), target);
    }
}
