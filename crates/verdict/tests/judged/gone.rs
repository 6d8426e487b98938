//! Workers that changed, died, restarted or were given nothing, and trials that ran out of time.

use perfval_api::{GateResult, RouterMode, Severity, TrialOutcome, WorkerLoss, WorkerPod};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Failure, Outcome};
use perfval_verdict::trial::{JudgedTrial, judge};
use perfval_verdict::workers::WorkerSummary;

use super::{
    balanced, causes, evidence, first_cause, judged, odd_one, pods, record, results, sample, seen, spec, worker,
};

#[test]
fn workers_that_changed_void_a_trial_and_explain_its_errors() {
    let with = |change: fn(&mut Vec<WorkerPod>)| {
        let mut after = pods();
        change(&mut after);
        after
    };
    let restarted = with(|workers| workers[2].restarts = 1);
    let replaced = with(|workers| workers[1].uid = "uid-new".into());
    let both = with(|workers| {
        workers[0].uid = "uid-new".into();
        workers[2].restarts = 1;
    });
    let moved = with(|workers| workers[0].devices = vec!["n1/gpu-7".into()]);
    for (after, cause) in [
        (&restarted, Cause::WorkerCrashed),
        (&replaced, Cause::WorkerRestarted),
        (&moved, Cause::GPUChanged),
        // The more serious of two.
        (&both, Cause::WorkerCrashed),
    ] {
        let verdict = judged(&sample("success", balanced()), after);
        assert_eq!(seen(&verdict), (TrialOutcome::Invalid, Some(cause)));
        assert_eq!(verdict.worker_loss, cause.worker_loss());
    }
    let verdict = judged(&sample("partial-dead-worker-least-loaded", balanced()), &restarted);
    assert_eq!(
        (verdict.outcome, first_cause(&verdict), verdict.worker_loss),
        (
            TrialOutcome::Miss,
            Some(Cause::DeadWorkerBlackHole),
            Some(WorkerLoss::Crashed)
        )
    );
}

#[test]
fn a_crash_counts_although_the_result_is_incomplete() {
    let mut after = pods();
    after[2].restarts = 1;
    let cancelled = sample("cancelled-failed-request-threshold", balanced());
    let verdict = judged(&cancelled, &after);
    assert_eq!(
        (verdict.outcome, verdict.worker_loss),
        (TrialOutcome::Invalid, Some(WorkerLoss::Crashed))
    );
    assert_eq!(judged(&cancelled, &pods()).worker_loss, None);
}

#[test]
fn a_crash_is_reported_with_the_exit_code() {
    let mut after = pods();
    after[2].restarts = 1;
    after[2].last_exit = Some("exit code 137 (OOMKilled)".into());
    let verdict = judged(&sample("success", balanced()), &after);
    assert_eq!(
        verdict.findings[0].1.evidence,
        "worker c restarted: its container ended with exit code 137 (OOMKilled)"
    );
    assert_eq!(verdict.findings[0].1.severity, Severity::Error);
}

/// What a trial shows that ran into its limit.
fn out_of_time(workers: Vec<WorkerSummary>, after: &[WorkerPod]) -> JudgedTrial {
    let failure = Failure::TimedOut { seconds: 900 };
    judged(&record(Outcome::Failure(failure), workers), after)
}

#[test]
fn a_trial_out_of_time_is_a_miss_where_a_worker_stalled() {
    let peer = |name: &str| worker(name, 17, 32);
    let frozen = WorkerSummary {
        frozen_seconds: 20,
        timeouts: 20,
        ..worker("c", 6, 32)
    };
    // Its requests were cancelled with AIPerf, so its engine seems to have gone on.
    let cancelled = WorkerSummary {
        still_seconds: 20,
        still_in_flight: 32,
        ..worker("c", 17, 32)
    };
    for (odd, explained) in [
        (frozen, "worker c (GPU n1/c) stood still for 20 s and did not go on"),
        (cancelled, "worker c (GPU n1/c) stood still for 20 s with 32 requests"),
        (
            worker("c", 0, 32),
            "worker c (GPU n1/c) held up to 32 requests and finished none",
        ),
        (worker("c", 2, 32), "worker c (GPU n1/c) took 16 s for a request"),
    ] {
        let verdict = out_of_time(odd_one(odd, peer), &pods());
        assert_eq!(verdict.outcome, TrialOutcome::Miss, "{explained}");
        assert_eq!(
            causes(&verdict),
            [Cause::WorkerStall, Cause::BenchmarkTimeout],
            "{explained}"
        );
        let evidence = &verdict.findings[0].1.evidence;
        assert!(evidence.contains(explained), "{evidence}");
        assert_eq!(results(&verdict), [GateResult::Unmeasured; 2]);
        assert_eq!(verdict.workers.len(), 4);
    }
}

#[test]
fn a_trial_out_of_time_is_invalid_where_no_worker_stalled() {
    let peer = |name: &str| worker(name, 17, 32);
    let short = WorkerSummary {
        seconds: 900,
        still_seconds: 8,
        still_in_flight: 32,
        ..worker("c", 17, 32)
    };
    let refuses = WorkerSummary {
        frozen_seconds: 20,
        failures: 20,
        ..worker("c", 10, 32)
    };
    let mut gone = pods();
    gone.remove(2);
    for (workers, after, cause) in [
        (balanced(), pods(), Cause::BenchmarkTimeout),
        (Vec::new(), pods(), Cause::BenchmarkTimeout),
        (odd_one(short, peer), pods(), Cause::BenchmarkTimeout),
        (odd_one(worker("c", 0, 0), peer), pods(), Cause::UnevenService),
        (odd_one(refuses.clone(), peer), pods(), Cause::WorkerCrashed),
        (odd_one(refuses, peer), gone, Cause::WorkerRestarted),
    ] {
        let verdict = out_of_time(workers, &after);
        assert_eq!(seen(&verdict), (TrialOutcome::Invalid, Some(cause)));
        let timeout = causes(&verdict).contains(&Cause::BenchmarkTimeout);
        assert!(timeout, "{:?}", verdict.findings);
    }
}

#[test]
fn an_engine_that_froze_before_its_first_answer_is_named_with_its_gpu() {
    let failure = Failure::AllFailed {
        failed: 44,
        errors: Vec::new(),
    };
    let frozen = WorkerSummary {
        frozen_seconds: 20,
        timeouts: 20,
        ..worker("a", 0, 32)
    };
    let verdict = judged(&record(Outcome::Failure(failure), vec![frozen]), &pods());
    assert_eq!(verdict.outcome, TrialOutcome::Miss);
    assert_eq!(causes(&verdict), [Cause::WorkerStall, Cause::RequestErrors]);
    let evidence = &verdict.findings[0].1.evidence;
    assert!(
        evidence.starts_with("worker a (GPU n1/a) stood still for 20 s and did not go on"),
        "{evidence}"
    );
    assert_eq!(verdict.workers, [], "it measured no speed");
}

#[test]
fn a_worker_that_was_given_nothing_voids_a_trial() {
    let idle = odd_one(worker("c", 0, 0), |name| worker(name, 10, 32));
    let verdict = judged(&sample("success", idle), &pods());
    assert_eq!(seen(&verdict), (TrialOutcome::Invalid, Some(Cause::UnevenService)));

    let verdict = judged(&sample("success", Vec::new()), &pods());
    assert_eq!(seen(&verdict), (TrialOutcome::Pass, Some(Cause::WorkersNotSampled)));
}

#[test]
fn a_process_that_restarted_voids_a_trial_even_before_its_pod_shows_it() {
    let restarted = odd_one(
        WorkerSummary {
            resets: 1,
            ..worker("c", 10, 32)
        },
        |name| worker(name, 10, 32),
    );
    let verdict = judged(&sample("success", restarted.clone()), &pods());
    assert_eq!(seen(&verdict), (TrialOutcome::Invalid, Some(Cause::WorkerCrashed)));
    let verdict = judged(&sample("partial-dead-worker-least-loaded", restarted), &pods());
    assert_eq!(seen(&verdict), (TrialOutcome::Miss, Some(Cause::DeadWorkerBlackHole)));
}

#[test]
fn an_engine_that_hangs_is_not_gone_because_its_page_was_refused_before() {
    let peer = |name: &str| worker(name, 10, 32);
    for (refused_at_end, timeouts, frozen_seconds, outcome, cause) in [
        (Some(0), 0, 6, TrialOutcome::Miss, Cause::WorkerStall),
        (Some(4), 0, 6, TrialOutcome::Invalid, Cause::WorkerCrashed),
        (Some(5), 0, 15, TrialOutcome::Invalid, Cause::WorkerCrashed),
        // Records of earlier versions.
        (None, 60, 60, TrialOutcome::Miss, Cause::WorkerStall),
        (None, 0, 7, TrialOutcome::Invalid, Cause::WorkerCrashed),
    ] {
        let silent = WorkerSummary {
            failures: 7,
            timeouts,
            frozen_seconds,
            refused_at_end,
            ..worker("c", 10, 32)
        };
        let verdict = judged(&sample("success", odd_one(silent, peer)), &pods());
        assert_eq!(seen(&verdict), (outcome, Some(cause)), "{refused_at_end:?}");
    }
}

#[test]
fn a_dead_worker_is_a_black_hole_only_if_the_router_feeds_the_idle_and_the_errors_match() {
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
        spec.dynamo_mut().router_mode = router;
        let verdict = judge(evidence(&record, &pods()), &spec);
        assert_eq!(verdict.outcome, TrialOutcome::Miss);
        first_cause(&verdict)
    };
    let dead = "partial-dead-worker-least-loaded";
    assert_eq!(
        cause(dead, 20, RouterMode::LeastLoaded),
        Some(Cause::DeadWorkerBlackHole)
    );
    assert_eq!(cause(dead, 20, RouterMode::RoundRobin), Some(Cause::WorkerCrashed));
    assert_eq!(cause(dead, 0, RouterMode::LeastLoaded), Some(Cause::RequestErrors));
    // 503 "engine overloaded" came from a worker that was there.
    assert_eq!(
        cause("partial-10pct-503", 20, RouterMode::LeastLoaded),
        Some(Cause::WorkerCrashed)
    );
}
