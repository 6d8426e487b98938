//! Level of an average at which runs fail, by playing them.

use perfval_api::{GateOperator, TrialsSpec};

use super::finished::{Finished, NEAR};
use super::noise::{Noise, Variance};
use super::rule::rule;
use super::wald::Ruling;
use crate::quantile::normal_beyond;
use crate::stats::count;

/// Runs that are played.
const RUNS: usize = 100;
/// Runs of these that need not fail.
const SPARED: usize = 5;
/// Range in which the failing level is searched: the logarithm of level over threshold, positive on the bad side of the gate.
const LEVELS: (f64, f64) = (-0.2, 1.5);
/// Bisections of this range: to 0.2 %.
const STEPS: usize = 10;
/// Their square roots are irrational, and so are the ratios of these: see [`evenly`].
const PRIMES: [u8; DIMENSIONS] = [
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83,
];
/// Numbers that differ from run to run: both variances, the level, and the most trials that a spec may ask for.
const DIMENSIONS: usize = 3 + 20;

/// A gate on an average, and how its runs are decided.
pub(super) struct Decided<'a> {
    pub rule: &'a TrialsSpec,
    pub operator: GateOperator,
    /// Enforced gates on averages, with this one.
    pub averages: usize,
}

impl Decided<'_> {
    /// Level (of the threshold) at which 95 of 100 runs fail. Such a level was measured in `trials` trials. `None` if it is out
    /// of range.
    pub(super) fn failing_level(&self, noise: &Noise, trials: usize) -> Option<f64> {
        let most = usize::try_from(self.rule.max).unwrap_or(1);
        let runs: Vec<Vec<f64>> = (1..=RUNS).map(|run| noise.new_run(run, trials, most)).collect();
        let fail = |level: f64| {
            let mut others = runs.iter().filter(|trials| !self.fails(level, trials));
            others.nth(SPARED).is_none()
        };
        let level = |towards_bad: f64| (-self.side() * towards_bad).exp();
        let (mut low, mut high) = LEVELS;
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            *if fail(level(middle)) { &mut high } else { &mut low } = middle;
        }
        (high < LEVELS.1).then(|| level(high))
    }

    /// A throughput is worse when it is lower, a latency when it is higher.
    pub(super) fn side(&self) -> f64 {
        match self.operator {
            GateOperator::AtLeast => 1.0,
            GateOperator::AtMost => -1.0,
        }
    }

    fn fails(&self, level: f64, trials: &[f64]) -> bool {
        let mut finished = Vec::with_capacity(trials.len());
        for factor in trials {
            let mut margins = vec![2.0 * NEAR; self.averages];
            margins[0] = 100.0 * self.side() * (level * factor - 1.0);
            finished.push(Finished::from_margins(margins));
            match rule(self.rule, &finished) {
                Ruling::Continue => {}
                ruling => return ruling == Ruling::Fail,
            }
        }
        false
    }
}

impl Noise {
    /// Trials of a new run at the level that was measured (factors of it), number `run` of [`RUNS`]. The measured level is not
    /// exact, each run has a level of its own, and the noise is known as well as it was estimated.
    fn new_run(&self, run: usize, measured: usize, most: usize) -> Vec<f64> {
        let mut deviates = PRIMES.iter().map(|prime| -normal_beyond(evenly(run, *prime)));
        let mut deviate = || deviates.next().unwrap_or_default();
        let (of_trials, of_means) = (self.trials.likely(deviate()), self.runs.likely(deviate()));
        let of_runs = (of_means - of_trials * self.one_over_trials).max(0.0);
        let of_the_mean = of_means.max(of_runs + of_trials / count(measured));
        let level = (of_the_mean + of_runs).sqrt() * deviate();
        (0..most).map(|_| 1.0 + level + of_trials.sqrt() * deviate()).collect()
    }
}

impl Variance {
    /// A value that the true one may have: this one by chi-square over its degrees, at this normal deviate (Wilson and Hilferty).
    fn likely(&self, deviate: f64) -> f64 {
        let part = 2.0 / (9.0 * count(self.degrees));
        self.value / (1.0 - part + deviate * part.sqrt()).powi(3)
    }
}

/// A number between 0 and 1, of Kronecker's sequence with the square root of a prime. In 100 runs such numbers lie more evenly than
/// random ones (the claims lay within 1.5 % of those from 3,000 random runs), and the same input has the same answer.
fn evenly(run: usize, prime: u8) -> f64 {
    (count(run) * f64::from(prime).sqrt()).fract()
}
