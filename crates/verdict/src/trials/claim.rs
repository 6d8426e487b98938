//! Change that a pass rules out: the same run would have failed with it. The statement holds for the noisiest
//! deployment that the pages show.

use perfval_api::{
    Gate, GateMode, GateOperator, Metric, PerfValidationSpec, PerfValidationStatus, Statistic, TrialRule,
};

use super::averages::{ALIKE, is_average, mean, number as count, spread};
use super::finished::NEAR;
use super::finished::finished;
use super::of_a_run::deciding;
use super::wald::straight_misses;

/// Standard deviation between trials (percent) that a claim assumes at least: 10.3 on the lab, the noisiest healthy
/// deployment that docs/evidence/fidelity.md shows. Two trials know next to nothing of their own.
pub const NOISIEST: f64 = 10.0;
/// Fewest trials that show the level.
const TRIALS: usize = 2;
/// 95 % of a normal distribution lie above its mean less this many standard deviations.
const NINETY_FIVE: f64 = 1.645;
/// 95 % of a normal distribution lie within this many standard deviations of its mean.
const LEVEL: f64 = 1.96;
/// This many standard deviations below its gate a trial misses with a probability of 0.95 to the power of 1/n, for n from 1:
/// n straight misses then have one of 95 %.
const BELOW: [f64; 6] = [NINETY_FIVE, 1.955, 2.121, 2.234, 2.318, 2.386];

/// A change of one metric that about 95 of 100 runs would have failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim<'a> {
    /// The gate that it would have missed.
    pub gate: &'a Gate,
    /// The change against what the run measured (percent): lower for a throughput, higher for a latency.
    pub percent: f64,
}

impl Claim<'_> {
    /// `throughput 40 % lower would have failed in about 95 of 100 runs`.
    pub fn in_words(&self) -> String {
        let side = match self.gate.operator {
            GateOperator::AtLeast => "lower",
            GateOperator::AtMost => "higher",
        };
        format!(
            "{} {:.0} % {side} would have failed in about 95 of 100 runs",
            self.gate.name,
            self.percent.ceil()
        )
    }
}

/// Change that the trials rule out up to now, for the first gate with a known one. `None` if no number is honest:
/// after one trial, and without an enforced gate on an average whose noise is documented. The smallest number of
/// several gates would be that of the gate that was unlucky.
pub fn claim<'a>(spec: &'a PerfValidationSpec, status: &PerfValidationStatus) -> Option<Claim<'a>> {
    let deviations = match spec.trials.rule {
        TrialRule::Single => return None,
        TrialRule::All => BELOW[0],
        TrialRule::Sequential => *BELOW.get(straight_misses(spec.trials.error_bound_percent) - 1)?,
    };
    let trials = finished(&deciding(&status.state.trials));
    let averages = spec
        .gates
        .iter()
        .filter(|gate| gate.mode == GateMode::Enforce && is_average(gate));
    let claims = averages.enumerate().filter(|(_, gate)| varies_as_documented(gate));
    let mut claims = claims.filter_map(|(at, gate)| {
        let margins = trials.iter().filter_map(|trial| trial.margins.get(at).copied());
        let noise: Vec<f64> = margins.filter(|margin| *margin >= -NEAR).collect();
        let percent = change(gate.operator, deviations, &noise)?;
        Some(Claim { gate, percent })
    });
    claims.next()
}

/// Under a fixed number of requests in flight, times of whole requests and of their tokens vary as the throughput does. The
/// mean time to the first token varies by 10 to 30 %, and no page bounds it.
fn varies_as_documented(gate: &Gate) -> bool {
    match gate.metric {
        Metric::OutputTokenThroughput | Metric::RequestThroughput => true,
        Metric::OutputTokenThroughputPerUser | Metric::RequestLatency | Metric::InterTokenLatency => {
            gate.statistic == Statistic::Avg
        }
        _ => false,
    }
}

/// The change from what these distances show to a level so far on the bad side of the gate that it fails.
fn change(operator: GateOperator, deviations: f64, margins: &[f64]) -> Option<f64> {
    if margins.len() < TRIALS {
        return None;
    }
    // A distance counts from the gate to its good side, so less of a latency is a positive one.
    let side = match operator {
        GateOperator::AtLeast => 1.0,
        GateOperator::AtMost => -1.0,
    };
    let measured = 1.0 + side * mean(margins) / 100.0;
    // The same noise is the same part of any level: of the measured level, which is not exact either, and of the
    // level that fails.
    let noise = (spread(margins) / measured).max(NOISIEST) / 100.0;
    let of_the_level = LEVEL * (ALIKE / count(margins.len())).sqrt();
    let away = deviations.hypot(of_the_level) * noise;
    if measured <= 0.0 || side * away <= -1.0 {
        return None;
    }
    let failing = 1.0 / (1.0 + side * away);
    let percent = 100.0 * side * (1.0 - failing / measured);
    (percent > 0.0 && percent.ceil() < 100.0).then_some(percent)
}
