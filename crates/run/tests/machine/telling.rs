//! What a run reports: causes before a benchmark, the order of conditions, events that say what to do, history.

use std::time::Duration;

use perfval_api::{Finding, Phase, Severity, Verdict, Word, condition, meta};
use perfval_run::Decision;
use perfval_run::observed::{Probe, ProbeAnswer};
use perfval_run::obstacle::Obstacle;
use perfval_verdict::diagnosis::cause::Cause;
use serde_json::json;

use super::story::{Showing, Story};

fn causes(story: &Story) -> Vec<(String, Severity)> {
    let findings = story.status().diagnosis;
    // A finding tells its obstacle by its word and its remedy.
    let name =
        |finding: &Finding| Obstacle::from_finding(finding).map_or(finding.cause.clone(), |of| of.name().to_owned());
    findings
        .iter()
        .map(|finding| (name(finding), finding.severity))
        .collect()
}

/// At `WaitingForReady`, every component ready, the endpoint refusing; the frontend's log says `log`.
fn silent(log: &'static str) -> Story {
    let mut story = Story::new();
    story.answer = ProbeAnswer::Refused(404, "Model not found".into());
    story.until(Phase::WaitingForReady);
    story.frontend_log = Some(log);
    // The GPUs are confirmed, then it counts as ready.
    story.steps(2);
    story
}

#[test]
fn a_panic_of_the_frontends_discovery_ends_the_run_early() {
    let mut story = silent("Unfold must not be polled after it returned Poll::Ready(None)");
    story.steps(6);
    assert_eq!(
        story.phase(),
        Some(Phase::WaitingForReady),
        "it may only be slow to see its workers"
    );
    story.wait(10).step();
    assert_eq!(story.verdict(), Some(Verdict::Error));
    assert_eq!(story.reason(), "DiscoveryPanic");
    assert_eq!(causes(&story), [("DiscoveryPanic".to_owned(), Severity::Error)]);
}

#[test]
fn a_model_that_the_frontend_cannot_add_is_waited_for_and_forgotten_once_it_serves() {
    let log = "Error adding model from discovery error=\"401 Unauthorized\"";
    let mut story = silent(log);
    story.wait(20);
    story.steps(2);
    assert_eq!(story.phase(), Some(Phase::WaitingForReady));
    assert_eq!(story.reason(), "ModelAddFailed");
    assert_eq!(causes(&story), [("ModelAddFailed".to_owned(), Severity::Warning)]);

    let mut heals = silent(log);
    heals.wait(20);
    heals.steps(2);
    heals.answers(ProbeAnswer::Completion);
    heals.until(Phase::Benchmarking);
    let left = causes(&heals);
    assert_eq!(left, [], "it is forgotten");

    story.wait(4000).step();
    story.assert_error("ModelAddFailed");
    assert_eq!(causes(&story), [("ModelAddFailed".to_owned(), Severity::Error)]);
}

#[test]
fn a_late_first_completion_has_no_effect() {
    let mut quick = Story::new();
    quick.until(Phase::Benchmarking);
    assert_eq!(causes(&quick), [], "a healthy run names no cause");

    let mut cold = Story::new();
    cold.answer = ProbeAnswer::Empty;
    cold.until(Phase::WaitingForReady).step();
    cold.step();
    cold.wait(41);
    cold.answers(ProbeAnswer::Completion);
    cold.until(Phase::Benchmarking);
    assert_eq!(causes(&cold), [], "a long start is no fault");
    cold.until(Phase::Completed);
    assert_eq!(cold.verdict(), Some(Verdict::Passed), "it has no effect");
}

#[test]
fn a_probe_from_before_a_lapse_shortens_no_wait() {
    let mut story = Story::with(json!({"timeouts": {"endpointReady": "2m", "endpointProbe": "2m"}}));
    story.until(Phase::WaitingForReady);
    story.probe = Probe::InFlight(Duration::from_secs(6));
    story.steps(2);
    assert!(story.status().state.ready_since.is_some());
    story.workers_ready = false;
    story.step();
    assert_eq!(story.status().state.ready_since, None);
    story.workers_ready = true;
    story.probe = Probe::InFlight(Duration::from_secs(110));
    story.steps(2).looks(3, 10);
    story.assert_verdict(None, "Running", "its components have been ready for half a minute");
}

#[test]
fn every_error_with_a_known_obstacle_shows_it_with_its_remedy() {
    let mut story = Story::with(json!({"workload": {"dynamo": {"image": "v:1.6.1"}}}));
    story.assert_ends_in("VersionSkew");
    let status = story.status();
    assert_eq!(status.diagnosis[0].cause, "VersionSkew");
    let events: Vec<_> = story.log.iter().flat_map(|decision| &decision.events).collect();
    let published = events
        .iter()
        .find(|event| event.reason == Word::VersionSkew && event.action == "Diagnose1");
    let published = published.expect("an event");
    assert!(
        published.warning
            && published
                .note
                .ends_with(&format!("what to do: {}", status.diagnosis[0].remedy)),
        "{published:?}"
    );

    let mut saturated = Story::new();
    saturated.free = 0;
    saturated.until(Phase::Sizing).step();
    saturated.wait(4000).step();
    assert_eq!(saturated.reason(), "Saturated");
    assert_eq!(causes(&saturated), [("InsufficientGPUs".to_owned(), Severity::Error)]);
}

/// The API server drops the text of a second Event with the same action and reason.
#[test]
fn causes_with_one_word_are_published_in_one_event() {
    let mut story = Story::new();
    story.until(Phase::Evaluating);
    let causes = [Cause::GPUErrors, Cause::ClocksLow];
    let status = story.object.status.as_mut().expect("a status");
    status.diagnosis.extend(causes.map(|cause| cause.finding("GPU-1")));
    story.until(Phase::Completed);
    let events = story.log.iter().flat_map(|decision| &decision.events);
    let published = events.filter(|event| event.reason == Word::GPUDegraded && event.action == "Diagnose1");
    let notes: Vec<&str> = published.map(|event| event.note.as_str()).collect();
    let [note] = notes[..] else { panic!("{notes:?}") };
    assert!(causes.iter().all(|cause| note.contains(cause.remedy())), "{note}");
}

/// Each run within six minutes of the one before has Events with texts of its own.
#[test]
fn two_runs_publish_no_event_with_the_same_action_and_reason() {
    let mut story = Story::new();
    story.showing = Showing::Slow;
    story.until(Phase::Completed);
    let first = story.log.len();
    story.annotate(meta::RERUN, Some("again"));
    story.step();
    story.until(Phase::Completed);
    let published = |decisions: &[Decision]| -> Vec<(Word, String)> {
        let events = decisions.iter().flat_map(|decision| &decision.events);
        events.map(|event| (event.reason, event.action.to_string())).collect()
    };
    let (before, after) = story.log.split_at(first);
    let (before, after) = (published(before), published(after));
    for action in ["BeginRun2", "Deploying2", "Trial1Run2", "Judge2", "Diagnose2"] {
        assert!(after.iter().any(|(_, own)| own == action), "{action}: {after:?}");
    }
    assert!(after.iter().all(|event| !before.contains(event)), "{after:?}");
}

#[test]
fn conditions_stand_in_the_order_of_the_story() {
    let mut story = Story::new();
    story.showing = Showing::Slow;
    story.until(Phase::Completed);
    let status = story.status();
    let names: Vec<&str> = status
        .conditions
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(
        names,
        [
            condition::PASSED,
            condition::CLEANED_UP,
            condition::COMPLETE,
            condition::READY,
            condition::RECONCILING,
            condition::STALLED,
        ]
    );
    let message = |name: &str| {
        let found = status.conditions.iter().find(|condition| condition.type_ == name);
        found.map(|condition| condition.message.clone()).unwrap_or_default()
    };
    let passed = message(condition::PASSED);
    assert!(
        passed.starts_with("throughput 900 tok/s, 10 % below 1000") && passed.len() <= 200,
        "{passed}"
    );
}

/// The message of a judged run is its verdict's: nothing else would say what its removal waits for (worlds).
#[test]
fn an_unreadable_removal_is_reported_during_the_wait() {
    let mut story = Story::new();
    story.until(Phase::CleaningUp);
    story.unreadable = true;
    story.step();
    let status = story.status();
    let told = condition::find(&status, condition::CLEANED_UP).expect("the condition");
    assert_eq!((told.status.as_str(), told.reason.as_str()), ("Unknown", "Running"));
    assert_eq!(told.message, "cannot read the remaining objects: GET jobs: 403");
    story.unreadable = false;
    story.until(Phase::Completed);
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
}

#[test]
fn a_rerun_is_compared_with_the_last_passed_run_of_its_environment() {
    let mut story = Story::new();
    story.until(Phase::Completed);
    let first = story.status();
    assert_eq!(first.state.comparison, None);
    let environment = first.state.environment.clone().expect("an environment");
    assert_eq!(environment.gpu_product.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    assert_eq!(environment.gpus, Some(2));
    assert!(environment.gpu_driver.is_some(), "{environment:?}");
    assert!(
        environment.digest.is_some() && environment.aiperf.is_some(),
        "{environment:?}"
    );

    story.annotate(meta::RERUN, Some("again"));
    story.showing = Showing::Slow;
    story.step();
    story.until(Phase::Completed);
    let second = story.status();
    assert_eq!(second.state.history[0].environment, environment.digest);
    let comparison = second.state.comparison.clone().expect("a comparison");
    assert_eq!(
        (comparison.run, comparison.throughput_percent.as_deref()),
        (1, Some("-55"))
    );
    let message = second.message.clone().unwrap_or_default();
    assert!(message.contains("against run 1: tok/s -55 %"), "{message}");

    // Another concurrency is another measurement: what differs is reported, and no number.
    story.spec(json!({"benchmark": {"concurrencyPerGPU": 64}}));
    story.showing = Showing::Fast;
    story.step();
    story.until(Phase::Completed);
    let third = story.status().state.comparison.expect("a comparison");
    assert_eq!((third.run, third.throughput_percent), (1, None));
    assert!(third.differs[0].starts_with("settings "), "{:?}", third.differs);
}

/// Without `model.revision` the weights are the newest, so two runs of one spec may measure different ones.
#[test]
fn new_weights_under_the_same_name_are_no_comparison() {
    let mut story = Story::new();
    let commit = |digit: &str| Some(digit.repeat(40));
    story.commit = commit("a");
    story.until(Phase::Completed);
    let shown = |story: &Story| story.status().environment.expect("an environment");
    let first = shown(&story);
    assert_eq!(first.revision, commit("a"));

    story.annotate(meta::RERUN, Some("again"));
    story.commit = commit("b");
    story.step();
    story.until(Phase::Completed);
    let comparison = story.status().state.comparison.expect("a comparison");
    assert_eq!(comparison.throughput_percent, None);
    assert!(comparison.differs[0].starts_with("commit aaaa"), "{comparison:?}");
    let second = shown(&story);
    assert_eq!(second.revision, commit("b"));
    assert_eq!(second.digest, first.digest, "a commit may change the description only");
}

#[test]
fn a_node_without_all_the_gpus_it_should_have_is_measured_and_fails() {
    let mut story = Story::with(json!({"placement": {"expectGPUs": 9}}));
    story.until(Phase::Completed);
    story.assert_verdict(Some(Verdict::Failed), "GPUsMissing", "");
    assert_eq!(causes(&story)[0], ("GPUsMissing".to_owned(), Severity::Warning));
    let message = story.message();
    let says = "GPUsMissing: n1 has 8 of 9 GPUs expected by placement.expectGPUs";
    assert!(message.starts_with(says), "{message}");

    let mut slow = Story::with(json!({"placement": {"expectGPUs": 9}}));
    slow.showing = Showing::Slow;
    slow.until(Phase::Completed);
    assert_eq!(slow.reason(), "GatesMissed");
    slow.assert_message("GPUsMissing: n1 has 8 of 9 GPUs");

    let mut whole = Story::with(json!({"placement": {"expectGPUs": 8}}));
    whole.assert_passes();
    assert!(causes(&whole).iter().all(|(cause, _)| cause != "GPUsMissing"));
}

#[test]
fn gpus_that_only_the_cluster_expects_are_a_warning_that_a_pass_does_not_hide() {
    let mut story = Story::new();
    story.tainted = true;
    story.assert_passes();
    assert_eq!(causes(&story)[0], ("GPUsMissing".to_owned(), Severity::Warning));
    let message = story.message();
    let says = "GPUsMissing: n1 has 7 of 8 GPUs expected by the node itself; 1 unhealthy or tainted";
    assert!(message.contains(says), "{message}");
}
