//! Jobs are ours by their uid: one of another maker is not read, one that is gone is not made again.

use perfval_api::{Phase, TrialOutcome};
use perfval_run::observed::{Probe, ProbeAnswer};
use perfval_run::{Decision, Effect, names};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Failure, Outcome};
use serde_json::{Value, json};

use super::moments::fills_cache;
use super::story::{Showing, Story};

fn causes(story: &Story) -> Vec<Cause> {
    let found = story.status().diagnosis;
    found.iter().filter_map(Cause::from_finding).collect()
}

/// A run whose first trial is open; no Job of it was seen yet.
fn opened() -> Story {
    let mut story = Story::with(json!({"trials": {"rule": "Single", "max": 5}}));
    story.until(Phase::Benchmarking);
    story.until_trial(1);
    story
}

/// A run whose first trial's Job was seen at work.
fn under_way() -> Story {
    let mut story = opened();
    story.showing = Showing::Hang;
    story.step();
    story.wait(20);
    story.step();
    assert!(
        story.status().state.trials[0].job_uid.is_some(),
        "the Job's uid is recorded"
    );
    story
}

fn creates_jobs(decision: &Decision) -> usize {
    let creates = |effect: &&Effect| matches!(effect, Effect::CreateTrialJob(_) | Effect::CreateCacheJob(_));
    decision.effects.iter().filter(creates).count()
}

#[test]
fn a_result_of_a_job_that_another_client_made_changes_nothing() {
    let mut story = opened();
    (story.trial_job, story.job_owner) = (Some(1), Some("u-of-another-owner"));
    let decision = story.step();
    assert_eq!(creates_jobs(&decision), 0);
    story.assert_error("NameTaken");
    assert!(
        story.status().state.metrics.is_none() && story.status().gates.is_empty(),
        "nothing of it was read"
    );
}

#[test]
fn a_job_that_was_never_seen_is_created_again() {
    let mut story = opened();
    assert_eq!(creates_jobs(&story.step()), 1);
    story.trial_job = None;
    assert_eq!(
        creates_jobs(&story.step()),
        1,
        "a lost answer and a crash look like this"
    );
    assert_eq!(story.status().state.trials[0].outcome, None);
}

#[test]
fn a_trial_whose_job_vanished_is_invalid_and_the_next_one_follows() {
    let mut story = under_way();
    story.trial_job = None;
    let decision = story.step();
    assert_eq!(creates_jobs(&decision), 0, "never silently again");
    let lost = &story.status().state.trials[0];
    assert_eq!(
        (lost.outcome, lost.causes.as_slice()),
        (Some(TrialOutcome::Invalid), &["BenchmarkFailed".to_owned()][..])
    );
    let found = story.status().diagnosis;
    assert_eq!(Cause::from_finding(&found[0]), Some(Cause::JobLost));
    assert!(
        found[0].evidence.contains("the Job of trial 1 is gone"),
        "{}",
        found[0].evidence
    );

    story.showing = Showing::Fast;
    story.assert_passes();
    assert_eq!(story.status().state.trials.len(), 2);
}

#[test]
fn after_a_trial_that_shows_nothing_the_endpoint_has_to_answer_again() {
    let mut story = under_way();
    // A node that was rebooted: its pods are still reported ready, and nothing of them runs.
    story.trial_job = None;
    (story.probe, story.answer) = (Probe::Idle, ProbeAnswer::Failed("connection refused".into()));
    story.steps(10);
    let status = story.status();
    assert_eq!(
        (status.phase, status.state.trials.len()),
        (Some(Phase::WaitingForReady), 1)
    );
    assert!(status.message.unwrap_or_default().contains("connection refused"));

    (story.probe, story.answer) = (Probe::Idle, ProbeAnswer::Completion);
    story.showing = Showing::Fast;
    story.assert_passes();
    assert_eq!(story.status().state.trials.len(), 2);
}

#[test]
fn two_jobs_lost_in_a_row_end_the_run() {
    let mut story = under_way();
    for number in 2..4 {
        story.trial_job = None;
        story.until_that(|story| story.verdict().is_some() || story.trial_job.is_some());
        // Seen at work, before it is lost as well.
        story.step();
        story.wait(20);
        story.step();
        assert!(story.status().state.trials.len() < 3, "trial {number}");
    }
    story.assert_ends_in("BenchmarkFailed");
    assert_eq!(causes(&story), [Cause::JobLost]);
}

#[test]
fn a_job_that_replaced_ours_is_not_read() {
    let mut story = under_way();
    story.showing = Showing::Fast;
    story.job_uid = "second";
    story.step();
    let trial = &story.status().state.trials[0];
    assert_eq!(
        (trial.outcome, trial.causes.as_slice()),
        (Some(TrialOutcome::Invalid), &["BenchmarkFailed".to_owned()][..])
    );
    assert!(trial.throughput.is_none());
    assert_eq!(causes(&story), [Cause::JobLost]);
}

/// Cause and evidence of a trial without a record in its log, whose pod has this status.
fn without_record(pod: Option<Value>) -> (Cause, String) {
    let mut story = opened();
    (story.around.generator, story.trial_log_missing) = (pod, true);
    story.until_measured();
    assert_eq!(story.status().state.trials[0].outcome, Some(TrialOutcome::Invalid));
    let found = story.status().diagnosis.remove(0);
    (Cause::from_finding(&found).expect("a cause"), found.evidence)
}

#[test]
fn a_trial_without_a_record_is_explained_by_the_end_of_its_pod() {
    let ended = |conditions: &Value, containers: &Value| {
        Some(json!({"phase": "Failed", "conditions": conditions, "containerStatuses": containers}))
    };
    let none = json!([]);
    let drained =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drain"}]);
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
    // The runner had time to report that it was stopped.
    let outcome = Outcome::Failure(Failure::Cancelled { signal: 15 });
    let record = json!({"nonce": names::nonce("u-1", &opened().id(), 1), "exitCode": 143, "outcome": outcome});
    let cancelled = json!([{"name": "aiperf", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 143, "message": record.to_string()}}}]);
    let (failed, removed) = (Cause::BenchmarkFailed, Cause::LoadGeneratorEvicted);
    let by_drain = "pod generator was removed (EvictionByEvictionAPI: drain)";
    for (pod, cause, words) in [
        (None, removed, "its pod is gone: it was deleted or drained away"),
        (
            ended(&none, &none),
            failed,
            "no result: termination message without a result",
        ),
        (
            Some(evicted),
            removed,
            "pod generator was removed (Evicted: low on memory)",
        ),
        (ended(&drained, &none), removed, by_drain),
        (ended(&drained, &cancelled), removed, by_drain),
        (ended(&none, &cancelled), failed, "the trial was stopped by signal 15"),
    ] {
        let (found, evidence) = without_record(pod.clone());
        assert_eq!(found, cause, "{pod:?}: {evidence}");
        assert!(evidence.contains(words), "{pod:?}: {evidence}");
    }
}

#[test]
fn the_next_trial_waits_until_a_load_generator_without_a_job_has_ended() {
    let mut story = under_way();
    (story.trial_job, story.stray_generator) = (None, true);
    story.steps(5);
    assert_eq!(
        story.status().state.trials.len(),
        1,
        "two loads at once would measure neither"
    );
    story.stray_generator = false;
    story.step();
    assert_eq!(story.status().state.trials.len(), 2);
}

fn with_cache() -> Story {
    let mut story = fills_cache("Running");
    story.until(Phase::Deploying);
    story
}

#[test]
fn a_cache_that_another_client_marks_as_full_is_not_trusted() {
    let mut story = with_cache();
    (story.cache_job, story.job_owner) = (Some("Complete"), Some("u-of-another-owner"));
    story.steps(2);
    story.assert_error("NameTaken");
    assert!(!story.deployed);
}

#[test]
fn a_cache_job_that_vanished_is_not_created_again() {
    let mut story = with_cache();
    story.steps(2);
    assert!(story.status().state.cache_job_uid.is_some());
    story.cache_job = None;
    let decision = story.step();
    assert_eq!(creates_jobs(&decision), 0);
    story.assert_error("ModelCacheFailed");
}
