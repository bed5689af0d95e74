//! Members that reach each other over sockets of this machine.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    dial::{Dialer, Resolve},
    handshake::{self, Identity},
    listen::{self, Entrance},
    tls::{Tls, tests::Authority},
};
use crate::cluster::{
    member::MemberName,
    transport::{
        Accepted, Dialled, Transport, Unreachable,
        memory::tests::{Links, Node, name, node, ping, pong},
    },
};
use crate::{clock::Clock, setting::Secret, shutdown::Shutdown, wire::pb::peer as pb};

const SECRET: &str = "a secret that all members of it know";
const CONNECT: Duration = Duration::from_secs(1);

/// Where members are.
#[derive(Default, Clone)]
struct Directory(Arc<Mutex<BTreeMap<MemberName, Vec<SocketAddr>>>>);

impl Directory {
    fn resolve(&self) -> Resolve {
        let directory = self.clone();
        Arc::new(move |name| {
            let found = directory.0.lock().get(name).cloned();
            let none = || io::Error::new(io::ErrorKind::NotFound, "no such host");
            Box::pin(async move { found.ok_or_else(none) })
        })
    }

    fn put(&self, member: &str, addresses: &[SocketAddr]) {
        self.0.lock().insert(name(member), addresses.to_vec());
    }
}

/// A member whose listener runs.
struct Peer {
    node: Arc<Node>,
    links: Links,
    dialer: Dialer,
    shutdown: Shutdown,
    address: SocketAddr,
}

async fn start(directory: &Directory, own: &str, secret: &str, tls: Option<Arc<Tls>>) -> Peer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    directory.put(own, &[address]);
    let shutdown = Shutdown::new();
    let own = Identity::new(name(own), &Secret::new(secret)).unwrap();
    let (node, links) = node();
    let listed = directory.clone();
    let knows = Arc::new(move |name: &MemberName| listed.0.lock().contains_key(name));
    let entrance = Entrance { own: own.clone(), tls: tls.clone(), knows };
    let (accept, clock, end) = (node.clone(), Clock::start(), shutdown.clone());
    shutdown.spawn(async move { listen::serve(listener, entrance, accept, clock, &end).await });
    let dialer = Dialer::new(own, directory.resolve(), tls, CONNECT, shutdown.clone());
    Peer { node, links, dialer, shutdown, address }
}

async fn plain(directory: &Directory, own: &str) -> Peer {
    start(directory, own, SECRET, None).await
}

/// A link from `a` to `b`, of which both ends are there.
async fn link(a: &Peer, b: &mut Peer, to: &str) -> (Dialled, Accepted) {
    let dialled = a.dialer.link(&name(to)).await.unwrap();
    let (_, accepted) = b.links.recv().await.unwrap();
    (dialled, accepted)
}

async fn works(a: &Peer, b: &mut Peer, to: &str) {
    let (mut dialled, mut accepted) = link(a, b, to).await;
    dialled.sender.send(ping(1)).await.unwrap();
    assert_eq!(accepted.receiver.recv().await, Some(ping(1)));
    accepted.sender.send(pong(1)).await.unwrap();
    assert_eq!(dialled.receiver.recv().await, Some(pong(1)));
}

#[tokio::test]
async fn links_go_both_ways_and_calls_are_answered_on_one_connection() {
    let directory = Directory::default();
    let mut a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    works(&a, &mut b, "b:1").await;
    works(&b, &mut a, "a:1").await;
    for number in 1..=100 {
        let answer = a.dialer.forward(&name("b:1"), pb::ForwardRequest::default()).await.unwrap();
        assert_eq!(answer.standing.unwrap().stamp, number);
    }
    let page = a.dialer.list_orphans(&name("b:1"), pb::ListOrphansRequest::default()).await.unwrap();
    assert_eq!(page.next_cursor, "a:1");
}

#[tokio::test]
async fn what_was_sent_before_an_end_lets_go_arrives() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let (dialled, mut accepted) = link(&a, &mut b, "b:1").await;
    for number in 0..5 {
        dialled.sender.send(ping(number)).await.unwrap();
    }
    drop(dialled);
    for number in 0..5 {
        assert_eq!(accepted.receiver.recv().await, Some(ping(number)));
        accepted.sender.send(pong(number)).await.unwrap();
    }
    assert_eq!(accepted.receiver.recv().await, None);
    drop(accepted);

    let (mut dialled, accepted) = link(&a, &mut b, "b:1").await;
    for number in 0..5 {
        accepted.sender.send(pong(number)).await.unwrap();
    }
    drop(accepted.receiver);
    for number in 0..5 {
        assert_eq!(dialled.receiver.recv().await, Some(pong(number)));
    }
    assert_eq!(dialled.receiver.recv().await, None);
    dialled.sender.closed().await;
}

/// Nobody waits for an end that keeps one of its halves.
#[tokio::test]
async fn an_end_that_only_drops_its_receiver_has_let_go() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let (dialled, mut accepted) = link(&a, &mut b, "b:1").await;
    drop(dialled.receiver);
    assert_eq!(accepted.receiver.recv().await, None);
    dialled.sender.closed().await;
    // This end keeps its own for longer than the other one waits.
    accepted.sender.closed().await;
}

#[tokio::test]
async fn a_sender_waits_for_a_receiver_that_does_not_read_and_calls_pass_it() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let (dialled, _accepted) = link(&a, &mut b, "b:1").await;
    let large = big(1 << 20);
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(300), dialled.sender.send(large.clone())).await.is_ok() {
        sent += 1;
        assert!(sent < 64, "nothing holds the sender back");
    }
    let call = a.dialer.forward(&name("b:1"), pb::ForwardRequest::default());
    assert!(tokio::time::timeout(CONNECT, call).await.unwrap().is_ok());
}

/// A batch of about `bytes`.
fn big(bytes: usize) -> pb::LinkRequest {
    let record = pb::Record { app: "x".repeat(1_000), ..Default::default() };
    let service = pb::ServiceRecords { records: vec![record; bytes / 1_000], ..Default::default() };
    let batch = pb::Batch { order: 1, services: vec![service], ..Default::default() };
    pb::LinkRequest { message: Some(pb::link_request::Message::Batch(batch)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_transfer_goes_through() {
    const BATCHES: usize = 128;
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let (dialled, mut accepted) = link(&a, &mut b, "b:1").await;
    let clock = Clock::start();
    let large = big(1 << 20);
    a.shutdown.spawn_detached(async move {
        for _ in 0..BATCHES {
            dialled.sender.send(large.clone()).await.unwrap();
        }
    });
    let mut received = 0;
    while accepted.receiver.recv().await.is_some() {
        received += 1;
    }
    let taken = clock.now().as_millis().max(1);
    println!("{BATCHES} MiB in {taken} ms");
    assert_eq!(received, BATCHES);
    // Unoptimised, next to other tests.
    assert!(taken < 30_000, "{taken} ms");
}

#[tokio::test]
async fn a_message_beyond_the_usual_limit_of_grpc_passes() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let (dialled, mut accepted) = link(&a, &mut b, "b:1").await;
    dialled.sender.send(big(12 << 20)).await.unwrap();
    assert_eq!(accepted.receiver.recv().await, Some(big(12 << 20)));
}

#[tokio::test]
async fn another_secret_and_another_name_are_refused() {
    let directory = Directory::default();
    let b = plain(&directory, "b:1").await;
    let stranger = start(&directory, "a:1", "another secret, and as long as that one", None).await;
    let refused = stranger.dialer.link(&name("b:1")).await;
    assert!(matches!(refused, Err(Unreachable::Denied { reason: handshake::Error::Closed, .. })), "{refused:?}");
    // Who answers with another secret is not believed either.
    assert!(matches!(b.dialer.link(&name("a:1")).await, Err(Unreachable::Denied { .. })));
    let unlisted = plain(&directory, "c:1").await;
    directory.0.lock().remove(&name("c:1"));
    assert!(matches!(unlisted.dialer.link(&name("b:1")).await, Err(Unreachable::Denied { .. })));
    // The address of a member that another one has now.
    directory.put("gone:1", &[b.address]);
    assert!(matches!(unlisted.dialer.link(&name("gone:1")).await, Err(Unreachable::Denied { .. })));
}

#[tokio::test]
async fn who_is_taken_out_of_the_list_is_answered_no_more() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let b = plain(&directory, "b:1").await;
    let to = name("b:1");
    a.dialer.forward(&to, pb::ForwardRequest::default()).await.unwrap();
    directory.0.lock().remove(&name("a:1"));
    let refused = a.dialer.forward(&to, pb::ForwardRequest::default()).await;
    assert!(matches!(refused, Err(Unreachable::Denied { reason: handshake::Error::Expelled, .. })), "{refused:?}");
    assert_eq!(b.node.forwards.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_member_that_comes_back_elsewhere_is_reached_again() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let (mut dialled, accepted) = link(&a, &mut b, "b:1").await;
    b.shutdown.drain();
    drop(accepted);
    assert_eq!(b.shutdown.drained(CONNECT * 3).await, 0);
    assert_eq!(dialled.receiver.recv().await, None);
    let refused = a.dialer.link(&name("b:1")).await;
    assert!(matches!(refused, Err(Unreachable::Refused { .. })), "{refused:?}");
    let old = b.address;
    let mut b = plain(&directory, "b:1").await;
    assert_ne!(old, b.address);
    works(&a, &mut b, "b:1").await;
    // An address that leads nowhere any more costs nothing but a try.
    directory.put("b:1", &[old, b.address]);
    a.dialer.forget(&name("b:1"));
    works(&a, &mut b, "b:1").await;
}

#[tokio::test]
async fn links_end_with_the_drain_and_with_being_forgotten() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let (mut dialled, mut accepted) = link(&a, &mut b, "b:1").await;
    a.dialer.forget(&name("b:1"));
    assert_eq!(accepted.receiver.recv().await, None);
    assert_eq!(dialled.receiver.recv().await, None);
    let (mut dialled, mut accepted) = link(&a, &mut b, "b:1").await;
    b.shutdown.drain();
    assert_eq!(accepted.receiver.recv().await, None);
    assert_eq!(dialled.receiver.recv().await, None);
    assert_eq!(b.shutdown.drained(CONNECT * 5).await, 0);
}

#[tokio::test]
async fn who_is_not_there_is_told_apart() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let nobody = a.dialer.link(&name("nobody:1")).await;
    assert!(matches!(nobody, Err(Unreachable::Unresolved { .. })), "{nobody:?}");
    directory.put("empty:1", &[]);
    assert!(matches!(a.dialer.link(&name("empty:1")).await, Err(Unreachable::Unresolved { .. })));
    // One that takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    directory.put("silent:1", &[address]);
    let timeout = a.dialer.link(&name("silent:1")).await;
    assert!(matches!(timeout, Err(Unreachable::Timeout { .. })), "{timeout:?}");
    drop(silent);
    let refused = a.dialer.link(&name("silent:1")).await;
    assert!(matches!(refused, Err(Unreachable::Refused { .. })), "{refused:?}");
}

#[tokio::test]
async fn many_callers_share_one_connection() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let b = plain(&directory, "b:1").await;
    let counted = TcpListener::bind("127.0.0.1:0").await.unwrap();
    directory.put("b:1", &[counted.local_addr().unwrap()]);
    let (count, to) = (Arc::new(Mutex::new(0)), b.address);
    let counter = count.clone();
    a.shutdown.spawn_detached(async move {
        while let Ok((mut left, _)) = counted.accept().await {
            *counter.lock() += 1;
            let mut right = TcpStream::connect(to).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut left, &mut right).await;
        }
    });
    let calls: Vec<_> = (0..50).map(|_| a.dialer.forward(&name("b:1"), pb::ForwardRequest::default())).collect();
    // One that gives up at once takes nobody else's connection with it.
    drop(tokio::time::timeout(Duration::ZERO, a.dialer.link(&name("b:1"))).await);
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(*count.lock(), 1);
}

/// A machine that was switched off: nothing comes from it any more, not even an end.
#[tokio::test]
async fn a_connection_that_went_silent_ends_at_both_ends() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let switch = TcpListener::bind("127.0.0.1:0").await.unwrap();
    directory.put("b:1", &[switch.local_addr().unwrap()]);
    let (off, to) = (Shutdown::new(), b.address);
    let end = off.clone();
    a.shutdown.spawn_detached(async move {
        let (mut left, _) = switch.accept().await.unwrap();
        let mut right = TcpStream::connect(to).await.unwrap();
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut left, &mut right) => {}
            () = end.draining() => std::future::pending().await,
        }
    });
    let (mut dialled, mut accepted) = link(&a, &mut b, "b:1").await;
    off.drain();
    let both = async { (dialled.receiver.recv().await, accepted.receiver.recv().await) };
    let ended = tokio::time::timeout(Duration::from_secs(10), both).await.unwrap();
    assert_eq!(ended, (None, None));
    directory.put("b:1", &[to]);
    works(&a, &mut b, "b:1").await;
}

#[tokio::test]
async fn strangers_are_closed_without_a_word() {
    let directory = Directory::default();
    let b = plain(&directory, "b:1").await;
    for words in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"GET /nacos HTTP/1.1\r\n\r\n", &[0; 4_096], &[0xff; 64]] {
        let mut stranger = TcpStream::connect(b.address).await.unwrap();
        let _ = stranger.write_all(words).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(CONNECT, stranger.read_to_end(&mut answer)).await.unwrap();
        assert!(read.is_err() || answer.is_empty(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_crowd_of_mute_connections_keeps_no_member_of_another_address_waiting() {
    let directory = Directory::default();
    let a = plain(&directory, "a:1").await;
    let mut b = plain(&directory, "b:1").await;
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(TcpStream::connect(b.address).await.unwrap());
    }
    // From this address some have to go first; the bound of the handshake sees to it.
    let reached = async {
        while a.dialer.forward(&name("b:1"), pb::ForwardRequest::default()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(handshake::BOUND * 2, reached).await.unwrap();
    works(&a, &mut b, "b:1").await;
}

async fn with_tls(directory: &Directory, dir: &TempDir, own: &str, authority: &Authority, host: &str) -> Peer {
    let place = dir.path().join(own.replace(':', "-"));
    std::fs::create_dir_all(&place).unwrap();
    let tls = Tls::load(authority.issue(&place, host)).unwrap();
    start(directory, own, SECRET, Some(Arc::new(tls))).await
}

#[tokio::test]
async fn tls_asks_both_ends_for_a_certificate_of_the_authority_and_the_host() {
    let (directory, dir, ours) = (Directory::default(), TempDir::new().unwrap(), Authority::new());
    let mut a = with_tls(&directory, &dir, "a.example:1", &ours, "a.example").await;
    let mut b = with_tls(&directory, &dir, "b.example:1", &ours, "b.example").await;
    works(&a, &mut b, "b.example:1").await;
    works(&b, &mut a, "a.example:1").await;

    let foreign = with_tls(&directory, &dir, "c.example:1", &Authority::new(), "c.example").await;
    let wrong = with_tls(&directory, &dir, "d.example:1", &ours, "e.example").await;
    let bare = plain(&directory, "f.example:1").await;
    for other in [&foreign, &wrong, &bare] {
        let refused = other.dialer.forward(&name("b.example:1"), pb::ForwardRequest::default()).await;
        assert!(refused.is_err());
    }
    for to in ["c.example:1", "d.example:1", "f.example:1"] {
        let refused = b.dialer.link(&name(to)).await;
        assert!(matches!(refused, Err(Unreachable::Denied { .. })), "{to}: {refused:?}");
    }
    assert_eq!(b.node.forwards.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_bulk_transfer_goes_through_tls() {
    let (directory, dir, ours) = (Directory::default(), TempDir::new().unwrap(), Authority::new());
    let a = with_tls(&directory, &dir, "a.example:1", &ours, "a.example").await;
    let mut b = with_tls(&directory, &dir, "b.example:1", &ours, "b.example").await;
    let (dialled, mut accepted) = link(&a, &mut b, "b.example:1").await;
    a.shutdown.spawn_detached(async move {
        for _ in 0..16 {
            dialled.sender.send(big(1 << 20)).await.unwrap();
        }
    });
    let mut received = 0;
    while accepted.receiver.recv().await.is_some() {
        received += 1;
    }
    assert_eq!(received, 16);
}
