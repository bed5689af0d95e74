//! What goes wrong, and when: planned from the seed before a run, carried out during it.

use std::{sync::Arc, time::Duration};

use nomina::cluster::transport::memory::Fate;

use crate::{
    rng::Rng,
    world::{World, member},
};

/// How much a run puts up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// One node at a time, with time to recover, so that a majority stays and clients reach it: nothing may be missed.
    Gentle,
    /// Anything at any time: all must be well again afterwards.
    Wild,
}

#[derive(Debug, Clone)]
pub enum Fault {
    /// Nothing gets from the one to the other.
    Cut(String, String, Option<Duration>),
    Heal(String, String),
    /// These are parted from the rest.
    Part(Vec<String>, Option<Duration>),
    /// A node that hangs: neither members nor clients hear of it, and no connection breaks by itself.
    Freeze(String),
    Thaw(String),
    Delay(String, String, Duration),
    Break(String, String, Fate),
    Kill(String),
    Wipe(String),
    Leave(String),
    Start(String),
    /// From now on a node is, or is not, expected to be behind.
    Shaky(String, bool),
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub faults: Vec<(Duration, Fault)>,
    /// When the last fault is over.
    pub ends: Duration,
}

const SECOND: Duration = Duration::from_secs(1);

/// More than a node takes that leaves in good order.
const LEAVING: Duration = Duration::from_secs(16);

/// Time that a node has to catch up before it is judged as the others are.
const RECOVERY: Duration = Duration::from_secs(20);

pub fn plan(mood: Mood, names: &[String], rng: &mut Rng) -> Plan {
    let mut plan = Plan { faults: Vec::new(), ends: 15 * SECOND };
    match mood {
        Mood::Gentle => (0..rng.between(1, 3)).for_each(|_| gentle(&mut plan, names, rng)),
        Mood::Wild => wild(&mut plan, names, rng),
    }
    plan.faults.sort_by_key(|(at, _)| *at);
    plan
}

fn pair(names: &[String], rng: &mut Rng) -> (String, String) {
    let names = rng.shuffled(names);
    (names[0].clone(), names[1].clone())
}

fn breaks(rng: &mut Rng) -> Option<Duration> {
    rng.percent(50).then(|| rng.millis(500, 15_000))
}

fn gentle(plan: &mut Plan, names: &[String], rng: &mut Rng) {
    let victim = rng.pick(names);
    let begins = plan.ends + rng.millis(0, 3_000);
    let ends = begins + rng.millis(200, 45_000);
    let mut add = |at: Duration, fault: Fault| plan.faults.push((at, fault));
    for _ in 0..rng.below(3) {
        let (a, b) = pair(names, rng);
        let fate = if rng.percent(50) { Fate::Lost } else { Fate::Late(rng.millis(1, 3_000)) };
        add(begins + rng.millis(0, 20_000), Fault::Break(a, b, fate));
    }
    if rng.percent(30) {
        let (a, b) = pair(names, rng);
        add(begins, Fault::Delay(a, b, rng.millis(1, 300)));
    }
    add(begins, Fault::Shaky(victim.clone(), true));
    match rng.below(4) {
        0 => {
            add(begins, Fault::Kill(victim.clone()));
            if rng.percent(40) {
                add(begins, Fault::Wipe(victim.clone()));
            }
            add(ends, Fault::Start(victim.clone()));
        }
        1 => {
            add(begins, Fault::Leave(victim.clone()));
            add(ends + LEAVING, Fault::Start(victim.clone()));
        }
        2 => {
            add(begins, Fault::Freeze(victim.clone()));
            add(ends, Fault::Thaw(victim.clone()));
        }
        _ => {
            // The node dies while it hangs.
            add(begins, Fault::Freeze(victim.clone()));
            add(ends, Fault::Kill(victim.clone()));
            add(ends + SECOND, Fault::Thaw(victim.clone()));
            add(ends + SECOND, Fault::Start(victim.clone()));
        }
    }
    let recovered = ends + LEAVING + RECOVERY;
    add(recovered, Fault::Shaky(victim, false));
    plan.ends = recovered;
}

fn wild(plan: &mut Plan, names: &[String], rng: &mut Rng) {
    let length = rng.between(30, 80);
    for _ in 0..rng.between(3, 14) {
        let begins = plan.ends + rng.millis(0, length * 1_000);
        let ends = begins + rng.millis(50, 40_000);
        let mut add = |at: Duration, fault: Fault| plan.faults.push((at, fault));
        let (a, b) = pair(names, rng);
        match rng.below(10) {
            0 => {
                add(begins, Fault::Cut(a.clone(), b.clone(), breaks(rng)));
                add(ends, Fault::Heal(a, b));
            }
            1 => {
                let breaks = breaks(rng);
                add(begins, Fault::Cut(a.clone(), b.clone(), breaks));
                add(begins, Fault::Cut(b.clone(), a.clone(), breaks));
                add(ends, Fault::Heal(a.clone(), b.clone()));
                add(ends, Fault::Heal(b, a));
            }
            2 => {
                let mut left = rng.shuffled(names);
                left.truncate(usize::try_from(rng.between(1, names.len() as u64 / 2)).unwrap());
                add(begins, Fault::Part(left.clone(), breaks(rng)));
                for one in &left {
                    for other in names.iter().filter(|name| !left.contains(name)) {
                        add(ends, Fault::Heal(one.clone(), other.clone()));
                        add(ends, Fault::Heal(other.clone(), one.clone()));
                    }
                }
            }
            3 => {
                add(begins, Fault::Freeze(a.clone()));
                add(ends, Fault::Thaw(a));
            }
            4 => {
                add(begins, Fault::Delay(a.clone(), b.clone(), rng.millis(1, 4_000)));
                add(ends, Fault::Delay(a, b, Duration::ZERO));
            }
            5 => {
                let fate = if rng.percent(50) { Fate::Lost } else { Fate::Late(rng.millis(1, 5_000)) };
                add(begins, Fault::Break(a, b, fate));
            }
            6 | 7 => {
                add(begins, Fault::Kill(a.clone()));
                if rng.percent(40) {
                    add(begins, Fault::Wipe(a.clone()));
                }
                add(ends, Fault::Start(a));
            }
            8 => {
                let count = usize::try_from(rng.between(2, names.len() as u64)).unwrap();
                for name in rng.shuffled(names).into_iter().take(count) {
                    let at = begins + rng.millis(0, 2_000);
                    add(at, Fault::Kill(name.clone()));
                    if rng.percent(30) {
                        add(at, Fault::Wipe(name.clone()));
                    }
                    add(at + rng.millis(100, 10_000), Fault::Start(name));
                }
            }
            _ => {
                add(begins, Fault::Leave(a.clone()));
                add(ends + 2 * SECOND, Fault::Start(a));
            }
        }
    }
    plan.ends += Duration::from_secs(length) + LEAVING;
}

/// Does to the world what a fault says.
pub fn carry_out(world: &Arc<World>, fault: &Fault) {
    world.log.note(format!("{fault:?}"));
    let network = &world.network;
    match fault {
        Fault::Cut(from, to, breaks) => network.cut(&member(from), &member(to), *breaks),
        Fault::Heal(from, to) => network.heal(&member(from), &member(to)),
        Fault::Part(left, breaks) => {
            let left: Vec<_> = left.iter().map(|name| member(name)).collect();
            network.part(&left, *breaks);
        }
        Fault::Freeze(name) => {
            network.part(&[member(name)], None);
            world.hide(name, true);
        }
        Fault::Thaw(name) => {
            for other in world.names.iter().filter(|other| *other != name) {
                network.heal(&member(name), &member(other));
                network.heal(&member(other), &member(name));
            }
            world.hide(name, false);
        }
        Fault::Delay(from, to, delay) => network.delay(&member(from), &member(to), *delay),
        Fault::Break(from, to, fate) => {
            network.break_links(&member(from), &member(to), *fate);
        }
        Fault::Kill(name) => world.kill(name),
        Fault::Wipe(name) => {
            if world.node(name).is_none() {
                world.wipe(name);
            }
        }
        Fault::Leave(name) => {
            let (world, name) = (world.clone(), name.clone());
            world.clone().tasks.spawn_detached(async move { world.leave(&name).await });
        }
        Fault::Start(name) => {
            if world.node(name).is_none() {
                world.begin(name);
            }
        }
        Fault::Shaky(name, shaky) => world.set_shaky(name, *shaky),
    }
}

/// Ends every fault.
pub fn end_all(world: &Arc<World>) {
    world.log.note("all faults end");
    for a in &world.names {
        for b in world.names.iter().filter(|b| *b != a) {
            world.network.heal(&member(a), &member(b));
            world.network.delay(&member(a), &member(b), Duration::ZERO);
        }
        world.hide(a, false);
        if world.node(a).is_none() {
            world.begin(a);
        }
    }
}
