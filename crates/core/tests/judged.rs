//! Trials judged: every recorded export, and what the workers add to it.

use std::collections::{BTreeMap, BTreeSet};

use perfval_api::{GateResult, PerfValidationSpec, TrialOutcome, WorkerStatus};
use perfval_core::aiperf;
use perfval_core::diagnosis::cause::Cause;
use perfval_core::frame::{Failure, Outcome, TrialRecord};
use perfval_core::gate::Share;
use perfval_core::trial::{Evidence, Verdict, judge};
use perfval_core::workers::WorkerSummary;
use rust_decimal::Decimal;
use serde_json::json;

/// The gates of the published baseline, at the scale of the recordings (four workers on two cores).
fn spec() -> PerfValidationSpec {
    serde_json::from_value(json!({
        "model": {"name": "m"}, "workload": {"image": "i:1.2.1"},
        "gates": [
            {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500"},
            {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000"},
        ],
    }))
    .expect("a spec")
}

fn worker(address: &str, rate: i64, peak: i64) -> WorkerSummary {
    WorkerSummary {
        address: address.to_owned(),
        samples: 30,
        served: rate * 30,
        peak_in_flight: peak,
        rate_per_second: Decimal::from(rate),
        ..WorkerSummary::default()
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

fn pods() -> Vec<WorkerStatus> {
    let pod = |name: &str| WorkerStatus {
        pod: name.to_owned(),
        uid: format!("uid-{name}"),
        restarts: 0,
        device: Some(format!("n1/{name}")),
    };
    ["a", "b", "c", "d"].map(pod).into()
}

fn record(outcome: Outcome, workers: Vec<WorkerSummary>) -> TrialRecord {
    TrialRecord {
        nonce: "n".into(),
        exit_code: 0,
        outcome,
        workers,
        scrape_errors: BTreeMap::new(),
        abridged: BTreeSet::new(),
    }
}

fn judged(record: &TrialRecord, after: &[WorkerStatus]) -> Verdict {
    let share = Share { gpus: 4, node_gpus: 8 };
    judge(
        Evidence {
            record,
            before: &pods(),
            after,
            share,
        },
        &spec(),
    )
}

fn sample(name: &str, workers: Vec<WorkerSummary>) -> TrialRecord {
    let path = format!("{}/tests/fixtures/aiperf-{name}.json", env!("CARGO_MANIFEST_DIR"));
    let export = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let report = aiperf::parse(&export).unwrap_or_else(|error| panic!("{name}: {error}"));
    record(Outcome::Report(Box::new(report)), workers)
}

fn first_cause(verdict: &Verdict) -> Option<Cause> {
    verdict.findings.first().map(|(cause, _)| *cause)
}

#[test]
fn every_recorded_export_is_judged_for_what_it_is() {
    use TrialOutcome::{Invalid, Miss, Pass};
    let cases = [
        ("success", Pass, None),
        ("success-client-tokenized", Pass, None),
        ("0.12.0-success", Pass, None),
        ("0.11.0-dead-worker-least-loaded", Miss, Some(Cause::RequestErrors)),
        // p99 of 43 s: one worker of four was 10 × slower.
        ("slow-worker-round-robin", Miss, Some(Cause::FarBelowGate)),
        ("slow-worker-kv", Miss, Some(Cause::FarBelowGate)),
        ("slow-worker-least-loaded", Miss, Some(Cause::BalancedDegradation)),
        ("partial-10pct-503", Miss, Some(Cause::RequestErrors)),
        ("partial-dead-worker-round-robin", Miss, Some(Cause::RequestErrors)),
        // 5,934 tok/s and TTFT p99 173 ms: the gates alone would pass a run in which 94 % of the requests failed.
        ("partial-dead-worker-least-loaded", Miss, Some(Cause::RequestErrors)),
        ("cancelled-sigint", Invalid, Some(Cause::ResultIncomplete)),
        (
            "cancelled-failed-request-threshold",
            Invalid,
            Some(Cause::ResultIncomplete),
        ),
        ("underdriven-c1024", Invalid, Some(Cause::GeneratorStarved)),
    ];
    for (name, outcome, cause) in cases {
        let verdict = judged(&sample(name, balanced()), &pods());
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (outcome, cause),
            "{name}: {:?}",
            verdict.findings
        );
        assert_eq!(verdict.gates.len(), 2, "{name}: every gate is reported");
    }
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
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Miss, Some(Cause::RequestErrors))
    );
    assert_eq!(verdict.requests, Some((44, 44)));
    assert!(verdict.gates.iter().all(|gate| gate.result == GateResult::Unmeasured));
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
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (TrialOutcome::Invalid, Some(cause)),
            "{failure:?}"
        );
    }
}

#[test]
fn workers_that_changed_void_a_trial_and_explain_its_errors() {
    let with = |change: fn(&mut Vec<WorkerStatus>)| {
        let mut after = pods();
        change(&mut after);
        after
    };
    let restarted = with(|workers| workers[2].restarts = 1);
    let replaced = with(|workers| workers[1].uid = "uid-new".into());
    let moved = with(|workers| workers[0].device = Some("n1/gpu-7".into()));
    for (after, cause) in [
        (&restarted, Cause::WorkerRestarted),
        (&replaced, Cause::WorkerRestarted),
        (&moved, Cause::GPUChanged),
    ] {
        let verdict = judged(&sample("success", balanced()), after);
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (TrialOutcome::Invalid, Some(cause))
        );
    }
    let verdict = judged(&sample("partial-dead-worker-least-loaded", balanced()), &restarted);
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Miss, Some(Cause::DeadWorkerBlackHole))
    );
}

#[test]
fn what_the_workers_did_explains_a_miss() {
    let slow_rate = vec![worker("a", 10, 32), worker("b", 1, 32), worker("c", 10, 32)];
    let pile_up = vec![worker("a", 10, 32), worker("b", 10, 126), worker("c", 10, 32)];
    let mut frozen = vec![worker("a", 10, 32), worker("b", 0, 0), worker("c", 10, 32)];
    frozen[1].samples = 0;
    frozen[1].timeouts = 30;
    for (workers, told) in [
        (slow_rate, "b served 1 "),
        (pile_up, "b had 126"),
        (frozen, "b served 0"),
    ] {
        let verdict = judged(&sample("slow-worker-kv", workers), &pods());
        assert_eq!(first_cause(&verdict), Some(Cause::WorkerStall));
        assert!(
            verdict.findings[0].1.evidence.contains(told),
            "{}",
            verdict.findings[0].1.evidence
        );
    }

    let idle = vec![worker("a", 10, 32), worker("b", 0, 0), worker("c", 10, 32)];
    let verdict = judged(&sample("success", idle), &pods());
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Invalid, Some(Cause::UnevenService))
    );

    let verdict = judged(&sample("success", Vec::new()), &pods());
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Pass, Some(Cause::WorkersNotSampled))
    );
}

#[test]
fn a_metric_that_is_not_reported_proves_nothing() {
    let mut spec = spec();
    let goodput = json!({"name": "goodput", "metric": "Goodput", "operator": ">=", "threshold": "1"});
    spec.gates.push(serde_json::from_value(goodput).expect("a gate"));
    let record = sample("success", balanced());
    let share = Share { gpus: 4, node_gpus: 8 };
    let workers = pods();
    let evidence = Evidence {
        record: &record,
        before: &workers,
        after: &workers,
        share,
    };
    let verdict = judge(evidence, &spec);
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Invalid, Some(Cause::MetricMissing))
    );

    spec.gates[2].mode = perfval_api::GateMode::Warn;
    assert_eq!(
        judge(evidence, &spec).outcome,
        TrialOutcome::Pass,
        "a warning gate voids no trial"
    );
}

#[test]
fn every_cause_is_found_again_by_its_word() {
    for cause in Cause::ALL {
        assert_eq!(Cause::from_word(cause.as_str()), Some(cause));
        assert!(!cause.remedy().is_empty());
    }
}
