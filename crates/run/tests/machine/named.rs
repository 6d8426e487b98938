//! A run says what is in its way as soon as it is seen, ends where that will not pass, and never blames something else.

use std::time::Duration;

use chrono::TimeDelta;
use perfval_api::{Phase, Severity, Verdict, condition};
use perfval_run::names;
use perfval_run::observed::{Need, PodEvent, Probe, ProbeAnswer};
use perfval_sizing::Seen;
use serde_json::{Value, json};

use super::moments::fills_cache;
use super::patience::node;
use super::story::{Showing, Story};

/// A run that fills a model cache, with its pod in this state.
fn filling(pod: Value) -> Story {
    let mut story = fills_cache("Running");
    story.around.filler = Some(pod);
    story.until(Phase::Deploying);
    story
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "containerStatuses": [{"name": "fill", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}]})
}

#[test]
fn a_cache_pod_that_cannot_start_is_named_and_not_waited_for() {
    let mut story = filling(waiting("ErrImageNeverPull", "Container image is not present"));
    story.steps(4);
    story.assert_error("ImagePullBackOff");
    assert!(
        story
            .message()
            .starts_with("model cache: pod filler, container fill: image i"),
        "{}",
        story.message()
    );

    let mut story = filling(waiting("ErrImagePull", "dial tcp: i/o timeout"));
    story.steps(4);
    story.assert_verdict(None, "ImagePullBackOff", "the network may come back");
    story.around.filler = Some(json!({"phase": "Running"}));
    story.step();
    assert_eq!(story.reason(), "Running", "and it did");
}

/// Its node may be cordoned after the plan.
#[test]
fn a_cache_pod_without_a_place_is_sized_again_a_single_time() {
    let unschedulable = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/1 nodes are available: 1 node(s) were unschedulable."}]});
    let mut story = filling(unschedulable.clone());
    let refuse = |story: &mut Story| {
        story.steps(3);
        story.wait(10).step();
        story.assert_at(Phase::Deploying, "Unschedulable");
        story.assert_message("model cache: pod filler: 0/1 nodes are available");
        story.wait(30).step();
    };
    refuse(&mut story);
    story.assert_at(Phase::Sizing, "LostRace");
    story.around.filler = None;
    story.until(Phase::Deploying);
    story.around.filler = Some(unschedulable);
    refuse(&mut story);
    story.assert_error("Unschedulable");
}

#[test]
fn an_image_for_another_architecture_ends_the_run_at_once_and_names_the_nodes() {
    let mut story = filling(waiting("ErrImagePull", "no match for platform in manifest: not found"));
    story.around.node = node(true);
    story.steps(2);
    story.assert_error("OtherArchitecture");
    let message = story.message();
    assert!(
        message.contains("is arm64: pod filler, container fill: image i: no match for platform"),
        "{message}"
    );
    assert!(
        message.contains("kubernetes.io/arch in placement.nodeSelector"),
        "{message}"
    );
}

#[test]
fn a_cache_that_could_not_be_filled_shows_the_error_of_the_download() {
    let cases = [
        (
            "GatedRepoError: 401\nCannot access gated repo for url http://h/m.\n",
            "ModelGated",
            "Cannot access gated repo",
        ),
        (
            "Repository Not Found for url: http://h/m.\n",
            "ModelNotFound",
            "Repository Not Found",
        ),
        (
            "OSError: [Errno 28] No space left on device\n",
            "ModelCacheFailed",
            "No space left",
        ),
        (
            "ValueError: something else\n",
            "ModelCacheFailed",
            "ValueError: something else",
        ),
    ];
    for (log, reason, words) in cases {
        let mut story = filling(json!({"phase": "Running"}));
        story.steps(3);
        story.cache_job = Some("Failed");
        story.step();
        assert_eq!(story.verdict(), None, "its pod was read before it ended: {reason}");
        story.around.filler = Some(json!({"phase": "Failed"}));
        story.around.filler_log = Some(log);
        story.step();
        assert_eq!(
            (story.verdict(), story.reason().as_str()),
            (Some(Verdict::Error), reason)
        );
        story.assert_message(words);
        let found = story.status().diagnosis;
        let blamed = found
            .iter()
            .find(|finding| finding.severity == Severity::Error)
            .expect("a finding");
        assert!(!blamed.remedy.is_empty(), "{blamed:?}");
    }
}

#[test]
fn the_reason_of_a_cache_that_could_not_be_filled_is_read_again_after_a_failed_read() {
    let mut story = filling(json!({"phase": "Running"}));
    story.steps(3);
    story.cache_job = Some("Failed");
    story.around.filler = Some(json!({"phase": "Failed"}));
    story.around.filler_log = Some("Cannot access gated repo for url http://h/m.\n");
    story.pods_unreadable = true;
    story.step();
    story.assert_verdict(None, "Running", "its pods are not known");
    story.assert_message("): GET pods: 403");
    (story.pods_unreadable, story.logs_unreadable) = (false, true);
    story.step();
    story.assert_verdict(None, "Running", "its log is not known");
    story.logs_unreadable = false;
    story.step();
    story.assert_error("ModelGated");

    // It ends in any case; a log only explains.
    let mut story = filling(json!({"phase": "Running"}));
    story.steps(3);
    story.cache_job = Some("Failed");
    story.around.filler = Some(json!({"phase": "Failed"}));
    story.around.filler_log = Some("Fetching 12 files:  41%\n");
    story.logs_unreadable = true;
    story.steps(20);
    story.assert_error("ModelCacheFailed");
    story.assert_message("; its log cannot be read: ");
    let mut story = filling(json!({"phase": "Running"}));
    story.steps(3);
    story.cache_job = Some("Failed");
    story.pods_unreadable = true;
    story.step();
    story.wait(100_000);
    story.steps(2);
    story.assert_error("ModelCacheFailed");
}

/// The model is not to blame for a node that ran out of disk.
#[test]
fn a_cache_whose_pod_was_ended_shows_the_reason() {
    let evicted =
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."});
    let killed = json!({"phase": "Failed", "containerStatuses": [{"name": "fill", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]});
    for (status, words) in [
        (
            evicted,
            "pod filler was removed (Evicted: The node was low on resource: ephemeral-storage.)",
        ),
        (
            killed,
            "container fill of pod filler was killed for its memory use (OOMKilled)",
        ),
    ] {
        let mut story = filling(json!({"phase": "Running"}));
        story.steps(3);
        story.cache_job = Some("Failed");
        story.around.filler = Some(status);
        story.around.filler_log = Some("Fetching 12 files:  41%\n");
        story.step();
        story.assert_error("ModelCacheFailed");
        story.assert_message(words);
        assert!(!story.message().contains("model.name"), "{}", story.message());
    }
}

/// As an injected proxy that is no native sidecar.
#[test]
fn a_sidecar_that_outlives_its_job_is_named_and_given_up_after_a_minute() {
    let outlived = |main: &str| {
        let container = |name: &str, state: Value| json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let ended = container(main, json!({"terminated": {"exitCode": 0}}));
        json!({"phase": "Running", "containerStatuses": [ended, container("istio-proxy", json!({"running": {}}))]})
    };
    let cache = filling(outlived("fill"));
    let mut trial = Story::new();
    trial.showing = Showing::Hang;
    trial.around.generator = Some(outlived("aiperf"));
    trial.until(Phase::Benchmarking);
    for (mut story, pod) in [
        (cache, "model cache: pod filler"),
        (trial, "load generator: pod generator"),
    ] {
        story.steps(5);
        story.assert_verdict(None, "ContainerFailed", "told at once");
        story.assert_message(pod);
        story.assert_message(
            " ended, container istio-proxy still runs; switch its injection off in podTemplate.metadata",
        );
        story.looks(4, 10);
        story.assert_verdict(None, "ContainerFailed", "it may end in time");
        story.looks(4, 10);
        story.assert_error("ContainerFailed");
        let found = story.status().diagnosis;
        assert!(
            found.iter().any(|finding| finding.remedy.contains("native sidecar")),
            "{found:?}"
        );
    }
}

#[test]
fn a_node_that_goes_away_ends_the_trial_on_it() {
    let mut story = Story::new();
    story.showing = Showing::Hang;
    story.until(Phase::Benchmarking);
    story.steps(4);
    story.around.node = node(false);
    story.step();
    story.assert_verdict(None, "NodeNotReady", "told at once");
    story.wait(25).step();
    story.assert_error("NodeNotReady");

    let mut story = Story::new();
    story.workers_ready = false;
    story.until(Phase::WaitingForReady);
    story.around.node = Seen::Absent;
    story.step();
    story.assert_error("NodeNotReady");
}

/// A worker was deleted during a trial.
#[test]
fn a_worker_that_a_quota_refuses_is_no_trouble_of_the_load_generator() {
    let mut story = Story::new();
    story.showing = Showing::Hang;
    story.around.generator = Some(json!({"phase": "Running"}));
    story.until(Phase::Benchmarking);
    story.steps(4);
    story.around.lacks_worker = true;
    story.around.refusals = vec![PodEvent {
        pod: "ReplicaSet pv-1-worker-6d".into(),
        pod_uid: "u".into(),
        reason: "FailedCreate".into(),
        message: "Error creating: pods \"pv-1-worker-6d-x2x\" is forbidden: exceeded quota: small".into(),
        last_seen: Some(story.now),
    }];
    story.step();
    story.assert_verdict(None, "QuotaExceeded", "");
    let message = story.message();
    assert!(message.starts_with("ReplicaSet pv-1-worker-6d: Error"), "{message}");
}

#[test]
fn a_kubelet_that_comes_back_in_time_ends_nothing() {
    let mut story = Story::new();
    story.showing = Showing::Hang;
    story.until(Phase::Benchmarking);
    story.steps(4);
    story.around.node = node(false);
    story.step();
    story.around.node = Seen::NotAsked;
    story.step();
    story.assert_verdict(None, "Running", "");
}

#[test]
fn a_frontend_of_another_model_is_named_and_believed_after_ten_seconds() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.answers(ProbeAnswer::OtherModels(vec!["lab/tiny".into()]));
    story.steps(4);
    story.assert_verdict(None, "ModelNotServed", "");
    story
        .answers(ProbeAnswer::OtherModels(vec!["lab/tiny".into()]))
        .wait(15);
    story.steps(3);
    story.assert_error("ModelNotServed");
    assert!(
        story.message().starts_with("the frontend serves lab/tiny, not m"),
        "{}",
        story.message()
    );

    // Another worker may have been the first, however long the frontend was silent.
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.answers(ProbeAnswer::Refused(404, String::new())).looks(6, 10);
    story
        .answers(ProbeAnswer::OtherModels(vec!["lab/tiny".into()]))
        .steps(2);
    story.assert_verdict(None, "ModelNotServed", "the first such answer");
    story.step();
    story.assert_error("ModelNotServed");

    // An answer from before a lapse is not the first one.
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story
        .answers(ProbeAnswer::OtherModels(vec!["lab/tiny".into()]))
        .steps(4);
    story.workers_ready = false;
    story.step();
    assert_eq!(story.status().state.unanswered, None);
    story.workers_ready = true;
    story.probe = Probe::InFlight(Duration::from_secs(6));
    story.steps(2).wait(15);
    story
        .answers(ProbeAnswer::OtherModels(vec!["lab/tiny".into()]))
        .steps(2);
    story.assert_verdict(None, "ModelNotServed", "the first answer since the lapse");
    story.step();
    story.assert_error("ModelNotServed");
}

#[test]
fn names_of_other_models_are_escaped_and_cut() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    let mut served = vec!["lab/\u{1b}[31mred\n".to_owned()];
    served.extend((0..100).map(|number| format!("lab/m{number}")));
    story.answers(ProbeAnswer::OtherModels(served));
    story.steps(4);
    let message = story.message();
    assert!(!message.contains(char::is_control), "{message:?}");
    story.assert_message("the frontend serves lab/\\u{1b}[31mred\\n, lab/m0, lab/m1, ");
    story.assert_message("…, not m");
}

#[test]
fn a_wait_that_ends_shows_the_state_of_the_pods() {
    let mut story = Story::with(json!({"timeouts": {"workloadReady": "30s"}}));
    story.workers_ready = false;
    story.until(Phase::WaitingForReady);
    story.step();
    story.wait(31);
    story.steps(3);
    story.assert_error("WorkloadNotReady");
    let said = story.message();
    assert!(
        said.contains("0 of 2 workers are ready, 2 have a pod, the frontend is not ready"),
        "{said}"
    );
}

/// A canary of Dynamo 1.5 takes the readiness of a worker whose first completion is slow.
#[test]
fn components_that_were_ready_once_have_the_time_of_both_waits() {
    let timeouts = json!({"workloadReady": "1m", "endpointReady": "1m", "endpointProbe": "1m"});
    let mut story = Story::with(json!({"timeouts": timeouts}));
    story.until(Phase::WaitingForReady);
    story.answers(ProbeAnswer::Empty).steps(3);
    assert!(story.status().state.ready_since.is_some());
    story.looks(3, 10);
    story.workers_ready = false;
    story.looks(4, 10);
    story.assert_verdict(None, "WorkloadNotReady", "a lapse");
    story.looks(6, 10);
    story.assert_error("WorkloadNotReady");
    story.assert_message("gave up: timeouts.workloadReady and timeouts.endpointReady passed");
}

#[test]
fn what_hangs_is_looked_at_for_ever_and_ever_less_often() {
    let mut story = Story::new();
    story.stuck = true;
    story.until(Phase::CleaningUp);
    for _ in 0..40 {
        if story.phase() == Some(Phase::Completed) {
            break;
        }
        story.wait(30).step();
    }
    assert_eq!(story.phase(), Some(Phase::Completed));
    assert!(condition::is_false(&story.status(), condition::CLEANED_UP));
    let pauses: Vec<Duration> = [10, 300, 600, 3600, 86_400]
        .into_iter()
        .map(|seconds| {
            story.now += TimeDelta::seconds(seconds);
            story.step().recheck.expect("it is looked at again")
        })
        .collect();
    assert!(pauses.is_sorted() && pauses[0] < pauses[2], "{pauses:?}");
    assert_eq!(pauses.last(), Some(&Duration::from_mins(5)), "{pauses:?}");
    story.stuck = false;
    story.steps(2);
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
}

/// A pod of a user's own may carry the name of the object.
#[test]
fn a_pod_of_somebody_else_with_the_objects_name_keeps_no_removal_waiting() {
    let name = json!({"perfvalidation.dev/name": "run"});
    let mut of_other_run = name.clone();
    of_other_run["perfvalidation.dev/run"] = names::run_id("another-uid", 1).into();
    let mut story = Story::new();
    story.around.helpers = [Need::Workload, Need::Claims]
        .into_iter()
        .flat_map(|kind| [(kind, name.clone()), (kind, of_other_run.clone())])
        .collect();
    story.until(Phase::Completed);
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
    story.delete();
    story.steps(3);
    assert!(story.gone);
}

#[test]
fn a_pod_or_a_claim_of_an_earlier_run_of_the_object_is_waited_for() {
    for kind in [Need::Workload, Need::Claims] {
        let mut story = Story::new();
        story.until(Phase::Completed);
        story.annotate("perfvalidation.dev/rerun", Some("again"));
        story.until(Phase::CleaningUp);
        let of_first_run = json!({"perfvalidation.dev/run": names::run_id("u-1", 1)});
        story.around.helpers = vec![(kind, of_first_run)];
        story.steps(5);
        assert_eq!(story.phase(), Some(Phase::CleaningUp), "{kind:?}");
        story.around.helpers.clear();
        story.until(Phase::Completed);
        assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
    }
}
