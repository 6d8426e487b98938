//! Change that a pass rules out: the same run would have failed with it. Without enough earlier runs the statement holds for
//! the noisiest deployment that the pages show.

use perfval_api::{
    Gate, GateMode, GateOperator, Metric, PerfValidationSpec, PerfValidationStatus, Statistic, TrialRule,
};

use super::averages::{ALIKE, is_average, mean, number as count, spread};
use super::failing::Decided;
use super::finished::{NEAR, finished};
use super::noise::Noise;
use super::of_a_run::deciding;
use super::wald::straight_misses;

/// Standard deviation between trials (percent) that a claim assumes at least where earlier runs do not show it: 10.3 on the
/// lab, the noisiest healthy deployment that docs/evidence/fidelity.md shows. Two trials know next to nothing of their own.
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

/// A change of one metric that 95 of 100 runs would have failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim<'a> {
    /// The gate that it would have missed.
    pub gate: &'a Gate,
    /// The change against what the run measured (percent): lower for a throughput, higher for a latency.
    pub percent: f64,
    /// The noise was measured in earlier runs. Otherwise it is assumed, and more runs may fail.
    pub is_exact: bool,
}

impl Claim<'_> {
    /// `throughput 40 % lower would have failed in at least 95 of 100 runs`.
    pub fn in_words(&self) -> String {
        let side = match self.gate.operator {
            GateOperator::AtLeast => "lower",
            GateOperator::AtMost => "higher",
        };
        let share = if self.is_exact { "about" } else { "at least" };
        format!(
            "{} {:.0} % {side} would have failed in {share} 95 of 100 runs",
            self.gate.name,
            self.percent.ceil()
        )
    }
}

/// Change that the trials rule out up to now, for the first gate with a known one. `None` if no number is honest:
/// after one trial, with the rule `Single`, and without an enforced gate on an average whose noise is documented. The smallest number of
/// several gates would be that of the gate that was unlucky.
pub fn claim<'a>(spec: &'a PerfValidationSpec, status: &PerfValidationStatus) -> Option<Claim<'a>> {
    let trials = finished(&deciding(&status.state.trials));
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
        let (percent, is_exact) = change(&decided, &margins, status)?;
        Some(Claim {
            gate,
            percent,
            is_exact,
        })
    };
    let mut documented = averages
        .iter()
        .enumerate()
        .filter(|(_, gate)| varies_as_documented(gate));
    documented.find_map(claim)
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

/// The change of what these distances show with which 95 of 100 runs fail (percent), and whether the noise was measured.
fn change(decided: &Decided, margins: &[f64], status: &PerfValidationStatus) -> Option<(f64, bool)> {
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
    let noise = Noise::measured(status, own / 100.0);
    let failing = match &noise {
        Some(noise) => decided.failing_level(noise, margins.len())?,
        None => surely_failing_level(decided, own, margins.len())?,
    };
    let percent = 100.0 * side * (1.0 - failing / measured);
    (percent > 0.0 && percent.ceil() < 100.0).then_some((percent, noise.is_some()))
}

/// Level (of the threshold) at which at least 95 of 100 runs fail by straight misses alone, for the noisiest deployment or for
/// one as noisy as these trials (`own`, percent). The measured level is not exact either.
fn surely_failing_level(decided: &Decided, own: f64, trials: usize) -> Option<f64> {
    let deviations = match decided.rule.rule {
        TrialRule::Single => return None,
        TrialRule::All => BELOW[0],
        TrialRule::Sequential => *BELOW.get(straight_misses(decided.rule.error_bound_percent) - 1)?,
    };
    let of_the_level = LEVEL * (ALIKE / count(trials)).sqrt();
    let away = deviations.hypot(of_the_level) * own.max(NOISIEST) / 100.0;
    let side = decided.side();
    (side * away > -1.0).then(|| 1.0 / (1.0 + side * away))
}
