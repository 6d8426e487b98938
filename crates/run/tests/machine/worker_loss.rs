//! Workers that are lost while a run measures: it cannot be Passed, however fast its trials are.

use perfval_api::{Phase, TrialOutcome, Verdict, WorkerLoss};
use serde_json::json;

use super::story::{Showing, Story};

/// A run of several trials, all fast, in whose course `lose` happens: while trial 2 runs, or before it begins.
fn run(during: bool, lose: impl Fn(&mut Story)) -> Story {
    let mut story = Story::with(json!({"trials": {"rule": "All", "max": 3}}));
    story.until(Phase::Benchmarking);
    let reached = |story: &Story| {
        let trials = story.status().trials;
        let finished = trials.iter().filter(|trial| trial.outcome.is_some()).count();
        finished == 1 && (trials.len() == 2) == during
    };
    while !reached(&story) {
        story.step();
    }
    lose(&mut story);
    story.until(Phase::Completed);
    story
}

fn crash(story: &mut Story) {
    story.restarts = 1;
}

/// The Job of the open trial vanishes in the middle of its work.
fn lose_job(story: &mut Story) {
    story.showing = Showing::Hang;
    story.step();
    story.step();
    (story.trial_job, story.showing) = (None, Showing::Fast);
}

/// After a reboot containerd says this of every container that it had.
fn reboot(story: &mut Story) {
    (story.restarts, story.ended) = (1, (255, "Unknown"));
}

fn replace(story: &mut Story) {
    story.replaced = true;
}

#[test]
fn a_worker_that_crashed_fails_a_run_whose_trials_pass() {
    for during in [true, false] {
        let story = run(during, crash);
        let status = story.status();
        assert_eq!(
            (story.verdict(), story.reason().as_str()),
            (Some(Verdict::Failed), "WorkerCrashed"),
            "during: {during}"
        );
        assert_eq!(status.trials[1].worker_loss, Some(WorkerLoss::Crashed));
        let expected = if during {
            TrialOutcome::Invalid
        } else {
            TrialOutcome::Pass
        };
        assert_eq!(
            status.trials[1].outcome,
            Some(expected),
            "only a trial that it happened in is void"
        );
        let losses = status.trials.iter().filter(|trial| trial.worker_loss.is_some()).count();
        assert_eq!(losses, 1, "one crash is reported once");
        let message = status.message.unwrap_or_default();
        assert!(message.starts_with("WorkerCrashed: worker w0 restarted: "), "{message}");
        assert!(message.contains("exit code 139 (Error)"), "{message}");
    }
}

#[test]
fn a_worker_whose_pod_was_removed_leaves_a_run_inconclusive_whose_trials_pass() {
    for during in [true, false] {
        let story = run(during, replace);
        assert_eq!(
            (story.verdict(), story.reason().as_str()),
            (Some(Verdict::Inconclusive), "WorkerRestarted"),
            "during: {during}"
        );
        let message = story.status().message.unwrap_or_default();
        assert!(message.starts_with("WorkerRestarted: worker w0 is gone"), "{message}");
    }
}

#[test]
fn a_worker_that_crashed_while_its_trial_left_nothing_counts_all_the_same() {
    let story = run(true, |story| {
        lose_job(story);
        crash(story);
    });
    assert_eq!(
        (story.verdict(), story.reason().as_str()),
        (Some(Verdict::Failed), "WorkerCrashed")
    );
    let lost = &story.status().trials[1];
    assert_eq!(lost.worker_loss, Some(WorkerLoss::Crashed));
    assert_eq!(lost.causes, ["WorkerCrashed", "JobLost"]);
}

#[test]
fn a_reboot_is_no_crash_and_the_run_does_not_pass() {
    let lost = |story: &mut Story| {
        lose_job(story);
        reboot(story);
    };
    for story in [run(true, lost), run(true, reboot), run(false, reboot)] {
        assert_eq!(
            (story.verdict(), story.reason().as_str()),
            (Some(Verdict::Inconclusive), "WorkerRestarted")
        );
        let message = story.status().message.unwrap_or_default();
        assert!(
            message.contains("w0 restarted, and nobody saw its container end"),
            "{message}"
        );
    }
}
