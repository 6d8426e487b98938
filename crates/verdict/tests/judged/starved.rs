//! Load generators that measured themselves: AIPerf and the frontend time the same requests, and compare badly.

use perfval_api::{Metric, Statistic, TrialOutcome};
use perfval_verdict::aiperf::{ErrorKind, Report};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::TrialRecord;
use rust_decimal::Decimal;

use super::{balanced, causes, judged, odd_one, pods, report, sample, seen, set, worker};

/// A recorded export in which a request takes so long (ms), as AIPerf and as the frontend time it.
fn timed(name: &str, aiperf: i64, frontend: i64, edit: impl Fn(&mut Report)) -> TrialRecord {
    let mut record = sample(name, balanced());
    let report = report(&mut record);
    set(report, Metric::RequestLatency, Statistic::Avg, aiperf);
    report.frontend.request_ms = Some(frontend.into());
    edit(report);
    record
}

fn errors(kinds: &[(&str, Option<i64>, i64)]) -> impl Fn(&mut Report) {
    move |report| {
        let kind = |(kind, code, count): &(&str, Option<i64>, i64)| ErrorKind {
            code: *code,
            kind: (*kind).into(),
            message: "text".into(),
            count: *count,
        };
        report.errors = kinds.iter().map(kind).collect();
        report.failed = report.errors.iter().map(|error| error.count).sum();
        report.succeeded -= report.failed;
    }
}

const STARVED: (TrialOutcome, Option<Cause>) = (TrialOutcome::Invalid, Some(Cause::GeneratorStarved));

/// One busy loop beside the demo on two cores: 16 s by AIPerf, 2.991 s by the frontend.
#[test]
fn a_trial_whose_time_passed_outside_of_the_frontend_is_invalid_and_never_a_miss() {
    // The first meets its gates, the second misses them.
    for name in ["success", "slow-worker-kv"] {
        let verdict = judged(&timed(name, 16_000, 2_991, |_| {}), &pods());
        assert_eq!(seen(&verdict), STARVED, "{name}");
        assert_eq!(
            verdict.findings[0].1.evidence,
            "a request took 16 s as the load generator measured it and 2.991 s in the frontend: 81.3 % of the time passed in \
             the load generator or the network"
        );
        assert_eq!(verdict.findings.len(), 1, "{:?}", verdict.findings);
    }
}

#[test]
fn a_frontend_that_is_late_itself_is_no_starved_generator() {
    for (why, aiperf, frontend) in [
        ("throttled to 3 % of a CPU (lab)", 2_649, 2_042),
        ("a healthy lab", 1_277, 1_246),
        ("two H200: the frontend counts a little more than AIPerf", 1_700, 1_755),
        ("milliseconds prove nothing", 120, 40),
    ] {
        let verdict = judged(&timed("success", aiperf, frontend, |_| {}), &pods());
        assert_eq!(seen(&verdict), (TrialOutcome::Pass, None), "{why}");
    }
    // Neither end may be known.
    let unknown = timed("success", 16_000, 0, |report| report.frontend.request_ms = None);
    assert_eq!(seen(&judged(&unknown, &pods())), (TrialOutcome::Pass, None));
}

#[test]
fn failed_requests_that_end_at_once_do_not_look_like_a_starved_generator() {
    // Two H200, one worker dead, least-loaded: the frontend's mean covers 52,414 requests that were refused at once.
    let mut dead = timed("success", 2_065, 161, |report| {
        report.errors = vec![ErrorKind {
            code: Some(500),
            kind: "Internal Server Error".into(),
            message: "Connection refused".into(),
            count: 52_414,
        }];
        (report.failed, report.succeeded) = (52_414, 3_940);
        report.requested = Some(56_354);
    });
    assert_eq!(report(&mut dead).time_outside(), None);
    assert_eq!(
        seen(&judged(&dead, &pods())),
        (TrialOutcome::Miss, Some(Cause::RequestErrors))
    );
}

#[test]
fn requests_that_timed_out_in_a_starved_generator_are_not_errors_of_the_deployment() {
    let late = timed("success", 16_000, 2_991, errors(&[("TimeoutError", None, 40)]));
    let verdict = judged(&late, &pods());
    assert_eq!(seen(&verdict), STARVED);
    let evidence = &verdict.findings[0].1.evidence;
    assert!(evidence.contains(": at least 80.3 % of the time passed"), "{evidence}");
    assert!(evidence.ends_with("; 40 requests timed out"), "{evidence}");

    // An answer of the frontend is the deployment's, and so is a time-out behind a worker that crashed or stalled.
    let miss = |record: &TrialRecord, after: &[perfval_api::WorkerPod], cause: Cause| {
        let verdict = judged(record, after);
        let causes = causes(&verdict);
        assert_eq!(verdict.outcome, TrialOutcome::Miss, "{causes:?}");
        assert!(causes.contains(&cause), "{causes:?}");
        assert!(!causes.contains(&Cause::FrontendBound), "{causes:?}");
    };
    let refused = errors(&[("TimeoutError", None, 30), ("Internal Server Error", Some(500), 10)]);
    miss(&timed("success", 16_000, 2_991, refused), &pods(), Cause::RequestErrors);
    let mut crashed = pods();
    crashed[2].restarts = 1;
    miss(&late, &crashed, Cause::WorkerCrashed);
    let stalled = TrialRecord {
        workers: odd_one(worker("c", 2, 32), |name| worker(name, 17, 32)),
        ..late.clone()
    };
    miss(&stalled, &pods(), Cause::WorkerStall);
    // Without errors a stalled worker is no less stalled.
    let stalled = TrialRecord {
        workers: stalled.workers,
        ..timed("success", 16_000, 2_991, |_| {})
    };
    miss(&stalled, &pods(), Cause::WorkerStall);
}

#[test]
fn a_frontend_is_not_blamed_for_time_that_passed_before_it() {
    // Half of its own time passes outside of the workers, too, and its loop is late: the node has no CPU left.
    let refused = errors(&[("Internal Server Error", Some(500), 40)]);
    let mut record = timed("success", 16_000, 2_991, |report| {
        refused(report);
        report.frontend.loop_delay_ms = Some(Decimal::from(90));
    });
    for worker in &mut record.workers {
        worker.seconds_per_request = Some(Decimal::new(1773, 3));
    }
    let causes = |record: &TrialRecord| causes(&judged(record, &pods()));
    assert_eq!(causes(&record), [Cause::RequestErrors]);
    set(report(&mut record), Metric::RequestLatency, Statistic::Avg, 3_100);
    assert!(causes(&record).contains(&Cause::FrontendBound));
}
