//! How long a run is patient with what may pass: by the operator's own looks, whatever the clocks of kubelets, schedulers and
//! controllers say.

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::{Phase, Verdict};
use perfval_run::observed::{NodeSeen, PodEvent};
use perfval_sizing::Seen;

use super::story::{Showing, Story};

/// How far the clock of another machine may be ahead of the operator's (s).
const AHEAD: [i64; 5] = [-3600, -60, 0, 60, 3600];

fn starting() -> Story {
    let mut story = Story::new();
    story.workers_ready = false;
    story.until(Phase::WaitingForReady);
    story
}

/// Looks every five seconds, as the operator does, until the run is over or the time is up.
fn look_for(story: &mut Story, seconds: i64, mut world: impl FnMut(&mut Story)) {
    let until = story.now + TimeDelta::seconds(seconds);
    while story.now < until && story.phase() == Some(Phase::WaitingForReady) {
        world(story);
        story.outage(4).step();
    }
}

#[test]
fn a_pod_refused_for_some_seconds_loses_no_race_under_any_clock() {
    for ahead in AHEAD {
        let mut story = starting();
        story.unschedulable = true;
        story.others_clock = ahead;
        look_for(&mut story, 15, |_| {});
        assert_eq!(story.phase(), Some(Phase::WaitingForReady), "{ahead} s ahead");
        // Its claim is allocated.
        (story.unschedulable, story.workers_ready) = (false, true);
        story.until(Phase::Completed);
        assert_eq!(
            story.verdict(),
            Some(Verdict::Passed),
            "{ahead} s ahead: {}",
            story.reason()
        );
        assert_eq!(story.status().state.resizes, 0);
    }
}

#[test]
fn a_pod_that_stays_refused_sends_the_run_back_under_any_clock() {
    for ahead in AHEAD {
        let mut story = starting();
        story.unschedulable = true;
        story.others_clock = ahead;
        look_for(&mut story, 40, |_| {});
        assert_eq!(
            (story.phase(), story.reason().as_str()),
            (Some(Phase::Sizing), "LostRace"),
            "{ahead} s ahead"
        );
    }
}

/// The node of the run.
pub(super) fn node(ready: bool) -> Seen<NodeSeen> {
    Seen::Present(NodeSeen {
        ready,
        message: "container runtime is down".into(),
        architecture: "arm64".into(),
    })
}

#[test]
fn a_node_that_is_not_ready_in_one_look_ends_nothing() {
    let mut story = starting();
    story.around.node = node(false);
    look_for(&mut story, 15, |_| {});
    story.assert_verdict(None, "NodeNotReady", "named at once");
    story.around.node = node(true);
    story.step();
    // It comes again: the time before does not count.
    story.around.node = node(false);
    look_for(&mut story, 15, |_| {});
    assert_eq!(story.verdict(), None);
    look_for(&mut story, 15, |_| {});
    story.assert_error("NodeNotReady");
}

#[test]
fn a_pod_that_takes_the_place_of_a_refused_one_has_a_time_of_its_own() {
    let mut story = starting();
    story.pod_waiting = Some("CreateContainerConfigError");
    look_for(&mut story, 15, |_| {});
    story.pod_name = "-second";
    look_for(&mut story, 15, |_| {});
    story.assert_verdict(None, "ContainerConfigError", "");
    look_for(&mut story, 15, |_| {});
    story.assert_error("ContainerConfigError");
}

#[test]
fn an_outage_of_the_operator_is_not_counted_as_patience() {
    let mut story = starting();
    story.pod_waiting = Some("CreateContainerConfigError");
    story.step();
    story.outage(600).step();
    story.assert_verdict(None, "ContainerConfigError", "");
    look_for(&mut story, 30, |_| {});
    assert_eq!(story.verdict(), Some(Verdict::Error));
}

#[test]
fn what_cannot_be_read_for_a_moment_is_not_taken_to_be_over() {
    let mut story = starting();
    story.around.node = node(false);
    let mut looks = 0;
    look_for(&mut story, 40, |story| {
        looks += 1;
        story.around.node = if looks % 2 == 0 {
            Seen::Unknown("get Node n1: 500".into())
        } else {
            node(false)
        };
    });
    story.assert_error("NodeNotReady");
}

/// As a controller's queue does: 5 ms after the first, then twice as long each time (s).
const TRIES: [i64; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 5, 10, 20, 41];
const NO_ROLES: &str = "Error creating: pods \"pv-1-worker-6d-x2x\" is forbidden: User \
    \"system:serviceaccount:kube-system:replicaset-controller\" cannot create resource \"pods\" in API group \"\" in the \
    namespace \"perf\"";

/// The refusals so far of a controller that began to try at a moment, and tried until another one, by its own clock.
fn refusals(words: &str, began: DateTime<Utc>, until: DateTime<Utc>, now: DateTime<Utc>, ahead: i64) -> Vec<PodEvent> {
    let tried = TRIES.map(|seconds| began + TimeDelta::seconds(seconds));
    let made: Vec<_> = tried.into_iter().filter(|at| *at <= now && *at < until).collect();
    let event = |(number, at): (usize, &DateTime<Utc>)| PodEvent {
        pod: "ReplicaSet pv-1-worker-6d".into(),
        pod_uid: "u".into(),
        reason: "FailedCreate".into(),
        // Of more than ten that are alike, all others are one Event.
        message: match number {
            0..10 => words.replace("x2x", &format!("x{number}")),
            _ => format!(
                "(combined from similar events): {}",
                words.replace("x2x", &format!("x{number}"))
            ),
        },
        last_seen: Some(*at + TimeDelta::seconds(ahead)),
    };
    let mut events: Vec<_> = made.iter().enumerate().map(event).collect();
    let combined = events.split_off(events.len().min(10)).pop();
    events.into_iter().chain(combined).collect()
}

/// For some seconds after a start of the API server its roles are not loaded.
#[test]
fn pods_that_were_refused_while_the_roles_were_not_loaded_end_no_run() {
    for ahead in AHEAD {
        for lasts in [1, 4, 8, 15] {
            let mut story = starting();
            // The run has waited for its first pods for a while.
            look_for(&mut story, 60, |_| {});
            let (began, loaded) = (story.now, story.now + TimeDelta::seconds(lasts));
            // The next try after that.
            let tries = TRIES.map(|seconds| began + TimeDelta::seconds(seconds));
            let created = tries.into_iter().find(|at| *at >= loaded).expect("a try");
            look_for(&mut story, 60, |story| {
                // Once the pods are there, refusals are not asked for.
                story.around.refusals = if story.now < created {
                    refusals(NO_ROLES, began, loaded, story.now, ahead)
                } else {
                    Vec::new()
                };
            });
            let seen = format!("{lasts} s without roles, {ahead} s ahead: {}", story.reason());
            assert_eq!(story.verdict(), None, "{seen}");
            story.workers_ready = true;
            story.until(Phase::Completed);
            assert_eq!(story.verdict(), Some(Verdict::Passed), "{seen}");
        }
    }
}

#[test]
fn pods_that_are_refused_again_and_again_end_the_run_with_the_words_of_the_refusal() {
    let quota = "Error creating: pods \"pv-1-worker-6d-x2x\" is forbidden: exceeded quota: small";
    for (words, reason) in [(NO_ROLES, "PodsRefused"), (quota, "QuotaExceeded")] {
        for ahead in AHEAD {
            let mut story = starting();
            let began = story.now;
            let refuse = |story: &mut Story| {
                story.around.refusals = refusals(words, began, DateTime::<Utc>::MAX_UTC, story.now, ahead);
            };
            look_for(&mut story, 19, refuse);
            story.assert_verdict(None, reason, "named at once");
            look_for(&mut story, 60, refuse);
            story.assert_verdict(Some(Verdict::Error), reason, format!("{ahead} s ahead"));
        }
    }
}

/// Its Events stay for an hour.
#[test]
fn refusals_of_a_trouble_that_is_over_are_not_held_against_a_later_one() {
    let mut story = starting();
    let began = story.now;
    let old = refusals(
        NO_ROLES,
        began,
        began + TimeDelta::seconds(15),
        began + TimeDelta::seconds(15),
        0,
    );
    story.outage(600);
    // A pod is gone, and the controller has made no other one yet.
    story.around.refusals.clone_from(&old);
    look_for(&mut story, 60, |_| {});
    assert_eq!(story.verdict(), None, "{}", story.reason());
    // It tries, and is refused once.
    let again = story.now;
    look_for(&mut story, 60, |story| {
        let new = refusals(NO_ROLES, again, again + TimeDelta::seconds(1), story.now, 0);
        story.around.refusals = old.iter().cloned().chain(new).collect();
    });
    assert_eq!(story.verdict(), None, "{}", story.reason());
}

/// The Job's end is by the clock of its controller.
#[test]
fn a_record_that_comes_some_seconds_after_the_end_of_its_job_counts() {
    for ahead in AHEAD {
        let mut story = Story::new();
        story.until(Phase::Benchmarking);
        story.showing = Showing::Hang;
        story.steps(5);
        story.showing = Showing::Fast;
        story.trial_ended_at = story.now + TimeDelta::seconds(ahead);
        story.trial_log_missing = true;
        story.steps(10);
        assert_eq!(story.phase(), Some(Phase::Benchmarking), "{ahead} s ahead");
        story.trial_log_missing = false;
        story.until(Phase::Completed);
        assert_eq!(story.verdict(), Some(Verdict::Passed), "{ahead} s ahead");
    }
}

#[test]
fn the_wait_for_a_job_without_a_record_ends_under_any_clock() {
    for ahead in AHEAD {
        let mut story = Story::new();
        story.until(Phase::Benchmarking);
        story.step();
        story.trial_ended_at = story.now + TimeDelta::seconds(ahead);
        story.trial_log_missing = true;
        story.until(Phase::Completed);
        assert_eq!(story.verdict(), Some(Verdict::Error), "{ahead} s ahead");
    }
}

/// A kubelet that does not answer for minutes costs no soak of a day.
#[test]
fn a_log_that_cannot_be_read_is_waited_for_until_the_limit_of_the_trial() {
    let unread = || {
        let mut story = Story::new();
        story.until(Phase::Benchmarking);
        story.step();
        story.trial_log_unreadable = true;
        story.looks(60, 10);
        story.assert_at(Phase::Benchmarking, "CallFailed");
        story.assert_message("log of trial 1: log: 500");
        story
    };
    let mut story = unread();
    story.trial_log_unreadable = false;
    story.assert_passes();

    let mut story = unread();
    story.wait(4000);
    story.assert_ends_in("CallFailed");
    story.assert_message("timeouts.benchmark passed");

    // The log of a node that is gone never comes.
    let mut story = unread();
    story.around.node = node(false);
    story.looks(6, 5);
    story.assert_error("NodeNotReady");
}
