//! What keeps pods from serving, from the texts that real clusters print.

mod logs;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Pod;
use perfval_run::diagnosis::obstacle::{Obstacle, Response};
use perfval_run::diagnosis::pods::{Proof, signs};
use perfval_run::observed::{PodEvent, PodLog};
use serde_json::{Value, json};

/// First run of the object `u-1`.
const RUN: &str = "7a22f3e7";

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).expect("well-formed")
}

/// A worker that was created ten minutes ago.
fn worker(status: Value) -> Pod {
    component("worker", status)
}

fn component(name: &str, status: Value) -> Pod {
    let created = (now() - TimeDelta::minutes(10)).to_rfc3339();
    let mut pod = json!({
        "metadata": {"name": name, "uid": "uid-1", "creationTimestamp": created,
            "labels": {"perfvalidation.dev/run": RUN, "perfvalidation.dev/component": name}},
        "spec": {"containers": []},
    });
    pod["status"] = status;
    serde_json::from_value(pod).expect("well-formed")
}

fn container(restarts: i32, state: &Value, last: &Value) -> Value {
    json!({"containerStatuses": [{"name": "main", "image": "vllm-runtime:1.6.1", "imageID": "", "ready": false,
        "restartCount": restarts, "state": state, "lastState": last}]})
}

fn crashed(restarts: i32) -> Pod {
    worker(container(
        restarts,
        &json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container"}}),
        &json!({"terminated": {"exitCode": 1, "reason": "Error"}}),
    ))
}

fn event(message: &str) -> Vec<PodEvent> {
    vec![PodEvent {
        pod: "worker".into(),
        pod_uid: "uid-1".into(),
        reason: "FailedPrepareDynamicResources".into(),
        message: message.into(),
        last_seen: Some(now()),
    }]
}

/// What will not pass, or will be taken to if it lasts.
fn found(pod: &Pod, events: &[PodEvent], logs: &[PodLog]) -> Option<(Obstacle, String)> {
    let mut signs = signs([pod], events, logs).into_iter();
    let sign = signs.find(|sign| sign.proof != Proof::Missing)?;
    Some((sign.trouble.obstacle, sign.trouble.evidence))
}

#[test]
fn claims_that_cannot_be_prepared_are_distinguished() {
    let prepare = |words: &str| {
        format!(
            "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: {words}"
        )
    };
    let cases = [
        (
            "error preparing devices for claim ns/c:uid: unable to create CDI spec file for claim: failed to write spec: \
             invalid CDI Spec: failed add device \"uid-gpu-1\": invalid device, empty device edits",
            Obstacle::StaleDRAPlugin,
        ),
        (
            "DRA driver gpu.nvidia.com is not registered",
            Obstacle::DRAPluginMissing,
        ),
        (
            "requested device gpu-1 is already allocated to different claim 0b1e",
            Obstacle::DoubleAllocated,
        ),
        (
            "prepare devices failed: allocatable not found for device \"gpu-9\"",
            Obstacle::LostRace,
        ),
        ("error acquiring prep/unprep lock", Obstacle::ClaimPrepareFailed),
    ];
    let pod = worker(container(
        0,
        &json!({"waiting": {"reason": "ContainerCreating"}}),
        &json!({}),
    ));
    for (words, obstacle) in cases {
        let (named, evidence) = found(&pod, &event(&prepare(words)), &[]).expect(words);
        assert_eq!(named, obstacle, "{words}");
        assert!(
            evidence.starts_with("pod worker: ") && evidence.contains(words),
            "{evidence}"
        );
    }
    let running = worker(container(0, &json!({"running": {}}), &json!({})));
    assert_eq!(
        found(&running, &event(&prepare("x")), &[]),
        None,
        "it was prepared since"
    );
}

#[test]
fn the_schedulers_words_distinguish_missing_gpus_from_the_rest() {
    let unscheduled = |words: &str| {
        let since = (now() - TimeDelta::minutes(1)).to_rfc3339();
        worker(
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": words, "lastTransitionTime": since}]}),
        )
    };
    let cases = [
        (
            "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1",
            Obstacle::InsufficientGPUs,
        ),
        (
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity",
            Obstacle::InsufficientGPUs,
        ),
        (
            "0/1 nodes are available: 1 Insufficient memory.",
            Obstacle::Unschedulable,
        ),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}.",
            Obstacle::Unschedulable,
        ),
    ];
    for (words, obstacle) in cases {
        let (named, evidence) = found(&unscheduled(words), &[], &[]).expect(words);
        let times = if obstacle == Obstacle::InsufficientGPUs { 3 } else { 1 };
        assert_eq!((named, named.response().resizes()), (obstacle, times), "{words}");
        let words = words.split(" preemption:").next().expect("words");
        assert!(evidence.ends_with(words), "{evidence}");
    }
}

#[test]
fn containers_that_do_not_start_are_distinguished() {
    let waiting = |reason: &str, message: &str| {
        worker(container(
            0,
            &json!({"waiting": {"reason": reason, "message": message}}),
            &json!({}),
        ))
    };
    let not_found =
        "Back-off pulling image \"vllm-runtime:1.6.1\": ErrImagePull: failed to resolve reference: not found";
    let cases = [
        (waiting("ImagePullBackOff", not_found), Obstacle::ImagePull),
        (
            waiting(
                "ErrImageNeverPull",
                "Container image is not present with pull policy of Never",
            ),
            Obstacle::ImagePull,
        ),
        (
            waiting("CreateContainerConfigError", "secret \"hf-token\" not found"),
            Obstacle::ContainerConfigError,
        ),
        (
            worker(container(
                2,
                &json!({"running": {}}),
                &json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
            )),
            Obstacle::OOMKilled,
        ),
    ];
    for (pod, obstacle) in cases {
        let (named, evidence) = found(&pod, &[], &[]).expect("a trouble");
        assert_eq!((named, named.response()), (obstacle, Response::GiveUp), "{evidence}");
    }
    let network = waiting("ImagePullBackOff", "dial tcp: i/o timeout");
    assert_eq!(found(&network, &[], &[]), None, "the network may come back");
}

#[test]
fn every_obstacle_has_a_name_an_explanation_and_a_remedy_of_its_own() {
    let mut words: Vec<&str> = Obstacle::ALL.iter().map(|obstacle| obstacle.name()).collect();
    words.dedup();
    assert_eq!(words.len(), Obstacle::ALL.len());
    for obstacle in Obstacle::ALL {
        let finding = obstacle.finding("evidence");
        assert_eq!(
            (finding.cause.as_str(), finding.evidence.as_str()),
            (obstacle.as_str(), "evidence")
        );
        assert_eq!(Obstacle::from_finding(&finding), Some(*obstacle));
        assert!(
            !obstacle.seen().is_empty() && !obstacle.why().is_empty(),
            "{obstacle:?}"
        );
        assert!(
            !finding.remedy.is_empty() && !finding.remedy.ends_with('.'),
            "{obstacle:?}"
        );
        if let Some(behind) = Obstacle::behind(obstacle.reason()) {
            assert_eq!(behind.reason(), obstacle.reason(), "{obstacle:?}");
        }
    }
}
