//! What the status says of a trial while it runs, and how seldom it is written.

use chrono::TimeDelta;
use perfval_api::{Phase, TrialProgress};
use perfval_verdict::progress::Progress;
use serde_json::json;

use super::story::{Showing, Story};

/// A run whose first trial's Job is at work.
fn under_way(benchmark: &serde_json::Value) -> Story {
    let mut story = Story::with(json!({"benchmark": benchmark}));
    story.until(Phase::Benchmarking);
    story.showing = Showing::Hang;
    story.steps(4).wait(20);
    story
}

fn shown(story: &mut Story, requests: i64, seconds: i64) -> Option<TrialProgress> {
    let errors = 1;
    story.progress = Some(Progress {
        requests,
        errors,
        seconds,
        tokens_per_second: Some(900),
        ttft_ms: None,
    });
    story.step();
    story.status().state.progress
}

#[test]
fn a_trial_shows_how_far_it_is() {
    let mut story = under_way(&json!({"minRequests": 200, "concurrencyPerGPU": 1, "requestsPerConcurrency": 1}));
    let progress = shown(&mut story, 50, 7).expect("it is read");
    assert_eq!(
        (progress.trial, progress.requests, progress.expected),
        (1, 50, Some(200))
    );
    assert_eq!(
        (
            progress.shown.percent,
            progress.shown.summary.as_str(),
            progress.failed_requests
        ),
        (Some(25), "1: 25%", 1)
    );
    assert_eq!(progress.shown.output_tokens_per_second, Some(900));
}

#[test]
fn the_first_progress_may_rest_on_copies() {
    let mut story = under_way(&json!({}));
    story.progress = Some(Progress::default());
    let (before, decision) = (story.status(), story.decide());
    assert_eq!(before.state.trials[0].job_uid, None);
    let trial = &decision.status.state.trials[0];
    assert!(trial.job_uid.is_some() && decision.status.state.progress.is_some());
    assert!(decision.may_rest_on_copies(&before));
}

#[test]
fn a_trial_that_lasts_for_a_time_shows_how_much_of_it_is_over() {
    let mut story = under_way(&json!({"duration": "2m"}));
    let progress = shown(&mut story, 50, 30).expect("it is read");
    assert_eq!((progress.expected, progress.shown.summary.as_str()), (None, "1: 25%"));
}

#[test]
fn progress_is_written_at_most_once_a_minute_and_goes_with_the_trial() {
    let mut story = under_way(&json!({}));
    let first = shown(&mut story, 1, 1);
    story.now += TimeDelta::seconds(5);
    let second = shown(&mut story, 2, 2);
    assert_eq!(first.as_ref().map(|shown| shown.requests), Some(1));
    assert_eq!(second, first, "written again within seconds");
    story.now += TimeDelta::seconds(60);
    let third = shown(&mut story, 3, 3).expect("it is read");
    assert_eq!(third.requests, 3);
    story.progress = None;
    story.showing = Showing::Fast;
    story.until_measured();
    assert_eq!(story.status().state.progress, None, "the trial is over");
}
