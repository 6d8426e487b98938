//! Statements of a verdict: each is true of the trials that it is made from.

use std::collections::BTreeMap;

use chrono::DateTime;
use perfval_api::{
    EarlierRun, GateResult, Metric, PerfValidation, PerfValidationSpec, PerfValidationStatus, Reason, Statistic,
    TrialOutcome, TrialState, Verdict,
};
use perfval_testkit::environment::known;
use perfval_verdict::aiperf::Report;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::environment;
use perfval_verdict::frame::{Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::judge::{Judgement, judge};
use perfval_verdict::norms::Norms;
use perfval_verdict::rejudge::rejudge;
use perfval_verdict::saved::SavedRun;
use perfval_verdict::trial::Evidence;
use perfval_verdict::trials::claim;
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// What differs in a status.
type Change = fn(&mut PerfValidationStatus);
/// Values of one trial.
type Values<'a> = &'a [(Metric, &'a str)];

/// Workers that share the load evenly: only then a far miss is none of one worker.
fn balanced() -> Vec<WorkerSummary> {
    let worker = |address: &str| WorkerSummary {
        address: address.to_owned(),
        seconds: 30,
        samples: 30,
        served: 300,
        peak_in_flight: 32,
        mean_in_flight: 32.into(),
        rate_per_second: 10.into(),
        seconds_per_request: Some(Decimal::new(32, 1)),
        ..WorkerSummary::default()
    };
    ["a", "b", "c", "d"].map(worker).into()
}

fn record(values: Values<'_>) -> TrialRecord {
    let mut metrics: BTreeMap<Metric, BTreeMap<Statistic, Decimal>> = BTreeMap::new();
    for (metric, value) in values {
        let value = value.parse().expect("a number");
        metrics.entry(*metric).or_default().insert(Statistic::Avg, value);
    }
    let report = Report {
        succeeded: 768,
        complete: true,
        metrics,
        ..Report::default()
    };
    TrialRecord::new(Outcome::Report(Box::new(report)))
}

fn object(spec: &Value) -> PerfValidation {
    let mut whole = json!({"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}});
    for (field, value) in spec.as_object().expect("fields") {
        whole[field] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": {"name": "a"}, "spec": whole,
    }))
    .expect("an object")
}

fn judged(spec: &Value, trials: &[Values<'_>]) -> Judgement {
    let records: Vec<TrialRecord> = trials.iter().map(|values| record(values)).collect();
    let recorded: Vec<_> = records
        .iter()
        .map(|record| Evidence::new(record, Share::UNSCALED))
        .collect();
    judge(&object(spec), None, &recorded, DateTime::UNIX_EPOCH)
}

fn throughput(threshold: &str) -> Value {
    json!({"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": threshold})
}

fn latency(name: &str, metric: &str, threshold: &str) -> Value {
    json!({"name": name, "metric": metric, "operator": "<=", "threshold": threshold})
}

fn slowest() -> Value {
    json!({"name": "slowest", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90"})
}

fn warning(mut gate: Value) -> Value {
    gate["mode"] = json!("Warn");
    gate
}

#[test]
fn a_pass_states_how_much_lower_a_throughput_would_have_failed() {
    // 1 - 1 / (1 + 3.078 × 0.1) / 1.333: two trials that agree show nothing of how much trials vary. 42.64 and 42.03 are
    // rounded up.
    for (measured, loss) in [("1333", "42.7"), ("1319", "42.1")] {
        let trial: Values<'_> = &[(Metric::OutputTokenThroughput, measured)];
        let passed = judged(&json!({"gates": [throughput("1000")]}), &[trial; 2]);
        assert_eq!(
            passed.message,
            format!(
                "throughput {measured} tok/s (≥ 1000); trials: 2 passed; throughput 43 % lower would have failed in at least 95 of 100 runs (noise up to 10 %)"
            )
        );
        assert_eq!(passed.status.state.detectable_loss_percent.as_deref(), Some(loss));
    }
}

/// After as many earlier runs as status keeps, with a noise of about 4 %.
fn after_earlier_runs(mut status: PerfValidationStatus) -> PerfValidationStatus {
    let environment = known();
    let means = [1300, 1370, 1340, 1310, 1350, 1290, 1330, 1360, 1320];
    let entries = means.iter().zip(1..).map(|(mean, run)| EarlierRun {
        run,
        verdict: Some(Verdict::Passed),
        throughput: Some(mean.to_string()),
        throughput_spread: Some("4.2".into()),
        trials: Some(2),
        environment: Some(environment::digest(&environment)),
        ..EarlierRun::default()
    });
    status.state.history = entries.collect();
    status.state.environment = Some(environment);
    status
}

#[test]
fn after_enough_runs_a_pass_rests_on_their_noise() {
    let spec = |gate: Value| object(&json!({"gates": [gate]})).spec;
    let trials: [Values<'_>; 2] = [
        &[
            (Metric::OutputTokenThroughput, "1300"),
            (Metric::RequestLatency, "1600"),
        ],
        &[
            (Metric::OutputTokenThroughput, "1366"),
            (Metric::RequestLatency, "1560"),
        ],
    ];
    let slower = spec(throughput("1000"));
    let later = spec(latency("lat", "RequestLatency", "2000"));
    for (spec, words) in [
        (
            &slower,
            "throughput 31 % lower would have failed in about 95 of 100 runs",
        ),
        (&later, "lat 40 % higher would have failed in about 95 of 100 runs"),
    ] {
        let gates = json!({"gates": spec.gates});
        let status = after_earlier_runs(judged(&gates, &trials).status);
        assert_eq!(claim(spec, &status).expect("a claim").in_words(), words);
    }
    let status = after_earlier_runs(judged(&json!({"gates": slower.gates}), &trials).status);
    let is_exact = |change: Change| {
        let mut status = status.clone();
        change(&mut status);
        claim(&slower, &status).expect("a claim").assumed.is_none()
    };
    assert!(is_exact(|_| ()));
    let others: [(&str, Change); 6] = [
        ("the trials of one are judged again", |status| {
            status.state.judged_run = Some(4);
        }),
        ("one run is missing", |status| drop(status.state.history.pop())),
        ("one run had a cause, or was judged again", |status| {
            status.state.history[3].throughput_spread = None;
        }),
        ("one run was elsewhere", |status| {
            status.state.history[3].environment = Some("other".into());
        }),
        ("the environment is not known", |status| {
            status.state.environment.as_mut().expect("one").gpu_driver = None;
        }),
        ("these trials vary more than before", |status| {
            status.state.trials[0].margin_percent = Some("80".into());
        }),
    ];
    for (what, change) in others {
        assert!(!is_exact(change), "{what}");
    }
}

#[test]
fn a_pass_states_how_much_higher_a_latency_would_have_failed() {
    let trials: [Values<'_>; 2] = [&[(Metric::RequestLatency, "1500")], &[(Metric::RequestLatency, "1700")]];
    let gates = json!({"gates": [latency("lat", "RequestLatency", "2000")]});
    let passed = judged(&gates, &trials);
    assert_eq!(passed.verdict, Verdict::Passed);
    // 2000 ms / (1 - 3.078 × 0.1) over 1600 ms.
    assert!(
        passed
            .message
            .ends_with("; lat 81 % higher would have failed in at least 95 of 100 runs (noise up to 10 %)"),
        "{}",
        passed.message
    );
}

#[test]
fn nothing_is_ruled_out_by_one_trial_nor_where_no_page_bounds_the_noise() {
    let one: [Values<'_>; 1] = [&[(Metric::OutputTokenThroughput, "1333")]];
    let single = judged(
        &json!({"gates": [throughput("1000")], "trials": {"rule": "Single"}}),
        &one,
    );
    let low: [Values<'_>; 2] = [&[(Metric::OutputTokenThroughput, "99999999")]; 2];
    let loose = judged(&json!({"gates": [throughput("1")]}), &low);
    let first_token: [Values<'_>; 2] = [&[(Metric::TimeToFirstToken, "300")]; 2];
    let ttft = judged(
        &json!({"gates": [latency("ttft", "TimeToFirstToken", "2000")]}),
        &first_token,
    );
    // Trials that vary by 28 %.
    let unlike: [Values<'_>; 2] = [&[(Metric::RequestLatency, "400")], &[(Metric::RequestLatency, "600")]];
    let noisy = judged(&json!({"gates": [latency("lat", "RequestLatency", "2000")]}), &unlike);
    for silent in [single, loose, ttft, noisy] {
        assert_eq!(silent.verdict, Verdict::Passed);
        assert!(!silent.message.contains("would have failed"), "{}", silent.message);
        assert_eq!(silent.status.state.detectable_loss_percent, None);
    }
}

#[test]
fn a_missed_warning_is_shown_as_missed_in_a_run_that_passed() {
    let trial: Values<'_> = &[
        (Metric::OutputTokenThroughput, "4438.205"),
        (Metric::RequestThroughput, "90"),
    ];
    let requests = json!({"name": "requests", "metric": "RequestThroughput", "operator": ">=", "threshold": "10"});
    let gates = json!({"gates": [requests, warning(throughput("20000")), warning(slowest())]});
    let passed = judged(&gates, &[trial, trial]);
    assert_eq!(passed.verdict, Verdict::Passed);
    assert!(
        passed.message.starts_with(
            "requests 90 req/s (≥ 10), throughput 4438 tok/s, 77.8 % below 20000 (missed, only a warning), \
             slowest not measured (≥ 90 % of its peers); trials: 2 passed"
        ),
        "{}",
        passed.message
    );
}

#[test]
fn gates_that_only_warn_leave_nothing_to_judge() {
    let trial: Values<'_> = &[(Metric::OutputTokenThroughput, "4438")];
    for gates in [json!([]), json!([warning(throughput("20000"))])] {
        let skipped = judged(&json!({ "gates": gates }), &[trial, trial]);
        assert_eq!(
            (skipped.verdict, skipped.reason),
            (Verdict::Skipped, Reason::NothingToJudge)
        );
    }
}

#[test]
fn a_missed_gate_decides_next_to_an_unmeasured_one() {
    let trial: Values<'_> = &[(Metric::OutputTokenThroughput, "4438")];
    let failed = judged(&json!({"gates": [slowest(), throughput("20000")]}), &[trial; 4]);
    assert_eq!((failed.verdict, failed.reason), (Verdict::Failed, Reason::GatesMissed));
    assert!(
        failed.message.starts_with("throughput 4438 tok/s, 77.8 % below 20000"),
        "{}",
        failed.message
    );
    let met = judged(&json!({"gates": [slowest(), throughput("2000")]}), &[trial; 2]);
    assert_eq!((met.verdict, met.reason), (Verdict::Error, Reason::BenchmarkFailed));
}

#[test]
fn a_throughput_of_zero_with_answers_is_a_miss() {
    let trial: Values<'_> = &[(Metric::OutputTokenThroughput, "0")];
    let failed = judged(&json!({"gates": [throughput("1000")]}), &[trial; 4]);
    assert_eq!((failed.verdict, failed.reason), (Verdict::Failed, Reason::GatesMissed));
    assert_eq!(failed.status.gates[0].result, GateResult::Missed);
}

#[test]
fn a_tiny_threshold_is_shown_as_it_is() {
    let trial: Values<'_> = &[(Metric::OutputTokenThroughput, "1333")];
    let passed = judged(&json!({"gates": [throughput("1n")]}), &[trial; 2]);
    assert!(passed.message.contains("(≥ 0.000000001)"), "{}", passed.message);
}

/// One gate a little below its threshold in each trial, and another one each time. With the worst distance of each trial alone,
/// seven healthy gates failed a third of the runs at a noise of 4.3 %.
#[test]
fn averages_are_judged_gate_by_gate() {
    let metrics = [
        Metric::OutputTokenThroughput,
        Metric::RequestThroughput,
        Metric::OutputTokenThroughputPerUser,
        Metric::InterTokenLatency,
        Metric::RequestLatency,
        Metric::TimeToFirstToken,
        Metric::TimeToSecondToken,
    ];
    let is_rate = |at: usize| at < 3;
    for (gates, trials, low_rate) in [(3, 6, "98"), (7, 7, "96")] {
        let metrics = &metrics[..gates];
        let gate = |(at, metric): (usize, &Metric)| {
            let (name, operator) = (metric.as_str(), if is_rate(at) { ">=" } else { "<=" });
            json!({"name": name, "metric": name, "operator": operator, "threshold": "100"})
        };
        let gates: Vec<Value> = metrics.iter().enumerate().map(gate).collect();
        let value = |at: usize, is_low: bool| match (is_rate(at), is_low) {
            (true, true) => low_rate,
            (true, false) => "109",
            (false, true) => "104",
            (false, false) => "91",
        };
        let trial = |number: usize| -> Vec<(Metric, &str)> {
            let (values, low) = (metrics.iter().enumerate(), number % metrics.len());
            values.map(|(at, metric)| (*metric, value(at, at == low))).collect()
        };
        let trials: Vec<Vec<(Metric, &str)>> = (0..trials).map(trial).collect();
        let trials: Vec<Values<'_>> = trials.iter().map(Vec::as_slice).collect();
        let passed = judged(&json!({ "gates": gates }), &trials);
        assert_eq!(
            (passed.verdict, passed.reason),
            (Verdict::Passed, Reason::GatesMet),
            "{}",
            passed.message
        );
    }
}

fn saved_trial(number: i64, outcome: TrialOutcome, cause: Option<Cause>) -> TrialState {
    TrialState {
        number,
        outcome: Some(outcome),
        causes: cause.iter().map(|cause| cause.as_str().to_owned()).collect(),
        worker_loss: cause.and_then(Cause::worker_loss),
        ..TrialState::default()
    }
}

fn saved_record(throughput: &str) -> TrialRecord {
    TrialRecord {
        workers: balanced(),
        ..record(&[(Metric::OutputTokenThroughput, throughput)])
    }
}

/// Trial 1 was voided by a changed GPU when it was measured.
fn judged_again(gate: &Value, values: [&str; 2], second: TrialOutcome) -> Result<(Verdict, Reason, String), String> {
    let saved = SavedRun {
        trials: vec![
            saved_trial(1, TrialOutcome::Invalid, Some(Cause::GPUChanged)),
            saved_trial(2, second, None),
        ],
        records: [(1, saved_record(values[0])), (2, saved_record(values[1]))].into(),
        diagnosis: vec![Cause::GPUChanged.finding("worker w0 got another GPU")],
    };
    rejudged(gate, &saved)
}

fn rejudged(gate: &Value, saved: &SavedRun) -> Result<(Verdict, Reason, String), String> {
    let spec: PerfValidationSpec = object(&json!({ "gates": [gate] })).spec;
    let mut status = PerfValidationStatus::default();
    let judged = rejudge(&spec, &mut status, saved, &Norms::default(), DateTime::UNIX_EPOCH);
    judged.map(|(verdict, why)| (verdict, why.reason, why.message))
}

#[test]
fn a_voided_trial_does_not_count_when_it_is_judged_again() {
    let near = judged_again(&throughput("800"), ["850", "850"], TrialOutcome::Pass);
    assert!(near.is_err(), "one pass near its gate decides nothing: {near:?}");
    let far = judged_again(&throughput("20000"), ["850", "850"], TrialOutcome::Miss);
    assert!(far.is_err(), "one far miss decides nothing: {far:?}");
}

#[test]
fn a_worker_that_was_lost_in_a_trial_that_is_left_out_still_counts() {
    use TrialOutcome::{Invalid, Miss};
    for (cause, verdict, reason) in [
        (Cause::WorkerCrashed, Verdict::Failed, Reason::WorkerCrashed),
        (Cause::WorkerRestarted, Verdict::Inconclusive, Reason::WorkerRestarted),
    ] {
        let trials = [
            (1, Miss, None),
            (2, Miss, None),
            (3, Invalid, Some(cause)),
            (4, Miss, None),
            (5, Miss, None),
        ];
        let saved = SavedRun {
            trials: trials
                .map(|(number, outcome, cause)| saved_trial(number, outcome, cause))
                .into(),
            records: (1..=5).map(|number| (number, saved_record("850"))).collect(),
            diagnosis: vec![cause.finding("worker w0 ended")],
        };
        let (found, why, message) = rejudged(&throughput("700"), &saved).expect("two passes suffice");
        assert_eq!((found, why), (verdict, reason));
        let evidence = format!("{}: worker w0 ended", cause.as_str());
        assert!(message.starts_with(&evidence), "{message}");
    }
}
