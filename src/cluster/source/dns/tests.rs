use std::{net::Ipv6Addr, sync::Arc};

use hickory_resolver::{
    config::{NameServerConfig, ResolverConfig},
    proto::{
        op::{Message, ResponseCode},
        rr::{Name, Record, rdata},
    },
};
use parking_lot::Mutex;
use tokio::net::UdpSocket;

use super::*;
use crate::shutdown::Shutdown;

type Records = Arc<Mutex<Vec<(&'static str, RData)>>>;

/// A name server with a few records, and a client that asks nobody else.
struct Zone {
    records: Records,
    port: u16,
    shutdown: Shutdown,
}

impl Zone {
    async fn new(records: Vec<(&'static str, RData)>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let port = socket.local_addr().expect("bound").port();
        let zone = Self { records: Arc::new(Mutex::new(records)), port, shutdown: Shutdown::new() };
        let records = zone.records.clone();
        zone.shutdown.spawn_detached(async move {
            let mut buffer = [0; 2_048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let request = Message::from_vec(&buffer[..length]).expect("a question");
                let answer = answer(&request, &records.lock()).to_vec().expect("encodes");
                socket.send_to(&answer, from).await.expect("sent");
            }
        });
        zone
    }

    /// What a node called `me` asks for members under `name`.
    fn client(&self, name: &str, me: &str) -> Dns {
        let mut server = NameServerConfig::udp([127, 0, 0, 1].into());
        for connection in &mut server.connections {
            connection.port = self.port;
        }
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let mut dns = Dns::new(DnsName::parse(name).expect(name), &MemberName::parse(me).expect(me));
        dns.resolver = Some(dns.build(builder).expect("builds"));
        dns
    }

    /// The members that it finds.
    async fn ask(&self, name: &str, me: &str) -> Result<String, DnsError> {
        self.client(name, me).look_up().await.map(|list| list.to_string())
    }
}

fn answer(request: &Message, records: &[(&str, RData)]) -> Message {
    let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
    let question = request.queries.first().expect("one").clone();
    let name = question.name().to_ascii().to_ascii_lowercase();
    for (owner, data) in records.iter().filter(|(owner, _)| *owner == name) {
        if data.record_type() == question.query_type() {
            answer.add_answer(Record::from_rdata(Name::from_ascii(owner).expect("a name"), 300, data.clone()));
        }
    }
    if !records.iter().any(|(owner, _)| *owner == name) {
        answer.metadata.response_code = ResponseCode::NXDomain;
    }
    answer.add_query(question);
    answer
}

fn a(address: [u8; 4]) -> RData {
    RData::A(rdata::A(address.into()))
}

fn srv(port: u16, target: &str) -> RData {
    RData::SRV(rdata::SRV::new(0, 0, port, Name::from_ascii(target).expect("a name")))
}

#[test]
fn names_say_which_records_are_meant() {
    let host = |host: &str, port| Ok(DnsName::Host { host: host.to_owned(), port });
    assert_eq!(DnsName::parse("nomina:8848"), host("nomina", 8848));
    assert_eq!(DnsName::parse("nomina.ns.svc.cluster.local.:1"), host("nomina.ns.svc.cluster.local.", 1));
    assert_eq!(DnsName::parse("_http._tcp.nomina"), Ok(DnsName::Service("_http._tcp.nomina".to_owned())));
    for (bad, says) in [
        ("nomina", "no port"),
        ("_http._tcp.nomina:8848", "SRV record"),
        ("10.0.0.1:8848", "is an address"),
        ("[::1]:8848", "is an address"),
        ("a b:1", "'a b:1'"),
        ("nomina:0", "from 1 to 65535"),
    ] {
        let reason = DnsName::parse(bad).expect_err(bad);
        assert!(reason.contains(says) && reason.contains(bad), "{reason}");
    }
}

#[tokio::test]
async fn a_records_give_addresses_with_the_port() {
    let zone = Zone::new(vec![("nomina.test.", a([10, 0, 0, 10])), ("nomina.test.", a([10, 0, 0, 1]))]).await;
    let found = zone.ask("nomina.test.:8848", "10.0.0.1").await.expect("found");
    assert_eq!(found, "10.0.0.10:8848, 10.0.0.1:8848");
}

#[tokio::test]
async fn records_of_one_family_are_taken() {
    let six = RData::AAAA(rdata::AAAA(Ipv6Addr::LOCALHOST));
    let zone = Zone::new(vec![("nomina.test.", a([10, 0, 0, 1])), ("nomina.test.", six.clone())]).await;
    assert_eq!(zone.ask("nomina.test.:1", "10.0.0.1:1").await.expect("found"), "10.0.0.1:1");
    assert_eq!(zone.ask("nomina.test.:1", "[::1]:1").await.expect("found"), "[::1]:1");
    *zone.records.lock() = vec![("nomina.test.", six)];
    assert_eq!(zone.ask("nomina.test.:1", "10.0.0.1:1").await.expect("found"), "[::1]:1");
}

#[tokio::test]
async fn srv_records_give_names_with_their_ports() {
    let service = "_http._tcp.nomina.test.";
    let zone =
        Zone::new(vec![(service, srv(8848, "Nomina-1.nomina.test.")), (service, srv(8849, "nomina-0.nomina.test."))])
            .await;
    let found = zone.ask("_http._tcp.nomina.test.", "a").await.expect("found");
    assert_eq!(found, "nomina-0.nomina.test:8849, nomina-1.nomina.test:8848");
    zone.records.lock().push((service, srv(0, "nomina-2.nomina.test.")));
    assert!(matches!(zone.ask("_http._tcp.nomina.test.", "a").await, Err(DnsError::Record { .. })));
}

#[tokio::test]
async fn a_name_that_nobody_has_is_an_error_that_says_it() {
    let zone = Zone::new(Vec::new()).await;
    let error = zone.ask("nomina.test.:8848", "a").await.expect_err("nobody");
    assert!(error.to_string().contains("nomina.test.:8848"), "{error}");
    let DnsError::LookUp { source, .. } = error else { panic!("{error}") };
    assert!(source.is_nx_domain(), "{source}");
}

#[tokio::test]
async fn each_look_asks_again() {
    let zone = Zone::new(vec![("nomina.test.", a([10, 0, 0, 1]))]).await;
    let mut dns = zone.client("nomina.test.:1", "a");
    assert_eq!(dns.look_up().await.expect("found").to_string(), "10.0.0.1:1");
    *zone.records.lock() = vec![("nomina.test.", a([10, 0, 0, 2]))];
    assert_eq!(dns.look_up().await.expect("found").to_string(), "10.0.0.2:1");
}
