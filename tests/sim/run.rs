//! One run: a world, its clients and its faults, all from one seed, and what the invariants say.

use std::{sync::Arc, time::Duration};

use nomina::cluster::Settings;

use crate::{
    clients::{self, End, Span},
    faults::{self, Mood},
    invariants::{self, Invariants, Look},
    oracle::{Kept, Oracle},
    rng::Rng,
    world::{Node, World},
};

/// What came of a run.
pub struct Outcome {
    pub log: Vec<String>,
    pub broken: Option<String>,
}

const LOOK: Duration = Duration::from_millis(200);

/// How long the world is looked at after the faults: until every bound is past.
const AFTER: Duration = Duration::from_secs(75);

/// Within which there is a moment at which nothing is under way.
const REST: Duration = Duration::from_secs(3);

/// Runs `seed` on a runtime of its own.
pub fn run(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(live(seed))
}

async fn live(seed: u64) -> Outcome {
    let mut rng = Rng::new(seed);
    let mood = if seed.is_multiple_of(2) { Mood::Gentle } else { Mood::Wild };
    let nodes = if rng.percent(60) { 3 } else { 5 };
    let world = World::empty(nodes, rng.next(), Settings::default());
    world.log.note(format!("seed {seed}, {mood:?}, {nodes} nodes"));
    if rng.percent(70) {
        let (mut rng, most) = (rng.fork(), rng.between(1, 30));
        world.network.set_jitter(Box::new(move |_, _| rng.millis(0, most)));
    }
    let plan = faults::plan(mood, &world.names, &mut rng);
    let oracle = Arc::new(Oracle::default());
    spawn_clients(&world, &oracle, plan.ends, &mut rng);
    for name in world.names.clone() {
        let (world, after) = (world.clone(), rng.millis(0, 500));
        world.clone().tasks.spawn_detached(async move {
            tokio::time::sleep(after).await;
            world.begin(&name);
        });
    }
    let broken = watch(&world, &oracle, mood, &plan).await.err();
    if broken.is_some() {
        world.describe().into_iter().for_each(|line| world.log.note(line));
    }
    Outcome { log: world.log.lines(), broken }
}

fn spawn_clients(world: &Arc<World>, oracle: &Arc<Oracle>, calm: Duration, rng: &mut Rng) {
    let publishers = rng.between(6, 20);
    let last = u64::try_from(calm.as_millis()).unwrap() + 35_000;
    for id in 1..=usize::try_from(publishers).unwrap() {
        let kept = if rng.percent(60) { Kept::Beats } else { Kept::Connection };
        let begins = if rng.percent(60) { rng.millis(0, 10_000) } else { rng.millis(0, last - 15_000) };
        let ends = rng.percent(50).then(|| {
            let least = u64::try_from(begins.as_millis()).unwrap() + 6_000;
            let end = if rng.percent(50) { End::Explicit } else { End::Silent };
            (rng.millis(least, last.max(least)), end)
        });
        clients::spawn(world, oracle, id, kept, Span { begins, ends }, rng.fork());
    }
}

/// Lets the faults happen and looks at the world until the end.
async fn watch(world: &Arc<World>, oracle: &Oracle, mood: Mood, plan: &faults::Plan) -> Result<(), String> {
    let origin = nomina::clock::Mono::ZERO;
    let mut faults = plan.faults.iter().filter(|(at, _)| *at < plan.ends).peekable();
    let mut invariants = Invariants::default();
    let (mut calm, mut settled) = (None, None);
    let mut shown = Vec::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let now = world.clock.now();
        while let Some((_, fault)) = faults.next_if(|(at, _)| origin + *at <= now) {
            faults::carry_out(world, fault);
        }
        if calm.is_none() && now >= origin + plan.ends {
            faults::end_all(world);
            calm = Some(now);
        }
        if mood == Mood::Wild && settled.is_none() {
            oracle.excuse_data();
        }
        if calm.is_some() && settled.is_none() && invariants::is_settled(world, oracle).is_ok() {
            world.log.note("all are of one mind");
            settled = Some(now);
        }
        if let Some(port) = crate::setting("NOMINA_SIM_PORT") {
            // The same again and again tells nothing.
            let told: Vec<_> = world
                .describe()
                .into_iter()
                .filter(|line| line.starts_with(&format!("    p{port} ")) || !line.starts_with(' '))
                .collect();
            if told != shown {
                told.iter().for_each(|line| world.log.note(line));
                shown = told;
            }
        }
        let publishers = oracle.all();
        let look = Look { world, publishers: &publishers, mood, now, calm, settled };
        invariants.check(&look).inspect_err(|broken| world.log.note(broken))?;
        let Some(after) = calm.map(|calm| now.since(calm)).filter(|after| *after > AFTER) else { continue };
        // What was said just now is still under way.
        let waits = |node: &Arc<Node>| world.names.iter().map(|peer| node.backlog(peer)).sum::<usize>();
        let at_rest = world.nodes().iter().all(|node| waits(node) == 0);
        match world.disagreements().into_iter().next() {
            None if at_rest => return Ok(()),
            _ if after < AFTER + REST => {}
            None => return Err("some outbox does not get empty".to_owned()),
            Some(disagreement) => return Err(disagreement),
        }
    }
}
