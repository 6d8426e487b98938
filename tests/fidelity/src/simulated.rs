//! Runs of the trial rule whose trials are drawn from recorded ones, by simulation with a fixed seed.

use fastrand::Rng;
use perfval_api::{TrialOutcome, TrialsSpec};
use perfval_testkit::odds::{Odds, odds};
use perfval_verdict::trials::{Finished, NEAR, Ruling, rule};

use crate::published::share;

/// Simulated runs: a probability of 5 % is then known to within 0.7 points.
const RUNS: usize = 4000;

/// Ends of runs whose trials are drawn from these, each as likely as any other. Exact where no distance counts.
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
    tally(|| play(spec, || from[rng.usize(..from.len())].clone()))
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

/// Plays trials until the rule has decided. Returns their number too.
fn play(spec: &TrialsSpec, mut next: impl FnMut() -> Finished) -> (Ruling, usize) {
    let mut trials = Vec::new();
    loop {
        trials.push(next());
        let ruling = rule(spec, &trials);
        if ruling != Ruling::Continue {
            return (ruling, trials.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use perfval_verdict::trials::averages;

    use super::*;
    use crate::whole::deployment::normal;

    /// Correlations of a trial with the next one.
    const ALIKE: [f64; 3] = [0.0, 0.2, 0.4];
    /// Uncertainty of a share of [`RUNS`] runs, two standard deviations.
    const NOISE: f64 = 0.007;
    /// Loss of an average in a trial that stalls (percent). Stalls of a percentile: docs/evidence/simulated.md.
    const STALL: f64 = 40.0;

    /// Runs with this mean distance from the gate, standard deviation between trials (percent), correlation of a trial with the next
    /// one, and share of trials that stall.
    fn simulate(mean: f64, spread: f64, alike: f64, stalls: f64) -> Odds {
        let mut rng = Rng::with_seed(14);
        tally(|| {
            let mut noise: Option<f64> = None;
            play(&TrialsSpec::default(), || {
                let fresh = normal(&mut rng);
                // An autoregressive process of first order: every trial has the same variance.
                let now = noise.map_or(fresh, |before| alike * before + (1.0 - alike * alike).sqrt() * fresh);
                noise = Some(now);
                let stall = if rng.f64() < stalls { STALL } else { 0.0 };
                let margin = mean + spread * now - stall;
                let is_met = margin >= 0.0;
                Finished {
                    outcome: if is_met { TrialOutcome::Pass } else { TrialOutcome::Miss },
                    far: false,
                    margins: vec![margin],
                }
            })
        })
    }

    #[test]
    fn both_errors_hold_with_correlated_noise_and_the_bound_of_the_rule_with_independent_stalls() {
        let bound = f64::from(TrialsSpec::default().error_bound_percent) / 100.0 + NOISE;
        for spread in [1.0, 2.5, 4.3] {
            for alike in ALIKE {
                for (stalls, bound) in [(0.0, 0.02), (1.0 / 3.0, bound)] {
                    let at = |mean| simulate(mean, spread, alike, stalls);
                    let (healthy, degraded) = (at(averages::RESOLUTION), at(-averages::RESOLUTION));
                    assert!(healthy.failed <= bound, "{spread} {alike} {stalls}: {healthy:?}");
                    assert!(degraded.passed <= bound, "{spread} {alike} {stalls}: {degraded:?}");
                }
            }
        }
    }

    #[test]
    fn far_from_the_gate_nothing_takes_longer_than_by_passes_and_misses() {
        let at = |mean, stalls| simulate(mean, 2.5, 0.2, stalls);
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
