//! Recorded trials, judged again by the code of today.

use std::collections::BTreeMap;

use perfval_api::{Gate, GateResult, Metric, Statistic, TrialOutcome, TrialsSpec};
use perfval_testkit::odds::Odds;
use perfval_verdict::frame::Outcome;
use perfval_verdict::gate::{self, Share};
use perfval_verdict::trials::Finished;
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::corpus::{LabRun, LabTrial};
use crate::correlation::Sequence;
use crate::fault::Fault;
use crate::forced::OF_NOBODY;
use crate::matrix::Calibration;
use crate::published::far_below;
use crate::setting::Setting;
use crate::simulated;

/// Causes that inform, and explain neither a miss nor an invalid trial.
const INFORMING: [&str; 2] = ["ColdStart", "WorkersNotSampled"];

/// One recorded trial, judged again.
pub struct Seen<'a> {
    /// The run it is of.
    pub run: &'a LabRun,
    /// The trial as it was recorded.
    pub trial: &'a LabTrial,
    /// Outcome today.
    pub outcome: TrialOutcome,
    far: bool,
    margins: Vec<f64>,
    /// Every cause that was given.
    pub causes: Vec<String>,
    /// The same, each with its evidence.
    pub evidence: Vec<String>,
    /// One trial with the plain gate: passed, failed, or nothing to read.
    pub plain: char,
}

impl Seen<'_> {
    /// True if a cause of the trial, or of the operator's result of the run, names the fault.
    pub fn named(&self) -> bool {
        self.words().any(|cause| self.names(cause))
    }

    /// True if the first cause names the fault, and the first worker that its evidence mentions is the one that was struck,
    /// or one that has the same GPU.
    pub fn first_is_right(&self) -> bool {
        let right = self.words().next().is_some_and(|first| self.names(first));
        let victim = self.trial.victim.as_deref();
        right && victim.is_none_or(|victim| self.accused().is_some_and(|accused| self.same_gpu(accused, victim)))
    }

    /// True if a cause accuses a part of the deployment.
    pub fn accuses(&self) -> bool {
        let of_nobody = |cause: &String| OF_NOBODY.iter().any(|known| known.name() == cause);
        self.causes.iter().any(|cause| !of_nobody(cause))
    }

    /// True if a healthy trial missed or was given a cause, or a fault was not named. A crowded frontend is neither: its own table
    /// shows what it cost.
    pub fn is_wrong(&self) -> bool {
        match self.run.fault {
            Fault::Healthy => !self.causes.is_empty() || self.outcome != TrialOutcome::Pass,
            Fault::CrowdedFrontend => false,
            _ => !self.named(),
        }
    }

    fn same_gpu(&self, one: &str, other: &str) -> bool {
        let device = |pod: &str| {
            self.trial
                .before
                .iter()
                .find(|worker| worker.pod == pod)
                .map(|worker| &worker.devices)
                .filter(|held| !held.is_empty())
        };
        one == other || device(one).is_some_and(|held| device(other) == Some(held))
    }

    fn names(&self, cause: &str) -> bool {
        self.run.fault.names().contains(&cause)
    }

    /// Every cause; what precedes a benchmark stands in the run's diagnosis, not in a trial's.
    fn words(&self) -> impl Iterator<Item = &str> {
        let live = self.run.live.iter().flat_map(|live| &live.causes);
        let live = live.filter(|cause| INFORMING.contains(&cause.as_str()));
        self.causes.iter().chain(live).map(String::as_str)
    }

    /// The pod of the worker that the first evidence mentions first.
    fn accused(&self) -> Option<&str> {
        let text = self.evidence.first()?;
        let before = self.trial.before.iter();
        let mentions = before.flat_map(|worker| {
            let names = [Some(worker.pod.as_str()), worker.address.as_deref()];
            let positions = names.into_iter().flatten().filter_map(|name| mention(text, name));
            positions.map(|position| (position, worker.pod.as_str()))
        });
        mentions.min().map(|(_, pod)| pod)
    }

    /// By how much a request took the struck worker longer than its peers (median, percent): what a trial under
    /// least-loaded shows without any judgement.
    pub fn slowdown_percent(&self) -> Option<f64> {
        let victim = self.trial.victim.as_deref()?;
        let address = self.trial.before.iter().find(|worker| worker.pod == victim)?;
        let address = address.address.as_deref()?;
        let seconds = |worker: &WorkerSummary| worker.seconds_per_request?.to_f64();
        let workers = self.trial.workers();
        let (struck, peers): (Vec<_>, Vec<_>) = workers.iter().partition(|worker| worker.address == address);
        let mut peers: Vec<f64> = peers.into_iter().filter_map(seconds).collect();
        peers.sort_by(f64::total_cmp);
        let median = peers.get(peers.len() / 2).filter(|median| **median > 0.0)?;
        Some((seconds(struck.first()?)? / median - 1.0) * 100.0)
    }

    /// A measured number; nothing where the trial has no result.
    pub fn value(&self, metric: Metric, statistic: Statistic) -> Option<f64> {
        value(self.trial, metric, statistic)
    }
}

/// Position at which a text mentions a name as a whole word.
fn mention(text: &str, name: &str) -> Option<usize> {
    let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '-');
    let mut found = text.match_indices(name);
    found
        .find(|(at, _)| !goes_on(&text[at + name.len()..]))
        .map(|(at, _)| at)
}

fn value(trial: &LabTrial, metric: Metric, statistic: Statistic) -> Option<f64> {
    match &trial.record.outcome {
        Outcome::Report(report) => report.value(metric, statistic)?.to_f64(),
        Outcome::Failure(_) => None,
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
            .filter_map(|trial| value(trial, metric, statistic))
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some(Calibration {
        throughput: values(Metric::OutputTokenThroughput, Statistic::Avg)?,
        ttft_p99_ms: values(Metric::TimeToFirstToken, Statistic::P99)?,
    })
}

/// The trials of one setting, under the gates of its healthy ones.
pub struct Group<'a> {
    /// Their common setting.
    pub setting: Setting,
    /// Medians of the healthy trials there.
    pub calibration: Option<Calibration>,
    /// All trials.
    pub trials: Vec<Seen<'a>>,
}

/// Judges all runs, setting by setting.
pub fn groups(runs: &[LabRun]) -> Vec<Group<'_>> {
    let mut settings: BTreeMap<Setting, Vec<&LabRun>> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.trials.is_empty()) {
        settings.entry(Setting::of(run)).or_default().push(run);
    }
    let group = |(setting, runs): (Setting, Vec<_>)| Group::of(setting, &runs);
    settings.into_iter().map(group).collect()
}

impl<'a> Group<'a> {
    fn of(setting: Setting, runs: &[&'a LabRun]) -> Self {
        let calibration = calibrate(runs.iter().copied());
        let gates: Vec<Gate> = calibration
            .and_then(|calibration| serde_json::from_value(calibration.gates()).ok())
            .unwrap_or_default();
        let trials = runs.iter().flat_map(|run| judged(run, &gates)).collect();
        Self {
            setting,
            calibration,
            trials,
        }
    }
}

fn judged<'a>(run: &'a LabRun, gates: &[Gate]) -> Vec<Seen<'a>> {
    let verdicts = run.judge(gates).into_iter().zip(&run.trials);
    verdicts
        .map(|(verdict, trial)| Seen {
            run,
            trial,
            outcome: verdict.outcome,
            far: far_below(&verdict),
            margins: verdict.margins.iter().filter_map(Decimal::to_f64).collect(),
            causes: verdict
                .findings
                .iter()
                .map(|(cause, _)| cause.name().to_owned())
                .collect(),
            evidence: verdict
                .findings
                .iter()
                .map(|(cause, finding)| format!("{}: {}", cause.name(), finding.evidence))
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

/// Ends of runs of the default rule whose trials are drawn from these; invalid ones are repeated.
pub fn drawn(seen: &[&Seen<'_>]) -> Odds {
    let valid = seen.iter().filter(|seen| seen.outcome != TrialOutcome::Invalid);
    let trials: Vec<Finished> = valid
        .map(|seen| Finished {
            outcome: seen.outcome,
            far: seen.far,
            margins: seen.margins.clone(),
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::corpus;
    use crate::setting::Place;

    fn silicon() -> Vec<LabRun> {
        let runs = corpus::read(Path::new("recorded.jsonl.gz")).expect("the recorded runs");
        runs.into_iter().filter(|run| run.place == Place::Silicon).collect()
    }

    fn seen<'a>(run: &'a LabRun, cause: &str, evidence: &str) -> Seen<'a> {
        Seen {
            run,
            trial: &run.trials[0],
            outcome: TrialOutcome::Pass,
            far: false,
            causes: vec![cause.to_owned()],
            evidence: vec![format!("{cause}: {evidence}")],
            plain: 'P',
            margins: Vec::new(),
        }
    }

    #[test]
    fn the_first_cause_must_name_the_worker_that_was_struck() {
        let runs = silicon();
        let slow = runs.iter().find(|run| run.fault == Fault::SlowGpu).expect("a slow GPU");
        assert_eq!(slow.trials[0].victim.as_deref(), Some("worker-1"));
        let right = |cause, evidence| seen(slow, cause, evidence).first_is_right();
        assert!(right(
            "SlowWorker",
            "worker worker-1 serves at 82 % of its peers' speed"
        ));
        assert!(right(
            "SlowWorker",
            "worker 127.0.30.2 serves at 82 %, worker-0 at 100 %"
        ));
        assert!(!right(
            "SlowWorker",
            "worker worker-0 serves at 82 %, worker-1 at 100 %"
        ));
        assert!(!right("SlowWorker", "worker worker-10 serves at 82 %"));
        assert!(!right("SlowWorker", "worker 127.0.30.21 serves at 82 %"));
        assert!(!right(
            "BalancedDegradation",
            "all 2 workers worked alike, worker-1 too"
        ));
        let mut late = seen(slow, "BalancedDegradation", "all 2 workers worked alike");
        late.causes.push("SlowWorker".to_owned());
        assert!(late.named() && !late.first_is_right());
    }

    #[test]
    fn of_two_workers_on_one_gpu_either_is_right() {
        let mut runs = silicon();
        let run = runs
            .iter_mut()
            .find(|run| run.fault == Fault::SlowGpu)
            .expect("a slow GPU");
        let [owner, guest] = [0, 1].map(|at| run.trials[0].before[at].pod.clone());
        run.trials[0].victim = Some(owner);
        let right = |run: &LabRun| seen(run, "SlowWorker", &format!("worker {guest} decodes at 70 %")).first_is_right();
        assert!(!right(run));
        for worker in &mut run.trials[0].before {
            worker.devices = vec!["silicon/GPU-a".to_owned()];
        }
        assert!(right(run));
    }

    #[test]
    fn a_slowdown_follows_from_the_counters_of_the_workers() {
        let runs = silicon();
        // The first that were recorded: a share of their time is all that is known of them.
        let slow = runs
            .iter()
            .filter(|run| run.fault == Fault::SlowGpu && run.recorded.is_none());
        let percent =
            slow.filter_map(|run| Some((run.conditions.share?, seen(run, "", "").slowdown_percent()?.round())));
        let mut percent: Vec<(f64, f64)> = percent.collect();
        percent.sort_by(|a, b| a.0.total_cmp(&b.0));
        // By hand: 1.094, 1.982 (round-robin) and 1.565 times the peer's.
        assert_eq!(percent[..3], [(0.15, 9.0), (0.5, 98.0), (0.8, 57.0)]);
    }
}
