//! The end of a fuzz test: after enough inputs, and after `PERFVAL_FUZZ_SECONDS` if set. `PERFVAL_FUZZ_SEED` sets what is tried.

use std::time::{Duration, Instant};

use fastrand::Rng;

/// The seed is fixed, so a change is not blamed for an input that only this run tried. Hunting is done with other seeds and by
/// coverage (`just fuzz-coverage`).
const SEED: u64 = 1;

/// Rounds until at least `least` inputs were tried and the time, if one is set, is up. `round` returns the number of inputs so far.
pub fn rounds(least: u64, mut round: impl FnMut(&mut Rng) -> u64) {
    let seed = setting("PERFVAL_FUZZ_SEED").unwrap_or(SEED);
    let limit = Duration::from_secs(setting("PERFVAL_FUZZ_SECONDS").unwrap_or(0));
    println!("PERFVAL_FUZZ_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let started = Instant::now();
    while round(&mut rng) < least || started.elapsed() < limit {}
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
