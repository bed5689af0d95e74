use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};

use super::*;

const BARE: Binding = [0; 32];

fn name(text: &str) -> MemberName {
    MemberName::parse(text).unwrap()
}

fn identity(text: &str, secret: &str) -> Identity {
    Identity::new(name(text), &Secret::new(secret)).unwrap()
}

fn secret(letter: char) -> String {
    letter.to_string().repeat(SHORTEST_SECRET)
}

fn a() -> Identity {
    identity("a:8848", &secret('s'))
}

fn b() -> Identity {
    identity("b:8848", &secret('s'))
}

fn everybody(_: &MemberName) -> bool {
    true
}

/// Both ends at once, each with its stream closed when it is done.
async fn both(dialler: &Identity, to: &str, acceptor: &Identity) -> (Result<(), Error>, Result<MemberName, Error>) {
    let (mut left, mut right) = duplex(4_096);
    let to = name(to);
    tokio::join!(async move { dial(&mut left, dialler, &to, &BARE).await }, async move {
        accept(&mut right, acceptor, &BARE, everybody).await
    },)
}

/// An opening as `a` would send it to `to`.
fn opening(nonce: [u8; NONCE], from: &str, to: &str) -> Vec<u8> {
    let mut frame = MARK.to_vec();
    frame.extend(nonce);
    put_name(&mut frame, &name(from)).unwrap();
    put_name(&mut frame, &name(to)).unwrap();
    frame
}

async fn take<const N: usize>(stream: &mut DuplexStream) -> [u8; N] {
    read(stream).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn members_of_one_cluster_accept_each_other() {
    assert_eq!(both(&a(), "b:8848", &b()).await, (Ok(()), Ok(name("a:8848"))));
}

#[tokio::test(start_paused = true)]
async fn another_secret_is_refused_and_gets_no_proof() {
    let other = identity("a:8848", &secret('t'));
    assert_eq!(both(&other, "b:8848", &b()).await, (Err(Error::Closed), Err(Error::Proof)));
}

#[tokio::test(start_paused = true)]
async fn an_acceptor_without_the_secret_is_refused() {
    let (mut left, mut right) = duplex(4_096);
    let imposter = async move {
        let _: [u8; MARK.len() + OPENING] = take(&mut right).await;
        send(&mut right, &[&MARK[..], &[7; NONCE]].concat()).await.unwrap();
        let proof: [u8; PROOF] = take(&mut right).await;
        // The best that it has.
        send(&mut right, &proof).await.unwrap();
    };
    let own = a();
    let to = name("b:8848");
    let (refused, ()) = tokio::join!(dial(&mut left, &own, &to, &BARE), imposter);
    assert_eq!(refused, Err(Error::Proof));
}

#[tokio::test(start_paused = true)]
async fn an_own_nonce_that_comes_back_is_refused() {
    let (mut left, mut right) = duplex(4_096);
    let mirror = async move {
        let opening: [u8; MARK.len() + OPENING] = take(&mut right).await;
        send(&mut right, &opening[..MARK.len() + NONCE]).await.unwrap();
    };
    let own = a();
    let to = name("b:8848");
    let (refused, ()) = tokio::join!(dial(&mut left, &own, &to, &BARE), mirror);
    assert_eq!(refused, Err(Error::Reflected));
}

/// Who has no secret dials `b`, and lets `a`, which dials it, answer the challenge.
#[tokio::test(start_paused = true)]
async fn a_proof_made_for_somebody_else_is_of_no_use() {
    for claimed in ["a:8848", "c:8848"] {
        let (mut victim, mut bait) = duplex(4_096);
        let (mut forged, mut target) = duplex(4_096);
        let thief = async move {
            let opened: [u8; MARK.len() + OPENING] = take(&mut bait).await;
            let mut dialler = [0; NONCE];
            dialler.copy_from_slice(&opened[MARK.len()..MARK.len() + NONCE]);
            send(&mut forged, &opening(dialler, claimed, "b:8848")).await.unwrap();
            let challenge: [u8; MARK.len() + NONCE] = take(&mut forged).await;
            send(&mut bait, &challenge).await.unwrap();
            let proof: [u8; PROOF] = take(&mut bait).await;
            send(&mut forged, &proof).await.unwrap();
            let mut answer = [0; PROOF];
            assert!(forged.read_exact(&mut answer).await.is_err());
        };
        let (dialler, acceptor, thief_name) = (a(), b(), name("thief:8848"));
        // The victim means to speak to the thief, a former member say.
        let ((), accepted, _) = tokio::join!(
            thief,
            async move { accept(&mut target, &acceptor, &BARE, everybody).await },
            dial(&mut victim, &dialler, &thief_name, &BARE),
        );
        assert_eq!(accepted, Err(Error::Proof), "{claimed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_cannot_be_played_again() {
    let (mut left, mut tap) = duplex(4_096);
    let (mut onward, mut right) = duplex(4_096);
    let recorder = async move {
        let mut record = Vec::new();
        let opened: [u8; MARK.len() + OPENING] = take(&mut tap).await;
        send(&mut onward, &opened).await.unwrap();
        record.extend(opened);
        let challenge: [u8; MARK.len() + NONCE] = take(&mut onward).await;
        send(&mut tap, &challenge).await.unwrap();
        let proof: [u8; PROOF] = take(&mut tap).await;
        send(&mut onward, &proof).await.unwrap();
        record.extend(proof);
        let answer: [u8; PROOF] = take(&mut onward).await;
        send(&mut tap, &answer).await.unwrap();
        record
    };
    let (own, peer, to) = (a(), b(), name("b:8848"));
    let (dialled, accepted, record) = tokio::join!(
        dial(&mut left, &own, &to, &BARE),
        async { accept(&mut right, &peer, &BARE, everybody).await },
        recorder
    );
    assert_eq!((dialled, accepted), (Ok(()), Ok(name("a:8848"))));
    let (mut player, mut again) = duplex(4_096);
    player.write_all(&record).await.unwrap();
    assert_eq!(accept(&mut again, &peer, &BARE, everybody).await, Err(Error::Proof));
}

#[tokio::test(start_paused = true)]
async fn a_proof_holds_within_its_own_tls_session_only() {
    let (mut left, mut right) = duplex(4_096);
    let (own, peer, to) = (a(), b(), name("b:8848"));
    let (_, accepted) = tokio::join!(dial(&mut left, &own, &to, &[1; 32]), async move {
        accept(&mut right, &peer, &[2; 32], everybody).await
    });
    assert_eq!(accepted, Err(Error::Proof));
}

#[tokio::test(start_paused = true)]
async fn names_are_checked_before_anything_is_computed() {
    let (_, unknown) = {
        let (mut left, mut right) = duplex(4_096);
        let (own, peer, to) = (a(), b(), name("b:8848"));
        tokio::join!(dial(&mut left, &own, &to, &BARE), async move {
            accept(&mut right, &peer, &BARE, |name| name.as_str() == "c:8848").await
        })
    };
    assert_eq!(unknown, Err(Error::Unknown { name: name("a:8848") }));
    let (dialled, own) = both(&b(), "b:8848", &b()).await;
    assert_eq!((dialled, own), (Err(Error::Closed), Err(Error::Own)));
    let (dialled, elsewhere) = both(&a(), "c:8848", &b()).await;
    assert_eq!(dialled, Err(Error::Closed));
    assert_eq!(elsewhere, Err(Error::Elsewhere { name: name("a:8848"), wanted: name("c:8848") }));
}

#[tokio::test(start_paused = true)]
async fn whoever_speaks_something_else_is_let_go_at_once() {
    for words in [&b"GET / HTTP/1.1\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"nomina\0\x02", b"\x16\x03\x01"] {
        let (mut left, mut right) = duplex(4_096);
        left.write_all(words).await.unwrap();
        assert_eq!(accept(&mut right, &b(), &BARE, everybody).await, Err(Error::Foreign), "{words:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_of_the_port_is_told_apart() {
    let (left, mut right) = duplex(4_096);
    drop(left);
    assert_eq!(accept(&mut right, &b(), &BARE, everybody).await, Err(Error::Silent));
}

#[tokio::test(start_paused = true)]
async fn a_byte_at_a_time_is_not_waited_for() {
    let (mut left, mut right) = duplex(4_096);
    let slow = async move {
        for byte in opening([1; NONCE], "a:8848", "b:8848") {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if left.write_all(&[byte]).await.is_err() {
                return;
            }
        }
    };
    let peer = b();
    let begun = crate::clock::Clock::start();
    let ((), accepted) = tokio::join!(slow, async {
        let accepted = accept(&mut right, &peer, &BARE, everybody).await;
        drop(right);
        accepted
    });
    assert_eq!(accepted, Err(Error::Timeout));
    assert!(begun.now().as_millis() < 6_000);
}

#[tokio::test(start_paused = true)]
async fn a_dialler_waits_no_longer_either() {
    let (mut left, _right) = duplex(4_096);
    assert_eq!(dial(&mut left, &a(), &name("b:8848"), &BARE).await, Err(Error::Timeout));
}

#[test]
fn a_short_secret_is_none() {
    let short = Identity::new(name("a:1"), &Secret::new("x".repeat(SHORTEST_SECRET - 1)));
    assert_eq!(short.unwrap_err(), ShortSecret { length: SHORTEST_SECRET - 1 });
    assert!(Identity::new(name("a:1"), &Secret::default()).is_err());
}

#[test]
fn the_secret_is_not_shown() {
    assert!(!format!("{:?}", a()).contains("sss"));
}

#[test]
fn the_longest_name_fits() {
    let label = "x".repeat(63);
    let longest = name(&format!("{label}.{label}.{label}.{}:65535", "x".repeat(61)));
    let mut frame = Vec::new();
    put_name(&mut frame, &longest).unwrap();
    assert_eq!(frame.len(), 2 + NAME);
    assert_eq!(take_name(&frame), Ok(longest));
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn garbage_is_never_accepted(words in proptest::collection::vec(any::<u8>(), 0..2_000), marked in any::<bool>()) {
        on_runtime(async {
            let (mut left, mut right) = duplex(8_192);
            if marked {
                left.write_all(&MARK).await.unwrap();
            }
            left.write_all(&words).await.unwrap();
            left.shutdown().await.unwrap();
            prop_assert!(accept(&mut right, &b(), &BARE, everybody).await.is_err());
            Ok(())
        })?;
    }

    #[test]
    fn a_name_field_is_taken_back_as_it_was_put_or_refused(field in proptest::collection::vec(any::<u8>(), 2 + NAME)) {
        if let Ok(name) = take_name(&field) {
            let mut again = Vec::new();
            put_name(&mut again, &name).unwrap();
            prop_assert_eq!(again, field);
        }
    }

    #[test]
    fn one_changed_bit_spoils_it(at in 0..(MARK.len() + OPENING + PROOF), bit in 0..8_u32) {
        on_runtime(async {
            let (mut left, mut tap) = duplex(4_096);
            let (mut onward, mut right) = duplex(4_096);
            let path = async move {
                let mut opened: [u8; MARK.len() + OPENING] = take(&mut tap).await;
                if let Some(byte) = opened.get_mut(at) {
                    *byte ^= 1 << bit;
                }
                send(&mut onward, &opened).await?;
                let challenge: [u8; MARK.len() + NONCE] = read(&mut onward).await?;
                send(&mut tap, &challenge).await?;
                let mut proof: [u8; PROOF] = read(&mut tap).await?;
                if let Some(byte) = at.checked_sub(opened.len()).and_then(|at| proof.get_mut(at)) {
                    *byte ^= 1 << bit;
                }
                send(&mut onward, &proof).await?;
                // What it is answered does not matter any more.
                let _: Result<[u8; PROOF], _> = read(&mut onward).await;
                Ok::<_, Error>(())
            };
            let (own, peer, to) = (a(), b(), name("b:8848"));
            let (dialled, accepted, _) = tokio::join!(
                dial(&mut left, &own, &to, &BARE),
                async move { accept(&mut right, &peer, &BARE, everybody).await },
                path
            );
            prop_assert!(dialled.is_err() && accepted.is_err());
            Ok(())
        })?;
    }
}
