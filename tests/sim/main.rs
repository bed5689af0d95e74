//! The cluster in one process: paused time, a network with faults, and everything decided by one seed.
//!
//! * `NOMINA_SIM_SEED=7 cargo test --test sim seeds` replays a seed and prints what happened; with
//!   `NOMINA_SIM_TRACE=debug -- --nocapture` also what the nodes say.
//! * `NOMINA_SIM_SEEDS=5000 cargo test --test sim seeds` runs that many; `NOMINA_SIM_FROM=…` says from which on.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

mod clients;
mod directed;
mod faults;
mod front;
mod invariants;
mod log;
mod oracle;
mod rng;
mod run;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds of an ordinary run.
const SEEDS: u64 = 200;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn seeds() {
    if let Some(seed) = setting("NOMINA_SIM_SEED") {
        if let Ok(filter) = std::env::var("NOMINA_SIM_TRACE") {
            tracing_subscriber::fmt().with_env_filter(filter).without_time().with_ansi(false).init();
        }
        let outcome = run::run(seed);
        println!("{}", outcome.log.join("\n"));
        assert_eq!(outcome.broken, None);
        return;
    }
    let first = setting("NOMINA_SIM_FROM").unwrap_or(1);
    let end = first + setting("NOMINA_SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let broken = parking_lot::Mutex::new(std::collections::BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = std::panic::catch_unwind(|| run::run(seed).broken);
                    let outcome = outcome.unwrap_or_else(|_| Some("a panic".to_owned()));
                    if let Some(why) = outcome {
                        println!("seed {seed}: {why}");
                        broken.lock().insert(seed, why);
                    }
                }
            });
        }
    });
    let broken = broken.into_inner();
    if let Some((seed, why)) = broken.iter().next() {
        let count = broken.len();
        panic!("{count} seeds failed, {seed} with: {why}\nNOMINA_SIM_SEED={seed} cargo test --test sim seeds");
    }
}

#[test]
fn a_seed_means_one_run() {
    for seed in [1, 2] {
        let (first, again) = (run::run(seed), run::run(seed));
        let differs = first.log.iter().zip(&again.log).find(|(first, again)| first != again);
        assert_eq!(differs, None);
        assert_eq!((first.log.len(), first.broken), (again.log.len(), again.broken));
    }
}
