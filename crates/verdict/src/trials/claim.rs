//! Change that a pass rules out: the same run would have failed with it. Without enough earlier runs the statement names the
//! noise for which it holds.

use perfval_api::{Gate, GateMode, GateOperator, MetricNoise, PerfValidationSpec, PerfValidationStatus, TrialRule};

use super::averages::{ALIKE, is_average, spread};
use super::failing::Decided;
use super::finished::{NEAR, deciding};
use super::noise::Noise;
use super::wald::straight_misses;
use crate::stats::{count, mean};

/// Standard deviation of a trial (percent) that a claim assumes at least where earlier runs do not show it: 10.3 on the lab, 4.3
/// on H200s, and 21 in published windows (docs/evidence/fidelity.md). Two trials know next to nothing of their own.
const NOISIEST: f64 = 10.0;
/// Fewest trials that show the level.
const TRIALS: usize = 2;
/// 95 % of a normal distribution lie above its mean less this many standard deviations.
const NINETY_FIVE: f64 = 1.645;
/// 95 % of a normal distribution lie within this many standard deviations of its mean.
const LEVEL: f64 = 1.96;
/// This many standard deviations below its gate a trial misses with a probability of 0.95 to the power of 1/n, for n from 1:
/// n straight misses then have one of 95 %.
const BELOW: [f64; 6] = [NINETY_FIVE, 1.955, 2.121, 2.234, 2.318, 2.386];

/// A change of one metric that 95 of 100 runs would have failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim<'a> {
    /// The gate that it would have missed.
    pub gate: &'a Gate,
    /// The change against what the run measured (percent): lower for a throughput, higher for a latency.
    pub percent: f64,
    /// Noise up to which it holds (percent); `None` if earlier runs showed the noise.
    pub assumed: Option<f64>,
}

impl Claim<'_> {
    /// `throughput 40 % lower would have failed in at least 95 of 100 runs (noise up to 10 %)`.
    pub fn in_words(&self) -> String {
        let side = match self.gate.operator {
            GateOperator::AtLeast => "lower",
            GateOperator::AtMost => "higher",
        };
        let share = match self.assumed {
            None => "about 95 of 100 runs".to_owned(),
            Some(noise) => format!("at least 95 of 100 runs (noise up to {:.0} %)", noise.floor()),
        };
        let percent = self.percent.ceil();
        format!("{} {percent:.0} % {side} would have failed in {share}", self.gate.name)
    }
}

/// Change that the trials rule out up to now, for the first gate with a known one. `None` if no number is honest:
/// after one trial, with the rule `Single`, and without an enforced gate on an average whose noise is documented. The smallest
/// number of several gates would be that of the gate that was unlucky.
pub fn claim<'a>(spec: &'a PerfValidationSpec, status: &PerfValidationStatus) -> Option<Claim<'a>> {
    if spec.trials.rule == TrialRule::Single {
        return None;
    }
    let trials = deciding(&status.state.trials);
    let is_enforced = |gate: &&Gate| gate.mode == GateMode::Enforce && is_average(gate);
    let averages: Vec<&Gate> = spec.gates.iter().filter(is_enforced).collect();
    let claim = |(at, gate): (usize, &&'a Gate)| {
        let margins = trials.iter().filter_map(|trial| trial.margins.get(at).copied());
        let margins: Vec<f64> = margins.filter(|margin| *margin >= -NEAR).collect();
        let decided = Decided {
            rule: &spec.trials,
            operator: gate.operator,
            averages: averages.len(),
        };
        let earlier = Some(status).filter(|_| gate.metric.noise() == MetricNoise::AsThroughput);
        let (percent, assumed) = change(&decided, &margins, earlier)?;
        Some(Claim { gate, percent, assumed })
    };
    let is_documented = |gate: &Gate| match gate.metric.noise() {
        MetricNoise::AsThroughput | MetricNoise::Bounded => true,
        MetricNoise::OnAverage | MetricNoise::Unknown => false,
    };
    let mut documented = averages.iter().enumerate().filter(|(_, gate)| is_documented(gate));
    documented.find_map(claim)
}

/// The change of what these distances show with which 95 of 100 runs fail (percent), and the noise if it is assumed. `earlier`:
/// the status with the earlier runs that show it.
fn change(decided: &Decided, margins: &[f64], earlier: Option<&PerfValidationStatus>) -> Option<(f64, Option<f64>)> {
    if margins.len() < TRIALS {
        return None;
    }
    // A distance counts from the gate to its good side, so less of a latency is a positive one.
    let side = decided.side();
    let measured = 1.0 + side * mean(margins) / 100.0;
    if measured <= 0.0 {
        return None;
    }
    // The same noise is the same part of any level.
    let own = spread(margins) / measured;
    let trials = margins.len();
    let (failing, assumed) = if let Some(noise) = earlier.and_then(|status| Noise::measured(status, own / 100.0)) {
        (decided.failing_level(&noise, trials)?, None)
    } else {
        let assumed = own.max(NOISIEST);
        (surely_failing_level(decided, assumed, trials)?, Some(assumed))
    };
    let percent = 100.0 * side * (1.0 - failing / measured);
    (percent > 0.0 && percent.ceil() < 100.0).then_some((percent, assumed))
}

/// Level (of the threshold) at which at least 95 of 100 runs fail by straight misses alone, with this noise (percent). The measured
/// level is not exact either.
fn surely_failing_level(decided: &Decided, noise: f64, trials: usize) -> Option<f64> {
    let deviations = match decided.rule.rule {
        TrialRule::All | TrialRule::Single => BELOW[0],
        TrialRule::Sequential => *BELOW.get(straight_misses(decided.rule.error_bound_percent) - 1)?,
    };
    let of_the_level = LEVEL * (ALIKE / count(trials)).sqrt();
    let away = deviations.hypot(of_the_level) * noise / 100.0;
    let side = decided.side();
    (side * away > -1.0).then(|| 1.0 / (1.0 + side * away))
}
