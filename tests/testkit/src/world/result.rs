//! What the load generator leaves of a trial: a recorded export of AIPerf in a frame of the runner's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use perfval_verdict::aiperf::{Measure, Report};
use perfval_verdict::frame::{Failure, Outcome, Payload, TrialRecord, frame, message};
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use serde_json::Value;

/// What a trial shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trial {
    /// Every gate is met.
    #[default]
    Good,
    /// The throughput is a tenth.
    Slow,
    /// The load generator could not keep up.
    Starved,
    /// AIPerf ended with an error.
    Crash,
    /// It never ends.
    Hang,
    /// It ends without a result.
    Silent,
}

/// What a trial left.
pub(super) struct TrialResult {
    pub(super) log: String,
    pub(super) message: String,
    pub(super) exit_code: i32,
}

/// Number of a trial, from its pod's Job.
pub(super) fn number(pod: &Value) -> Option<i64> {
    let job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"].as_str()?;
    job.rsplit_once("-t")?.1.parse().ok()
}

/// What the trial of a pod leaves; `None` if it never ends.
pub(super) fn of(pod: &Value, trial: Trial, workers: &[String]) -> Option<TrialResult> {
    let silent = |exit_code| TrialResult {
        log: "no result\n".to_owned(),
        message: String::new(),
        exit_code,
    };
    let report = |tenths: i64, starved| Outcome::Report(Box::new(report(tenths, starved)));
    let outcome = match trial {
        Trial::Hang => return None,
        Trial::Silent => return Some(silent(1)),
        Trial::Good => report(10, false),
        Trial::Slow => report(1, false),
        Trial::Starved => report(10, true),
        Trial::Crash => Outcome::Failure(Failure::Exited {
            tail: "Traceback".to_owned(),
        }),
    };
    let arguments = pod["spec"]["containers"][0]["args"].as_array()?;
    let after = |flag: &str| arguments.iter().skip_while(|word| *word != flag).nth(1)?.as_str();
    let record = TrialRecord {
        nonce: after("--nonce")?.to_owned(),
        exit_code: 0,
        outcome,
        workers: workers.iter().map(|address| worker(address)).collect(),
        scrape_errors: BTreeMap::new(),
        gpus: None,
        abridged: BTreeSet::new(),
    };
    let gated: Vec<Measure> = Vec::new();
    let message = message(&record, &gated);
    let log = frame(&Payload {
        record,
        aiperf: None,
        workers: Vec::new(),
        gpus: Vec::new(),
    });
    Some(TrialResult {
        log: log.expect("a record is JSON"),
        message,
        exit_code: 0,
    })
}

fn worker(address: &str) -> WorkerSummary {
    WorkerSummary {
        address: address.to_owned(),
        seconds: 10,
        samples: 10,
        served: 50,
        peak_in_flight: 8,
        rate_per_second: Decimal::from(5),
        seconds_per_request: Some(Decimal::ONE),
        ..WorkerSummary::default()
    }
}

/// A recorded report, with so many tenths of its throughput.
fn report(tenths: i64, starved: bool) -> Report {
    static RECORDED: LazyLock<Report> = LazyLock::new(|| {
        let text = include_str!("../../../../crates/verdict/tests/fixtures/aiperf-success.json");
        perfval_verdict::aiperf::parse(text.as_bytes()).expect("a recorded export")
    });
    let mut report = RECORDED.clone();
    let throughput = report.metrics.get_mut(&perfval_api::Metric::OutputTokenThroughput);
    if let Some(throughput) = throughput.and_then(|metric| metric.get_mut(&perfval_api::Statistic::Avg)) {
        *throughput *= Decimal::from(tenths) / Decimal::from(10);
    }
    if starved {
        report.generator.effective_concurrency_p50 = Some(Decimal::ONE);
        report.generator.credit_to_start_p50_ms = Some(Decimal::from(100_000));
    }
    report
}
