//! What a pass rules out: the same deployment with that change, in a new run.

use perfval_api::{GateOperator, Verdict};
use perfval_verdict::trials::claim;

use super::Wrong;
use super::deployment::{Deployment, Trials};
use super::run::play;

/// Runs of each row.
const RUNS: usize = 400;

/// Runs that pass, and new ones with the change that they rule out.
pub struct Row {
    pub what: &'static str,
    /// Distance of the mean from its gate (percent).
    mean: f64,
    first: usize,
    gates: usize,
    pub noise: f64,
    pub correlation: f64,
}

/// What became of the claims of a row.
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
    for (what, mean, first, gates) in [
        ("throughput, gate at 75 % of it", 100.0 / 3.0, 0, 1),
        ("throughput, gate at 95 % of it", 100.0 / 19.0, 0, 1),
        ("the same with five gates more", 100.0 / 3.0, 0, 6),
        ("request latency, at 80 % of its limit", 20.0, 1, 1),
    ] {
        for noise in [1.0, 2.5, 4.3, 6.0, 10.0] {
            for correlation in [0.0, 0.4] {
                rows.push(Row {
                    what,
                    mean,
                    first,
                    gates,
                    noise,
                    correlation,
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
            stalls: 0.0,
            ..Deployment::new(vec![self.mean; self.gates], self.noise, self.correlation)
        };
        let spec = deployment.spec(false);
        let mut held = Held::default();
        for run in 0..RUNS {
            let seed = u64::try_from(seed * 100_000 + run).unwrap_or(0);
            let mut trials = Trials::new(&deployment, seed);
            let ended = play(&spec, 8, || trials.next_record(Vec::new()));
            if ended.verdict != Verdict::Passed {
                continue;
            }
            let Some(claim) = claim(&spec, &ended.status) else {
                continue;
            };
            held.claimed.push(claim.percent);
            let at = spec
                .gates
                .iter()
                .position(|gate| gate.name == claim.gate.name)
                .expect("its gate");
            let margins = ended.status.state.trials.iter().filter_map(|trial| {
                let text = trial.margins.get(at).or(trial.margin_percent.as_ref())?;
                text.parse::<f64>().ok()
            });
            let margins: Vec<f64> = margins.collect();
            let count = f64::from(u32::try_from(margins.len()).unwrap_or(1));
            let measured = margins.iter().sum::<f64>() / count;
            for (from, kept) in [(measured, &mut held.from_measured), (self.mean, &mut held.from_truth)] {
                let mut changed = deployment.clone();
                changed.means[at] = after(claim.gate.operator, from, claim.percent);
                let mut trials = Trials::new(&changed, seed ^ 0xffff_0000_0000);
                let again = play(&spec, 8, || trials.next_record(Vec::new()));
                kept.add(again.verdict != Verdict::Failed);
            }
        }
        held.claimed.sort_by(f64::total_cmp);
        held
    }
}

/// Distance from the gate after the change.
fn after(operator: GateOperator, distance: f64, percent: f64) -> f64 {
    match operator {
        GateOperator::AtLeast => (100.0 + distance) * (1.0 - percent / 100.0) - 100.0,
        GateOperator::AtMost => 100.0 - (100.0 - distance) * (1.0 + percent / 100.0),
    }
}
