//! The only worker of a run next to its earlier runs.

use chrono::DateTime;
use perfval_api::{
    DecodeSpeed, EarlierRun, Environment, OperatorState, PerfValidationSpec, PerfValidationStatus, PlacementStatus,
    PlanDetails, RelativeSpeed, RunStatus, TrialOutcome, Verdict,
};
use perfval_testkit::environment::known;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Failure, Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, judge};
use perfval_verdict::{environment, history};
use rust_decimal::Decimal;

use crate::{close_next, device, evidence, pods, sample, spec, speed, spend_the_latency_in_workers, worker};

/// A run on `GPU-a` after earlier ones that passed (ms from token to token), the newest first.
pub fn after(earlier: &[&str]) -> PerfValidationStatus {
    let entry = |(run, token_ms): (i64, &&str)| EarlierRun {
        run,
        verdict: Some(Verdict::Passed),
        node: Some("n1".into()),
        environment: Some(environment::digest(&known())),
        speeds: vec![DecodeSpeed {
            token_ms: (*token_ms).to_owned(),
            batch: "200".into(),
            gpu: Some("GPU-a".into()),
        }],
        ..EarlierRun::default()
    };
    PerfValidationStatus {
        run: Some(RunStatus {
            number: 100,
            ..RunStatus::default()
        }),
        placement: Some(PlacementStatus {
            node: "n1".into(),
            gpus: 1,
            node_gpus: 8,
            ..PlacementStatus::default()
        }),
        state: Box::new(OperatorState {
            // The first trial adds the version of AIPerf.
            environment: Some(Environment {
                aiperf: None,
                ..known()
            }),
            plan: PlanDetails {
                device_ids: vec![device("a")],
                ..PlanDetails::default()
            },
            history: (1..).zip(earlier).map(entry).collect(),
            ..OperatorState::default()
        }),
        ..PerfValidationStatus::default()
    }
}

/// Closes a trial in which the only worker needed so long from token to token.
pub fn closed(status: &mut PerfValidationStatus, spec: &PerfValidationSpec, token_ms: &str) {
    let mut only = worker("a", 40, 128);
    let token_ms: Decimal = token_ms.parse().expect("a number");
    only.speed = Some(speed(token_ms, None));
    let mut record = sample("success", vec![only]);
    spend_the_latency_in_workers(&mut record);
    let pods = &pods()[..1];
    let evidence = Evidence {
        share: Share { gpus: 1, node_gpus: 8 },
        devices: &status.state.plan.device_ids,
        ..evidence(&record, pods)
    };
    let judged = judge(evidence, spec);
    close_next(spec, status, &judged);
}

#[test]
fn the_token_times_of_all_valid_trials_are_kept() {
    let mut status = after(&[]);
    for token_ms in ["10", "10.5"] {
        closed(&mut status, &spec(), token_ms);
    }
    let only = &status.state.workers[0];
    assert_eq!(only.token_ms_of_trials, ["10", "10.5"]);
    assert_eq!(only.token_microseconds(), [10_000, 10_500]);
}

/// Ten hot minutes are no reference for trials of one minute, nor the other way round.
#[test]
fn a_soak_does_not_replace_the_speed_of_the_trials_before_it() {
    let mut soaked = spec();
    soaked.benchmark.soak = Some("10m".into());
    let mut status = after(&FOUR);
    for token_ms in ["10", "10.2", "12.5"] {
        closed(&mut status, &soaked, token_ms);
    }
    assert!(status.state.trials[2].soak);
    let mut before = after(&FOUR);
    for token_ms in ["10", "10.2"] {
        closed(&mut before, &soaked, token_ms);
    }
    assert_eq!(beside_earlier_runs(&status), beside_earlier_runs(&before));
    let kept = history::with_last(&status, DateTime::UNIX_EPOCH);
    assert_eq!(kept[0].speeds[0].token_ms, "10.2");
    assert_eq!(status.state.workers[0].token_ms_of_trials, ["10", "10.2"]);
}

#[test]
fn a_trial_whose_requests_all_failed_keeps_the_speeds_of_those_before_it() {
    let mut status = after(&FOUR);
    closed(&mut status, &spec(), "10");
    let failure = Failure::AllFailed {
        failed: 8,
        errors: Vec::new(),
    };
    let failed = TrialRecord::new(Outcome::Failure(failure));
    let judged = judge(evidence(&failed, &pods()[..1]), &spec());
    close_next(&spec(), &mut status, &judged);
    assert_eq!(status.state.trials[1].outcome, Some(TrialOutcome::Miss));
    closed(&mut status, &spec(), "10.2");
    assert_eq!(status.state.workers[0].token_ms_of_trials, ["10", "10.2"]);
}

/// Speed of each worker beside its earlier runs.
pub fn beside_earlier_runs(status: &PerfValidationStatus) -> Vec<Option<String>> {
    let shown = |speed: &RelativeSpeed| format!("{speed} of {}", speed.of);
    let workers = status.state.workers.iter();
    workers
        .map(|load| load.percent_of_earlier_runs.as_ref().map(shown))
        .collect()
}

/// What the trial says of the earlier runs, and its causes.
fn earlier_text(mut status: PerfValidationStatus, token_ms: &str) -> (Option<String>, Vec<String>) {
    closed(&mut status, &spec(), token_ms);
    let earlier = beside_earlier_runs(&status).remove(0);
    (earlier, status.state.trials[0].causes.clone())
}

const FOUR: [&str; 4] = ["10", "10.1", "9.9", "10"];

#[test]
fn a_worker_that_became_slow_is_named_with_its_gpu() {
    let mut status = after(&FOUR);
    closed(&mut status, &spec(), "12.5");
    assert_eq!(status.state.trials[0].outcome, Some(TrialOutcome::Pass));
    assert_eq!(status.state.trials[0].causes, ["SlowWorker"]);
    assert_eq!(status.state.trials[0].slow_gpus, ["GPU-a"]);
    assert_eq!(
        status.diagnosis[0].evidence,
        "worker a (n1/a, GPU-a) decodes at 80 % ± 9 % of the speed of its 4 earlier runs: 12.5 ms from token to token with \
         200 requests at a time"
    );
    assert_eq!(beside_earlier_runs(&status), [Some("80 ± 9 of 4".to_owned())]);

    // Slow once more: the history says so.
    status.state.history[0].slow_gpus = vec!["GPU-a".into()];
    status.state.trials.clear();
    closed(&mut status, &spec(), "12.5");
    let evidence = &status.diagnosis[0].evidence;
    assert!(
        evidence.ends_with("GPU-a was slow in run 1 too: replace or drain it"),
        "{evidence}"
    );
}

#[test]
fn a_worker_as_fast_as_before_is_compared_and_not_reported() {
    for (token_ms, percent) in [
        ("10", "100 ± 11.3 of 4"),
        ("10.6", "94.3 ± 10.6 of 4"),
        ("9", "111.1 ± 12.5 of 4"),
    ] {
        assert_eq!(
            earlier_text(after(&FOUR), token_ms),
            (Some(percent.into()), vec![]),
            "{token_ms} ms"
        );
    }
}

#[test]
fn earlier_runs_that_differ_among_themselves_prove_less() {
    let apart = after(&["9", "11", "10", "10"]);
    let (said, causes) = earlier_text(apart, "12.5");
    assert_eq!((said.as_deref(), causes), (Some("79.8 ± 27 of 4"), vec![]));
}

#[test]
fn other_measurements_are_not_compared() {
    type Change = fn(&mut PerfValidationStatus);
    let no_claim: [(&str, Change); 10] = [
        ("two earlier runs", |status| status.state.history.truncate(2)),
        ("another driver", |status| {
            status.state.environment.as_mut().unwrap().gpu_driver = Some("590".into());
        }),
        ("another image", |status| {
            status.state.environment.as_mut().unwrap().image_digest = Some("sha256:bb".into());
        }),
        ("another concurrency", |status| {
            status.state.environment.as_mut().unwrap().settings = Some("89abcdef".into());
        }),
        ("an unknown product", |status| {
            let environment = status.state.environment.as_mut().unwrap();
            environment.gpu_product = None;
            let known = Environment {
                aiperf: known().aiperf,
                ..environment.clone()
            };
            for entry in &mut status.state.history {
                entry.environment = Some(environment::digest(&known));
            }
        }),
        ("another GPU", |status| {
            status.state.plan.device_ids[0].uuid = Some("GPU-b".into());
        }),
        ("another node, if no UUID is known", |status| {
            forget_uuids(status);
            for entry in &mut status.state.history {
                entry.node = Some("n2".into());
            }
        }),
        ("runs that did not pass", |status| {
            for entry in &mut status.state.history {
                entry.verdict = Some(Verdict::Failed);
            }
        }),
        ("the run itself, judged again", |status| {
            status.state.history.truncate(3);
            status.state.judged_run = Some(2);
        }),
        ("several GPUs", |status| status.placement.as_mut().unwrap().gpus = 2),
    ];
    for (what, change) in no_claim {
        let mut status = after(&FOUR);
        change(&mut status);
        assert_eq!(earlier_text(status, "12.5"), (None, vec![]), "{what}");
    }
}

/// As with a device plugin.
fn forget_uuids(status: &mut PerfValidationStatus) {
    status.state.plan.device_ids.clear();
    for entry in &mut status.state.history {
        entry.speeds[0].gpu = None;
    }
}

#[test]
fn runs_on_the_same_node_are_compared_if_no_uuid_is_known() {
    let mut status = after(&FOUR);
    forget_uuids(&mut status);
    let (said, causes) = earlier_text(status, "12.5");
    assert_eq!(said.as_deref(), Some("80 ± 9 of 4"));
    assert_eq!(causes, ["SlowWorker"]);
}

#[test]
fn a_missed_gate_without_a_cause_reports_the_comparison() {
    let mut spec = spec();
    spec.gates[0].threshold = serde_json::from_value(serde_json::json!("1000000")).expect("a threshold");
    let mut status = after(&FOUR);
    closed(&mut status, &spec, "10");
    let found = status
        .diagnosis
        .iter()
        .find(|finding| Cause::from_finding(finding) == Some(Cause::BalancedDegradation));
    let evidence = &found.expect("no worker stands out").evidence;
    assert!(
        evidence.starts_with("there is one worker, and so none to compare it with"),
        "{evidence}"
    );
    assert!(
        evidence.contains("decodes at 100 % ± 11.3 % of the speed of its 4 earlier runs"),
        "{evidence}"
    );

    let mut slow = after(&FOUR);
    closed(&mut slow, &spec, "12.5");
    let causes: Vec<Cause> = slow.diagnosis.iter().filter_map(Cause::from_finding).collect();
    assert!(
        causes.contains(&Cause::SlowWorker) && !causes.contains(&Cause::BalancedDegradation),
        "{causes:?}"
    );
}

#[test]
fn the_history_keeps_the_speed_of_a_run_that_nothing_was_wrong_with() {
    let next = |status: &PerfValidationStatus| history::with_last(status, DateTime::UNIX_EPOCH)[0].speeds.clone();
    let mut good = after(&[]);
    closed(&mut good, &spec(), "10.25");
    let kept = DecodeSpeed {
        token_ms: "10.25".into(),
        batch: "200".into(),
        gpu: Some("GPU-a".into()),
    };
    assert_eq!(next(&good), [kept]);

    let mut slow = after(&FOUR);
    closed(&mut slow, &spec(), "12.5");
    assert_eq!(next(&slow), [], "a slow run is no reference");
    let mut again = good.clone();
    again.state.judged_run = Some(99);
    assert_eq!(next(&again), [], "one measurement counts once");
    let mut two = good;
    two.placement.as_mut().unwrap().gpus = 2;
    assert_eq!(next(&two), []);
}

#[test]
fn judging_again_pushes_no_measurement_out_of_the_history() {
    let mut status = after(&FOUR);
    closed(&mut status, &spec(), "10");
    for _ in 0..8 {
        status.state.history = history::with_last(&status, DateTime::UNIX_EPOCH);
        status.state.judged_run = Some(100);
        status.run.as_mut().expect("a run").number += 1;
    }
    let runs: Vec<i64> = status.state.history.iter().map(|entry| entry.run).collect();
    assert_eq!(runs, [107, 100, 1, 2, 3, 4]);
}
