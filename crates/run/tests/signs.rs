//! What is a sign of trouble, and what makes it certain: from the texts that the lab's kubelet, scheduler, controllers and
//! download library print.

mod signs {
    mod architecture;
    mod logs;
}

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Pod;
use perfval_run::diagnosis::pods::{Judged, Proof, Sign, Trouble, most_telling, signs};
use perfval_run::diagnosis::surroundings::{node, refused};
use perfval_run::observed::{LogRequest, NodeSeen, PodEvent, PodLog};
use perfval_run::obstacle::Obstacle;
use perfval_sizing::Seen;
use serde_json::{Value, json};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).expect("well-formed")
}

/// A worker of the first run of the object `u-1`.
fn pod(status: Value) -> Pod {
    component("worker", status)
}

fn component(name: &str, status: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "uid": "uid-1", "creationTimestamp": now().to_rfc3339(),
            "labels": {"perfvalidation.dev/run": "7a22f3e7", "perfvalidation.dev/component": name}},
        "spec": {"containers": []},
    });
    pod["status"] = status;
    serde_json::from_value(pod).expect("well-formed")
}

fn container(restarts: i32, state: &Value, last: &Value) -> Value {
    json!({"containerStatuses": [{"name": "main", "image": "vllm-runtime:1.6.1", "imageID": "", "ready": false,
        "restartCount": restarts, "state": state, "lastState": last}]})
}

fn waiting(reason: &str, message: &str) -> Value {
    container(
        0,
        &json!({"waiting": {"reason": reason, "message": message}}),
        &json!({}),
    )
}

fn crashed(restarts: i32) -> Pod {
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let backing_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}});
    pod(container(restarts, &backing_off, &ended))
}

/// The log of a worker that crashed, or of a frontend that runs.
fn log(pod: &str, text: &str) -> Vec<PodLog> {
    vec![PodLog {
        of: LogRequest::new(pod, "main", pod == "worker"),
        text: Seen::Present(text.into()),
    }]
}

fn event(reason: &str, message: &str) -> PodEvent {
    PodEvent {
        pod: "worker".into(),
        pod_uid: "uid-1".into(),
        reason: reason.into(),
        message: message.into(),
        last_seen: Some(now()),
    }
}

/// The sign in a pod, if there is one.
fn sign(pod: &Pod, events: &[PodEvent], logs: &[PodLog]) -> Option<Sign> {
    let mut found = signs([pod], "nvidia.com/gpu", events, logs);
    assert!(found.len() <= 1, "{found:?}");
    found.pop()
}

/// What it is a sign of, and what makes it certain.
fn obstacle_and_proof(found: Option<Sign>) -> Option<(Obstacle, Proof)> {
    found.map(|sign| (sign.trouble.obstacle, sign.proof))
}

fn of(pod: &Pod) -> Option<(Obstacle, Proof)> {
    obstacle_and_proof(sign(pod, &[], &[]))
}

#[test]
fn an_image_that_no_registry_has_is_believed_if_that_lasts_and_a_network_never() {
    // containerd 2.3, with the kubelet's back-off in front and without.
    let missing = "failed to pull and unpack image \"localhost/no-such-image:1.4.9\": failed to resolve reference \
        \"localhost/no-such-image:1.4.9\": localhost/no-such-image:1.4.9: not found";
    let backed_off = format!("Back-off pulling image \"localhost/no-such-image:1.4.9\": ErrImagePull: {missing}");
    let no_network = "failed to pull and unpack image \"nvcr.io/nvidia/x:1\": failed to do request: Head \
        \"https://nvcr.io/v2/nvidia/x/manifests/1\": dial tcp: lookup nvcr.io: i/o timeout";
    let private = "failed to resolve reference \"nvcr.io/x/y:1\": failed to authorize: failed to fetch anonymous token: \
        unexpected status from GET request to https://nvcr.io/proxy_auth: 401 Unauthorized";
    let cases = [
        ("ErrImagePull", missing, Proof::Lasts),
        ("ImagePullBackOff", &backed_off, Proof::Lasts),
        (
            "ErrImageNeverPull",
            "Container image is not present with pull policy of Never",
            Proof::Seen,
        ),
        ("ImagePullBackOff", no_network, Proof::Missing),
        ("ErrImagePull", private, Proof::Lasts),
    ];
    for (reason, message, proof) in cases {
        let found = of(&pod(waiting(reason, message)));
        assert_eq!(found, Some((Obstacle::ImagePull, proof)), "{reason} {message}");
    }
    let seen = |reason, message| sign(&pod(waiting(reason, message)), &[], &[]);
    assert_eq!(
        seen("ErrImagePull", missing),
        seen("ImagePullBackOff", &backed_off),
        "one text is one write of the status"
    );
}

#[test]
fn a_first_crash_is_reported_and_a_third_ends_the_wait() {
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let backing_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}});
    let running = json!({"running": {}});
    let cases = [
        (0, &ended, &json!({}), Proof::Missing),
        (1, &running, &ended, Proof::Missing),
        (1, &backing_off, &ended, Proof::Missing),
        (2, &backing_off, &ended, Proof::Seen),
        (3, &running, &ended, Proof::Missing),
    ];
    for (restarts, state, last, proof) in cases {
        let found = of(&pod(container(restarts, state, last)));
        assert_eq!(found, Some((Obstacle::CrashLoop, proof)), "{restarts} {state}");
    }

    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    for (restarts, state, proof) in [
        (0, &killed, Proof::Missing),
        (1, &running, Proof::Missing),
        (1, &backing_off, Proof::Seen),
        (2, &running, Proof::Seen),
    ] {
        let found = of(&pod(container(restarts, state, &killed)));
        assert_eq!(found, Some((Obstacle::OOMKilled, proof)), "{restarts} {state}");
    }
}

#[test]
fn what_ended_well_or_belongs_to_a_job_is_no_crash() {
    let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    assert_eq!(of(&pod(container(0, &done, &json!({})))), None);
    let failed = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    assert_eq!(of(&pod(container(2, &done, &failed))), None, "an init container");
    let mut of_job = pod(container(0, &failed, &json!({})));
    of_job.spec.as_mut().expect("a spec").restart_policy = Some("Never".into());
    assert_eq!(of(&of_job), None, "its record says more");
}

#[test]
fn a_sidecar_outlives_only_the_container_of_a_job() {
    let ended = json!({"terminated": {"exitCode": 0}});
    let running = json!({"running": {}});
    let seen = |main: &str, state: &Value, other: &str, is_native: bool| {
        let status = |name: &str, state: &Value| json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let (own, other) = (status(main, state), status(other, &running));
        if is_native {
            of(&pod(
                json!({"containerStatuses": [own], "initContainerStatuses": [other]}),
            ))
        } else {
            of(&pod(json!({"containerStatuses": [own, other]})))
        }
    };
    for main in ["aiperf", "fill"] {
        let found = seen(main, &ended, "linkerd-proxy", false);
        assert_eq!(found, Some((Obstacle::SidecarRuns, Proof::Lasts)));
        assert_eq!(seen(main, &running, "linkerd-proxy", false), None);
        assert_eq!(seen(main, &ended, "linkerd-proxy", true), None, "the kubelet ends it");
    }
    assert_eq!(seen("main", &ended, "linkerd-proxy", false), None);
}

#[test]
fn refused_settings_of_a_container_are_believed_if_that_lasts() {
    let found = of(&pod(waiting(
        "CreateContainerConfigError",
        "secret \"hf-token\" not found",
    )));
    assert_eq!(found, Some((Obstacle::ContainerConfigError, Proof::Lasts)));
}

#[test]
fn a_claim_or_volume_that_cannot_be_prepared_is_reported_at_once() {
    let prepare = |words: &str| {
        event(
            "FailedPrepareDynamicResources",
            &format!(
                "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: {words}"
            ),
        )
    };
    let mount =
        "MountVolume.SetUp failed for volume \"weights\" : hostPath type check failed: /no/such is not a directory";
    let stale = "error preparing devices for claim ns/c:uid: unable to create CDI spec file for claim: failed to write spec: \
        invalid CDI Spec: failed add device \"uid-gpu-1\": invalid device, empty device edits";
    let cases = [
        (prepare(stale), Obstacle::StaleDRAPlugin),
        (
            prepare("DRA driver gpu.nvidia.com is not registered"),
            Obstacle::DRAPluginMissing,
        ),
        (
            prepare("requested device gpu-1 is already allocated to different claim 0b1e"),
            Obstacle::DoubleAllocated,
        ),
        (
            prepare("prepare devices failed: allocatable not found for device \"gpu-9\""),
            Obstacle::LostRace,
        ),
        (
            prepare("error acquiring prep/unprep lock"),
            Obstacle::ClaimPrepareFailed,
        ),
        (event("FailedMount", mount), Obstacle::VolumeUnavailable),
    ];
    let creating = pod(waiting("ContainerCreating", ""));
    for (event, obstacle) in cases {
        let evidence = format!("pod worker: {}", event.message);
        let found = sign(&creating, &[event], &[]).expect(&evidence);
        assert_eq!(
            (found.trouble.obstacle, found.proof),
            (obstacle, Proof::Lasts),
            "{evidence}"
        );
        assert_eq!(found.trouble.evidence, evidence);
    }
    let unrelated = sign(&creating, &[event("FailedCreatePodSandBox", "x")], &[]);
    assert_eq!(unrelated, None);
    // containerd, then CRI-O.
    for words in [
        "failed to get sandbox runtime: no runtime for \"nvidia\" is configured",
        "failed to find runtime handler nvidia from runtime list map[crun:0x1]",
    ] {
        let refused = format!("Failed to create pod sandbox: rpc error: code = Unknown desc = {words}");
        let found = obstacle_and_proof(sign(&creating, &[event("FailedCreatePodSandBox", &refused)], &[]));
        let expected = (Obstacle::ContainerConfigError, Proof::Repeats(Some(now())));
        assert_eq!(found, Some(expected), "{words}");
    }
    let running = pod(container(0, &json!({"running": {}}), &json!({})));
    assert_eq!(sign(&running, &[prepare("x")], &[]), None, "it was prepared since");
}

#[test]
fn the_schedulers_words_show_what_a_pod_lacks_and_are_believed_if_they_last() {
    let unscheduled = |words: &str| {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": words, "lastTransitionTime": now().to_rfc3339()});
        sign(&pod(json!({"conditions": [condition]})), &[], &[]).expect(words)
    };
    let claimed = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1";
    let counted = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity";
    let alone = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available";
    let no_network = "0/1 nodes are available: 1 Insufficient rdma/hca.";
    let no_memory = "0/1 nodes are available: 1 Insufficient memory.";
    let tainted =
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). still not schedulable, preemption: 0/1 nodes";
    let unbound =
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found preemption: 0/1 nodes";
    let no_volume = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.";
    let no_claim = "0/1 nodes are available: persistentvolumeclaim \"weights\" not found.";
    let cases = [
        (claimed, Obstacle::InsufficientGPUs),
        (counted, Obstacle::InsufficientGPUs),
        (alone, Obstacle::InsufficientGPUs),
        (no_memory, Obstacle::Unschedulable),
        (no_network, Obstacle::Unschedulable),
        (tainted, Obstacle::Unschedulable),
        (unbound, Obstacle::VolumeUnavailable),
        (no_volume, Obstacle::VolumeUnavailable),
        (no_claim, Obstacle::VolumeUnavailable),
    ];
    for (words, obstacle) in cases {
        let found = unscheduled(words);
        assert_eq!(
            (found.trouble.obstacle, found.proof),
            (obstacle, Proof::Lasts),
            "{words}"
        );
        let words = words.split(" preemption:").next().expect("words");
        assert_eq!(found.trouble.evidence, format!("pod worker: {words}"));
    }
}

#[test]
fn a_pod_that_a_kubelet_rejects_is_believed_if_later_ones_are_rejected_too() {
    let rejected = |reason: &str, message: &str| {
        let mut made = pod(json!({"phase": "Failed", "reason": reason, "message": message}));
        made.spec.get_or_insert_default().node_name = Some("gpu-node-1".into());
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "pv-1-worker-6d", "uid": "u"});
        made.metadata.owner_references = Some(vec![serde_json::from_value(owner).expect("well-formed")]);
        sign(&made, &[], &[])
    };
    let unhealthy = "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices \
        nvidia.com/gpu, which is unexpected";
    let too_few = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. \
        Requested: 1, Available: 0, which is unexpected";
    let other = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu.shared. \
        Requested: 1, Available: 0, which is unexpected";
    let no_gpu =
        "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 8, capacity: 8";
    let few_cores =
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000, used: 63000, capacity: 64000";
    let topology = "Pod was rejected: Resources cannot be allocated with Topology locality";
    let cases = [
        ("UnexpectedAdmissionError", unhealthy, Obstacle::LostRace),
        ("UnexpectedAdmissionError", too_few, Obstacle::LostRace),
        ("UnexpectedAdmissionError", other, Obstacle::Unschedulable),
        ("OutOfnvidia.com/gpu", no_gpu, Obstacle::LostRace),
        ("OutOfcpu", few_cores, Obstacle::Unschedulable),
        ("TopologyAffinityError", topology, Obstacle::Unschedulable),
    ];
    for (reason, message, obstacle) in cases {
        let found = rejected(reason, message).expect(reason);
        assert_eq!(
            (found.trouble.obstacle, found.proof),
            (obstacle, Proof::Repeats(Some(now()))),
            "{message}"
        );
        let words = message.trim_start_matches("Pod was rejected: ");
        let evidence =
            format!("the kubelet of gpu-node-1 rejects pods of ReplicaSet pv-1-worker-6d ({reason}): {words}");
        assert_eq!(found.trouble.evidence, evidence);
    }
    assert_eq!(rejected("Evicted", "The node was low on resource: memory."), None);
}

#[test]
fn who_refuses_pods_is_quoted_without_the_name_of_each_try() {
    let quota = "Error creating: pods \"pv-1-worker-6d-x2x\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, \
        limited: pods=1";
    let policy = "(combined from similar events): Error creating: pods \"pv-1-worker-6d-abc\" is forbidden: ValidatingAdmissionPolicy 'no-workers' with binding \
        'no-workers' denied request: no workers here";
    let webhook = "Error creating: Internal error occurred: failed calling webhook \"check.example.com\": failed to call webhook: \
        Post \"https://check.perf.svc:443/\": dial tcp 10.96.0.9:443: connect: connection refused";
    let cases = [
        (quota, Obstacle::QuotaExceeded, Proof::Repeats(Some(now()))),
        (policy, Obstacle::PodsRefused, Proof::Repeats(Some(now()))),
        (webhook, Obstacle::PodsRefused, Proof::Missing),
    ];
    for (words, obstacle, proof) in cases {
        let found = refused(&[refusal("ReplicaSet pv-1-worker-6d", words)]);
        let [found] = found.as_slice() else {
            panic!("one sign: {found:?}")
        };
        assert_eq!((found.trouble.obstacle, found.proof), (obstacle, proof), "{words}");
        let evidence = &found.trouble.evidence;
        assert!(
            evidence.starts_with("ReplicaSet pv-1-worker-6d: Error creating: "),
            "{evidence}"
        );
        assert!(!evidence.contains("-x2x") && !evidence.contains("-abc"), "{evidence}");
    }
    assert_eq!(refused(&[]), []);
}

fn refusal(controller: &str, words: &str) -> PodEvent {
    PodEvent {
        pod: controller.into(),
        ..event("FailedCreate", words)
    }
}

/// An Event for each of ten pod names, then one for all others.
#[test]
fn the_refusals_of_one_controller_are_one_sign_by_its_newest() {
    let at = |seconds| Some(now() + chrono::TimeDelta::seconds(seconds));
    let dated = |controller, words, seconds| PodEvent {
        last_seen: at(seconds),
        ..refusal(controller, words)
    };
    let found = refused(&[
        dated("ReplicaSet a", "first", 1),
        dated("ReplicaSet b", "other", 2),
        dated("ReplicaSet a", "(combined from similar events): last", 9),
        dated("ReplicaSet a", "second", 3),
    ]);
    let shown: Vec<_> = found
        .iter()
        .map(|sign| (sign.trouble.evidence.as_str(), sign.proof))
        .collect();
    assert_eq!(
        shown,
        [
            ("ReplicaSet a: last", Proof::Repeats(at(9))),
            ("ReplicaSet b: other", Proof::Repeats(at(2)))
        ]
    );
}

#[test]
fn a_lasting_unready_node_counts_and_a_missing_node_counts_at_once() {
    let is = |ready| {
        Seen::Present(NodeSeen {
            ready,
            message: "Kubelet stopped posting node status.".into(),
            architecture: "arm64".into(),
        })
    };
    let cases = [
        (is(false), Some((Obstacle::NodeNotReady, Proof::Lasts))),
        (Seen::Absent, Some((Obstacle::NodeNotReady, Proof::Seen))),
        (is(true), None),
        (Seen::Unknown("500".into()), None),
        (Seen::NotAsked, None),
    ];
    for (seen, expected) in cases {
        assert_eq!(obstacle_and_proof(node("gpu-node-1", &seen)), expected, "{seen:?}");
    }
}

#[test]
fn signs_that_are_sure_final_or_explained_go_first() {
    let judged = |obstacle, is_sure| Judged {
        trouble: Trouble {
            obstacle,
            evidence: "evidence".into(),
        },
        is_sure,
    };
    for (less, more) in [
        (judged(Obstacle::ImagePull, false), judged(Obstacle::ImagePull, true)),
        (judged(Obstacle::LostRace, true), judged(Obstacle::ImagePull, true)),
        (judged(Obstacle::CrashLoop, true), judged(Obstacle::EngineDead, true)),
    ] {
        assert_eq!(most_telling([less, more.clone()]), Some(more));
    }
}

#[test]
fn every_obstacle_has_an_explanation_and_a_remedy_of_its_own() {
    for obstacle in Obstacle::ALL {
        let finding = obstacle.finding("evidence");
        assert_eq!(Obstacle::from_finding(&finding), Some(*obstacle));
        assert!(
            !obstacle.seen().is_empty() && !obstacle.why().is_empty(),
            "{obstacle:?}"
        );
        assert!(
            !finding.remedy.is_empty() && !finding.remedy.ends_with('.'),
            "{obstacle:?}"
        );
        // The pods of a run that ended are gone.
        for remedy in [finding.remedy.as_str(), obstacle.reason().word().remedy()] {
            assert_eq!(
                remedy.contains("logs --previous"),
                remedy.contains("kubectl perfval keep"),
                "{remedy}"
            );
        }
    }
}
