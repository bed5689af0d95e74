//! Addresses and ports.

use crate::support::server::Server;

/// Case 4, alibaba/nacos#963 (PR#1079), nacos-sdk-go PR#846: a host name was refused as a malformed instance.
#[test]
fn a_host_name_is_an_address_and_digits_that_are_none_are_not() {
    let server = Server::start();
    for (port, address) in
        (1_u16..).zip(["app-7.cloud.example.internal", "localhost", "::1", "[2001:db8::1]", "fe80::1%eth0", "10.0.0.1"])
    {
        server.register("hosts", address, port, &[]);
        let host = server.hosts("hosts", &[]).into_iter().find(|host| host["port"] == port).unwrap();
        assert_eq!(host["ip"], address);
        assert_eq!(host["instanceId"], format!("{address}#{port}#DEFAULT#DEFAULT_GROUP@@hosts"));
        assert_eq!(server.light_beat("hosts", address, port), 10_200);
    }
    for address in ["999.1.1.1", "256.0.0.1", "1.2.3", "1.2.3.4.5", "12345"] {
        server.try_register("hosts", address, "80", &[]).refused(&["'ip'", address]);
    }
    assert_eq!(server.hosts("hosts", &[]).len(), 6);
}

/// Case 5, alibaba/nacos#461, #3888, nacos-sdk-rust#256: port 0 was refused, or blocked its whole service.
#[test]
fn port_zero_stands_for_itself_and_no_port_wraps_around() {
    let server = Server::start();
    server.register("ports", "10.0.0.1", 80, &[]);
    server.register("ports", "10.0.0.1", 0, &[]);
    server.register("ports", "10.0.0.1", 65_535, &[]);
    for bad in ["-1", "65536", "70000", "abc", "", "8 0", "4294967376", "1e2", "+", "0x50"] {
        let word = if bad.is_empty() { "Param 'port' is required." } else { "port" };
        server.try_register("ports", "10.0.0.1", bad, &[]).refused(&[word]);
        let beat = server.put("/instance/beat").params(&[("serviceName", "ports"), ("ip", "10.0.0.1"), ("port", bad)]);
        beat.send().refused(&["port"]);
    }
    assert_eq!(server.ports("ports", &[]), [0, 80, 65_535]);
    assert_eq!(server.light_beat("ports", "10.0.0.1", 0), 10_200);
    server.update("ports", "10.0.0.1", 0, &[("weight", "5")]);
    let weights: Vec<_> = server.hosts("ports", &[]).iter().map(|host| host["weight"].as_f64().unwrap()).collect();
    assert_eq!(weights, [5.0, 1.0, 1.0]);
    server.deregister("ports", "10.0.0.1", 0, &[]);
    assert_eq!(server.ports("ports", &[]), [80, 65_535]);
}
