//! Trials judged: every recorded export, and what the workers add to it.

mod baseline;
mod earlier;
mod gone;
mod gpus;
mod misses;
mod node_cpu;
mod of_a_run;
mod own_past;
mod slower;
mod starved;
mod workers;

use chrono::DateTime;
use perfval_api::{
    DeviceStatus, GateResult, Metric, PerfValidationSpec, PerfValidationStatus, Statistic, TrialOutcome, TrialState,
    WorkerPod,
};
use perfval_verdict::aiperf;
use perfval_verdict::close::close;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Failure, Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, JudgedTrial, judge};
use perfval_verdict::trials::soak_is_next;
use perfval_verdict::workers::{AgainstPeers, Pace, Unit, WorkerSpeed, WorkerSummary};
use rust_decimal::Decimal;
use serde_json::json;

/// The gates of the published baseline, at the scale of the recordings (four workers on two cores).
fn spec() -> PerfValidationSpec {
    serde_json::from_value(json!({
        "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.2.1"}},
        "gates": [
            {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500"},
            {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000"},
        ],
    }))
    .expect("a spec")
}

/// The same with a gate on one more number.
fn with_gate(metric: &str, threshold: &str) -> PerfValidationSpec {
    let gate = json!({"name": "g", "metric": metric, "operator": ">=", "threshold": threshold});
    let mut spec = spec();
    spec.gates.push(serde_json::from_value(gate).expect("a gate"));
    spec
}

/// A worker that was busy for 30 s: by Little's law a request takes as long as its queue is longer than its rate.
fn worker(address: &str, rate: i64, in_flight: i64) -> WorkerSummary {
    let rate = Decimal::from(rate);
    WorkerSummary {
        address: address.to_owned(),
        seconds: 30,
        samples: 30,
        served: (rate * Decimal::from(30)).try_into().expect("a small number"),
        peak_in_flight: in_flight,
        mean_in_flight: in_flight.into(),
        rate_per_second: rate,
        seconds_per_request: Decimal::from(in_flight).checked_div(rate),
        pace: Some(Pace {
            unit: Unit::Tokens,
            mean: rate * Decimal::from(64),
            best: rate * Decimal::from(80),
        }),
        ..WorkerSummary::default()
    }
}

/// Speed of a worker that decodes 200 requests at once (ms from token to token).
fn speed(token_ms: impl Into<Decimal>, peers: Option<AgainstPeers>) -> WorkerSpeed {
    WorkerSpeed {
        token_ms: token_ms.into(),
        batch: Decimal::from(200),
        peers,
    }
}

/// Speed beside the peers (percent of theirs, and the interval).
fn peers(percent: i64, within: i64) -> AgainstPeers {
    AgainstPeers {
        percent: percent.into(),
        within: within.into(),
    }
}

fn balanced() -> Vec<WorkerSummary> {
    vec![
        worker("a", 10, 32),
        worker("b", 10, 32),
        worker("c", 11, 32),
        worker("d", 9, 32),
    ]
}

/// Worker `c` is the odd one out of four.
fn odd_one(odd: WorkerSummary, peer: impl Fn(&str) -> WorkerSummary) -> Vec<WorkerSummary> {
    vec![peer("a"), peer("b"), odd, peer("d")]
}

fn pods() -> Vec<WorkerPod> {
    let pod = |name: &str| WorkerPod {
        pod: name.to_owned(),
        uid: format!("uid-{name}"),
        address: Some(name.to_owned()),
        devices: vec![format!("n1/{name}")],
        ..WorkerPod::default()
    };
    ["a", "b", "c", "d"].map(pod).into()
}

/// A GPU that a worker of this name holds.
fn device(name: &str) -> DeviceStatus {
    DeviceStatus {
        pool: "n1".to_owned(),
        name: name.to_owned(),
        uuid: Some(format!("GPU-{name}")),
    }
}

fn record(outcome: Outcome, workers: Vec<WorkerSummary>) -> TrialRecord {
    TrialRecord {
        workers,
        ..TrialRecord::new(outcome)
    }
}

/// Evidence of a trial on four of eight GPUs, whose workers did not change.
fn evidence<'a>(record: &'a TrialRecord, workers: &'a [WorkerPod]) -> Evidence<'a> {
    Evidence {
        before: workers,
        after: workers,
        ..Evidence::new(record, Share { gpus: 4, node_gpus: 8 })
    }
}

fn judged(record: &TrialRecord, after: &[WorkerPod]) -> JudgedTrial {
    let before = pods();
    let evidence = Evidence {
        after,
        ..evidence(record, &before)
    };
    judge(evidence, &spec())
}

/// Ends the next trial of a run.
fn close_next(spec: &PerfValidationSpec, status: &mut PerfValidationStatus, judged: &JudgedTrial) {
    let number = 1 + i64::try_from(status.state.trials.len()).expect("few");
    status.state.trials.push(TrialState {
        number,
        soak: soak_is_next(spec, &status.state.trials),
        ..TrialState::default()
    });
    close(spec, status, number, judged, DateTime::UNIX_EPOCH);
}

fn sample(name: &str, workers: Vec<WorkerSummary>) -> TrialRecord {
    let path = format!("tests/fixtures/aiperf-{name}.json");
    let export = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let report = aiperf::parse(&export).unwrap_or_else(|error| panic!("{name}: {error}"));
    record(Outcome::Report(Box::new(report)), workers)
}

fn report(record: &mut TrialRecord) -> &mut aiperf::Report {
    match &mut record.outcome {
        Outcome::Report(report) => report,
        Outcome::Failure(failure) => panic!("a report, not {failure:?}"),
    }
}

fn set(report: &mut aiperf::Report, metric: Metric, statistic: Statistic, value: i64) {
    let statistics = report.metrics.entry(metric).or_default();
    statistics.insert(statistic, value.into());
}

/// Outcome of a trial, and its first cause.
fn seen(verdict: &JudgedTrial) -> (TrialOutcome, Option<Cause>) {
    (verdict.outcome, first_cause(verdict))
}

fn causes(verdict: &JudgedTrial) -> Vec<Cause> {
    verdict.findings.iter().map(|(cause, _)| *cause).collect()
}

fn first_cause(verdict: &JudgedTrial) -> Option<Cause> {
    verdict.findings.first().map(|(cause, _)| *cause)
}

/// Results of the gates, in their order.
fn results(verdict: &JudgedTrial) -> Vec<GateResult> {
    verdict.gates.iter().map(|gate| gate.result).collect()
}

/// As in every healthy run: nearly all of a request's time passes in a worker.
fn spend_the_latency_in_workers(record: &mut TrialRecord) {
    let latency = report(record).value(Metric::RequestLatency, Statistic::Avg);
    for worker in &mut record.workers {
        worker.seconds_per_request = latency.map(|ms| ms / Decimal::from(1050));
    }
}

#[test]
fn every_recorded_export_gets_its_outcome() {
    use TrialOutcome::{Invalid, Miss, Pass};
    let cases = [
        ("success", Pass, None),
        ("success-client-tokenized", Pass, None),
        ("0.12.0-success", Pass, None),
        // 635 of 1,500 tok/s.
        ("0.11.0-success", Miss, Some(Cause::FarBelowGate)),
        ("0.11.0-dead-worker-least-loaded", Miss, Some(Cause::RequestErrors)),
        // 560 of 1,500 tok/s: one worker of four was 10 × slower, which its peers' metrics would show.
        ("slow-worker-round-robin", Miss, Some(Cause::FarBelowGate)),
        ("slow-worker-kv", Miss, Some(Cause::TailLatency)),
        // TTFT p99 2,499 ms against 2,000, throughput met.
        ("slow-worker-least-loaded", Miss, Some(Cause::KneeJitter)),
        ("partial-10pct-503", Miss, Some(Cause::RequestErrors)),
        ("partial-dead-worker-round-robin", Miss, Some(Cause::RequestErrors)),
        // 5,934 tok/s and TTFT p99 173 ms: the gates alone would pass a run in which 94 % of the requests failed.
        ("partial-dead-worker-least-loaded", Miss, Some(Cause::RequestErrors)),
        // 62 tok/s on eight requests in flight: complete and measured, and no gate of this spec is for it.
        ("duration-success", Miss, Some(Cause::FarBelowGate)),
        ("duration-short-grace", Miss, Some(Cause::FarBelowGate)),
        ("duration-hanging", Miss, Some(Cause::RequestErrors)),
        ("cancelled-sigint", Invalid, Some(Cause::ResultIncomplete)),
        (
            "cancelled-failed-request-threshold",
            Invalid,
            Some(Cause::ResultIncomplete),
        ),
        ("underdriven-c1024", Invalid, Some(Cause::GeneratorStarved)),
    ];
    for entry in std::fs::read_dir("tests/fixtures").expect("a folder") {
        let name = entry.expect("a file").file_name().into_string().expect("a name");
        let export = name.strip_prefix("aiperf-").and_then(|name| name.strip_suffix(".json"));
        let is_known = |export: &str| cases.iter().any(|(name, ..)| *name == export) || export == "all-failed";
        assert!(export.is_none_or(is_known), "{name} is in no row");
    }
    for (name, outcome, cause) in cases {
        let mut record = sample(name, balanced());
        spend_the_latency_in_workers(&mut record);
        let verdict = judged(&record, &pods());
        assert_eq!(seen(&verdict), (outcome, cause), "{name}: {:?}", verdict.findings);
        assert_eq!(verdict.gates.len(), 2, "{name}: every gate is reported");
    }
}

/// The load generator reads the workers' metrics over the same network.
#[test]
fn a_load_generator_that_reaches_nothing_blames_no_deployment() {
    let failure = Failure::AllFailed {
        failed: 44,
        errors: vec![aiperf::ErrorKind {
            code: None,
            kind: "ClientConnectorError".into(),
            message: "Cannot connect to host".into(),
            count: 44,
        }],
    };
    // The addresses are known from DNS.
    let silent = |worker| WorkerSummary { samples: 0, ..worker };
    let unread = balanced().into_iter().map(silent).collect();
    let mut cut_off = record(Outcome::Failure(failure), unread);
    cut_off.scrape_errors = [("10.0.0.2".to_owned(), 30)].into();
    let verdict = judged(&cut_off, &pods());
    assert_eq!(seen(&verdict), (TrialOutcome::Invalid, Some(Cause::BenchmarkFailed)));
    let evidence = &verdict.findings[0].1.evidence;
    assert!(
        evidence.starts_with("the network keeps the load generator from"),
        "{evidence}"
    );
    cut_off.workers = balanced();
    let verdict = judged(&cut_off, &pods());
    assert_eq!(seen(&verdict), (TrialOutcome::Miss, Some(Cause::FrontendLost)));
}

#[test]
fn a_run_in_which_everything_failed_is_a_miss_with_its_error() {
    let failure = Failure::AllFailed {
        failed: 44,
        errors: vec![aiperf::ErrorKind {
            code: Some(404),
            kind: "Not Found".into(),
            message: "no model".into(),
            count: 44,
        }],
    };
    let verdict = judged(&record(Outcome::Failure(failure), Vec::new()), &pods());
    assert_eq!(seen(&verdict), (TrialOutcome::Miss, Some(Cause::RequestErrors)));
    assert_eq!(verdict.requests, Some((44, 44)));
    assert_eq!(results(&verdict), [GateResult::Unmeasured; 2]);
    assert!(
        verdict.findings[0].1.evidence.contains("44 × HTTP 404"),
        "{}",
        verdict.findings[0].1.evidence
    );
}

#[test]
fn a_generator_that_crashed_measured_nothing() {
    for (failure, cause) in [
        (
            Failure::Exited {
                tail: "Traceback".into(),
            },
            Cause::BenchmarkFailed,
        ),
        (Failure::NoExport { tail: String::new() }, Cause::BenchmarkFailed),
        (Failure::Killed { signal: 9 }, Cause::BenchmarkFailed),
        (Failure::TimedOut { seconds: 900 }, Cause::BenchmarkTimeout),
    ] {
        let verdict = judged(&record(Outcome::Failure(failure.clone()), Vec::new()), &pods());
        assert_eq!(seen(&verdict), (TrialOutcome::Invalid, Some(cause)), "{failure:?}");
    }
}
