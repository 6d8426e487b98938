//! What the load generator leaves of a trial: a recorded export of AIPerf in a frame of the runner's own.

use std::sync::LazyLock;

use perfval_verdict::aiperf::Report;
use perfval_verdict::frame::{Failure, Outcome, Payload, TrialRecord, frame};
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use serde_json::Value;

/// A recorded report, with another throughput, and of a load generator that could or could not keep up.
///
/// # Panics
/// If the recorded export cannot be read.
pub fn report(throughput: impl FnOnce(Decimal) -> Decimal, starved: bool) -> Report {
    static RECORDED: LazyLock<Report> = LazyLock::new(|| {
        let text = include_str!("../../../crates/verdict/tests/fixtures/aiperf-success.json");
        perfval_verdict::aiperf::parse(text.as_bytes()).expect("a recorded export")
    });
    let mut report = RECORDED.clone();
    let metric = report.metrics.get_mut(&perfval_api::Metric::OutputTokenThroughput);
    let recorded = metric.and_then(|metric| metric.get_mut(&perfval_api::Statistic::Avg));
    let recorded = recorded.expect("it was recorded");
    *recorded = throughput(*recorded);
    if starved {
        report.generator.effective_concurrency_p50 = Some(Decimal::ONE);
        report.generator.credit_to_start_p50_ms = Some(Decimal::from(100_000));
    }
    report
}

/// AIPerf ended with an error.
pub fn crash() -> Outcome {
    Outcome::Failure(Failure::Exited {
        tail: "Traceback".to_owned(),
    })
}

/// The record of a trial during which the workers at these addresses served alike.
pub fn record(nonce: String, outcome: Outcome, workers: impl IntoIterator<Item = String>) -> TrialRecord {
    let worker = |address| WorkerSummary {
        address,
        seconds: 10,
        samples: 10,
        served: 50,
        peak_in_flight: 8,
        rate_per_second: Decimal::from(5),
        seconds_per_request: Some(Decimal::ONE),
        ..WorkerSummary::default()
    };
    TrialRecord {
        nonce,
        workers: workers.into_iter().map(worker).collect(),
        ..TrialRecord::new(outcome)
    }
}

/// Nonce of the trial of a pod, which the runner repeats.
pub fn nonce(pod: &Value) -> Option<String> {
    let arguments = pod["spec"]["containers"][0]["args"].as_array()?;
    let mut rest = arguments.iter().skip_while(|word| *word != "--nonce");
    rest.nth(1)?.as_str().map(str::to_owned)
}

/// The same text with numbers at the ends of their types.
pub fn absurd(text: &str) -> String {
    text.replace(":10,", ":9223372036854775807,")
        .replace("\"5\"", "\"79228162514264337593543950335\"")
        .replace("\"1\"", "\"0.0000000000000000000000000001\"")
}

/// The log that holds a record.
///
/// # Panics
/// Never: a record is JSON.
pub fn log(record: TrialRecord) -> String {
    frame(&Payload::new(record)).expect("a record is JSON")
}
