//! Reasons of a missed trial, and their explanation.

use perfval_api::{Metric, Statistic, TrialOutcome};
use perfval_verdict::aiperf;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::trial::{JudgedTrial, judge};
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;
use serde_json::json;

use super::{balanced, causes, evidence, judged, odd_one, pods, report, sample, seen, set, spec, with_gate, worker};

type Change<'a> = &'a dyn Fn(&mut aiperf::Report);

/// The report of a recorded success, changed.
fn changed_report(change: impl Fn(&mut aiperf::Report), workers: Vec<WorkerSummary>) -> JudgedTrial {
    let mut record = sample("success", workers);
    change(report(&mut record));
    judged(&record, &pods())
}

#[test]
fn a_miss_without_a_stalled_worker_is_explained_by_where_the_time_goes() {
    let ttft_p99 = |value| {
        move |report: &mut aiperf::Report| {
            set(report, Metric::TimeToFirstToken, Statistic::P99, value);
            set(report, Metric::TimeToFirstToken, Statistic::P90, value);
        }
    };

    let tail_to = |p90: i64| {
        move |report: &mut aiperf::Report| {
            ttft_p99(12_000)(report);
            set(report, Metric::TimeToFirstToken, Statistic::P90, p90);
        }
    };
    let slower = |report: &mut aiperf::Report| {
        tail_to(2_000)(report);
        set(report, Metric::OutputTokenThroughput, Statistic::Avg, 1000);
    };
    let queueing = |report: &mut aiperf::Report| {
        ttft_p99(12_000)(report);
        set(report, Metric::TimeToFirstToken, Statistic::P50, 6_000);
        set(report, Metric::RequestLatency, Statistic::P50, 8_000);
    };
    let taking = |milliseconds: i64| {
        move |report: &mut aiperf::Report| {
            ttft_p99(12_000)(report);
            report.frontend.request_ms = Some(Decimal::from(milliseconds));
        }
    };
    let late = |report: &mut aiperf::Report| {
        taking(3_300)(report);
        set(report, Metric::RequestLatency, Statistic::Avg, 12_000);
    };
    let queued = |report: &mut aiperf::Report| {
        ttft_p99(12_000)(report);
        set(report, Metric::RequestLatency, Statistic::Avg, 4_000);
        report.frontend.dispatch_wait_ms = Some(Decimal::from(2_500));
    };
    let late_loop = |hundredths: i64| {
        move |report: &mut aiperf::Report| {
            ttft_p99(12_000)(report);
            report.frontend.loop_delay_ms = Some(Decimal::new(hundredths, 2));
        }
    };
    let slow = |tokens: i64| {
        move |report: &mut aiperf::Report| set(report, Metric::OutputTokenThroughput, Statistic::Avg, tokens)
    };
    let cases: [(Change<'_>, &[Cause]); 14] = [
        (&ttft_p99(2400), &[Cause::KneeJitter]),
        // Half of the requests were late, or all but a few in time.
        (&ttft_p99(12_000), &[Cause::BalancedDegradation]),
        (&tail_to(2_001), &[Cause::BalancedDegradation]),
        (&tail_to(2_000), &[Cause::TailLatency]),
        // A rate that is missed too is no tail.
        (&slower, &[Cause::BalancedDegradation]),
        (&queueing, &[Cause::PastKnee]),
        // A request spends 3.2 s in a worker.
        (&taking(4_050), &[Cause::FrontendBound]),
        (&taking(3_950), &[Cause::BalancedDegradation]),
        // On a busy machine the load generator's own times are no evidence about the frontend: it measured itself.
        (&late, &[Cause::GeneratorStarved]),
        // 3.2 s of 4 s in a worker, but 2.5 s waiting to be sent: both cannot be, and the frontend's own word counts.
        (&queued, &[Cause::FrontendBound]),
        // Its workers wait for a frontend without CPU, so that the time seems to be theirs.
        (&late_loop(500), &[Cause::FrontendBound]),
        (&late_loop(499), &[Cause::BalancedDegradation]),
        (&slow(1000), &[Cause::BalancedDegradation]),
        (&slow(700), &[Cause::FarBelowGate, Cause::BalancedDegradation]),
    ];
    for (at, (change, expected)) in cases.into_iter().enumerate() {
        let judged = changed_report(change, balanced());
        assert_eq!(causes(&judged), expected, "case {at}: {:?}", judged.findings);
    }
    let just_over = changed_report(ttft_p99(2400), balanced());
    assert!(
        just_over.findings[0].1.evidence.contains("off by 20 %"),
        "{just_over:?}"
    );
    assert_eq!(just_over.gates[1].margin_percent.as_deref(), Some("-20"));
    let evidence = &changed_report(tail_to(2_000), balanced()).findings[0].1.evidence;
    assert!(
        evidence.contains("nine of ten requests took at most 2000"),
        "{evidence}"
    );
    // Reported for a trial that passes, too.
    let only_late = |report: &mut aiperf::Report| report.frontend.loop_delay_ms = Some(Decimal::from(7));
    let passed = changed_report(only_late, balanced());
    assert_eq!(seen(&passed), (TrialOutcome::Pass, Some(Cause::FrontendBound)));
    assert_eq!(passed.findings.len(), 1);
    assert!(passed.findings[0].1.evidence.contains("woke 7 ms late"), "{passed:?}");
    // A balance that was not seen is not reported.
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
fn short_answers_blame_no_hardware() {
    let mut spec = spec();
    let length = json!({"name": "length", "metric": "OutputSequenceLength", "operator": ">=", "threshold": "100000"});
    spec.gates = vec![serde_json::from_value(length).expect("a gate")];
    let record = sample("success", balanced());
    let verdict = judge(evidence(&record, &pods()), &spec);
    assert_eq!(seen(&verdict), (TrialOutcome::Miss, None));
}

#[test]
fn a_metric_that_is_not_reported_proves_nothing() {
    let mut spec = with_gate("Goodput", "1");
    let record = sample("success", balanced());
    let workers = pods();
    let evidence = evidence(&record, &workers);
    let verdict = judge(evidence, &spec);
    assert_eq!(seen(&verdict), (TrialOutcome::Invalid, Some(Cause::MetricMissing)));

    spec.gates[2].mode = perfval_api::GateMode::Warn;
    assert_eq!(
        judge(evidence, &spec).outcome,
        TrialOutcome::Pass,
        "a warning gate voids no trial"
    );
}

#[test]
fn every_cause_is_found_again_by_its_word_and_its_remedy() {
    for cause in Cause::ALL {
        let finding = cause.finding("evidence");
        assert_eq!(Cause::from_finding(&finding), Some(cause));
        assert_eq!(
            Cause::from_word(cause.as_str()).map(Cause::as_str),
            Some(cause.as_str())
        );
        assert_eq!(Cause::ALL[Cause::rank(&finding)], cause);
        assert!(!cause.remedy().is_empty());
    }
}

#[test]
fn a_throttled_frontend_is_named_with_the_requests_that_it_failed() {
    let causes = |frontend_ms: i64| {
        let mut record = sample("partial-10pct-503", balanced());
        report(&mut record).frontend.request_ms = Some(frontend_ms.into());
        causes(&judged(&record, &pods()))
    };
    assert_eq!(causes(60_000), [Cause::RequestErrors, Cause::FrontendBound]);
    assert_eq!(causes(2_000), [Cause::RequestErrors]);
}

#[test]
fn a_missing_frontend_is_reported_before_its_failed_requests() {
    let causes = |kind: &str| {
        let mut record = sample("partial-10pct-503", balanced());
        report(&mut record).errors[0].kind = kind.into();
        causes(&judged(&record, &pods()))
    };
    assert_eq!(
        causes("ServerDisconnectedError"),
        [Cause::FrontendLost, Cause::RequestErrors]
    );
    // A worker that answers too late, or with nonsense, is not the frontend.
    assert_eq!(causes("TimeoutError"), [Cause::RequestErrors]);
    assert_eq!(causes("InvalidInferenceResultError"), [Cause::RequestErrors]);
}

#[test]
fn the_distance_of_an_average_counts_unless_something_else_made_it_a_miss() {
    let margin = |change: Change<'_>| {
        let trial = changed_report(change, balanced());
        trial.margins.first().map(ToString::to_string)
    };
    let throughput =
        |value| move |report: &mut aiperf::Report| set(report, Metric::OutputTokenThroughput, Statistic::Avg, value);
    assert_eq!(margin(&throughput(1650)).as_deref(), Some("10"));
    assert_eq!(margin(&throughput(1485)).as_deref(), Some("-1"));
    let both = |report: &mut aiperf::Report| {
        throughput(1485)(report);
        set(report, Metric::TimeToFirstToken, Statistic::P99, 12_000);
    };
    assert_eq!(margin(&both), None, "a percentile was missed too");
    assert_eq!(margin(&|report| report.failed = report.succeeded), None);
    assert_eq!(margin(&|report| report.cancelled = true), None);
}
