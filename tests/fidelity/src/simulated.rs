//! Runs of the trial rule that no recording holds: deployments near a gate on an average, by simulation with a fixed seed.

use std::f64::consts::TAU;

use fastrand::Rng;
use perfval_api::{TrialOutcome, TrialsSpec};
use perfval_testkit::odds::{Odds, odds};
use perfval_verdict::trials::{Finished, NEAR, Ruling, rule};

use crate::published::share;

/// Simulated runs of each cell: a probability of 5 % is then known to within 0.7 points.
const RUNS: usize = 4000;
/// Distance of a stall (percent): 29 % below where the healthy trials are at the gate.
const STALL: f64 = 40.0;

/// A deployment as its trials show it.
#[derive(Clone, Copy, Debug)]
pub struct Deployment {
    /// True mean distance from the gate (percent).
    pub mean: f64,
    /// Standard deviation between trials (percent).
    pub spread: f64,
    /// Correlation of a trial with the next one.
    pub alike: f64,
    /// Share of trials that stall.
    pub stalls: f64,
}

/// How runs of this deployment end.
pub fn simulate(spec: &TrialsSpec, deployment: Deployment) -> Odds {
    let mut rng = Rng::with_seed(14);
    tally(|| {
        let mut noise = None;
        let mut trials = Vec::new();
        ended(spec, &mut trials, || trial(deployment, &mut noise, &mut rng))
    })
}

/// How runs end whose trials are drawn from these, each as likely as any other. Exact where no distance counts.
pub fn drawn(spec: &TrialsSpec, from: &[Finished]) -> Odds {
    let near = |trial: &Finished| trial.margins.iter().any(|margin| margin.abs() <= NEAR);
    if !from.iter().any(near) {
        let part = |far: bool| {
            let counted = |trial: &&Finished| trial.outcome == TrialOutcome::Miss && trial.far == far;
            share(from.iter().filter(counted).count(), from.len())
        };
        return odds(spec, part(false), part(true));
    }
    let mut rng = Rng::with_seed(14);
    tally(|| {
        let mut trials = Vec::new();
        ended(spec, &mut trials, || from[rng.usize(..from.len())].clone())
    })
}

fn tally(mut run: impl FnMut() -> (Ruling, usize)) -> Odds {
    let mut counts = [0_usize; 3];
    let mut length = 0;
    for _ in 0..RUNS {
        let (ruling, trials) = run();
        let kind = match ruling {
            Ruling::Pass => 0,
            Ruling::Fail => 1,
            Ruling::Continue | Ruling::Undecided | Ruling::Unmeasurable => 2,
        };
        counts[kind] += 1;
        length += trials;
    }
    let [passed, failed, inconclusive] = counts.map(|count| share(count, RUNS));
    Odds {
        passed,
        failed,
        inconclusive,
        trials: share(length, RUNS),
    }
}

/// One run: trials until the rule has decided.
fn ended(spec: &TrialsSpec, trials: &mut Vec<Finished>, mut next: impl FnMut() -> Finished) -> (Ruling, usize) {
    loop {
        trials.push(next());
        let ruling = rule(spec, trials);
        if ruling != Ruling::Continue {
            return (ruling, trials.len());
        }
    }
}

fn trial(deployment: Deployment, noise: &mut Option<f64>, rng: &mut Rng) -> Finished {
    let Deployment {
        mean,
        spread,
        alike,
        stalls,
    } = deployment;
    let fresh = normal(rng);
    // An autoregressive process of first order: every trial has the same variance.
    let now = noise.map_or(fresh, |before| alike * before + (1.0 - alike * alike).sqrt() * fresh);
    *noise = Some(now);
    let stall = if rng.f64() < stalls { STALL } else { 0.0 };
    let margin = mean + spread * now - stall;
    Finished {
        outcome: if margin >= 0.0 {
            TrialOutcome::Pass
        } else {
            TrialOutcome::Miss
        },
        far: false,
        margins: vec![margin],
    }
}

/// A normal deviate (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use perfval_verdict::trials::averages;

    use super::*;

    /// Correlations of a trial with the next one.
    const ALIKE: [f64; 3] = [0.0, 0.2, 0.4];
    /// What is known of [`RUNS`] runs to two standard deviations.
    const NOISE: f64 = 0.007;

    #[test]
    fn both_errors_hold_with_correlated_trials_and_stalls() {
        let spec = TrialsSpec::default();
        for spread in [1.0, 2.5, 4.3] {
            for alike in ALIKE {
                for (stalls, bound) in [(0.0, 0.02), (1.0 / 3.0, 0.05 + NOISE)] {
                    let at = |mean| {
                        let deployment = Deployment {
                            mean,
                            spread,
                            alike,
                            stalls,
                        };
                        (simulate(&spec, deployment), deployment)
                    };
                    let (healthy, deployment) = at(averages::RESOLUTION);
                    assert!(healthy.failed <= bound, "{deployment:?}: {healthy:?}");
                    let (degraded, deployment) = at(-averages::RESOLUTION);
                    assert!(degraded.passed <= bound, "{deployment:?}: {degraded:?}");
                }
            }
        }
    }

    #[test]
    fn far_from_the_gate_nothing_takes_longer_than_by_passes_and_misses() {
        let spec = TrialsSpec::default();
        let at = |mean, stalls| {
            simulate(
                &spec,
                Deployment {
                    mean,
                    spread: 2.5,
                    alike: 0.2,
                    stalls,
                },
            )
        };
        let clear = at(30.0, 0.0);
        assert!(clear.passed > 0.999 && clear.trials < 2.01, "{clear:?}");
        let slow = at(-30.0, 0.0);
        assert!(slow.failed > 0.999 && slow.trials < 4.01, "{slow:?}");
        // Stalls that end just below the gate are no noise of an average.
        let stalling = at(30.0, 1.0 / 3.0);
        assert!(
            stalling.passed > 0.95 && stalling.failed < 0.03 && stalling.trials < 3.6,
            "{stalling:?}"
        );
    }
}
