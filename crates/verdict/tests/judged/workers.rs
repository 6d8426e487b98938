//! Workers that changed, stalled, stood still or died, beside their peers.

use perfval_api::{GateResult, RouterMode, Severity, TrialOutcome, WorkerLoss, WorkerStatus};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Failure, Outcome};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, JudgedTrial, judge};
use perfval_verdict::workers::{Drift, Pace, Unit, WorkerSummary};
use rust_decimal::Decimal;

use super::{balanced, first_cause, judged, odd_one, pods, record, sample, spec, worker};

#[test]
fn workers_that_changed_void_a_trial_and_explain_its_errors() {
    let with = |change: fn(&mut Vec<WorkerStatus>)| {
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
    let moved = with(|workers| workers[0].device = Some("n1/gpu-7".into()));
    for (after, cause) in [
        (&restarted, Cause::WorkerCrashed),
        (&replaced, Cause::WorkerRestarted),
        (&moved, Cause::GPUChanged),
        // The more serious of two.
        (&both, Cause::WorkerCrashed),
    ] {
        let verdict = judged(&sample("success", balanced()), after);
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (TrialOutcome::Invalid, Some(cause))
        );
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
fn a_crash_is_told_with_the_exit_code() {
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
fn out_of_time(workers: Vec<WorkerSummary>, after: &[WorkerStatus]) -> JudgedTrial {
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
        (frozen, "worker c (GPU n1/c) stood still for the last 20 s"),
        (cancelled, "worker c stood still for 20 s with 32 requests"),
        (
            worker("c", 0, 32),
            "worker c (GPU n1/c) held up to 32 requests and finished none",
        ),
        (worker("c", 2, 32), "worker c (GPU n1/c) took 16 s for a request"),
    ] {
        let verdict = out_of_time(odd_one(odd, peer), &pods());
        let causes: Vec<Cause> = verdict.findings.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(verdict.outcome, TrialOutcome::Miss, "{explained}");
        assert_eq!(causes, [Cause::WorkerStall, Cause::BenchmarkTimeout], "{explained}");
        let evidence = &verdict.findings[0].1.evidence;
        assert!(evidence.contains(explained), "{evidence}");
        assert!(verdict.gates.iter().all(|gate| gate.result == GateResult::Unmeasured));
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
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (TrialOutcome::Invalid, Some(cause))
        );
        let timeout = verdict
            .findings
            .iter()
            .any(|(cause, _)| *cause == Cause::BenchmarkTimeout);
        assert!(timeout, "{:?}", verdict.findings);
    }
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
    for (workers, explained) in [
        (
            // Three times slower: too little for a pile, enough for both counters to say so.
            odd_one(worker("c", 6, 32), peer),
            "worker c (GPU n1/c) took 5.333 s for a request, its peers 1.882 s",
        ),
        (
            odd_one(worker("c", 2, 32), peer),
            "worker c (GPU n1/c) took 16 s for a request, its peers 1.882 s",
        ),
        (
            odd_one(worker("c", 2, 120), starved),
            "worker c (GPU n1/c) took 60 s for a request, its peers 0.5 s",
        ),
        (
            odd_one(worker("c", 0, 32), peer),
            "worker c (GPU n1/c) held up to 32 requests and finished none",
        ),
        (
            odd_one(frozen, peer),
            "worker c (GPU n1/c) stood still for the last 20 s",
        ),
        (odd_one(never_answered, peer), "worker c (GPU n1/c) never answered"),
    ] {
        let verdict = judged(&sample("success", workers), &pods());
        assert_eq!(
            (verdict.outcome, first_cause(&verdict)),
            (TrialOutcome::Miss, Some(Cause::WorkerStall)),
            "{explained}"
        );
        assert!(verdict.gates.iter().all(|gate| gate.result == GateResult::Met));
        let evidence = &verdict.findings[0].1.evidence;
        assert!(evidence.contains(explained), "{evidence}");
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
        (TrialOutcome::Invalid, Some(Cause::WorkerCrashed))
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
            devices: &[],
            product: None,
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
    assert_eq!(cause(dead, 20, RouterMode::RoundRobin), Some(Cause::WorkerCrashed));
    assert_eq!(cause(dead, 0, RouterMode::LeastLoaded), Some(Cause::RequestErrors));
    // 503 "engine overloaded" came from a worker that was there.
    assert_eq!(
        cause("partial-10pct-503", 20, RouterMode::LeastLoaded),
        Some(Cause::WorkerCrashed)
    );
}

#[test]
fn a_long_trial_that_ends_slower_than_it_began_is_told() {
    let with = |last_but_one: Option<i64>, last: [i64; 4]| {
        let drifting = |(mut worker, last): (WorkerSummary, i64)| {
            worker.drift = Some(Drift {
                first: Decimal::from(1000),
                last_but_one: last_but_one.map(Decimal::from),
                last: last.into(),
            });
            worker
        };
        let workers = balanced().into_iter().zip(last).map(drifting).collect();
        judged(&sample("success", workers), &pods())
    };
    let explained = |verdict: &JudgedTrial| -> Vec<(Cause, String)> {
        let findings = verdict.findings.iter();
        findings
            .map(|(cause, finding)| (*cause, finding.evidence.clone()))
            .collect()
    };
    assert_eq!(explained(&with(None, [1010, 990, 1000, 930])), []);
    // An earlier version recorded the last minute alone.
    for before in [None, Some(930)] {
        let all = with(before, [940, 950, 945, 950]);
        assert_eq!(all.outcome, TrialOutcome::Pass);
        let text = "4000 tokens a second in the first minute and 3785 at most in each of the last two (5.4 % less)";
        assert_eq!(explained(&all), [(Cause::ThroughputDecay, text.to_owned())]);
    }
    let one = with(Some(870), [1000, 1000, 880, 1000]);
    let text = "4000 tokens a second in the first minute and 3880 at most in each of the last two (3 % less); worker c lost 12 %";
    assert_eq!(explained(&one), [(Cause::ThroughputDecay, text.to_owned())]);
    // One slow minute is chance: a healthy trial of 300 s on two H200s ended with one, 5.7 % below the first.
    assert_eq!(explained(&with(Some(990), [940, 945, 870, 940])), []);
}
