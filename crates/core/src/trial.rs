//! One trial, judged in a fixed order: measured? errors? valid? gates (design: verdict).

use perfval_api::{
    Finding, Gate, GateStatus, Metric, Metrics, PerfValidationSpec, Statistic, TrialOutcome, WorkerStatus,
};
use rust_decimal::Decimal;

use crate::aiperf::{ErrorKind, Report};
use crate::diagnosis::cause::Cause;
use crate::diagnosis::trial::{changed, idle, stalled};
use crate::frame::{Failure, Outcome, Part, TrialRecord};
use crate::gate::{self, Share, show};

/// What is known at the end of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What the runner handed over.
    pub record: &'a TrialRecord,
    /// The workers when the trial began.
    pub before: &'a [WorkerStatus],
    /// The workers now.
    pub after: &'a [WorkerStatus],
    /// The part of the node in use.
    pub share: Share,
}

/// A judged trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What it showed.
    pub outcome: TrialOutcome,
    /// What explains it, the most telling first.
    pub findings: Vec<(Cause, Finding)>,
    /// Every gate.
    pub gates: Vec<GateStatus>,
    /// Headline numbers.
    pub metrics: Metrics,
    /// Requests that failed or came back short, and all requests.
    pub requests: Option<(i64, i64)>,
    /// Version of AIPerf that measured.
    pub aiperf_version: Option<String>,
}

impl Verdict {
    fn new(outcome: TrialOutcome, cause: Cause, evidence: impl Into<String>) -> Self {
        Self {
            outcome,
            findings: vec![(cause, cause.finding(evidence))],
            gates: Vec::new(),
            metrics: Metrics::default(),
            requests: None,
            aiperf_version: None,
        }
    }

    /// A trial that left nothing to read.
    pub fn unmeasured(cause: Cause, evidence: impl Into<String>) -> Self {
        Self::new(TrialOutcome::Invalid, cause, evidence)
    }
}

/// Judges a trial.
pub fn judge(evidence: Evidence<'_>, spec: &PerfValidationSpec) -> Verdict {
    match &evidence.record.outcome {
        Outcome::Report(report) => judge_report(evidence, report, spec),
        Outcome::Failure(Failure::AllFailed { failed, errors }) => {
            let mut verdict = Verdict::new(
                TrialOutcome::Miss,
                Cause::RequestErrors,
                format!("all {failed} requests failed: {}", most_frequent(errors)),
            );
            verdict.requests = Some((*failed, *failed));
            verdict.gates = spec
                .gates
                .iter()
                .map(|gate| gate::judge(gate, None, evidence.share).status)
                .collect();
            verdict.metrics.request_error_percent = Some("100".to_owned());
            add_changes(&mut verdict, evidence);
            verdict
        }
        Outcome::Failure(Failure::TimedOut { seconds }) => Verdict::unmeasured(
            Cause::BenchmarkTimeout,
            format!("AIPerf was still running after {seconds} s"),
        ),
        Outcome::Failure(failure) => Verdict::unmeasured(Cause::BenchmarkFailed, in_words(failure)),
    }
}

fn judge_report(evidence: Evidence<'_>, report: &Report, spec: &PerfValidationSpec) -> Verdict {
    let judged: Vec<gate::Judged> = spec
        .gates
        .iter()
        .map(|gate| gate::judge(gate, observed(report, gate), evidence.share))
        .collect();
    let (outcome, findings) = outcome_and_causes(evidence, report, spec, &judged);
    let bad = report.failed.saturating_add(report.truncated);
    Verdict {
        outcome,
        findings: findings
            .into_iter()
            .map(|(cause, text)| (cause, cause.finding(text)))
            .collect(),
        gates: judged.into_iter().map(|judged| judged.status).collect(),
        metrics: headline(report),
        requests: Some((bad, report.failed.saturating_add(report.succeeded))),
        aiperf_version: report.aiperf_version.clone(),
    }
}

fn outcome_and_causes(
    evidence: Evidence<'_>,
    report: &Report,
    spec: &PerfValidationSpec,
    judged: &[gate::Judged],
) -> (TrialOutcome, Vec<(Cause, String)>) {
    use TrialOutcome::{Invalid, Miss, Pass};
    if report.cancelled || !report.complete {
        let why = report
            .incomplete_reason
            .as_deref()
            .unwrap_or("AIPerf did not run to its end");
        return (Invalid, vec![(Cause::ResultIncomplete, why.to_owned())]);
    }
    // Errors come before validity: a dead worker also lowers the achieved concurrency, and must not be excused by it.
    let percent = report.error_percent();
    if percent > Decimal::from(spec.max_error_percent) {
        return (Miss, error_causes(evidence, report, percent, spec.max_error_percent));
    }
    if let Some(invalid) = invalid(evidence, report) {
        return (Invalid, vec![invalid]);
    }
    if let Some(unmeasured) = judged.iter().find(|gate| gate.unmeasured) {
        let gate = &unmeasured.status.name;
        return (
            Invalid,
            vec![(
                Cause::MetricMissing,
                format!("AIPerf did not report the metric of gate {gate}"),
            )],
        );
    }
    let unsampled = unsampled(evidence.record).then(|| {
        (
            Cause::WorkersNotSampled,
            "no worker answered on its metrics port during the trial".to_owned(),
        )
    });
    if judged.iter().any(|gate| gate.counts_as_miss) {
        let causes = miss_causes(evidence, judged).into_iter().chain(unsampled).collect();
        return (Miss, causes);
    }
    (Pass, unsampled.into_iter().collect())
}

/// Whether no worker was sampled; left out of a short message is not that.
fn unsampled(record: &TrialRecord) -> bool {
    record.workers.is_empty() && !record.abridged.contains(&Part::Workers)
}

fn error_causes(evidence: Evidence<'_>, report: &Report, percent: Decimal, allowed: i32) -> Vec<(Cause, String)> {
    let text = format!(
        "{} % of {} requests failed or came back short (allowed: {allowed} %): {}",
        show(percent),
        report.failed.saturating_add(report.succeeded),
        most_frequent(&report.errors)
    );
    match changed(evidence.before, evidence.after) {
        Some((Cause::WorkerRestarted, what)) => {
            vec![
                (Cause::DeadWorkerBlackHole, format!("{what}; {text}")),
                (Cause::RequestErrors, text),
            ]
        }
        Some((cause, what)) => vec![(Cause::RequestErrors, text), (cause, what)],
        None => vec![(Cause::RequestErrors, text)],
    }
}

fn invalid(evidence: Evidence<'_>, report: &Report) -> Option<(Cause, String)> {
    changed(evidence.before, evidence.after)
        .or_else(|| idle(&evidence.record.workers).map(|text| (Cause::UnevenService, text)))
        .or_else(|| {
            report
                .starved()
                .then(|| (Cause::GeneratorStarved, starved_text(report)))
        })
}

fn miss_causes(evidence: Evidence<'_>, judged: &[gate::Judged]) -> Vec<(Cause, String)> {
    let workers = &evidence.record.workers;
    if let Some(text) = stalled(workers) {
        return vec![(Cause::WorkerStall, text)];
    }
    let missed: Vec<String> = judged
        .iter()
        .filter(|gate| gate.counts_as_miss)
        .map(|gate| missed_text(&gate.status))
        .collect();
    let text = missed.join("; ");
    let far = judged.iter().any(|gate| gate.far);
    // Without samples nothing is known of the balance.
    if workers.is_empty() {
        return Vec::new();
    }
    let balanced = (
        Cause::BalancedDegradation,
        format!("all {} workers share the load evenly; {text}", workers.len()),
    );
    if far {
        vec![(Cause::FarBelowGate, text), balanced]
    } else {
        vec![balanced]
    }
}

fn missed_text(gate: &GateStatus) -> String {
    let observed = gate.observed.as_deref().unwrap_or("nothing");
    format!(
        "gate {} observed {observed}, effective threshold {}",
        gate.name, gate.effective
    )
}

fn starved_text(report: &Report) -> String {
    let number = |value: Option<Decimal>| value.map_or("?".to_owned(), show);
    format!(
        "{} requests in flight of {} asked (median), each waited {} ms in the generator and took {} ms",
        number(report.generator.effective_concurrency_p50),
        report.concurrency,
        number(report.generator.credit_to_start_p50_ms),
        number(report.generator.request_latency_p50_ms)
    )
}

fn add_changes(verdict: &mut Verdict, evidence: Evidence<'_>) {
    if let Some((cause, text)) = changed(evidence.before, evidence.after) {
        verdict.findings.push((cause, cause.finding(text)));
    }
}

fn most_frequent(errors: &[ErrorKind]) -> String {
    let Some(error) = errors.iter().max_by_key(|error| error.count) else {
        return "no error text".into();
    };
    let code = error.code.map_or(String::new(), |code| format!("HTTP {code} "));
    format!("{} × {code}{} {}", error.count, error.kind, error.message)
        .trim_end()
        .to_owned()
}

fn in_words(failure: &Failure) -> String {
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

fn observed(report: &Report, gate: &Gate) -> Option<Decimal> {
    report.value(gate.metric, gate.statistic)
}

fn headline(report: &Report) -> Metrics {
    let value = |metric, statistic| report.value(metric, statistic).map(show);
    Metrics {
        output_token_throughput: value(Metric::OutputTokenThroughput, Statistic::Avg),
        ttft_p50_ms: value(Metric::TimeToFirstToken, Statistic::P50),
        ttft_p90_ms: value(Metric::TimeToFirstToken, Statistic::P90),
        ttft_p99_ms: value(Metric::TimeToFirstToken, Statistic::P99),
        ttft_max_ms: value(Metric::TimeToFirstToken, Statistic::Max),
        request_error_percent: Some(show(report.error_percent())),
        concurrency: Some(report.concurrency),
    }
}
