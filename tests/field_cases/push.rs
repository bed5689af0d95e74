//! UDP pushes.

use std::{net::UdpSocket, time::Duration};

use crate::support::server::Server;

/// Probe P5: a caller could have datagrams sent to an address of its choice.
#[test]
fn nobody_can_have_pushes_sent_to_a_third_party() {
    let server = Server::start();
    let (own, third) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.2:0").unwrap());
    let subscribe = |client: &str, port: u16| {
        let params = [("serviceName", "p5"), ("clientIP", client), ("udpPort", &port.to_string())];
        let call = server.get("/instance/list").header("User-Agent", "Nacos-Java-Client:v1.4.6").params(&params);
        assert_eq!(call.send().json()["hosts"], serde_json::json!([]));
    };
    subscribe("127.0.0.2", third.local_addr().unwrap().port());
    subscribe("127.0.0.1", own.local_addr().unwrap().port());
    server.register("p5", "10.0.0.1", 80, &[]);
    own.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut datagram = [0; 65_536];
    own.recv(&mut datagram).expect("a push to the address that asked");
    // Both are sent at the same time, if at all.
    third.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    assert!(third.recv(&mut datagram).is_err(), "a third party got a datagram");
}
