//! Near a gate on an average, passes and misses prove little: a deployment 1 % below it passes every third trial.
//! Here the distances themselves are weighed, gate by gate, by Wald's test between a mean clearly above the gate and
//! one clearly below.

use perfval_api::{Gate, GateMode, MetricNoise, Statistic, TrialOutcome};
use rust_decimal::Decimal;

use super::finished::{Finished, NEAR};
use super::wald::{self, Ruling, healthy_above, sequential};
use crate::gate::JudgedGate;
use crate::stats::{count, mean, squares};

/// Resolution (percent): the test is between a mean this much above a gate and one this much below. In between any answer
/// may come.
pub const RESOLUTION: f64 = 5.0;
/// Standard deviation between trials of one deployment (percent) that the test assumes at least: 4.3 in 21 trials of one
/// start on H200s, the largest of a start with more than three trials. A few trials that are more alike are so by chance.
pub const USUAL: f64 = 4.3;
/// Trials that follow each other are alike: with correlation 0.4 from one to the next, the variance of a mean is
/// (1 + 0.4) / (1 - 0.4) times that of independent ones.
pub const ALIKE: f64 = 1.4 / 0.6;

/// Distances of the enforced averages from their gates (percent), in the order of the spec; none if another gate makes the
/// trial a miss, or one of these was not measured.
pub(crate) fn margins(gates: &[Gate], judged: &[JudgedGate]) -> Vec<Decimal> {
    let enforced = || {
        let all = gates.iter().zip(judged);
        all.filter(|(gate, _)| gate.mode == GateMode::Enforce)
    };
    if enforced().any(|(gate, judged)| !is_average(gate) && judged.is_missed()) {
        return Vec::new();
    }
    let averages = enforced().filter(|(gate, _)| is_average(gate));
    let margins: Option<Vec<Decimal>> = averages.map(|(_, judged)| judged.margin).collect();
    margins.unwrap_or_default()
}

/// Returns true if noise moves it a little in every trial, rather than much in some.
pub(super) fn is_average(gate: &Gate) -> bool {
    let is_mean = gate.metric.is_rate() || gate.statistic == Statistic::Avg;
    is_mean && gate.metric.noise() != MetricNoise::Unknown
}

/// Number of gates on averages in these trials.
fn gates(finished: &[Finished]) -> usize {
    finished.iter().map(|trial| trial.margins.len()).max().unwrap_or(0)
}

/// Positions of the gates that more trials lie near than clearly meet, and no fewer than clearly miss. Between clear passes a near
/// one is a stall that ended there, and between clear misses it is a miss. A majority of all trials would let twice as
/// many degraded deployments pass at 6 % of noise (1.8 % instead of 0.8 %).
pub(super) fn near(finished: &[Finished]) -> Vec<usize> {
    let is_near = |gate: &usize| {
        let margins = || finished.iter().filter_map(|trial| trial.margins.get(*gate));
        let count = |is: fn(f64) -> bool| margins().filter(|margin| is(**margin)).count();
        let near = count(|margin| margin.abs() <= NEAR);
        near > count(|margin| margin > NEAR) && near >= count(|margin| margin < -NEAR)
    };
    (0..gates(finished)).filter(is_near).collect()
}

/// Distances from one gate that are noise: below the near range is a stall, and more than clearly above is no more than
/// clearly above.
pub(super) fn noise(finished: &[Finished], gate: usize) -> Vec<f64> {
    let margins = finished.iter().filter_map(|trial| trial.margins.get(gate));
    let noise = margins.filter(|margin| **margin >= -NEAR);
    noise.map(|margin| margin.min(NEAR)).collect()
}

/// Weighs the distances from one gate as evidence of its mean. Both errors are bounds of the run: a degraded gate has
/// to pass on its own, but each of several gates could fail a healthy run.
pub(super) fn weigh(finished: &[Finished], gate: usize, error_bound_percent: i32) -> Ruling {
    let distances = noise(finished, gate);
    let evidence = evidence(&distances);
    let enough = healthy_above(error_bound_percent);
    // Stalls that end near the gate look like a low mean: it takes as many trials as straight misses would.
    let by_misses = -wald::evidence(0, distances.len());
    // A deployment at the far end of the near range has trials on both sides of that end: too few to weigh, and all
    // are misses.
    let missed_throughout = || {
        let margins = || finished.iter().filter_map(|trial| trial.margins.get(gate));
        let passes = margins().filter(|margin| **margin >= 0.0).count();
        let valid = finished.iter().filter(|trial| trial.outcome != TrialOutcome::Invalid);
        let clamped: Vec<f64> = margins().map(|margin| margin.clamp(-NEAR, NEAR)).collect();
        sequential(passes, valid.count() - passes, error_bound_percent) == Ruling::Fail && mean(&clamped) <= -RESOLUTION
    };
    if evidence >= enough {
        Ruling::Pass
    } else if (evidence <= -wald::degraded_below(error_bound_percent, gates(finished)) && by_misses >= enough)
        || missed_throughout()
    {
        Ruling::Fail
    } else {
        Ruling::Continue
    }
}

/// The logarithm of how much likelier these distances are around the upper end of the resolution than around the lower.
pub(super) fn evidence(distances: &[f64]) -> f64 {
    2.0 * RESOLUTION * distances.iter().sum::<f64>() / (ALIKE * spread(distances).max(USUAL).powi(2))
}

/// Standard deviation of a trial, from these; 0 for a single one.
pub(super) fn spread(values: &[f64]) -> f64 {
    (squares(values) / count(values.len().saturating_sub(1)).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(margins: &[f64]) -> Vec<Finished> {
        let trial = |margin: &f64| Finished::from_margins(vec![*margin]);
        margins.iter().map(trial).collect()
    }

    #[test]
    fn distances_are_weighed_by_how_much_they_vary() {
        for (margins, ruling) in [
            (&[10.0][..], Ruling::Continue),
            (&[10.0, 10.0], Ruling::Pass),
            // A distance beyond "clearly above" adds no more evidence.
            (&[40.0, -5.0], Ruling::Continue),
            (&[3.0, 3.0, 3.0, 3.0], Ruling::Continue),
            (&[3.0, 3.0, 3.0, 3.0, 3.0], Ruling::Pass),
            (&[9.0, -3.0, 9.0, -3.0], Ruling::Continue),
            (&[-9.0, -9.0, -9.0], Ruling::Continue),
            (&[-4.0, -4.0, -4.0, -4.0], Ruling::Fail),
            (&[-3.0, -3.0, -3.0, -3.0], Ruling::Continue),
            // Every trial missed, one of them by far.
            (&[-4.0, -4.0, -4.0, -30.0], Ruling::Fail),
            (&[0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5], Ruling::Continue),
        ] {
            assert_eq!(weigh(&trials(margins), 0, 5), ruling, "{margins:?}");
        }
    }

    /// Misses near the gate among clear ones are misses too.
    #[test]
    fn a_gate_that_most_trials_miss_clearly_is_not_near() {
        assert_eq!(near(&trials(&[-3.0, -4.0, -30.0, -30.0])), [0]);
        assert!(near(&trials(&[-3.0, -30.0, -30.0, -30.0])).is_empty());
        assert_eq!(near(&trials(&[3.0, -4.0, 30.0, -30.0])), [0]);
    }

    /// Six healthy gates have six chances to fail a run.
    #[test]
    fn one_of_six_gates_fails_a_run_on_more_evidence_than_the_only_one() {
        let mut trials = trials(&[-4.0; 4]);
        assert_eq!(weigh(&trials, 0, 5), Ruling::Fail);
        for trial in &mut trials {
            trial.margins.extend([20.0; 5]);
        }
        assert_eq!(weigh(&trials, 0, 5), Ruling::Continue);
        assert_eq!(near(&trials), [0]);
    }
}
