//! Limits beyond which a GPU is slow. Healthy GPUs differ, and of many workers one is the slowest by chance. So a limit holds
//! for all workers of a run at once, and allows for what healthy GPUs differ by and for the noise of the run's own trials.

use crate::quantile::normal_beyond;
use crate::stats::count;

/// Standard deviation of the decode speeds of healthy GPUs of one node (percent).
const SPREAD: f64 = 2.0;
/// The same of the difference of two GPUs that have no other peer: 1.4 in 62 healthy trials of two H200s.
const PAIR: f64 = 2.2;
/// Variance of a median of many values, as a multiple of that of their mean.
const MEDIAN: f64 = std::f64::consts::FRAC_PI_2;
/// Part of healthy runs in which a worker may lie beyond its limit.
const BLAMED: f64 = 0.01;
/// The same for the comparison with the fastest worker.
const BLAMED_BY_FASTEST: f64 = 0.001;
/// Standard errors in half a 95 % interval.
const INTERVAL: f64 = 2.0;
/// Standard errors beyond the limit with which a worker is reported in 95 of 100 runs.
const SURE: f64 = 1.645;

/// Loss of speed against the median of the peers (percent) that one of `workers` healthy workers shows in 1 of 100
/// runs. `within` is half the 95 % interval of its own speed.
pub(super) fn against_median(workers: usize, within: f64) -> f64 {
    let peers = count(workers.saturating_sub(1).max(1));
    let healthy = if workers <= 2 {
        PAIR
    } else {
        SPREAD * (1.0 + MEDIAN / peers).sqrt()
    };
    limit(BLAMED / count(workers), healthy, within / INTERVAL)
}

/// Loss of speed against the fastest worker (percent) that one of `workers` healthy workers shows in 1 of 1,000 runs.
pub(super) fn against_fastest(workers: usize, within: f64) -> f64 {
    let pairs = count(workers * workers.saturating_sub(1).max(1));
    let both = std::f64::consts::SQRT_2;
    limit(BLAMED_BY_FASTEST / pairs, both * SPREAD, both * within / INTERVAL)
}

/// Loss of speed (percent) at which a slow one among `workers` workers is reported in 95 of 100 runs.
pub(super) fn surely_named(workers: usize, within: f64) -> f64 {
    against_median(workers, within) + SURE * within / INTERVAL
}

fn limit(tail: f64, healthy: f64, noise: f64) -> f64 {
    normal_beyond(tail) * healthy.hypot(noise)
}
