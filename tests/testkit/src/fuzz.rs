//! The time-box of a fuzz test: `PERFVAL_FUZZ_SECONDS` sets how long (default 3), `PERFVAL_FUZZ_SEED` what is tried.

use std::time::{Duration, Instant};

use fastrand::Rng;

/// What is tried unless told otherwise: a change is judged by what it changed, never by luck. Hunting is done with other
/// seeds and by coverage (`just fuzz-coverage`).
const SEED: u64 = 1;

/// Rounds until the time is up and at least `least` inputs were tried; `round` answers how many were, so far.
pub fn rounds(least: u64, mut round: impl FnMut(&mut Rng) -> u64) {
    let seed = setting("PERFVAL_FUZZ_SEED").unwrap_or(SEED);
    let limit = Duration::from_secs(setting("PERFVAL_FUZZ_SECONDS").unwrap_or(3));
    println!("PERFVAL_FUZZ_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let started = Instant::now();
    while round(&mut rng) < least || started.elapsed() < limit {}
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
