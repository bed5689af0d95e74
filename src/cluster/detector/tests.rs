use proptest::{collection::vec, prelude::*};

use super::*;

const SUSPECT: u64 = 2_000;
const DOWN: u64 = 5_000;

const fn at(ms: u64) -> Mono {
    Mono::from_millis(ms)
}

fn name(text: &str) -> MemberName {
    MemberName::parse(text).expect(text)
}

fn list(names: &[&str]) -> MemberList {
    MemberList::new(names.iter().map(|text| name(text))).expect("a list")
}

fn stands(peer: &str, from: Standing, to: Standing) -> Change {
    Change::Stands { peer: name(peer), from, to }
}

/// A detector of `a`, driven tick by tick.
struct Scene {
    detector: Detector,
    now: u64,
}

impl Scene {
    fn new(names: &[&str]) -> Self {
        let detector = Detector::new(name("a"), &list(names), &Settings::default(), at(0));
        Self { detector, now: 0 }
    }

    /// Ticks until `end`, with both directions of the links to `alive` showing life at each tick; returns all changes
    /// with their times.
    fn run(&mut self, end: u64, alive: &[&str]) -> Vec<(u64, Change)> {
        let mut changes = Vec::new();
        while self.now < end {
            self.now += 100;
            for peer in alive {
                self.detector.link_acknowledged(&name(peer), at(self.now));
                self.detector.link_heard(&name(peer), at(self.now));
            }
            changes.extend(self.detector.observe(at(self.now)).into_iter().map(|change| (self.now, change)));
        }
        changes
    }

    /// With all of `peers` up and ready.
    fn up(peers: &[&str]) -> Self {
        let mut scene = Self::new(&[&["a"], peers].concat());
        for peer in peers {
            scene.detector.met(&name(peer), Epoch::new(1), at(0));
            scene.detector.reported(&name(peer), Vec::new(), Stage::Ready);
        }
        scene.run(1_000, peers);
        scene
    }

    fn eligible(&self) -> Vec<String> {
        let mut hosts: Vec<_> = self.detector.eligible(Stage::Ready).map(|name| name.host().to_owned()).collect();
        hosts.sort();
        hosts
    }
}

#[test]
fn silence_makes_suspect_then_dead_within_the_bounds() {
    let mut scene = Scene::up(&["b", "c"]);
    assert_eq!(
        scene.run(10_000, &["c"]),
        [
            (1_000 + SUSPECT + 100, stands("b", Standing::Up, Standing::Suspect)),
            (1_000 + DOWN + 100, stands("b", Standing::Suspect, Standing::Dead)),
        ]
    );
    assert_eq!(scene.detector.sees(), [name("c")]);
    assert_eq!(scene.eligible(), ["a", "c"]);
    assert_eq!(scene.detector.silence(&name("b"), at(10_000)), Some(Duration::from_secs(9)));
}

#[test]
fn who_was_never_heard_is_suspect_and_has_a_full_period() {
    let mut scene = Scene::new(&["a", "b"]);
    assert_eq!(scene.detector.standing(&name("b")), Some(Standing::Suspect));
    assert_eq!(
        scene.run(6_000, &[]),
        [(100, Change::Majority(true)), (DOWN + 100, stands("b", Standing::Suspect, Standing::Dead))]
    );
}

#[test]
fn a_link_that_is_broken_one_way_does_not_show_its_member_as_up() {
    for answers in [true, false] {
        let mut scene = Scene::up(&["b"]);
        let mut changes = Vec::new();
        while scene.now < 10_000 {
            let now = at(scene.now + 100);
            if answers {
                scene.detector.link_acknowledged(&name("b"), now);
            } else {
                scene.detector.link_heard(&name("b"), now);
            }
            changes.extend(scene.run(scene.now + 100, &[]).into_iter().map(|(_, change)| change));
        }
        assert_eq!(
            changes,
            [stands("b", Standing::Up, Standing::Suspect), stands("b", Standing::Suspect, Standing::Dead)]
        );
    }
}

#[test]
fn who_is_down_for_us_and_up_for_another_is_unreachable_until_both_agree() {
    let mut scene = Scene::up(&["b", "c"]);
    scene.detector.reported(&name("c"), vec![name("a"), name("b")], Stage::Ready);
    assert_eq!(
        scene.run(7_000, &["c"]).last(),
        Some(&(1_000 + DOWN + 100, stands("b", Standing::Suspect, Standing::Unreachable)))
    );
    assert_eq!(scene.eligible(), ["a", "c"]);
    scene.detector.reported(&name("c"), vec![name("a")], Stage::Ready);
    assert_eq!(scene.run(7_100, &["c"]), [(7_100, stands("b", Standing::Unreachable, Standing::Dead))]);
    scene.detector.reported(&name("c"), vec![name("b")], Stage::Ready);
    assert_eq!(scene.run(7_200, &["c"]), [(7_200, stands("b", Standing::Dead, Standing::Unreachable))]);
    assert_eq!(scene.run(7_300, &["b", "c"]), [(7_300, stands("b", Standing::Unreachable, Standing::Up))]);
}

#[test]
fn what_a_silent_member_reported_counts_no_more() {
    let mut scene = Scene::up(&["b", "c"]);
    scene.detector.reported(&name("c"), vec![name("b")], Stage::Ready);
    scene.detector.reported(&name("b"), vec![name("c")], Stage::Ready);
    let changes: Vec<_> = scene.run(7_000, &[]).into_iter().map(|(_, change)| change).collect();
    assert_eq!(
        changes,
        [
            stands("b", Standing::Up, Standing::Suspect),
            stands("c", Standing::Up, Standing::Suspect),
            Change::Majority(false),
            stands("b", Standing::Suspect, Standing::Dead),
            stands("c", Standing::Suspect, Standing::Dead),
        ]
    );
}

#[test]
fn a_freeze_gives_all_a_fresh_period_and_makes_nobody_better() {
    let mut scene = Scene::up(&["b", "c"]);
    scene.run(8_000, &["b"]);
    assert_eq!(scene.detector.standing(&name("c")), Some(Standing::Dead));
    // Stopped for half a minute, and nothing is heard after it.
    scene.now = 38_000;
    assert_eq!(scene.detector.observe(at(38_000)), [Change::Frozen(Duration::from_millis(29_900))]);
    assert_eq!(
        scene.run(45_000, &[]),
        [
            (38_000 + SUSPECT + 100, stands("b", Standing::Up, Standing::Suspect)),
            (38_000 + SUSPECT + 100, Change::Majority(false)),
            (38_000 + DOWN + 100, stands("b", Standing::Suspect, Standing::Dead)),
        ]
    );
}

#[test]
fn half_of_the_list_is_a_majority_and_less_is_none() {
    for (others, alive, majority) in [
        (&["b"][..], &[][..], true),
        (&["b", "c"], &["b"], true),
        (&["b", "c"], &[], false),
        (&["b", "c", "d"], &["b"], true),
        (&["b", "c", "d", "e"], &["b"], false),
        (&[], &[], true),
    ] {
        let mut scene = Scene::up(others);
        scene.run(10_000, alive);
        assert_eq!(scene.detector.has_majority(), majority, "{others:?} {alive:?}");
    }
}

#[test]
fn a_node_outside_of_its_list_has_no_majority_and_owns_nothing() {
    let mut scene = Scene::up(&["b"]);
    scene.detector.follow(&list(&["b"]), at(1_000));
    assert_eq!(scene.run(1_100, &["b"]), [(1_100, Change::Majority(false))]);
    assert!(!scene.detector.is_listed());
    assert_eq!(scene.eligible(), ["b"]);
}

#[test]
fn a_new_list_keeps_who_stays_and_forgets_who_left() {
    let mut scene = Scene::up(&["b", "c"]);
    scene.detector.follow(&list(&["a", "c", "d"]), at(1_000));
    let standings: Vec<_> = scene.detector.peers().map(|(name, standing)| (name.host().to_owned(), standing)).collect();
    assert_eq!(standings, [("c".to_owned(), Standing::Up), ("d".to_owned(), Standing::Suspect)]);
    assert_eq!(scene.detector.met(&name("b"), Epoch::new(2), at(1_000)), Met::Stranger);
    assert_eq!(scene.run(7_000, &["c"]), [(1_000 + DOWN + 100, stands("d", Standing::Suspect, Standing::Dead))]);
}

#[test]
fn only_who_is_ready_owns_beat_sources() {
    let mut scene = Scene::up(&["b", "c", "d"]);
    scene.detector.reported(&name("c"), Vec::new(), Stage::Joining);
    scene.detector.reported(&name("d"), Vec::new(), Stage::Draining);
    assert_eq!(scene.eligible(), ["a", "b"]);
    assert_eq!(scene.detector.eligible(Stage::Joining).count(), 1);
}

#[test]
fn a_later_epoch_is_a_restart_and_an_earlier_one_is_over() {
    let mut scene = Scene::up(&["b"]);
    scene.detector.reported(&name("b"), vec![name("a")], Stage::Ready);
    let (b, now) = (name("b"), at(1_000));
    assert_eq!(scene.detector.met(&b, Epoch::new(1), now), Met::Same);
    assert_eq!(scene.detector.met(&b, Epoch::new(3), now), Met::Restarted { former: Epoch::new(1) });
    assert_eq!(scene.detector.met(&b, Epoch::new(2), now), Met::Stale { known: Epoch::new(3) });
    assert_eq!(scene.detector.epoch(&b), Some(Epoch::new(3)));
    assert_eq!(scene.detector.stage(&b), Some(Stage::Joining));
    // It was up, and its new links have the same time to show life as any.
    assert_eq!(scene.run(1_000 + SUSPECT, &[]), []);
    assert_eq!(scene.run(4_000, &[]), [(1_000 + SUSPECT + 100, stands("b", Standing::Up, Standing::Suspect))]);
}

#[test]
fn a_dead_member_that_starts_again_is_suspect_until_it_shows_life_both_ways() {
    let mut scene = Scene::up(&["b"]);
    scene.run(10_000, &[]);
    scene.detector.met(&name("b"), Epoch::new(2), at(10_000));
    assert_eq!(scene.run(10_100, &[]), [(10_100, stands("b", Standing::Dead, Standing::Suspect))]);
    assert_eq!(scene.run(10_200, &["b"]), [(10_200, stands("b", Standing::Suspect, Standing::Up))]);
}

#[test]
fn a_goodbye_in_the_tick_of_the_first_meeting_holds() {
    let mut scene = Scene::new(&["a", "b"]);
    scene.detector.met(&name("b"), Epoch::new(1), at(0));
    scene.detector.departed(&name("b"));
    scene.run(100, &[]);
    assert_eq!(scene.detector.standing(&name("b")), Some(Standing::Departed));
}

#[test]
fn a_goodbye_holds_until_a_later_epoch() {
    let mut scene = Scene::up(&["b", "c"]);
    let b = name("b");
    assert_eq!(scene.detector.departed(&b), Some(stands("b", Standing::Up, Standing::Departed)));
    assert_eq!(scene.detector.departed(&b), None);
    assert_eq!(scene.eligible(), ["a", "c"]);
    // Pings that were on their way, and what others say of it, do not bring it back.
    scene.detector.reported(&name("c"), vec![b.clone()], Stage::Ready);
    assert_eq!(scene.run(9_000, &["b", "c"]), []);
    assert_eq!(scene.detector.met(&b, Epoch::new(1), at(9_000)), Met::Same);
    assert_eq!(scene.run(9_100, &["c"]), []);
    scene.detector.met(&b, Epoch::new(2), at(9_100));
    assert_eq!(scene.run(9_200, &["c"]), [(9_200, stands("b", Standing::Departed, Standing::Suspect))]);
}

#[test]
fn refusals_count_until_a_sign_of_life() {
    let mut scene = Scene::new(&["a", "b"]);
    let b = name("b");
    assert_eq!(scene.detector.refused_for(&b, at(0)), None);
    scene.detector.refused(&b, at(100));
    scene.detector.refused(&b, at(900));
    assert_eq!(scene.detector.refused_for(&b, at(3_100)), Some(Duration::from_secs(3)));
    scene.detector.link_heard(&b, at(3_200));
    assert_eq!(scene.detector.refused_for(&b, at(3_300)), None);
}

/// One tick of a random life: how late it is, and which evidence arrives of `b` and of `c`.
type Step = (u64, [bool; 4], bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let late = prop_oneof![20 => Just(0_u64), 1 => 0..30_000_u64];
    let quiet = prop_oneof![3 => Just([false; 4]), 1 => any::<[bool; 4]>()];
    vec((late, quiet, any::<bool>()), 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn evidence_keeps_from_down_and_silence_leads_to_it(steps in steps()) {
        let mut scene = Scene::new(&["a", "b", "c"]);
        let peers = [name("b"), name("c")];
        // Last evidence of each direction, and since when the process has run without a freeze.
        let (mut last, mut thaw) = ([[None::<u64>; 2]; 2], 0);
        for (late, evidence, sees) in steps {
            scene.now += 100 + late;
            for (peer, name) in peers.iter().enumerate() {
                if evidence[2 * peer] {
                    scene.detector.link_acknowledged(name, at(scene.now));
                    last[peer][0] = Some(scene.now);
                }
                if evidence[2 * peer + 1] {
                    scene.detector.link_heard(name, at(scene.now));
                    last[peer][1] = Some(scene.now);
                }
            }
            scene.detector.reported(&peers[1], if sees { vec![peers[0].clone()] } else { Vec::new() }, Stage::Ready);
            if late > SUSPECT / 2 {
                thaw = scene.now;
            }
            scene.detector.observe(at(scene.now));
            for (peer, name) in peers.iter().enumerate() {
                let standing = scene.detector.standing(name).expect("a member");
                let oldest = last[peer].iter().map(|last| last.unwrap_or(0)).min().expect("two");
                let heard_both = last[peer].iter().all(Option::is_some);
                if heard_both && scene.now - oldest <= SUSPECT {
                    prop_assert_eq!(standing, Standing::Up);
                }
                if heard_both && scene.now - oldest <= DOWN && standing.is_down() {
                    // Only who was down before, and was not heard both ways within the shorter bound since, may be so.
                    prop_assert!(scene.now - oldest > SUSPECT);
                }
                if scene.now - oldest.max(thaw) > DOWN {
                    prop_assert!(standing.is_down(), "{standing} after {} ms", scene.now - oldest);
                }
                if scene.now - oldest.max(thaw) > SUSPECT {
                    prop_assert_ne!(standing, Standing::Up);
                }
                if standing == Standing::Unreachable {
                    let c = scene.detector.standing(&peers[1]);
                    prop_assert!(*name == peers[0] && sees && c == Some(Standing::Up));
                }
            }
            let up = 1 + scene.detector.sees().len();
            prop_assert_eq!(scene.detector.has_majority(), 2 * up >= 3);
        }
    }

    #[test]
    fn who_shows_life_in_each_period_is_never_down(gaps in vec((1..49_u64, 1..49_u64), 1..60)) {
        let mut scene = Scene::up(&["b"]);
        let (mut acknowledged, mut heard) = (0, 0);
        for (to_answer, to_hear) in gaps {
            for _ in 0..to_answer.max(to_hear) {
                // Whoever is due shows life; nobody is silent for more than 4.9 s.
                (acknowledged, heard) = (acknowledged + 1, heard + 1);
                if acknowledged >= to_answer { acknowledged = 0; scene.detector.link_acknowledged(&name("b"), at(scene.now)); }
                if heard >= to_hear { heard = 0; scene.detector.link_heard(&name("b"), at(scene.now)); }
                for (_, change) in scene.run(scene.now + 100, &[]) {
                    if let Change::Stands { to, .. } = change {
                        prop_assert!(!to.is_down());
                    }
                }
            }
        }
    }
}
