//! Runs that wait: for what is not gone, for what cannot be read, and for their time to be over.

use std::collections::BTreeSet;
use std::time::Duration;

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Sizing, WaitingForReady};
use chrono::TimeDelta;
use perfval_api::{Phase, Word, condition, meta};
use perfval_run::observed::{DryRunResult, Need, Observed, Probe};
use perfval_run::{Effect, Run, machine, time};
use perfval_sizing::Seen;
use serde_json::json;

use super::moments::at;
use super::story::{Showing, Story};

#[test]
fn a_deleted_object_is_released_once_everything_is_gone() {
    let mut story = at(Benchmarking);
    story.step();
    story.delete();
    story.stuck = true;
    story.steps(10);
    story.wait(4000).step();
    assert!(!story.gone, "the finalizer holds while something may exist");
    let later = story.step();
    assert!(later.recheck >= Some(Duration::from_secs(1)), "{:?}", later.recheck);
    let events = story.log.iter().flat_map(|decision| &decision.events);
    let reports = events.filter(|notice| notice.reason == Word::TeardownUnconfirmed);
    assert_eq!(reports.count(), 1, "reported once");
    let effects = story.log.iter().flat_map(|decision| &decision.effects);
    let deletes = effects.filter(|effect| matches!(effect, Effect::Delete(_)));
    assert_eq!(deletes.count(), story.children.len(), "each once");
    story.stuck = false;
    story.steps(5);
    assert!(story.gone);
}

/// A policy deletes thousands at once.
#[test]
fn a_finished_object_that_is_deleted_leaves_without_a_write_of_its_status() {
    let mut story = at(Completed);
    story.delete();
    let before = story.status().clone();
    let decision = story.step();
    assert_eq!(decision.effects, [Effect::ReleaseFinalizer]);
    assert!(story.gone && decision.status == before && decision.events.is_empty());

    let mut unread = at(Completed);
    unread.delete();
    unread.pods_unreadable = true;
    unread.steps(5);
    assert!(!unread.gone, "its pods are unknown");
    unread.pods_unreadable = false;
    unread.steps(5);
    assert!(unread.gone);
}

#[test]
fn a_look_with_a_completion_leads_to_the_first_trial() {
    let mut story = at(WaitingForReady);
    story.until_that(|story| matches!(story.probe, Probe::Answered(_)));
    let run = Run::new(&story.object, &story.settings);
    let decide = |needs: &BTreeSet<Need>| machine::decide(&run, &story.observe(needs), story.now);
    assert!(!decide(&story.needs()).reads.is_empty(), "the GPUs are not read yet");
    let decision = decide(&machine::needs_with_completion(&run).parts);
    assert!(decision.reads.is_empty(), "{:?}", decision.reads.parts);
    assert_eq!(decision.status.phase, Some(Benchmarking));
    let story = at(Benchmarking);
    let run = Run::new(&story.object, &story.settings);
    assert_eq!(machine::needs_with_completion(&run).parts, story.needs());
}

#[test]
fn objects_kept_for_a_post_mortem_outlive_their_time() {
    let mut story = Story::with(json!({"ttlSecondsAfterFinished": 60}));
    story.annotate(meta::NO_CLEANUP, Some("true"));
    story.until(Completed);
    assert_eq!(story.wait(600).step().effects, []);
}

#[test]
fn a_trial_read_after_a_long_outage_still_counts() {
    let mut story = Story::with(json!({"trials": {"rule": "Sequential", "max": 8}}));
    story.until(Benchmarking);
    story.steps(2);
    story.outage(4000).step();
    assert_eq!(story.phase(), Some(Benchmarking), "{}", story.reason());
    story.assert_passes();
}

#[test]
fn an_unknown_read_moves_no_phase() {
    for phase in [Sizing, WaitingForReady, Benchmarking, CleaningUp] {
        let mut story = at(phase);
        story.unreadable = true;
        if phase == CleaningUp {
            story.object.status.as_mut().unwrap().verdict = None;
        }
        story.steps(5);
        assert_eq!(story.phase(), Some(phase), "{}", story.reason());
    }
}

#[test]
fn a_removal_reads_its_objects_no_more_while_their_pods_end() {
    let story = at(CleaningUp);
    let run = Run::new(&story.object, &story.settings);
    let now = story.now + TimeDelta::seconds(9);
    let reads = |seen: &Observed| machine::decide(&run, seen, now).reads.parts;
    assert_eq!(
        reads(&Observed::default()),
        [Need::Children].into(),
        "they are deleted first"
    );
    let mut seen = Observed {
        looked_before: Some(story.now + TimeDelta::seconds(1)),
        ..Observed::default()
    };
    assert_eq!(reads(&seen), [Need::Workload].into());
    seen.pods = story.observe(&[Need::Workload].into()).pods;
    assert_eq!(reads(&seen), [Need::Children].into(), "something makes pods");
    let Seen::Present(pods) = &mut seen.pods else {
        panic!("{:?}", seen.pods);
    };
    for pod in pods {
        pod.metadata.deletion_timestamp = Some(time::to_kubernetes(story.now));
    }
    assert_eq!(reads(&seen), BTreeSet::new());
    for unknown in [Seen::Present(Vec::new()), Seen::Unknown("403".into())] {
        seen.pods = unknown;
        assert_eq!(reads(&seen), [Need::Children].into());
    }
    // Pods that were read before the objects prove nothing.
    seen.pods = Seen::Present(Vec::new());
    seen.children = Seen::Present(Vec::new());
    assert_eq!(reads(&seen), [Need::Workload, Need::Claims].into());
}

#[test]
fn a_kind_that_cannot_be_listed_keeps_no_other_object() {
    let story = at(CleaningUp);
    let run = Run::new(&story.object, &story.settings);
    let mut seen = story.observe(&[Need::Children, Need::Workload, Need::Claims].into());
    let unread = Seen::Unknown("list NetworkPolicies: 403".into());
    let listed = std::mem::replace(&mut seen.children, unread);
    seen.listed_children = listed.present().expect("objects").clone();
    let decision = machine::decide(&run, &seen, story.now);
    let deletes = decision
        .effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Delete(_)));
    assert!(!seen.listed_children.is_empty() && deletes.count() == seen.listed_children.len());
    // All that can be seen is gone, and that proves nothing.
    seen.listed_children.clear();
    (seen.pods, seen.claims) = (Seen::Present(Vec::new()), Seen::Present(Vec::new()));
    let decision = machine::decide(&run, &seen, story.now);
    assert_eq!((decision.effects.len(), decision.status.phase), (0, Some(CleaningUp)));
    let cleaned = condition::find(&decision.status, condition::CLEANED_UP).expect("a condition");
    assert_eq!(cleaned.status, "Unknown", "{}", cleaned.message);
}

#[test]
fn a_finished_object_deletes_itself_after_its_time() {
    let mut story = Story::with(json!({"ttlSecondsAfterFinished": 60}));
    story.until(Completed);
    assert!(!story.step().effects.contains(&Effect::DeleteSelf));
    let due = story.wait(60).step();
    assert!(due.effects.contains(&Effect::DeleteSelf));
    let again = due.recheck.expect("a refused delete is asked for again");
    assert!(again <= Duration::from_secs(30), "{again:?}");
}

/// The API server answers for the operator until it has looked; that answer decides nothing.
#[test]
fn the_default_status_of_the_definition_is_no_status() {
    let default = json!({"observedGeneration": -1, "phase": "Pending", "message": perfval_api::UNSEEN});
    let default = serde_json::from_value(default).expect("a status");
    let [without, with] = [None, Some(default)].map(|status| {
        let mut story = Story::new();
        story.object.status = status;
        story.until(Completed);
        story
            .log
            .into_iter()
            .map(|decision| decision.status)
            .collect::<Vec<_>>()
    });
    assert_eq!(with, without);
}

/// A webhook that is restarted is away for a moment; one that stays away is no failure of Dynamo.
#[test]
fn the_dry_run_of_the_deployment_is_repeated_for_two_minutes() {
    let away = || Seen::Unknown("dry run: 500: failed calling webhook".to_owned());
    let mut story = at(Deploying);
    story.admission = away();
    story.step();
    story.assert_at(Deploying, "CallFailed");
    story.admission = Seen::Present(DryRunResult::Accepted);
    story.until(WaitingForReady);

    let mut story = at(Deploying);
    story.admission = away();
    story.wait(100).step();
    assert_eq!(story.phase(), Some(Deploying), "{}", story.reason());
    story.wait(30).step();
    story.assert_error("DeploymentUnanswered");
    story.assert_message("failed calling webhook");
}

#[test]
fn workers_that_a_queue_holds_are_waited_for_and_not_blamed() {
    let mut story = at(WaitingForReady);
    (story.queued, story.workers_ready) = (true, false);
    story.looks(20, 10);
    story.assert_at(WaitingForReady, "InLine");
    story.assert_message("queued behind its scheduling gate kueue.x-k8s.io/admission");
    (story.queued, story.workers_ready) = (false, true);
    story.assert_passes();
}

#[test]
fn a_worker_that_was_deleted_is_not_measured_while_it_ends() {
    let waiting = || {
        let mut story = at(WaitingForReady);
        story.leaving_worker = true;
        story.steps(10);
        assert_eq!((story.phase(), story.trial_job), (Some(WaitingForReady), None));
        story
    };
    let mut story = waiting();
    story.leaving_worker = false;
    story.assert_passes();

    let mut stuck = waiting();
    stuck.wait(4000).step();
    stuck.until(Completed);
    stuck.assert_message("worker w-old was deleted and is still there");
}

#[test]
fn a_worker_that_the_scheduler_refuses_waits_for_the_end_of_the_one_before_it() {
    let mut story = at(WaitingForReady);
    (story.leaving_worker, story.unschedulable, story.pods_age) = (true, true, 3);
    story.looks(12, 5);
    story.assert_at(WaitingForReady, "WorkloadNotReady");
    story.assert_message("worker w-old was deleted and is still there");
    // Its GPU is free now, and the scheduler looks again.
    story.leaving_worker = false;
    story.looks(3, 5);
    assert_eq!(story.phase(), Some(WaitingForReady), "{}", story.message());
    story.unschedulable = false;
    story.assert_passes();
    assert_eq!(story.status().state.resizes, 0);
}

#[test]
fn no_trial_opens_while_a_deleted_worker_ends() {
    let mut story = Story::with(json!({"trials": {"rule": "All", "max": 2}}));
    story.until_between_trials();
    story.leaving_worker = true;
    story.steps(10);
    assert_eq!(story.status().state.trials.len(), 1);
    story.assert_message("worker w-old was deleted");
    story.leaving_worker = false;
    story.assert_passes();
}

/// A run whose first trial's Job is held by a queue since its creation.
fn queued() -> Story {
    let mut story = at(Benchmarking);
    story.step();
    (story.queued, story.showing) = (true, Showing::Hang);
    story.wait(600).step();
    story.assert_at(Benchmarking, "InLine");
    story.assert_message("of trial 1 is suspended");
    story
}

#[test]
fn a_job_that_a_queue_holds_starts_its_limit_once_it_may_run() {
    let mut story = queued();
    story.queued = false;
    story.step();
    story.wait(600).step();
    story.assert_at(Benchmarking, "Running");
    story.showing = Showing::Fast;
    story.assert_passes();
}

#[test]
fn a_queue_that_never_lets_a_job_go_ends_the_run_without_blame() {
    let mut story = queued();
    story.wait(4000).step();
    story.assert_ends_in("InLine");
    story.assert_message("is suspended");
    story.assert_message("timeouts.benchmark passed");
}

#[test]
fn a_job_that_a_queue_stops_after_its_start_is_not_measured_again_with_cached_prompts() {
    for held_before in [false, true] {
        let mut story = if held_before { queued() } else { at(Benchmarking) };
        (story.queued, story.showing) = (false, Showing::Hang);
        story.looks(3, 20);
        assert_eq!(story.reason(), "Running");
        assert!(story.status().state.trials[0].job_uid.is_some(), "its Job was seen");
        story.queued = true;
        story.step();
        story.assert_ends_in("BenchmarkFailed");
        story.assert_message("is suspended after it had started");
    }
}

#[test]
fn a_job_that_a_queue_stops_within_seconds_is_known_to_have_started() {
    let in_queue = json!({"kueue.x-k8s.io/queue-name": "gpus"});
    for (labels, were_suspended) in [(in_queue, false), (json!({}), true)] {
        let mut story = Story::with(json!({"podTemplate": {"metadata": {"labels": labels}}}));
        story.jobs_were_suspended = were_suspended;
        story.until(Benchmarking);
        story.showing = Showing::Hang;
        story.until_that(|story| story.trial_job.is_some());
        story.step();
        story.queued = true;
        story.assert_ends_in("BenchmarkFailed");
    }
}

#[test]
fn a_result_counts_although_the_finished_job_is_suspended() {
    let mut story = queued();
    story.showing = Showing::Fast;
    story.assert_passes();
}
