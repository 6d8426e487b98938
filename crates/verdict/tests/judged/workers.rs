//! Workers that stalled, stood still or became slower, beside their peers.

use perfval_api::{GateResult, TrialOutcome};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::trial::JudgedTrial;
use perfval_verdict::workers::{Drift, Pace, Unit, WorkerSummary};
use rust_decimal::Decimal;

use super::{balanced, causes, first_cause, judged, odd_one, pods, results, sample, seen, worker};

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
            // Three times slower: too little for a pile, enough for both counters.
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
            "worker c (GPU n1/c) stood still for 20 s and did not go on",
        ),
        (odd_one(never_answered, peer), "worker c (GPU n1/c) never answered"),
    ] {
        let verdict = judged(&sample("success", workers), &pods());
        assert_eq!(
            seen(&verdict),
            (TrialOutcome::Miss, Some(Cause::WorkerStall)),
            "{explained}"
        );
        assert_eq!(results(&verdict), [GateResult::Met; 2]);
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
        assert_eq!(seen(&verdict), (TrialOutcome::Pass, None), "{why}");
    }
}

#[test]
fn a_freeze_that_ended_is_reported_and_is_no_miss() {
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
    assert_eq!(seen(&verdict), (TrialOutcome::Pass, Some(Cause::TransientStall)));
    let evidence = &verdict.findings[0].1.evidence;
    assert!(
        evidence.contains("worker c (GPU n1/c) stood still for 10 s with 32 requests"),
        "{evidence}"
    );
    // Long prompts stop all of them now and then.
    assert_eq!(first_cause(&judged(&sample("success", froze(6)), &pods())), None);

    // What it held may have failed meanwhile.
    let verdict = judged(&sample("partial-10pct-503", froze(0)), &pods());
    let causes = causes(&verdict);
    assert_eq!(verdict.outcome, TrialOutcome::Miss);
    assert!(
        causes.contains(&Cause::RequestErrors) && causes.contains(&Cause::TransientStall),
        "{causes:?}"
    );
}

#[test]
fn a_long_trial_that_ends_slower_than_it_began_is_reported() {
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
    let one_of_faster = with(Some(870), [1100, 1100, 880, 1100]);
    let text = "4000 tokens a second in the first minute and 4180 at most in each of the last two (4.5 % more); worker c lost 12 %";
    assert_eq!(explained(&one_of_faster), [(Cause::ThroughputDecay, text.to_owned())]);
    // One slow minute is chance: a healthy trial of 300 s on two H200s ended with one, 5.7 % below the first.
    assert_eq!(explained(&with(Some(990), [940, 945, 870, 940])), []);
}
