//! Gates on the approved baseline of the run's environment.

use perfval_api::fleet::PerfBaseline;
use perfval_api::{Environment, GateResult, PerfValidationSpec, PerfValidationStatus, TrialOutcome};
use perfval_testkit::environment::known as environment;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::environment::digest;
use perfval_verdict::norms::{Norm, Norms};
use perfval_verdict::trial::{Evidence, JudgedTrial, judge};
use perfval_verdict::workers::WorkerSummary;
use serde_json::{Value, json};

use crate::{balanced, close_next, evidence, peers, pods, sample, spec, speed};

fn norm(tokens_per_second: i64) -> Norm {
    Norm {
        baseline: "h100".to_owned(),
        revision: 2,
        decode_speed: tokens_per_second.into(),
    }
}

/// Workers whose engines report these times from one token to the next (ms).
fn workers(token_ms: &[i64]) -> Vec<WorkerSummary> {
    let mut workers = balanced();
    workers.truncate(token_ms.len());
    for (worker, token_ms) in workers.iter_mut().zip(token_ms) {
        worker.speed = Some(speed(*token_ms, None));
    }
    workers
}

fn with_gate(gate: &Value) -> PerfValidationSpec {
    let mut spec = spec();
    let mut whole = json!({"name": "norm", "metric": "BaselinePercent", "operator": ">=", "threshold": "90"});
    for (key, value) in gate.as_object().expect("fields") {
        whole[key] = value.clone();
    }
    spec.gates.push(serde_json::from_value(whole).expect("a gate"));
    spec
}

fn judged(workers: Vec<WorkerSummary>, spec: &PerfValidationSpec, norm: Option<&Norm>) -> JudgedTrial {
    let pods = &pods()[..workers.len()];
    let record = sample("success", workers);
    let evidence = Evidence {
        norm,
        ..evidence(&record, pods)
    };
    judge(evidence, spec)
}

/// Findings of a run after these trials, whose workers need so long for a token (ms). `peers`: percent of their peers' speed.
fn findings(
    spec: &PerfValidationSpec,
    norm: &Norm,
    trials: &[(&[i64], &[i64])],
) -> (Vec<TrialOutcome>, Vec<(String, String)>) {
    let mut status = PerfValidationStatus::default();
    for (token_ms, percents) in trials {
        let mut workers = workers(token_ms);
        for (worker, percent) in workers.iter_mut().zip(*percents) {
            worker.speed.as_mut().expect("a speed").peers = Some(peers(*percent, 1));
        }
        close_next(spec, &mut status, &judged(workers, spec, Some(norm)));
    }
    let outcomes = status.state.trials.iter().filter_map(|trial| trial.outcome);
    let found = status.diagnosis.iter();
    let found = found.map(|finding| (finding.cause.clone(), finding.evidence.clone()));
    (outcomes.collect(), found.collect())
}

#[test]
fn the_slowest_worker_decides() {
    let one_slow = || workers(&[10, 10, 12, 10]);
    let met = judged(one_slow(), &with_gate(&json!({"threshold": "83"})), Some(&norm(100)));
    assert_eq!(met.outcome, TrialOutcome::Pass);
    assert_eq!(met.gates[2].observed.as_deref(), Some("83.33"));
    // Compared exactly.
    let missed = judged(
        one_slow(),
        &with_gate(&json!({"threshold": "83.3334"})),
        Some(&norm(100)),
    );
    assert_eq!(missed.outcome, TrialOutcome::Miss);
    let tolerant = with_gate(&json!({"tolerancePercent": 10}));
    assert_eq!(
        judged(one_slow(), &tolerant, Some(&norm(100))).outcome,
        TrialOutcome::Pass
    );
    // A missed gate of mode Warn explains nothing.
    let warned = judged(one_slow(), &with_gate(&json!({"mode": "Warn"})), Some(&norm(100)));
    assert_eq!((warned.outcome, warned.below_baseline), (TrialOutcome::Pass, None));
    assert_eq!(warned.gates[2].result, GateResult::Warned);
}

#[test]
fn workers_below_the_baseline_share_the_cause_unless_peers_name_one() {
    let spec = with_gate(&json!({}));
    let alike: &[i64] = &[100; 4];
    let below = |token_ms: &[i64], percents: &[i64], norm_of: i64| {
        let (outcomes, found) = findings(&spec, &norm(norm_of), &[(token_ms, percents)]);
        assert_eq!(outcomes, [TrialOutcome::Miss]);
        found
    };
    let [(cause, text)] = &below(&[12, 11, 12, 11], alike, 105)[..] else {
        panic!("one cause");
    };
    assert_eq!(cause, "BalancedDegradation");
    assert!(
        text.ends_with("; 4 of 4 workers miss gate norm; the slowest, a (GPU n1/a), decodes at 79.3 % of the 105 tok/s of baseline h100 (revision 2)"),
        "{text}"
    );
    // A slow host: some of the workers are just below, and none is slower than its peers.
    let found = below(&[11, 11, 11, 11], &[101, 100, 99, 100], 102);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].0 == "BalancedDegradation" && found[0].1.contains("baseline h100"),
        "{found:?}"
    );
    let found = below(&[10, 10, 12, 10], &[101, 101, 83, 101], 100);
    let [(cause, text)] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(
        cause == "SlowWorker" && text.starts_with("worker c (GPU n1/c) decodes at 83 %"),
        "{text}"
    );
    assert!(text.contains("1 of 4 workers miss gate norm"), "{text}");
    let only = below(&[12], &[], 100);
    assert_eq!(only[0].0, "BalancedDegradation");
    assert!(
        only[0].1.contains("the only worker, a (GPU n1/a), decodes at 83.3 %"),
        "{only:?}"
    );
}

/// One trial alone shows a slow worker, and all trials together show none.
#[test]
fn a_miss_keeps_a_cause_if_later_trials_clear_a_worker() {
    let spec = with_gate(&json!({}));
    let trial = |percent| ([12_i64; 4], [101, 101, percent, 101]);
    let trials = [trial(101), trial(101), trial(93)];
    let trials: Vec<(&[i64], &[i64])> = trials
        .iter()
        .map(|(token_ms, percents)| (&token_ms[..], &percents[..]))
        .collect();
    let (outcomes, found) = findings(&spec, &norm(100), &trials);
    assert_eq!(outcomes, [TrialOutcome::Miss; 3]);
    assert!(
        found.iter().any(|(_, evidence)| evidence.contains("baseline h100")),
        "{found:?}"
    );
}

#[test]
fn without_a_baseline_the_trial_counts_and_the_gap_is_reported() {
    let trial = judged(workers(&[10; 4]), &with_gate(&json!({})), None);
    assert_eq!(trial.outcome, TrialOutcome::Pass);
    assert_eq!(trial.gates[2].result, GateResult::Unmeasured);
    let unseen: Vec<Cause> = trial.unseen.iter().map(|(cause, _)| *cause).collect();
    assert!(unseen.contains(&Cause::BaselineMissing), "{unseen:?}");
    let without_gate = judged(workers(&[10; 4]), &spec(), None);
    assert!(
        without_gate
            .unseen
            .iter()
            .all(|(cause, _)| *cause != Cause::BaselineMissing)
    );
}

#[test]
fn workers_without_a_speed_make_a_trial_that_proves_nothing() {
    let mut one_unknown = workers(&[10; 4]);
    one_unknown[1].speed = None;
    for workers in [balanced(), one_unknown] {
        let trial = judged(workers.clone(), &with_gate(&json!({})), Some(&norm(100)));
        assert_eq!(trial.outcome, TrialOutcome::Invalid);
        assert_eq!(trial.findings[0].0, Cause::MetricMissing);
        let warning = judged(workers, &with_gate(&json!({"mode": "Warn"})), Some(&norm(100)));
        assert_eq!(warning.outcome, TrialOutcome::Pass);
    }
}

/// Baseline of the environment, of which revision 2 is approved; `change` replaces fields.
fn baseline(change: &Value) -> PerfBaseline {
    let revision = json!({"revision": 2, "createdAt": "2026-11-01T00:00:00Z", "metrics": [{"name": "DecodeSpeed", "centre": "100"}]});
    let mut object = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline",
        "metadata": {"name": "h100", "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"environment": {"digest": digest(&environment())}, "source": "Learned", "approvedRevision": 2},
        "status": {"observedGeneration": 1, "approved": revision},
    });
    for (part, fields) in change.as_object().expect("parts") {
        for (key, value) in fields.as_object().expect("fields") {
            object[part][key] = value.clone();
        }
    }
    serde_json::from_value(object).expect("a baseline")
}

#[test]
fn the_oldest_approved_baseline_of_the_very_same_environment_counts() {
    let record = sample("success", workers(&[10; 4]));
    let found = |baselines: &[PerfBaseline], environment: &Environment| {
        let norms = Norms::new(baselines);
        norms.find(Some(environment), &record).cloned()
    };
    let plain = || baseline(&json!({}));
    assert_eq!(found(&[plain()], &environment()), Some(norm(100)));
    // The record has the version of AIPerf before the environment has it.
    let before_the_first_trial = Environment {
        aiperf: None,
        ..environment()
    };
    assert_eq!(found(&[plain()], &before_the_first_trial), Some(norm(100)));
    let other_driver = Environment {
        gpu_driver: Some("590.1".into()),
        ..environment()
    };
    assert_eq!(found(&[plain()], &other_driver), None);
    // Of two unknown products one may be an A100 and the other an H100.
    let unknown = Environment {
        gpu_product: None,
        ..environment()
    };
    let of_unknown = json!({"spec": {"environment": {"digest": digest(&unknown)}}});
    assert_eq!(found(&[baseline(&of_unknown)], &unknown), None);
    for change in [
        json!({"spec": {"approvedRevision": 3}}),
        json!({"spec": {"approvedRevision": null}}),
        json!({"status": {"approved": null}}),
        json!({"metadata": {"deletionTimestamp": "2026-11-02T00:00:00Z"}}),
        json!({"status": {"approved": {"revision": 2, "createdAt": "2026-11-01T00:00:00Z",
            "metrics": [{"name": "DecodeSpeed", "centre": "0"}]}}}),
    ] {
        assert_eq!(found(&[baseline(&change)], &environment()), None, "{change}");
    }
    let older = baseline(&json!({"metadata": {"name": "older", "creationTimestamp": "2026-10-01T00:00:00Z"}}));
    let waiting = baseline(&json!({
        "metadata": {"name": "waiting", "creationTimestamp": "2026-09-01T00:00:00Z"}, "spec": {"approvedRevision": null},
    }));
    let chosen = found(&[plain(), older, waiting], &environment()).expect("one");
    assert_eq!(chosen.baseline, "older");
}

/// Errors decide first: the survivors of a dead worker are slower than the baseline, too.
#[test]
fn a_trial_that_errors_decide_is_not_explained_by_the_baseline() {
    let record = sample("partial-10pct-503", workers(&[12; 4]));
    let (spec, norm, pods) = (with_gate(&json!({})), norm(100), pods());
    let evidence = Evidence {
        norm: Some(&norm),
        ..evidence(&record, &pods)
    };
    let trial = judge(evidence, &spec);
    assert_eq!((trial.outcome, trial.below_baseline), (TrialOutcome::Miss, None));
    assert_eq!(trial.gates[2].result, GateResult::Missed);
}
