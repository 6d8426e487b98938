//! Changes that a pass rules out: the same deployment with that change, in a new run.

use chrono::DateTime;
use perfval_api::{EarlierRun, GateOperator, PerfValidationSpec, PerfValidationStatus, Verdict};
use perfval_verdict::history::with_last;
use perfval_verdict::trials::{EARLIER_RUNS, claim};

use super::Wrong;
use super::deployment::{Deployment, Trials};
use super::run::{play, play_after};

/// Runs of each row.
const RUNS: usize = 400;
/// Claims of each row that rests on earlier runs, and new runs for each claim. Fewer, because such a claim plays runs itself.
const AFTER_EARLIER: (usize, u64) = (100, 4);

/// Standard deviations between trials, and between starts of the engines (percent): up to the noise of the lab, and to that of
/// starts on H200s (docs/evidence/fidelity.md).
const NOISES: [(f64, f64); 6] = [(1.0, 0.0), (2.5, 0.0), (4.3, 0.0), (4.3, 6.0), (6.0, 0.0), (10.0, 0.0)];

/// Runs that pass, and new ones with the change that they rule out.
pub struct Row {
    pub what: &'static str,
    /// Distance of the mean from its gate (percent).
    mean: f64,
    first: usize,
    gates: usize,
    pub noise: f64,
    pub starts: f64,
    pub correlation: f64,
    /// Earlier runs that the operator remembers.
    pub earlier: usize,
}

/// Claims of a row, and new runs.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Claimed changes (percent), in order.
    pub claimed: Vec<f64>,
    /// New runs, each with the change counted from what the claiming run measured, that did not fail.
    pub from_measured: Wrong,
    /// The same, counted from the true mean.
    pub from_truth: Wrong,
}

/// Every row.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (what, mean, first, gates, earlier) in [
        ("throughput, gate at 75 % of it", 100.0 / 3.0, 0, 1, 0),
        ("throughput, gate at 95 % of it", 100.0 / 19.0, 0, 1, 0),
        ("the same with five gates more", 100.0 / 3.0, 0, 6, 0),
        ("request latency, at 80 % of its limit", 20.0, 1, 1, 0),
        ("throughput, gate at 75 % of it", 100.0 / 3.0, 0, 1, EARLIER_RUNS),
        ("the same with five gates more", 100.0 / 3.0, 0, 6, EARLIER_RUNS),
        ("request latency, at 80 % of its limit", 20.0, 1, 1, EARLIER_RUNS),
    ] {
        for (noise, starts) in NOISES {
            for correlation in [0.0, 0.4] {
                rows.push(Row {
                    what,
                    mean,
                    first,
                    gates,
                    noise,
                    starts,
                    correlation,
                    earlier,
                });
            }
        }
    }
    rows
}

impl Row {
    pub fn play(&self, seed: usize) -> Held {
        let deployment = Deployment {
            first: self.first,
            starts: self.starts,
            stalls: 0.0,
            ..Deployment::new(vec![self.mean; self.gates], self.noise, self.correlation)
        };
        let spec = deployment.spec(false);
        let mut held = Held::default();
        let (runs, times) = if self.earlier > 0 { AFTER_EARLIER } else { (RUNS, 1) };
        for run in 0..runs {
            let seed = u64::try_from(seed * 100_000 + run).unwrap_or(0);
            let mut earlier: Vec<EarlierRun> = Vec::new();
            let mut next = |number: usize| {
                let mut trials = Trials::new(&deployment, seed + (u64::try_from(number).unwrap_or(0) << 32));
                let ended = play_after(&earlier, &spec, 8, || trials.next_record(Vec::new()));
                earlier = with_last(&ended.status, DateTime::UNIX_EPOCH);
                ended
            };
            for number in 1..=self.earlier {
                next(number);
            }
            let ended = next(0);
            if ended.verdict == Verdict::Passed {
                self.try_again(&deployment, &spec, &ended.status, seed, times, &mut held);
            }
        }
        held.claimed.sort_by(f64::total_cmp);
        held
    }

    /// Plays new runs with the change that a run claims to rule out.
    fn try_again(
        &self,
        deployment: &Deployment,
        spec: &PerfValidationSpec,
        passed: &PerfValidationStatus,
        seed: u64,
        times: u64,
        held: &mut Held,
    ) {
        let Some(claim) = claim(spec, passed) else { return };
        // One whose trials vary more than before assumes the noise.
        if self.earlier > 0 && claim.assumed.is_some() {
            return;
        }
        held.claimed.push(claim.percent);
        let at = spec.gates.iter().position(|gate| gate.name == claim.gate.name);
        let at = at.expect("its gate");
        let margins = passed.state.trials.iter().filter_map(|trial| {
            let text = trial.margins.get(at).or(trial.margin_percent.as_ref())?;
            text.parse::<f64>().ok()
        });
        let margins: Vec<f64> = margins.collect();
        let count = f64::from(u32::try_from(margins.len()).unwrap_or(1));
        let measured = margins.iter().sum::<f64>() / count;
        for (from, kept) in [(measured, &mut held.from_measured), (self.mean, &mut held.from_truth)] {
            let mut changed = deployment.clone();
            changed.means[at] = after(claim.gate.operator, from, claim.percent);
            for time in 0..times {
                let mut trials = Trials::new(&changed, seed ^ (0xffff_0000_0000 + (time << 48)));
                let again = play(spec, 8, || trials.next_record(Vec::new()));
                kept.add(again.verdict != Verdict::Failed);
            }
        }
    }
}

/// Distance from the gate after the change.
fn after(operator: GateOperator, distance: f64, percent: f64) -> f64 {
    match operator {
        GateOperator::AtLeast => (100.0 + distance) * (1.0 - percent / 100.0) - 100.0,
        GateOperator::AtMost => 100.0 - (100.0 - distance) * (1.0 + percent / 100.0),
    }
}
