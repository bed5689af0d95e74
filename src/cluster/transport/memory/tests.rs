use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::cluster::transport::Accepted;

const TICK: Duration = Duration::from_millis(10);
const CONNECT: Duration = Duration::from_secs(1);

/// Hands on the links that it is given.
pub(in crate::cluster) struct Node {
    links: mpsc::UnboundedSender<(MemberName, Accepted)>,
    pub(in crate::cluster) forwards: AtomicU64,
}

impl Accept for Node {
    fn link(&self, from: MemberName, link: Accepted) {
        let _ = self.links.send((from, link));
    }

    fn forward(&self, _: MemberName, _: pb::ForwardRequest) -> BoxFuture<'static, pb::ForwardResponse> {
        let stamp = self.forwards.fetch_add(1, Ordering::Relaxed) + 1;
        let standing = pb::Standing { stamp, ..Default::default() };
        Box::pin(async move { pb::ForwardResponse { standing: Some(standing), outcome: None } })
    }

    fn list_orphans(&self, from: MemberName, _: pb::ListOrphansRequest) -> BoxFuture<'static, pb::ListOrphansResponse> {
        Box::pin(async move { pb::ListOrphansResponse { orphans: Vec::new(), next_cursor: from.to_string() } })
    }
}

pub(in crate::cluster) fn name(text: &str) -> MemberName {
    MemberName::parse(text).unwrap()
}

struct Two {
    network: Network,
    clock: Clock,
    a: MemberName,
    b: MemberName,
    dialler: Member,
    acceptor: Arc<Node>,
    links: Links,
}

/// The links that a [`Node`] was given.
pub(in crate::cluster) type Links = mpsc::UnboundedReceiver<(MemberName, Accepted)>;

pub(in crate::cluster) fn node() -> (Arc<Node>, Links) {
    let (links, accepted) = mpsc::unbounded_channel();
    (Arc::new(Node { links, forwards: AtomicU64::new(0) }), accepted)
}

fn two() -> Two {
    let clock = Clock::start();
    let network = Network::new(clock, CONNECT, Shutdown::new());
    let (a, b) = (name("a:1"), name("b:1"));
    let dialler = network.join(&a, node().0);
    let (acceptor, links) = node();
    network.join(&b, acceptor.clone());
    Two { network, clock, a, b, dialler, acceptor, links }
}

pub(in crate::cluster) fn ping(number: u64) -> pb::LinkRequest {
    let ping = pb::Ping { number, standing: None };
    pb::LinkRequest { message: Some(pb::link_request::Message::Ping(ping)) }
}

pub(in crate::cluster) fn pong(number: u64) -> pb::LinkResponse {
    let pong = pb::Pong { number, standing: None };
    pb::LinkResponse { message: Some(pb::link_response::Message::Pong(pong)) }
}

impl Two {
    async fn link(&mut self) -> (Dialled, Accepted) {
        let dialled = self.dialler.link(&self.b).await.unwrap();
        let (from, accepted) = self.links.recv().await.unwrap();
        assert_eq!(from, self.a);
        (dialled, accepted)
    }
}

#[tokio::test(start_paused = true)]
async fn messages_go_both_ways_in_order_and_take_the_delay_of_their_way() {
    let mut two = two();
    let (dialled, mut accepted) = two.link().await;
    two.network.delay(&two.a, &two.b, TICK * 3);
    let sent = two.clock.now();
    for number in 0..100 {
        dialled.sender.send(ping(number)).await.unwrap();
        assert_eq!(accepted.receiver.try_recv().ok(), None);
        if number == 50 {
            break;
        }
        tokio::task::yield_now().await;
    }
    for number in 0..=50 {
        assert_eq!(accepted.receiver.recv().await, Some(ping(number)));
    }
    assert_eq!(two.clock.now().since(sent), TICK * 3);
    let mut dialled = dialled;
    accepted.sender.send(pong(1)).await.unwrap();
    assert_eq!(dialled.receiver.recv().await, Some(pong(1)));
    assert_eq!(two.clock.now().since(sent), TICK * 3);
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_for_a_receiver_that_does_not_read() {
    let mut two = two();
    let (dialled, mut accepted) = two.link().await;
    let mut sent = 0;
    while tokio::time::timeout(CONNECT, dialled.sender.send(ping(sent))).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 200, "{sent}");
    for number in 0..sent {
        assert_eq!(accepted.receiver.recv().await, Some(ping(number)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_an_end_lets_go_arrives() {
    let mut two = two();
    let (dialled, mut accepted) = two.link().await;
    two.network.delay(&two.a, &two.b, TICK);
    dialled.sender.send(ping(1)).await.unwrap();
    dialled.sender.send(ping(2)).await.unwrap();
    drop(dialled);
    tokio::time::sleep(TICK / 2).await;
    accepted.sender.send(pong(1)).await.unwrap();
    assert_eq!(accepted.receiver.recv().await, Some(ping(1)));
    assert_eq!(accepted.receiver.recv().await, Some(ping(2)));
    assert_eq!(accepted.receiver.recv().await, None);
    drop(accepted);
    tokio::time::sleep(TICK).await;
    assert_eq!(two.network.links(), 0);

    // And the other way, where only one half is dropped.
    let (mut dialled, accepted) = two.link().await;
    accepted.sender.send(pong(1)).await.unwrap();
    drop(accepted.receiver);
    assert_eq!(dialled.receiver.recv().await, Some(pong(1)));
    assert_eq!(dialled.receiver.recv().await, None);
    drop(dialled);
    accepted.sender.closed().await;
    tokio::time::sleep(TICK).await;
    assert_eq!(two.network.links(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cut_way_holds_messages_back_and_the_other_stays_open() {
    let mut two = two();
    let (mut dialled, mut accepted) = two.link().await;
    two.network.cut(&two.a, &two.b, None);
    dialled.sender.send(ping(1)).await.unwrap();
    accepted.sender.send(pong(1)).await.unwrap();
    assert_eq!(dialled.receiver.recv().await, Some(pong(1)));
    tokio::time::sleep(CONNECT * 3_600).await;
    assert_eq!(accepted.receiver.try_recv().ok(), None);
    assert!(matches!(two.dialler.link(&two.b).await, Err(Unreachable::Timeout { .. })));
    two.network.heal(&two.a, &two.b);
    assert_eq!(accepted.receiver.recv().await, Some(ping(1)));
}

#[tokio::test(start_paused = true)]
async fn a_link_whose_way_is_cut_for_long_breaks_at_both_ends() {
    let mut two = two();
    let (mut dialled, mut accepted) = two.link().await;
    let begun = two.clock.now();
    two.network.cut(&two.a, &two.b, Some(TICK * 5));
    dialled.sender.send(ping(1)).await.unwrap();
    assert_eq!(dialled.receiver.recv().await, None);
    assert_eq!(accepted.receiver.recv().await, None);
    assert_eq!(two.clock.now().since(begun), TICK * 5);
    assert!(dialled.sender.send(ping(2)).await.is_err() && accepted.sender.send(pong(2)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_short_cut_breaks_nothing() {
    let mut two = two();
    let (dialled, mut accepted) = two.link().await;
    for number in 0..10 {
        two.network.cut_both(&two.a, &two.b, Some(TICK * 2));
        dialled.sender.send(ping(number)).await.unwrap();
        tokio::time::sleep(TICK).await;
        two.network.heal_all();
        assert_eq!(accepted.receiver.recv().await, Some(ping(number)));
    }
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_broken_link_come_in_after_a_newer_one_has_begun() {
    let mut two = two();
    let (mut dialled, mut old) = two.link().await;
    two.network.delay(&two.a, &two.b, TICK);
    dialled.sender.send(ping(1)).await.unwrap();
    assert_eq!(two.network.break_links(&two.a, &two.b, Fate::Late(TICK * 10)), 1);
    assert_eq!(dialled.receiver.recv().await, None);
    let (dialled, mut new) = two.link().await;
    dialled.sender.send(ping(1)).await.unwrap();
    dialled.sender.send(ping(2)).await.unwrap();
    assert_eq!(new.receiver.recv().await, Some(ping(1)));
    assert_eq!(new.receiver.recv().await, Some(ping(2)));
    old.sender.send(pong(1)).await.unwrap();
    assert_eq!(old.receiver.recv().await, Some(ping(1)));
    assert_eq!(old.receiver.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_link_loses_what_is_under_way() {
    let mut two = two();
    let (mut dialled, mut accepted) = two.link().await;
    two.network.delay(&two.a, &two.b, TICK);
    dialled.sender.send(ping(1)).await.unwrap();
    assert_eq!(two.network.break_links(&two.a, &two.b, Fate::Lost), 1);
    assert_eq!(accepted.receiver.recv().await, None);
    assert_eq!(dialled.receiver.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn calls_are_answered() {
    let two = two();
    two.network.delay(&two.a, &two.b, TICK);
    two.network.delay(&two.b, &two.a, TICK * 2);
    let begun = two.clock.now();
    let answer = two.dialler.forward(&two.b, pb::ForwardRequest::default()).await.unwrap();
    assert_eq!(answer.standing.unwrap().stamp, 1);
    // To connect and to ask.
    assert_eq!(two.clock.now().since(begun), TICK * 6);
    let page = two.dialler.list_orphans(&two.b, pb::ListOrphansRequest::default()).await.unwrap();
    assert_eq!(page.next_cursor, "a:1");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_is_held_back_was_carried_out() {
    let two = two();
    let call = two.dialler.forward(&two.b, pb::ForwardRequest::default());
    two.network.delay(&two.a, &two.b, TICK);
    let cut = async {
        tokio::time::sleep(TICK + TICK / 2).await;
        two.network.cut(&two.b, &two.a, Some(TICK * 5));
    };
    let (answer, ()) = tokio::join!(call, cut);
    assert!(matches!(answer, Err(Unreachable::Broken { .. })), "{answer:?}");
    assert_eq!(two.acceptor.forwards.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_arrives_all_the_same() {
    let two = two();
    two.network.delay(&two.a, &two.b, TICK);
    let call = two.dialler.forward(&two.b, pb::ForwardRequest::default());
    assert!(tokio::time::timeout(TICK + TICK / 2, call).await.is_err());
    tokio::time::sleep(TICK).await;
    assert_eq!(two.acceptor.forwards.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn who_has_left_refuses_and_who_was_never_there_is_not_known() {
    let mut two = two();
    let (mut dialled, _accepted) = two.link().await;
    two.network.leave(&two.b);
    assert_eq!(dialled.receiver.recv().await, None);
    assert!(matches!(two.dialler.link(&two.b).await, Err(Unreachable::Refused { .. })));
    let nobody = two.dialler.link(&name("nobody:1")).await;
    assert!(matches!(nobody, Err(Unreachable::Unresolved { .. })));
    let (again, links) = node();
    two.network.join(&two.b, again);
    two.links = links;
    let (dialled, mut accepted) = two.link().await;
    dialled.sender.send(ping(1)).await.unwrap();
    assert_eq!(accepted.receiver.recv().await, Some(ping(1)));
}

#[tokio::test(start_paused = true)]
async fn a_parted_network_parts_the_sides_and_nothing_else() {
    let two = two();
    let c = name("c:1");
    let (third, _links) = node();
    let member = two.network.join(&c, third);
    two.network.part(std::slice::from_ref(&two.a), None);
    assert!(matches!(two.dialler.link(&two.b).await, Err(Unreachable::Timeout { .. })));
    assert!(member.link(&two.b).await.is_ok());
    two.network.heal_all();
    assert!(two.dialler.link(&c).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn jitter_is_added_and_keeps_the_order() {
    let mut two = two();
    let (dialled, mut accepted) = two.link().await;
    let mut next = 10;
    two.network.set_jitter(Box::new(move |_, _| {
        next -= 1;
        TICK * next
    }));
    let begun = two.clock.now();
    for number in 0..3 {
        dialled.sender.send(ping(number)).await.unwrap();
    }
    for number in 0..3 {
        assert_eq!(accepted.receiver.recv().await, Some(ping(number)));
    }
    assert_eq!(two.clock.now().since(begun), TICK * 9);
}
