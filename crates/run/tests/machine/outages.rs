//! An outage of the operator is no failure of the run: no limit counts time in which the operator did not look.

use std::time::Duration;

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Evaluating, Pending, Sizing, Suspended, WaitingForReady};
use chrono::TimeDelta;
use perfval_api::{Phase, Verdict};
use perfval_run::observed::ProbeAnswer;
use perfval_run::{Run, machine};
use perfval_sizing::Seen;
use proptest::prelude::*;
use serde_json::json;

use super::moments::at;
use super::story::{Showing, Story};

/// Short limits: every wait of a story is about as long as its limit.
fn hasty() -> Story {
    let timeouts = json!({
        "prerequisites": "30s", "sizing": "30s", "modelCache": "30s", "workloadReady": "30s", "endpointReady": "30s",
        "benchmark": "30s", "cleanup": "30s",
    });
    Story::with(json!({"timeouts": timeouts}))
}

/// What the world does in a phase, and for how long (seconds of the world's time); then all is well.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    phase: Phase,
    begin: fn(&mut Story),
    end: fn(&mut Story),
    seconds: i64,
}

/// A phase, what goes wrong in it, and how that is fixed.
type Case = (Phase, fn(&mut Story), fn(&mut Story));

fn trouble() -> impl Strategy<Value = Option<Trouble>> {
    let all: [Case; 9] = [
        (Pending, |s| s.dynamo = Seen::Absent, |s| s.dynamo = Story::new().dynamo),
        (Sizing, |s| s.free = 0, |s| s.free = 8),
        (Sizing, |s| s.unreadable = true, |s| s.unreadable = false),
        (WaitingForReady, |s| s.workers_ready = false, |s| s.workers_ready = true),
        (
            WaitingForReady,
            |s| s.deployment_failed = true,
            |s| s.deployment_failed = false,
        ),
        (
            WaitingForReady,
            |s| {
                s.answers(ProbeAnswer::Refused(404, String::new()));
            },
            |s| {
                s.answers(ProbeAnswer::Completion);
            },
        ),
        (
            Benchmarking,
            |s| s.showing = Showing::Hang,
            |s| s.showing = Showing::Fast,
        ),
        (Evaluating, |s| s.saving_fails = true, |s| s.saving_fails = false),
        (CleaningUp, |s| s.stuck = true, |s| s.stuck = false),
    ];
    // Well within the limit, or for good.
    let seconds = prop_oneof![1i64..20, Just(100_000)];
    let one = (proptest::sample::select(all.to_vec()), seconds).prop_map(|((phase, begin, end), seconds)| Trouble {
        phase,
        begin,
        end,
        seconds,
    });
    proptest::option::weighted(0.9, one)
}

/// Plays a story to its end. The operator looks when it asked to, and within three seconds in any case, as watches make
/// it; after the pass of a number it is gone for a while.
fn play(trouble: Option<Trouble>, outages: &[(usize, i64)]) -> (Option<Phase>, Option<Verdict>, String) {
    let mut story = hasty();
    let mut healed_at = None;
    let mut passes = 0;
    while story.phase() != Some(Completed) {
        if let Some(trouble) = trouble.filter(|trouble| story.phase() == Some(trouble.phase))
            && healed_at.is_none()
        {
            (trouble.begin)(&mut story);
            healed_at = Some(story.now + TimeDelta::seconds(trouble.seconds));
        }
        if let (Some(trouble), Some(at)) = (trouble, healed_at)
            && story.now >= at
        {
            (trouble.end)(&mut story);
        }
        let asked = story.step().recheck.unwrap_or(Duration::from_secs(15));
        let seconds = i64::try_from(asked.as_secs()).unwrap_or(3).clamp(1, 3);
        // A step takes one.
        story.outage(seconds - 1);
        for (_, gone) in outages.iter().filter(|(pass, _)| *pass == passes) {
            story.outage(*gone);
        }
        passes += 1;
        if passes > 2000 {
            break;
        }
    }
    (story.phase(), story.verdict(), story.reason())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_run_ends_as_it_would_have_ended_without_outages(
        trouble in trouble(),
        outages in proptest::collection::vec((0usize..40, 1i64..2000), 0..4),
    ) {
        let undisturbed = play(trouble, &[]);
        prop_assert_eq!(undisturbed.0, Some(Completed));
        prop_assert_eq!(play(trouble, &outages), undisturbed);
    }
}

/// As seen on the lab: `workloadReady: 30s`, and the operator away for 45 s while a healthy deployment came up.
#[test]
fn a_deployment_that_came_up_during_an_outage_is_measured() {
    let mut story = hasty();
    story.until(WaitingForReady);
    story.workers_ready = false;
    story.step();
    story.outage(45);
    story.workers_ready = true;
    story.assert_passes();
}

#[test]
fn the_first_look_after_a_pause_ends_no_wait() {
    for gone in [10, 25, 45, 4000] {
        let mut story = hasty();
        story.until(WaitingForReady);
        story.workers_ready = false;
        story.wait(28).step();
        let first = story.outage(gone).step();
        assert_eq!(story.phase(), Some(WaitingForReady), "{gone} s away");
        assert!(first.recheck <= Some(Duration::from_secs(15)), "{:?}", first.recheck);
    }
}

#[test]
fn a_limit_passes_a_second_after_the_first_look() {
    let mut story = hasty();
    story.until(WaitingForReady);
    story.workers_ready = false;
    story.step();
    let first = story.wait(22).outage(9).step();
    assert_eq!(first.recheck, Some(Duration::from_secs(1)));
    assert_eq!(story.phase(), Some(WaitingForReady));
    story.step();
    story.assert_error("WorkloadNotReady");
}

#[test]
fn a_result_that_could_not_be_read_yet_is_read_again_after_an_outage() {
    let mut story = at(Benchmarking);
    story.step();
    story.outage(300);
    story.trial_ended_at = story.now - TimeDelta::seconds(200);
    story.trial_log_missing = true;
    story.step();
    assert_eq!(story.phase(), Some(Benchmarking), "{}", story.reason());
    story.trial_log_missing = false;
    story.assert_passes();
}

/// An operator that is too busy to look in time still comes to an end.
#[test]
fn a_run_that_is_always_looked_at_too_late_ends() {
    for phase in [Pending, Sizing, WaitingForReady, Benchmarking, Evaluating] {
        let mut story = hasty();
        story.until(phase);
        (story.dynamo, story.free, story.workers_ready) = (Seen::Absent, 0, false);
        (story.showing, story.saving_fails) = (Showing::Hang, true);
        for _ in 0..60 {
            if story.phase() != Some(phase) {
                break;
            }
            story.outage(120).step();
        }
        assert_ne!(story.phase(), Some(phase), "{}", story.reason());
        assert!(story.status().state.gaps.len() <= 8);
    }
}

#[test]
fn the_heartbeat_is_written_every_two_minutes_and_only_while_a_limit_runs() {
    let writes = |mut story: Story, seconds: usize| {
        story.step();
        let mut written = 0;
        for _ in 0..seconds {
            let before = story.status();
            story.step();
            written += usize::from(story.status() != before);
        }
        written
    };
    let mut starting = at(WaitingForReady);
    starting.workers_ready = false;
    assert_eq!(writes(starting, 300), 2);
    let mut saturated = at(Sizing);
    saturated.free = 0;
    assert_eq!(writes(saturated, 60), 0, "the planner remembers its looks");
    let mut suspended = Story::with(json!({"suspend": true}));
    suspended.until(Suspended);
    assert_eq!(writes(suspended, 300), 0);
    assert_eq!(writes(at(Completed), 300), 0);
}

#[test]
fn a_run_without_a_heartbeat_is_looked_at_and_ends() {
    let mut story = hasty();
    story.until(WaitingForReady);
    story.workers_ready = false;
    for _ in 0..80 {
        if let Some(status) = &mut story.object.status {
            status.state.last_looked_at = None;
        }
        story.step();
    }
    assert_eq!(story.verdict(), Some(Verdict::Error));
}

/// A run that waits for GPUs of others, and is looked at twice a minute for so many minutes; how often it was written.
fn queue_for(story: &mut Story, minutes: usize) -> usize {
    let mut written = 0;
    for _ in 0..minutes * 2 {
        let before = story.status();
        story.outage(29).step();
        written += usize::from(story.status() != before);
    }
    written
}

fn saturated() -> Story {
    let mut story = Story::with(json!({"timeouts": {"sizing": "2h"}}));
    story.until(Sizing);
    story.free = 0;
    story.step();
    story
}

#[test]
fn a_run_in_the_queue_is_written_seldom_and_its_limit_still_counts() {
    let mut story = saturated();
    assert_eq!(queue_for(&mut story, 119), 11, "every ten minutes");
    assert_eq!(story.phase(), Some(Sizing));
    assert_eq!(story.status().state.gaps, Vec::new());
    // The first look after a pause ends nothing, and these are half a minute apart.
    queue_for(&mut story, 3);
    story.assert_error("Saturated");
}

#[test]
fn what_a_new_process_does_not_remember_is_held_against_no_run() {
    let mut story = saturated();
    queue_for(&mut story, 118);
    // It restarts: of the looks since the written heartbeat it knows nothing.
    story.planned = None;
    story.outage(600).step();
    assert_eq!(story.phase(), Some(Sizing));
    assert!(queue_for(&mut story, 2) <= 1 && story.phase() == Some(Sizing));
    queue_for(&mut story, 30);
    assert_eq!(story.verdict(), Some(Verdict::Error), "once only");
}

#[test]
fn a_look_that_takes_long_is_no_outage() {
    let mut story = at(Deploying);
    story.until(WaitingForReady);
    story.workers_ready = false;
    story.step();
    let began = story.now;
    story.outage(60);
    let run = Run::new(&story.object, &story.settings);
    let mut seen = story.observe(&story.needs());
    seen.began = Some(began);
    let status = machine::decide(&run, &seen, story.now).status;
    assert_eq!(status.state.gaps, Vec::new());
}
