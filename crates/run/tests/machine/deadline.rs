//! The deadline of a whole run, and the expiry of a kept one.

use perfval_api::{Phase, Verdict, meta};
use perfval_run::Effect;
use serde_json::json;

use super::moments::stricter;
use super::queue::holder;
use super::story::{Showing, Story};

#[test]
fn a_run_that_takes_too_long_ends_with_the_wait_in_its_message() {
    let mut story = Story::with(json!({"timeouts": {"total": "3m"}}));
    story.until(Phase::WaitingForReady);
    story.workers_ready = false;
    story.looks(20, 5);
    assert_eq!(story.phase(), Some(Phase::WaitingForReady), "there is time left");
    story.looks(24, 5);
    let status = story.status();
    assert_eq!(status.verdict, Some(Verdict::Error));
    assert_eq!(story.reason(), "DeadlineExceeded");
    let message = status.message.unwrap_or_default();
    assert!(
        message.contains("workers") && message.contains("timeouts.total, 3m"),
        "{message}"
    );
}

#[test]
fn the_time_of_an_outage_is_not_held_against_the_whole_run() {
    let mut story = Story::with(json!({"timeouts": {"total": "10m"}}));
    story.until(Phase::WaitingForReady);
    story.workers_ready = false;
    story.step();
    story.outage(3600);
    story.step();
    story.workers_ready = true;
    story.looks(4, 5);
    story.assert_passes();
}

/// Another run holds the only node, and gives it back.
pub(super) fn in_the_queue(spec: serde_json::Value) -> Story {
    let mut story = Story::with(spec);
    story.until(Phase::Sizing);
    story.others = vec![holder("first", "n1", true)];
    story.step();
    assert_eq!(story.reason(), "InLine");
    story
}

#[test]
fn the_time_of_an_outage_in_the_queue_is_not_held_against_the_whole_run() {
    let mut story = in_the_queue(json!({"timeouts": {"total": "30m"}}));
    for _ in 0..10 {
        story.outage(29).step();
    }
    // It restarts: the new process knows of no look.
    story.planned = None;
    story.outage(3600);
    story.others.clear();
    story.assert_passes();
}

#[test]
fn the_time_in_the_queue_counts_towards_the_whole_run() {
    let mut story = in_the_queue(json!({"timeouts": {"total": "30m"}}));
    for _ in 0..58 {
        story.outage(29).step();
    }
    assert_eq!(story.reason(), "InLine", "there is time left");
    for _ in 0..4 {
        story.outage(29).step();
    }
    story.assert_error("DeadlineExceeded");
}

#[test]
fn a_run_in_the_queue_is_written_for_its_heartbeat_only_where_the_whole_run_has_a_limit() {
    let written = |spec| {
        let mut story = in_the_queue(spec);
        let looks = (0..60).filter(|_| {
            let before = story.status();
            story.outage(29).step();
            story.status() != before
        });
        looks.count()
    };
    assert_eq!(written(json!({})), 0);
    assert_eq!(written(json!({"timeouts": {"total": "2h"}})), 3, "every ten minutes");
}

#[test]
fn trials_before_the_deadline_are_kept() {
    let mut story = Story::with(json!({"timeouts": {"total": "5m"}, "trials": {"rule": "All", "max": 4}}));
    story.until_measured().showing = Showing::Hang;
    story.looks(66, 5);
    story.until(Phase::Completed);
    let status = story.status();
    assert_eq!(
        (status.verdict, story.reason().as_str()),
        (Some(Verdict::Error), "DeadlineExceeded")
    );
    assert_eq!(status.state.trials.len(), 1, "the measured one");
}

#[test]
fn a_kept_run_expires() {
    let mut story = Story::with(json!({"keptSecondsAfterFinished": 600}));
    story.annotate(meta::NO_CLEANUP, Some("true"));
    story.until(Phase::Completed);
    story.wait(500);
    assert!(
        story.step().recheck.is_some_and(|recheck| recheck.as_secs() <= 100),
        "it looks again in time"
    );
    assert!(story.deployed, "it is still kept");
    story.wait(101);
    story.step();
    story.until(Phase::Completed);
    assert!(!story.deployed, "it has expired");
    story.wait(3600);
    assert_eq!(
        story.step().effects,
        Vec::new(),
        "and rests, although the annotation is there"
    );
}

#[test]
fn changed_gates_do_not_begin_the_time_of_a_kept_run_again() {
    let mut story = Story::with(json!({"keptSecondsAfterFinished": 600}));
    story.annotate(meta::NO_CLEANUP, Some("true"));
    story.until(Phase::Completed);
    story.wait(500);
    stricter(&mut story);
    story.until(Phase::Evaluating).until(Phase::Completed);
    assert!(story.deployed, "it is still kept");
    story.wait(101).step();
    story.until(Phase::Completed);
    assert!(!story.deployed, "it has expired");
}

#[test]
fn an_annotated_object_without_kept_parts_deletes_itself() {
    let mut expired = Story::with(json!({"keptSecondsAfterFinished": 600, "ttlSecondsAfterFinished": 3600}));
    let mut skipped = Story::with(json!({"gates": [], "ttlSecondsAfterFinished": 3600}));
    for story in [&mut expired, &mut skipped] {
        story.annotate(meta::NO_CLEANUP, Some("true"));
        story.until(Phase::Completed);
    }
    expired.wait(600).step();
    expired.until(Phase::Completed);
    for mut story in [expired, skipped] {
        assert_eq!(story.step().effects, Vec::new(), "there is time left");
        story.wait(3600);
        assert_eq!(story.step().effects, [Effect::DeleteSelf]);
    }
}

#[test]
fn a_kept_run_without_an_expiry_stays() {
    let mut story = Story::new();
    story.annotate(meta::NO_CLEANUP, Some("true"));
    story.until(Phase::Completed);
    story.wait(1_000_000);
    story.step();
    assert!(story.deployed);
}

#[test]
fn a_removal_that_hangs_is_looked_after_in_growing_pauses() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.stuck = true;
    story.delete();
    let mut pauses = Vec::new();
    for seconds in [0, 100, 600, 3600, 86_400] {
        story.wait(seconds);
        story.step();
        story.wait(1);
        pauses.push(story.step().recheck.map_or(0, |recheck| recheck.as_secs()));
    }
    assert!(pauses.is_sorted() && pauses[0] <= 5, "{pauses:?}");
    assert_eq!(pauses.last(), Some(&60), "{pauses:?}");
    assert_eq!(story.reason(), "TeardownUnconfirmed");
}

#[test]
fn an_overdue_removal_deletes_although_pods_cannot_be_listed() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.stuck = true;
    story.delete();
    story.step();
    story.wait(4000).step();
    story.wait(1).step();
    assert_eq!(story.reason(), "TeardownUnconfirmed");
    story.pods_unreadable = true;
    // As if every delete had been refused.
    story.children.iter_mut().for_each(|child| child.deleting = false);
    let deletes = |effect: &Effect| matches!(effect, Effect::Delete(_));
    assert!(story.decide().effects.iter().any(deletes), "{:?}", story.decide());
}
