//! Trials judged: every recorded export, and what the workers add to it.

use std::collections::{BTreeMap, BTreeSet};

use perfval_api::{GateResult, Metric, PerfValidationSpec, RouterMode, Statistic, TrialOutcome, WorkerStatus};
use perfval_core::aiperf;
use perfval_core::diagnosis::cause::Cause;
use perfval_core::frame::{Failure, Outcome, TrialRecord};
use perfval_core::gate::Share;
use perfval_core::trial::{Evidence, Verdict, judge};
use perfval_core::workers::{Pace, Unit, WorkerSummary};
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
        address: Some(name.to_owned()),
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
    let path = format!("tests/fixtures/aiperf-{name}.json");
    let export = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let report = aiperf::parse(&export).unwrap_or_else(|error| panic!("{name}: {error}"));
    record(Outcome::Report(Box::new(report)), workers)
}

fn first_cause(verdict: &Verdict) -> Option<Cause> {
    verdict.findings.first().map(|(cause, _)| *cause)
}

/// As in every healthy run: nearly all of a request's time passes in a worker.
fn spend_the_latency_in_workers(record: &mut TrialRecord) {
    if let Outcome::Report(report) = &record.outcome {
        let latency = report.value(Metric::RequestLatency, Statistic::Avg);
        for worker in &mut record.workers {
            worker.seconds_per_request = latency.map(|ms| ms / Decimal::from(1050));
        }
    }
}

#[test]
fn every_recorded_export_is_judged_for_what_it_is() {
    use TrialOutcome::{Invalid, Miss, Pass};
    let cases = [
        ("success", Pass, None),
        ("success-client-tokenized", Pass, None),
        ("0.12.0-success", Pass, None),
        ("0.11.0-dead-worker-least-loaded", Miss, Some(Cause::RequestErrors)),
        // 560 of 1,500 tok/s: one worker of four was 10 × slower, which its peers' metrics would tell.
        ("slow-worker-round-robin", Miss, Some(Cause::FarBelowGate)),
        ("slow-worker-kv", Miss, Some(Cause::BalancedDegradation)),
        // TTFT p99 2,499 ms against 2,000, throughput met.
        ("slow-worker-least-loaded", Miss, Some(Cause::KneeJitter)),
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
        let mut record = sample(name, balanced());
        spend_the_latency_in_workers(&mut record);
        let verdict = judged(&record, &pods());
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

/// Worker `c` is the odd one out of four.
fn odd_one(odd: WorkerSummary, peer: impl Fn(&str) -> WorkerSummary) -> Vec<WorkerSummary> {
    vec![peer("a"), peer("b"), odd, peer("d")]
}

#[test]
fn a_stalled_worker_is_a_miss_although_every_gate_is_met() {
    let peer = |name: &str| worker(name, 17, 32);
    // Round-robin: the pile starves the others, which showed at first what they can do.
    let starved = |name: &str| WorkerSummary {
        pace: Some(Pace {
            unit: Unit::Tokens,
            mean: Decimal::from(128),
            best: Decimal::from(1100),
        }),
        ..worker(name, 2, 1)
    };
    let never_answered = WorkerSummary {
        address: "c".into(),
        timeouts: 30,
        ..WorkerSummary::default()
    };
    let frozen = WorkerSummary {
        frozen_seconds: 20,
        timeouts: 20,
        ..worker("c", 6, 32)
    };
    for (workers, told) in [
        (
            // Three times slower: too little for a pile, enough for both counters to say so.
            odd_one(worker("c", 6, 32), peer),
            "worker c took 5.333 s for a request, its peers 1.882 s",
        ),
        (
            odd_one(worker("c", 2, 32), peer),
            "worker c took 16 s for a request, its peers 1.882 s",
        ),
        (
            odd_one(worker("c", 2, 120), starved),
            "worker c took 60 s for a request, its peers 0.5 s",
        ),
        (
            odd_one(worker("c", 0, 32), peer),
            "worker c held up to 32 requests and finished none",
        ),
        (odd_one(frozen, peer), "worker c stood still for the last 20 s"),
        (odd_one(never_answered, peer), "worker c never answered"),
    ] {
        let verdict = judged(&sample("success", workers), &pods());
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (TrialOutcome::Miss, Some(Cause::WorkerStall)),
            "{told}"
        );
        assert!(verdict.gates.iter().all(|gate| gate.result == GateResult::Met));
        let evidence = &verdict.findings[0].1.evidence;
        assert!(evidence.contains(told), "{evidence}");
    }
}

#[test]
fn an_uneven_load_is_no_stalled_worker() {
    let peer = |name: &str| worker(name, 17, 32);
    let pace = |mean: i64, best: i64| {
        Some(Pace {
            unit: Unit::Tokens,
            mean: mean.into(),
            best: best.into(),
        })
    };
    let little_slower = WorkerSummary {
        pace: pace(1000, 1100),
        ..worker("c", 16, 96)
    };
    let almost_idle = |name: &str| WorkerSummary {
        pace: pace(1024, 1200),
        ..worker(name, 16, 9)
    };
    for (why, workers) in [
        ("noise", odd_one(worker("c", 12, 40), peer)),
        (
            "kv gives nearly all to one worker",
            odd_one(worker("c", 150, 303), |name| worker(name, 1, 1)),
        ),
        ("kv gives little to one worker", odd_one(worker("c", 2, 3), peer)),
        (
            "a pile that a little slower worker gets in a long run",
            odd_one(little_slower, almost_idle),
        ),
        (
            "too few requests to compare",
            odd_one(
                WorkerSummary {
                    served: 1,
                    ..worker("c", 1, 32)
                },
                |name| WorkerSummary {
                    served: 9,
                    ..worker(name, 17, 32)
                },
            ),
        ),
        ("nobody to compare with", vec![worker("c", 2, 32)]),
    ] {
        let verdict = judged(&sample("success", workers), &pods());
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (TrialOutcome::Pass, None),
            "{why}"
        );
    }
}

#[test]
fn a_freeze_that_ended_is_told_and_is_no_miss() {
    let peer = |name: &str| worker(name, 17, 32);
    let froze = |peers_too: i64| {
        let frozen = WorkerSummary {
            still_seconds: 10,
            still_in_flight: 32,
            timeouts: 9,
            ..worker("c", 11, 32)
        };
        odd_one(frozen, move |name| WorkerSummary {
            still_seconds: peers_too,
            ..peer(name)
        })
    };
    let verdict = judged(&sample("success", froze(0)), &pods());
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Pass, Some(Cause::TransientStall))
    );
    let evidence = &verdict.findings[0].1.evidence;
    assert!(
        evidence.contains("worker c stood still for 10 s with 32 requests"),
        "{evidence}"
    );
    // Long prompts stop all of them now and then.
    assert_eq!(first_cause(&judged(&sample("success", froze(6)), &pods())), None);

    // What it held may have failed meanwhile.
    let verdict = judged(&sample("partial-10pct-503", froze(0)), &pods());
    let causes: Vec<Cause> = verdict.findings.iter().map(|(cause, _)| *cause).collect();
    assert_eq!(verdict.outcome, TrialOutcome::Miss);
    assert!(
        causes.contains(&Cause::RequestErrors) && causes.contains(&Cause::TransientStall),
        "{causes:?}"
    );
}

#[test]
fn a_worker_that_was_given_nothing_voids_a_trial() {
    let idle = odd_one(worker("c", 0, 0), |name| worker(name, 10, 32));
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
fn a_process_that_restarted_voids_a_trial_even_if_its_pod_does_not_say_so_yet() {
    let restarted = odd_one(
        WorkerSummary {
            resets: 1,
            ..worker("c", 10, 32)
        },
        |name| worker(name, 10, 32),
    );
    let verdict = judged(&sample("success", restarted.clone()), &pods());
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Invalid, Some(Cause::WorkerRestarted))
    );
    let verdict = judged(&sample("partial-dead-worker-least-loaded", restarted), &pods());
    assert_eq!(
        (verdict.outcome, first_cause(&verdict)),
        (TrialOutcome::Miss, Some(Cause::DeadWorkerBlackHole))
    );
}

#[test]
fn a_dead_worker_is_a_black_hole_only_where_the_router_feeds_the_idle_and_the_errors_say_so() {
    let refused = |failures: i64| {
        odd_one(
            WorkerSummary {
                failures,
                frozen_seconds: failures,
                ..worker("c", 10, 32)
            },
            |name| worker(name, 10, 32),
        )
    };
    let cause = |name: &str, failures: i64, router: RouterMode| {
        let record = sample(name, refused(failures));
        let mut spec = spec();
        spec.workload.router_mode = router;
        let workers = pods();
        let evidence = Evidence {
            record: &record,
            before: &workers,
            after: &workers,
            share: Share { gpus: 4, node_gpus: 8 },
        };
        let verdict = judge(evidence, &spec);
        assert_eq!(verdict.outcome, TrialOutcome::Miss);
        first_cause(&verdict)
    };
    let dead = "partial-dead-worker-least-loaded";
    assert_eq!(
        cause(dead, 20, RouterMode::LeastLoaded),
        Some(Cause::DeadWorkerBlackHole)
    );
    assert_eq!(cause(dead, 20, RouterMode::RoundRobin), Some(Cause::WorkerRestarted));
    assert_eq!(cause(dead, 0, RouterMode::LeastLoaded), Some(Cause::RequestErrors));
    // 503 "engine overloaded" came from a worker that was there.
    assert_eq!(
        cause("partial-10pct-503", 20, RouterMode::LeastLoaded),
        Some(Cause::WorkerRestarted)
    );
}

/// The report of a recorded success, changed.
fn changed_report(change: impl Fn(&mut aiperf::Report), workers: Vec<WorkerSummary>) -> Verdict {
    let mut record = sample("success", workers);
    let Outcome::Report(report) = &mut record.outcome else {
        panic!("a report")
    };
    change(report);
    judged(&record, &pods())
}

fn set(report: &mut aiperf::Report, metric: Metric, statistic: Statistic, value: i64) {
    report
        .metrics
        .entry(metric)
        .or_default()
        .insert(statistic, value.into());
}

#[test]
fn a_miss_without_a_stalled_worker_is_explained_by_where_the_time_goes() {
    let causes = |verdict: &Verdict| -> Vec<Cause> { verdict.findings.iter().map(|(cause, _)| *cause).collect() };
    let ttft_p99 =
        |value| move |report: &mut aiperf::Report| set(report, Metric::TimeToFirstToken, Statistic::P99, value);

    let just_over = changed_report(ttft_p99(2400), balanced());
    assert_eq!(causes(&just_over), [Cause::KneeJitter]);
    assert!(
        just_over.findings[0].1.evidence.contains("off by 20 %"),
        "{just_over:?}"
    );
    assert_eq!(just_over.gates[1].margin_percent.as_deref(), Some("-20"));

    let far_over = changed_report(ttft_p99(12_000), balanced());
    assert_eq!(causes(&far_over), [Cause::BalancedDegradation]);

    let queueing = |report: &mut aiperf::Report| {
        ttft_p99(12_000)(report);
        set(report, Metric::TimeToFirstToken, Statistic::P50, 6_000);
        set(report, Metric::RequestLatency, Statistic::P50, 8_000);
    };
    assert_eq!(causes(&changed_report(queueing, balanced())), [Cause::PastKnee]);

    // A request takes 10 s, 3.2 of them in a worker.
    let on_the_way = |report: &mut aiperf::Report| {
        ttft_p99(12_000)(report);
        set(report, Metric::RequestLatency, Statistic::Avg, 10_000);
    };
    let verdict = changed_report(on_the_way, balanced());
    assert_eq!(causes(&verdict), [Cause::FrontendBound]);
    // 3.2 s of 4 s in a worker, but 2.5 s waiting to be sent: both cannot be, and the frontend's own word counts.
    let queued = |report: &mut aiperf::Report| {
        ttft_p99(12_000)(report);
        set(report, Metric::RequestLatency, Statistic::Avg, 4_000);
        report.dispatch_wait_ms = Some(Decimal::from(2_500));
    };
    assert_eq!(causes(&changed_report(queued, balanced())), [Cause::FrontendBound]);

    let slow = |tokens: i64| {
        move |report: &mut aiperf::Report| set(report, Metric::OutputTokenThroughput, Statistic::Avg, tokens)
    };
    assert_eq!(
        causes(&changed_report(slow(1000), balanced())),
        [Cause::BalancedDegradation]
    );
    assert_eq!(
        causes(&changed_report(slow(700), balanced())),
        [Cause::FarBelowGate, Cause::BalancedDegradation]
    );
    // Nothing is said of a balance that was not seen.
    assert_eq!(
        causes(&changed_report(slow(700), Vec::new())),
        [Cause::WorkersNotSampled]
    );
    let uneven = odd_one(worker("c", 4, 8), |name| worker(name, 10, 20));
    assert_eq!(causes(&changed_report(slow(700), uneven)), []);
}

#[test]
fn workers_are_shown_by_their_pods_the_slowest_first() {
    let mut after = pods();
    after[2].pod = "pv-1-worker-x7k2".into();
    let verdict = judged(&sample("success", balanced()), &after);
    let shown: Vec<_> = verdict
        .workers
        .iter()
        .map(|worker| {
            (
                worker.name.as_str(),
                worker.served,
                worker.requests_per_second.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("d", Some(270), Some("9")),
            ("a", Some(300), Some("10")),
            ("b", Some(300), Some("10")),
            ("pv-1-worker-x7k2", Some(330), Some("11"))
        ]
    );
    assert_eq!(verdict.workers[0].tokens_per_second.as_deref(), Some("576"));
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
        assert_eq!(Cause::ALL[Cause::rank(cause.as_str())], cause);
        assert!(!cause.remedy().is_empty());
    }
}
