//! Recorded trials, judged again by the code of today.

use perfval_api::{Gate, GateResult, Metric, RouterMode, Statistic, TrialOutcome, TrialsSpec};
use perfval_verdict::frame::Outcome;
use perfval_verdict::gate::{self, Share};
use perfval_verdict::trials::{Finished, Odds};
use rust_decimal::prelude::ToPrimitive as _;

use crate::corpus::{LabRun, LabTrial};
use crate::correlation::Sequence;
use crate::fault::Fault;
use crate::matrix::Calibration;
use crate::published::far_below;
use crate::simulated;

/// Causes that inform, and explain neither a miss nor an invalid trial.
const INFORMING: [&str; 2] = ["ColdStart", "WorkersNotSampled"];

/// One recorded trial, judged again.
pub struct Seen<'a> {
    /// The run it is of.
    pub run: &'a LabRun,
    /// What it says.
    pub outcome: TrialOutcome,
    far: bool,
    margin: Option<f64>,
    /// Every cause that was given.
    pub causes: Vec<String>,
    /// The same, each with its evidence.
    pub evidence: Vec<String>,
    /// One trial with the plain gate: passed, failed, or nothing to read.
    pub plain: char,
}

impl Seen<'_> {
    /// Whether a cause, or what the operator said of the run, names the fault.
    pub fn named(&self) -> bool {
        let names = self.run.fault.names();
        let live = self.run.live.iter().flat_map(|live| &live.causes);
        // What precedes a benchmark stands in the run's diagnosis, not in a trial's.
        let live = live.filter(|cause| INFORMING.contains(&cause.as_str()));
        self.causes
            .iter()
            .chain(live)
            .any(|cause| names.contains(&cause.as_str()))
    }
}

/// Gates from the healthy runs; `None` without any.
pub fn calibrate<'a>(runs: impl Iterator<Item = &'a LabRun>) -> Option<Calibration> {
    let healthy: Vec<&LabTrial> = runs
        .filter(|run| run.fault == Fault::Healthy)
        .flat_map(|run| &run.trials)
        .collect();
    let values = |metric, statistic| {
        let mut values: Vec<f64> = healthy
            .iter()
            .filter_map(|trial| match &trial.record.outcome {
                Outcome::Report(report) => report.value(metric, statistic)?.to_string().parse().ok(),
                Outcome::Failure(_) => None,
            })
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some(Calibration {
        throughput: values(Metric::OutputTokenThroughput, Statistic::Avg)?,
        ttft_p99_ms: values(Metric::TimeToFirstToken, Statistic::P99)?,
    })
}

/// The trials of one router in one place, under the gates of its healthy ones.
pub struct Place<'a> {
    /// Lab or rig.
    pub name: &'static str,
    /// Its router.
    pub router: RouterMode,
    /// What healthy trials measured there.
    pub calibration: Option<Calibration>,
    /// All trials.
    pub trials: Vec<Seen<'a>>,
}

impl<'a> Place<'a> {
    /// Judges the runs of a router.
    pub fn of(name: &'static str, router: RouterMode, runs: &[&'a LabRun]) -> Self {
        let runs: Vec<&'a LabRun> = runs.iter().copied().filter(|run| run.router == router).collect();
        let calibration = calibrate(runs.iter().copied());
        let gates: Vec<Gate> = calibration
            .and_then(|calibration| serde_json::from_value(calibration.gates()).ok())
            .unwrap_or_default();
        let trials = runs.into_iter().flat_map(|run| judged(run, &gates)).collect();
        Self {
            name,
            router,
            calibration,
            trials,
        }
    }
}

impl Place<'_> {
    /// How busy the machine was.
    pub fn load(&self) -> String {
        let loads = || self.trials.iter().map(|seen| seen.run.load);
        let (least, most) = (loads().fold(f64::MAX, f64::min), loads().fold(0.0, f64::max));
        format!("{least:.0} to {most:.0}, on two")
    }
}

fn judged<'a>(run: &'a LabRun, gates: &[Gate]) -> Vec<Seen<'a>> {
    let verdicts = run.judge(gates).into_iter().zip(&run.trials);
    verdicts
        .map(|(verdict, trial)| Seen {
            run,
            outcome: verdict.outcome,
            far: far_below(&verdict),
            margin: verdict.margin.and_then(|margin| margin.to_f64()),
            causes: verdict
                .findings
                .iter()
                .map(|(cause, _)| cause.as_str().to_owned())
                .collect(),
            evidence: verdict
                .findings
                .iter()
                .map(|(cause, finding)| format!("{}: {}", cause.as_str(), finding.evidence))
                .collect(),
            plain: plain(trial, gates, run.gpus),
        })
        .collect()
}

/// One trial with the plain gate.
fn plain(trial: &LabTrial, gates: &[Gate], (gpus, node_gpus): (i64, i64)) -> char {
    let Outcome::Report(report) = &trial.record.outcome else {
        return 'E';
    };
    let met = gates.iter().all(|gate| {
        let judged = gate::judge(
            gate,
            report.value(gate.metric, gate.statistic),
            Share { gpus, node_gpus },
        );
        judged.status.result == GateResult::Met
    });
    if met { 'P' } else { 'F' }
}

/// How a run of the default rule ends if its trials are drawn from these; invalid ones are repeated.
pub fn drawn(seen: &[&Seen<'_>]) -> Odds {
    let valid = seen.iter().filter(|seen| seen.outcome != TrialOutcome::Invalid);
    let trials: Vec<Finished> = valid
        .map(|seen| Finished {
            outcome: seen.outcome,
            far: seen.far,
            margin: seen.margin,
        })
        .collect();
    if trials.is_empty() {
        return Odds {
            inconclusive: 1.0,
            ..Odds::default()
        };
    }
    simulated::drawn(&TrialsSpec::default(), &trials)
}

/// The throughput of healthy deployments, trial by trial.
pub fn sequences<'a>(runs: impl IntoIterator<Item = &'a LabRun>) -> Vec<Sequence> {
    let throughput = |trial: &LabTrial| match &trial.record.outcome {
        Outcome::Report(report) => {
            let value = report.value(Metric::OutputTokenThroughput, Statistic::Avg)?;
            Some(value.to_f64()?.ln())
        }
        Outcome::Failure(_) => None,
    };
    let healthy = runs.into_iter().filter(|run| run.fault == Fault::Healthy);
    healthy
        .map(|run| run.trials.iter().filter_map(throughput).collect())
        .collect()
}
