//! A run gives way to pods of higher priority, and is tried again.

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Evaluating, Pending, Sizing, WaitingForReady};
use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::{Phase, Trigger, Verdict};
use perfval_run::observed::{Need, PodEvent};
use perfval_sizing::Seen;
use serde_json::json;

use super::moments::{at, changed, kept};
use super::queue::holder;
use super::story::{Showing, Story};

fn preempt(story: &mut Story, pod: &'static str) {
    story.preempted = Some(pod);
    story.step();
}

/// Event on a worker that is gone.
fn preemption(at: DateTime<Utc>) -> PodEvent {
    PodEvent {
        pod: "pv-worker-x".into(),
        pod_uid: "gone".into(),
        reason: "Preempted".into(),
        message: "Preempted by pod 3f47 on node n1".into(),
        last_seen: Some(at),
    }
}

#[test]
fn a_run_with_a_preempted_pod_stops_and_is_tried_again() {
    for (phase, pod) in [(WaitingForReady, "w0"), (Benchmarking, "w1")] {
        let mut story = changed(at(phase), |story| {
            story.step();
        });
        preempt(&mut story, pod);
        let message = story.message();
        assert_eq!((story.phase(), story.verdict()), (Some(CleaningUp), None), "{message}");
        assert_eq!(story.reason(), "Interrupted");
        assert!(message.starts_with(&format!("pod {pod} was removed")), "{message}");
        story.preempted = None;
        story.until(Pending);
        assert!(!story.deployed, "its GPUs are free before it asks for others");
        story.until(Completed);
        story.assert_run(2, Trigger::Preempted);
        assert_eq!(story.verdict(), Some(Verdict::Passed));
    }
}

#[test]
fn a_pod_that_is_gone_already_shows_by_its_event() {
    let mut story = changed(at(Benchmarking), |story| {
        story.showing = Showing::Hang;
        story.step();
    });
    story.preemptions = Seen::Present(vec![preemption(story.now)]);
    story.step();
    assert_eq!((story.phase(), story.verdict()), (Some(CleaningUp), None));
    story.preemptions = Seen::NotAsked;
    story.showing = Showing::Fast;
    story.until(Completed);
    story.assert_run(2, Trigger::Preempted);
}

#[test]
fn an_event_of_an_earlier_deployment_does_not_end_the_run() {
    let mut story = at(WaitingForReady);
    let early = preemption(story.now);
    story.unschedulable = true;
    story.until(Sizing);
    story.unschedulable = false;
    story.until(WaitingForReady);
    story.preemptions = Seen::Present(vec![early]);
    story.step();
    assert_eq!(story.phase(), Some(WaitingForReady), "{}", story.message());
    story.preemptions = Seen::Present(vec![preemption(story.now)]);
    story.step();
    assert_eq!(story.phase(), Some(CleaningUp));
}

#[test]
fn a_pod_without_a_gpu_does_not_end_the_run() {
    let mut story = changed(at(WaitingForReady), |story| {
        story.step();
    });
    preempt(&mut story, "frontend");
    assert_eq!(story.phase(), Some(WaitingForReady));
    // Another frontend takes its place.
    story.preempted = None;
    story.until(Completed);
    assert_eq!(story.status().run.map(|run| run.number), Some(1));
}

#[test]
fn a_preempted_run_waits_for_free_gpus() {
    let mut story = at(Benchmarking);
    preempt(&mut story, "w0");
    story.preempted = None;
    story.free = 0;
    story.until(Sizing);
    story.looks(90, 5);
    story.assert_at(Sizing, "Saturated");
    story.free = 8;
    story.assert_passes();
}

#[test]
fn runs_that_give_way_share_the_time_for_the_whole_run() {
    let mut story = Story::with(json!({"timeouts": {"total": "10m"}}));
    let began = story.until(Deploying).status().run.map(|run| run.started_at);
    for _ in 0..2 {
        story.until(Benchmarking);
        preempt(&mut story, "w0");
        story.preempted = None;
        story.until(Deploying);
        assert_eq!(story.status().state.history, [], "it is no run to compare with");
    }
    assert_eq!(story.status().state.first_started_at, began);
    assert!(story.status().run.map(|run| run.started_at) > began);
    story.workers_ready = false;
    story.looks(150, 5);
    assert_eq!(story.reason(), "DeadlineExceeded");
    // A run that a user asks for has its own time.
    story.until(Completed);
    story.workers_ready = true;
    story.annotate(perfval_api::meta::RERUN, Some("again")).until(Pending);
    assert_eq!(story.status().state.first_started_at, None);
}

/// The look that begins the next run notices the outage, or an earlier one.
#[test]
fn an_outage_during_the_removal_does_not_count_for_the_next_run() {
    for stuck in [false, true] {
        let mut story = Story::with(json!({"timeouts": {"total": "10m"}}));
        story.until(Benchmarking);
        preempt(&mut story, "w0");
        story.preempted = None;
        story.stuck = true;
        story.step();
        assert_eq!(story.phase(), Some(CleaningUp));
        story.step();
        story.stuck = stuck;
        story.outage(1200).step();
        assert_eq!(story.phase(), Some(if stuck { CleaningUp } else { Pending }));
        story.stuck = false;
        story.assert_passes();
        story.assert_run(2, Trigger::Preempted);
    }
}

/// A policy counts the GPU time of all runs of the day.
#[test]
fn gpu_time_of_earlier_runs_is_kept() {
    let mut story = at(Benchmarking);
    let mut expected = 0;
    for _ in 0..2 {
        story.until(Benchmarking);
        let (since, _) = story.status().held_gpus().expect("GPUs");
        let gpus = story.status().placement.expect("a placement").gpus;
        preempt(&mut story, "w0");
        story.preempted = None;
        story.until(Pending);
        let earlier = story.status().state.earlier_gpu_time.expect("GPU time");
        // The GPUs are back when the removal is confirmed.
        assert_eq!(earlier.until, story.status().run.expect("a run").started_at);
        expected += gpus * (earlier.until - since).num_seconds();
        assert_eq!(earlier.seconds, expected);
    }
}

/// Another took its GPUs, and it was in the queue for two hours.
#[test]
fn gpu_time_begins_with_the_last_deployment() {
    let mut story = at(WaitingForReady);
    story.unschedulable = true;
    story.until(Sizing);
    story.unschedulable = false;
    story.others = vec![holder("first", "n1", true)];
    story.steps(3);
    assert_eq!(story.reason(), "InLine");
    story.wait(7200).step();
    let waited = story.now;
    story.others.clear();
    story.until(Benchmarking);
    let (since, _) = story.status().held_gpus().expect("GPUs");
    assert!(since > waited, "{since}");
}

/// A child of a policy was kept for a day. Its removal is no new GPU time.
#[test]
fn gpu_time_ends_with_the_run_if_a_user_keeps_its_gpus() {
    let mut story = kept();
    let over = story.status().run.expect("a run").completed_at;
    story.wait(86_400);
    story.annotate(perfval_api::meta::NO_CLEANUP, None);
    story.until(CleaningUp).until(Completed);
    let (_, until) = story.status().held_gpus().expect("GPUs");
    assert!(until.is_some() && until == over, "{until:?}");
}

/// On a dead node the removal took two days, which would use up the budget of a policy.
#[test]
fn gpu_time_ends_with_the_time_for_the_removal() {
    let mut story = at(Benchmarking);
    let (since, _) = story.status().held_gpus().expect("GPUs");
    preempt(&mut story, "w0");
    story.preempted = None;
    story.until(CleaningUp);
    let began = story.now;
    story.stuck = true;
    story.steps(2);
    story.wait(172_800).step();
    story.stuck = false;
    story.until(Pending);
    let earlier = story.status().state.earlier_gpu_time.expect("GPU time");
    assert!(
        earlier.until > since && earlier.until <= began + TimeDelta::minutes(10),
        "{earlier:?}"
    );
}

#[test]
fn a_measurement_that_is_complete_is_judged() {
    // After a crash the pods are read once more, for their logs.
    let mut story = at(Benchmarking);
    story.until_trial(1).restarts = 1;
    story.until(Evaluating);
    assert!(story.needs().contains(&Need::Workload));
    preempt(&mut story, "w0");
    story.until(Completed);
    let run = story.status().run.expect("a run");
    assert_eq!((story.verdict(), run.number), (Some(Verdict::Failed), 1));
}

#[test]
fn a_suspension_while_a_run_gives_way_is_obeyed() {
    let mut story = at(Benchmarking);
    preempt(&mut story, "w0");
    story.preempted = None;
    story.spec(json!({"suspend": true}));
    story.until(Phase::Suspended);
    story.spec(json!({"suspend": false})).until(Completed);
    let run = story.status().run.expect("a run");
    assert_eq!(run.trigger, Trigger::Resumed);
}
