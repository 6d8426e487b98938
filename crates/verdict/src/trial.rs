//! One trial, judged in a fixed order: measured? errors? valid? gates (design: verdict).

mod baseline;
mod evidence;
mod reported;
mod shown;

use perfval_api::{
    Finding, Gate, GateStatus, Metric, MetricSource, Metrics, PerfValidationSpec, TrialOutcome, WorkerLoad, WorkerLoss,
};
use rust_decimal::Decimal;

use self::evidence::lost;
pub use self::evidence::{Evidence, cpu_shortage};
use self::reported::ReportedTrial;
use self::shown::{headline, shown};
use crate::aiperf::{ErrorKind, Report};
use crate::diagnosis::cause::{self, Cause, Explained};
use crate::diagnosis::gpus;
use crate::diagnosis::peers::{self, Worker, named};
use crate::diagnosis::roofline::Reached;
use crate::diagnosis::speed::{self, Compared, SpeedSpread};
use crate::diagnosis::trial::{frontend_lost, is_connection, most_frequent};
use crate::frame::{Failure, Outcome, Part, TrialRecord};
use crate::gate::{self, JudgedGate, Share};

/// A judged trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedTrial {
    /// Outcome of the trial.
    pub outcome: TrialOutcome,
    /// Causes that explain it, the most telling first.
    pub findings: Vec<(Cause, Finding)>,
    /// Every gate.
    pub gates: Vec<GateStatus>,
    /// Headline numbers.
    pub metrics: Metrics,
    /// Requests that failed or came back short, and all requests.
    pub requests: Option<(i64, i64)>,
    /// Version of AIPerf that measured.
    pub aiperf_version: Option<String>,
    /// Commit of the model, as AIPerf loaded it.
    pub commit: Option<String>,
    /// Work of each worker.
    pub workers: Vec<WorkerLoad>,
    /// True if it is a miss that no repetition can change.
    pub far: bool,
    /// Distances of the enforced averages from their gates (percent), in the order of the spec; empty where anything else
    /// made it a miss.
    pub margins: Vec<Decimal>,
    /// Loss of a worker.
    pub worker_loss: Option<WorkerLoss>,
    /// Parts that could not be observed: no cause of the trial, but a user should see them.
    pub unseen: Vec<Explained>,
    /// UUIDs of the GPUs whose workers decoded slower than their peers.
    pub slow_gpus: Vec<String>,
    /// Decode speed of each worker next to its peers, where the engines report it.
    pub compared: Vec<Compared>,
    /// Explanation of a miss that took its place for jitter, should no trial of the run pass.
    pub instead_of_jitter: Option<Explained>,
    /// Workers by which a gate on a baseline was missed.
    pub below_baseline: Option<String>,
    /// Use of the node's CPUs, where they were full.
    pub cpu_shortage: Option<String>,
}

impl JudgedTrial {
    /// Creates a trial from all its causes in any order; the most telling are shown.
    fn new(outcome: TrialOutcome, mut explained: Vec<Explained>) -> Self {
        explained.sort_by_key(|(cause, _)| *cause);
        Self {
            outcome,
            far: explained.iter().any(|(cause, _)| *cause == Cause::FarBelowGate),
            worker_loss: explained.iter().filter_map(|(cause, _)| cause.worker_loss()).max(),
            findings: explained
                .into_iter()
                .take(cause::SHOWN)
                .map(|(cause, text)| (cause, cause.finding(text)))
                .collect(),
            ..Self::default()
        }
    }

    /// Adds the telemetry of the GPUs.
    fn with_gpus(mut self, evidence: Evidence<'_>, each: i64) -> Self {
        let (record, workers, devices) = (evidence.record.gpus.as_ref(), evidence.after, evidence.devices);
        let found = gpus::found(record, workers, devices, each);
        // Its own GPU explains the only worker: nothing is shared by all (two H100s, one of them used by another process).
        if let ([_], [_, ..]) = (workers, found.as_slice()) {
            self.drop_cause(Cause::BalancedDegradation);
        }
        for (cause, text) in found {
            self.add(cause, text);
        }
        self.put_in_order();
        self.compared = speed::compared(&named(&evidence.record.workers, workers), devices);
        self.slow_gpus = speed::slow_gpus(&self.compared);
        let measured = matches!(evidence.record.outcome, Outcome::Report(_));
        // Without samples of a worker the time under load is unknown.
        let is_sampled = evidence.record.workers.iter().any(|worker| worker.samples > 0);
        let unread = record
            .filter(|_| measured)
            .and_then(|record| gpus::unread(record, workers, devices, each, is_sampled));
        self.unseen.extend(unread.map(|why| (Cause::GPUsNotSampled, why)));
        self
    }

    /// Adds a cause with its evidence.
    pub(crate) fn add(&mut self, cause: Cause, evidence: impl Into<String>) {
        self.findings.push((cause, cause.finding(evidence)));
    }

    /// Adds to the evidence of a cause; returns whether it is there.
    pub(crate) fn append(&mut self, cause: Cause, text: &str) -> bool {
        let Some((_, finding)) = self.findings.iter_mut().find(|(known, _)| *known == cause) else {
            return false;
        };
        *finding = cause.finding(format!("{}; {text}", finding.evidence));
        true
    }

    /// Returns true if this cause explains the trial.
    pub(crate) fn has(&self, cause: Cause) -> bool {
        self.findings.iter().any(|(known, _)| *known == cause)
    }

    /// Removes a cause, also in the place of jitter; returns whether it explained the trial.
    pub(crate) fn drop_cause(&mut self, cause: Cause) -> bool {
        let before = self.findings.len();
        self.findings.retain(|(known, _)| *known != cause);
        self.instead_of_jitter.take_if(|(known, _)| *known == cause);
        self.findings.len() < before
    }

    /// Puts the most telling causes first, and drops those beyond the number that is shown. What explains the outcome stays.
    pub(crate) fn put_in_order(&mut self) {
        let missed = self.outcome == TrialOutcome::Miss;
        let explains = |cause: Cause| cause.explains_an_outcome() || missed && cause == Cause::FrontendBound;
        self.findings.sort_by_key(|(cause, _)| (!explains(*cause), *cause));
        self.findings.truncate(cause::SHOWN);
        self.findings.sort_by_key(|(cause, _)| *cause);
    }

    /// Judges the gates on a worker's own past, once its speed is known (percent of its earlier runs, at most); returns
    /// whether an enforced one is missed.
    pub(crate) fn judge_own_past(&mut self, spec: &PerfValidationSpec, percent: Decimal) -> bool {
        let mut missed = false;
        for gate in spec.gates.iter().filter(|gate| gate.metric == Metric::OwnPastPercent) {
            let judged = gate::judge(gate, Some(percent), Share::UNSCALED);
            missed |= judged.is_missed();
            if let Some(known) = self.gates.iter_mut().find(|known| known.name == gate.name) {
                *known = judged.status;
            }
        }
        if missed {
            self.outcome = TrialOutcome::Miss;
            self.margins.clear();
        }
        missed
    }

    /// A trial that left nothing to read. `changed`: what happened to the workers meanwhile counts all the same.
    pub fn unmeasured(cause: Cause, evidence: impl Into<String>, changed: Option<Explained>) -> Self {
        let explained = [(cause, evidence.into())].into_iter().chain(changed);
        Self::new(TrialOutcome::Invalid, explained.collect())
    }
}

/// Judges a trial.
pub fn judge(evidence: Evidence<'_>, spec: &PerfValidationSpec) -> JudgedTrial {
    JudgedTrial {
        cpu_shortage: cpu_shortage(evidence.record),
        ..judge_load(evidence, spec).with_gpus(evidence, spec.gpus_per_worker())
    }
}

fn judge_load(evidence: Evidence<'_>, spec: &PerfValidationSpec) -> JudgedTrial {
    let workers = named(&evidence.record.workers, evidence.after);
    let lost = || lost(evidence, &workers);
    match &evidence.record.outcome {
        Outcome::Report(report) => judge_report(evidence, report, spec),
        Outcome::Failure(failure @ Failure::AllFailed { failed, errors }) => {
            let text = failure_text(failure);
            let gpu = |worker: &Worker<'_>| evidence.gpu_of(worker);
            let stalled = || peers::stalled(&workers, spec.dynamo().router_mode, gpu);
            let cause = lost().or_else(|| Some((Cause::WorkerStall, stalled()?)));
            if cause.is_none() && is_cut_off(evidence.record, errors) {
                let why = format!("the network keeps the load generator from frontend and workers: {text}");
                return JudgedTrial::unmeasured(Cause::BenchmarkFailed, why, None);
            }
            // As with a report: errors of workers that had no CPU show nothing.
            let outcome = match cause {
                Some((Cause::NodeCPUPressure, _)) => TrialOutcome::Invalid,
                _ => TrialOutcome::Miss,
            };
            let explained = [(Cause::RequestErrors, text)].into_iter().chain(cause);
            let mut verdict = JudgedTrial::new(outcome, explained.chain(frontend_lost(errors)).collect());
            verdict.requests = Some((*failed, *failed));
            verdict.gates = unmeasured_gates(evidence, spec);
            verdict.metrics.request_error_percent = Some("100".to_owned());
            verdict
        }
        Outcome::Failure(failure @ Failure::TimedOut { .. }) => judge_timeout(evidence, failure_text(failure), spec),
        Outcome::Failure(failure @ Failure::NotExecutable { .. }) => {
            JudgedTrial::unmeasured(Cause::AIPerfMissing, failure_text(failure), lost())
        }
        Outcome::Failure(failure) => JudgedTrial::unmeasured(Cause::BenchmarkFailed, failure_text(failure), lost()),
    }
}

/// Returns true if the network of the load generator is to blame: it reads the workers' metrics itself, and read none.
fn is_cut_off(record: &TrialRecord, errors: &[ErrorKind]) -> bool {
    let is_unsampled = record.workers.iter().all(|worker| worker.samples == 0) && !record.scrape_errors.is_empty();
    let is_known = !record.abridged.contains(&Part::Workers);
    is_unsampled && is_known && !errors.is_empty() && errors.iter().all(is_connection)
}

fn unmeasured_gates(evidence: Evidence<'_>, spec: &PerfValidationSpec) -> Vec<GateStatus> {
    let judged = |gate| gate::judge(gate, None, evidence.share).status;
    spec.gates.iter().map(judged).collect()
}

/// Judges a trial that ran into its limit. It left no report, but its workers were sampled: a stalled worker held it
/// up.
fn judge_timeout(evidence: Evidence<'_>, timeout: String, spec: &PerfValidationSpec) -> JudgedTrial {
    let workers = named(&evidence.record.workers, evidence.after);
    let lost = lost(evidence, &workers);
    let gpu = |worker: &Worker<'_>| evidence.gpu_of(worker);
    let stalled = || {
        let stalled =
            peers::stalled(&workers, spec.dynamo().router_mode, gpu).or_else(|| peers::held_up(&workers, gpu));
        stalled.map(|text| (Cause::WorkerStall, text))
    };
    let (outcome, why) = match lost.is_none().then(stalled).flatten() {
        Some(stalled) => (TrialOutcome::Miss, Some(stalled)),
        None => (
            TrialOutcome::Invalid,
            lost.or_else(|| peers::idle(&workers).map(|text| (Cause::UnevenService, text))),
        ),
    };
    let unexplained = outcome == TrialOutcome::Invalid;
    let still = peers::stood_still(&workers, gpu).map(|text| (Cause::TransientStall, text));
    let compared = speed::compared(&workers, evidence.devices);
    let slow = speed::slower(&compared).map(|text| (Cause::SlowWorker, text));
    let aside = still.into_iter().chain(slow).filter(|_| unexplained);
    let timeout = (Cause::BenchmarkTimeout, timeout);
    JudgedTrial {
        gates: unmeasured_gates(evidence, spec),
        workers: shown(&workers),
        ..JudgedTrial::new(outcome, why.into_iter().chain([timeout]).chain(aside).collect())
    }
}

fn judge_report(evidence: Evidence<'_>, report: &Report, spec: &PerfValidationSpec) -> JudgedTrial {
    let judged = |gate: &Gate| {
        let judged = gate::judge(gate, observed(gate, evidence, report), evidence.share);
        JudgedGate {
            unmeasured: judged.unmeasured || baseline::lacks_speeds(gate, evidence, &judged),
            ..judged
        }
    };
    let judged: Vec<JudgedGate> = spec.gates.iter().map(judged).collect();
    let workers = named(&evidence.record.workers, evidence.after);
    let trial = ReportedTrial {
        evidence,
        report,
        spec,
        judged: &judged,
        workers: &workers,
    };
    let (outcome, explained) = trial.outcome();
    let bad = report.failed.saturating_add(report.truncated);
    JudgedTrial {
        metrics: headline(report, SpeedSpread::new(&evidence.record.workers)),
        requests: Some((bad, report.failed.saturating_add(report.succeeded))),
        aiperf_version: report.aiperf_version.clone(),
        commit: evidence.record.commit.clone(),
        workers: shown(&workers),
        margins: trial.margins(outcome),
        instead_of_jitter: trial.instead_of_jitter(),
        below_baseline: trial.below_baseline(outcome),
        gates: judged.into_iter().map(|judged| judged.status).collect(),
        unseen: speed::uncompared(&evidence.record.workers)
            .into_iter()
            .chain(baseline::missing(evidence, spec))
            .collect(),
        ..JudgedTrial::new(outcome, explained)
    }
}

/// Value that a gate judges: AIPerf's statistic, or a number from the workers' own metrics.
fn observed(gate: &Gate, evidence: Evidence<'_>, report: &Report) -> Option<Decimal> {
    let workers = &evidence.record.workers;
    match gate.metric.source() {
        MetricSource::AIPerf(..) => report.value(gate.metric, gate.statistic),
        MetricSource::Peers => SpeedSpread::new(workers).map(|spread| spread.slowest),
        MetricSource::EngineEstimate => {
            Reached::new(evidence.product, workers).map(|reached| reached.bandwidth_percent)
        }
        // Judged when the trial is closed: the status has the earlier runs.
        MetricSource::OwnPast => None,
        MetricSource::Baseline => evidence.norm?.slowest_percent(workers),
    }
}

/// Reason why a trial has no numbers.
pub fn failure_text(failure: &Failure) -> String {
    match failure {
        Failure::Misconfigured { message } | Failure::NotExecutable { message } | Failure::Malformed { message } => {
            message.clone()
        }
        Failure::AllFailed { failed, errors } => format!("all {failed} requests failed: {}", most_frequent(errors)),
        Failure::Exited { tail } => format!("AIPerf exited with an error: {tail}"),
        Failure::NoExport { tail } => format!("AIPerf left no export: {tail}"),
        Failure::Killed { signal } => format!("AIPerf was ended by signal {signal} (9: mostly the memory limit)"),
        Failure::Cancelled { signal } => format!("the trial was stopped by signal {signal}"),
        Failure::TimedOut { seconds } => format!("AIPerf was still running after {seconds} s"),
    }
}
