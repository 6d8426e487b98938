//! What is told while it may still pass, and from when on it is believed: from the texts that the lab's kubelet, scheduler,
//! controllers and download library print.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Pod;
use perfval_run::diagnosis::obstacle::Obstacle;
use perfval_run::diagnosis::pods::{Sign, sign};
use perfval_run::diagnosis::surroundings::{node, refused};
use perfval_run::observed::{LogRequest, NodeSeen, PodEvent, PodLog};
use perfval_sizing::Seen;
use serde_json::{Value, json};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).expect("well-formed")
}

fn ago(seconds: i64) -> String {
    (now() - TimeDelta::seconds(seconds)).to_rfc3339()
}

/// A pod of this age (s).
fn pod(age: i64, status: Value) -> Pod {
    let metadata = json!({"name": "worker", "uid": "uid-1", "creationTimestamp": ago(age)});
    let mut pod = json!({"metadata": metadata, "spec": {"containers": []}});
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

fn log(text: &str) -> Vec<PodLog> {
    vec![PodLog {
        of: LogRequest {
            pod: "worker".into(),
            container: "main".into(),
            previous: true,
        },
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

/// What is told, and whether it is believed.
fn told(found: Option<Sign>) -> Option<(Obstacle, bool)> {
    found.map(|sign| (sign.trouble.obstacle, sign.is_sure))
}

fn of(pod: &Pod) -> Option<(Obstacle, bool)> {
    told(sign([pod], &[], &[], now()))
}

#[test]
fn an_image_that_no_registry_has_is_believed_after_one_more_try_and_a_network_never() {
    // containerd 2.3, with the kubelet's back-off in front and without.
    let missing = "failed to pull and unpack image \"localhost/no-such-image:1.4.9\": failed to resolve reference \
        \"localhost/no-such-image:1.4.9\": localhost/no-such-image:1.4.9: not found";
    let backed_off = format!("Back-off pulling image \"localhost/no-such-image:1.4.9\": ErrImagePull: {missing}");
    let no_network = "failed to pull and unpack image \"nvcr.io/nvidia/x:1\": failed to do request: Head \
        \"https://nvcr.io/v2/nvidia/x/manifests/1\": dial tcp: lookup nvcr.io: i/o timeout";
    let private = "failed to resolve reference \"nvcr.io/x/y:1\": failed to authorize: failed to fetch anonymous token: \
        unexpected status from GET request to https://nvcr.io/proxy_auth: 401 Unauthorized";
    let cases = [
        (5, "ErrImagePull", missing, false),
        (25, "ErrImagePull", missing, true),
        (25, "ImagePullBackOff", &backed_off, true),
        (
            0,
            "ErrImageNeverPull",
            "Container image is not present with pull policy of Never",
            true,
        ),
        (600, "ImagePullBackOff", no_network, false),
        (25, "ErrImagePull", private, true),
    ];
    for (age, reason, message, is_sure) in cases {
        let found = of(&pod(age, waiting(reason, message)));
        assert_eq!(found, Some((Obstacle::ImagePull, is_sure)), "{age} {reason} {message}");
    }
    let evidence =
        |reason, message| sign([&pod(5, waiting(reason, message))], &[], &[], now()).map(|sign| sign.trouble);
    assert_eq!(
        evidence("ErrImagePull", missing),
        evidence("ImagePullBackOff", &backed_off),
        "one text is one write of the status"
    );
}

#[test]
fn a_container_that_crashes_is_told_after_its_first_crash_and_believed_after_its_third() {
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let backing_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}});
    let running = json!({"running": {}});
    let cases = [
        (0, &ended, &json!({}), false),
        (1, &running, &ended, false),
        (1, &backing_off, &ended, false),
        (2, &backing_off, &ended, true),
        (3, &running, &ended, false),
    ];
    for (restarts, state, last, is_sure) in cases {
        let found = of(&pod(60, container(restarts, state, last)));
        assert_eq!(found, Some((Obstacle::CrashLoop, is_sure)), "{restarts} {state}");
    }
    let explained = pod(60, container(1, &backing_off, &ended));
    let found = sign(
        [&explained],
        &[],
        &log("RuntimeError: Failed to infer device type"),
        now(),
    );
    assert_eq!(told(found), Some((Obstacle::NoGPUInContainer, true)));

    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    for (restarts, state, is_sure) in [(0, &killed, false), (1, &running, false), (1, &backing_off, true)] {
        let found = of(&pod(60, container(restarts, state, &killed)));
        assert_eq!(found, Some((Obstacle::OOMKilled, is_sure)), "{restarts} {state}");
    }
}

#[test]
fn what_ended_well_or_belongs_to_a_job_is_no_crash() {
    let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    assert_eq!(of(&pod(60, container(0, &done, &json!({})))), None);
    let failed = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let mut of_job = pod(60, container(0, &failed, &json!({})));
    of_job.spec.as_mut().expect("a spec").restart_policy = Some("Never".into());
    assert_eq!(of(&of_job), None, "its record says more");
}

/// `huggingface_hub`: the first three as its sources have them, the one without a network as the lab's image printed it; Dynamo
/// 1.4.2 offline.
const GATED: &str = "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-6)

Cannot access gated repo for url http://hub/api/models/lab/gated/revision/main.
Access to model lab/gated is restricted. You must have access to it and be authenticated to access it. Please log in.
";
const UNKNOWN: &str = "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-6)

Repository Not Found for url: http://hub/api/models/lab/none/revision/main.
Please make sure you specified the correct `repo_id` and `repo_type`.
If you are trying to access a private or gated repo, make sure you are authenticated and your token has the required permissions.
";
const MALFORMED: &str = "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or \
    'namespace/repo_name': 'a/b/c'. Use `repo_type` argument if needed.\n";
const NO_SNAPSHOT: &str = "Exception: Model snapshots for 'lab/none' not found in cache\n";
const NO_NETWORK: &str = "httpx2.ConnectError: [Errno -3] Temporary failure in name resolution

The above exception was the direct cause of the following exception:

huggingface_hub.errors.LocalEntryNotFoundError: Got: ConnectError: [Errno -3] Temporary failure in name resolution
An error happened while trying to locate the files on the Hub, and we cannot find the appropriate snapshot folder for the specified \
    revision on the local disk. Please check your internet connection and try again.
";
const NO_SPACE: &str = "OSError: [Errno 28] No space left on device\n";

#[test]
fn a_model_that_cannot_be_had_is_named_by_its_kind() {
    let backing_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}});
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let crashed = pod(60, container(1, &backing_off, &ended));
    let cases = [
        (GATED, Obstacle::ModelGated, "Cannot access gated repo"),
        (UNKNOWN, Obstacle::ModelNotFound, "Repository Not Found for url"),
        (MALFORMED, Obstacle::ModelNotFound, "Repo id must be in the form"),
        (NO_SNAPSHOT, Obstacle::ModelNotFound, "'lab/none' not found in cache"),
        (
            NO_NETWORK,
            Obstacle::ModelUnreachable,
            "Temporary failure in name resolution",
        ),
        (NO_SPACE, Obstacle::CacheFull, "No space left on device"),
    ];
    for (text, obstacle, line) in cases {
        let found = sign([&crashed], &[], &log(text), now()).expect(line);
        assert_eq!((found.trouble.obstacle, found.is_sure), (obstacle, true), "{text}");
        assert!(found.trouble.evidence.contains(line), "{}", found.trouble.evidence);
    }
}

#[test]
fn a_claim_or_volume_that_cannot_be_prepared_is_told_at_once() {
    let creating = waiting("ContainerCreating", "");
    let prepare = "FailedPrepareDynamicResources";
    let missing =
        "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.nvidia.com is not registered";
    let mount =
        "MountVolume.SetUp failed for volume \"weights\" : hostPath type check failed: /no/such is not a directory";
    let cases = [
        (11, prepare, missing, Obstacle::DRAPluginMissing, false),
        (181, prepare, missing, Obstacle::DRAPluginMissing, true),
        (11, "FailedMount", mount, Obstacle::VolumeUnavailable, false),
        (121, "FailedMount", mount, Obstacle::VolumeUnavailable, true),
    ];
    for (age, reason, message, obstacle, is_sure) in cases {
        let found = sign([&pod(age, creating.clone())], &[event(reason, message)], &[], now());
        assert_eq!(told(found), Some((obstacle, is_sure)), "{age} {message}");
    }
    let unrelated = sign(
        [&pod(60, creating)],
        &[event("FailedCreatePodSandBox", "x")],
        &[],
        now(),
    );
    assert_eq!(unrelated, None);
}

#[test]
fn the_scheduler_is_believed_after_twenty_seconds_and_a_volume_has_time_to_be_made() {
    let unscheduled = |seconds: i64, words: &str| {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": words, "lastTransitionTime": ago(seconds)});
        of(&pod(seconds, json!({"conditions": [condition]})))
    };
    let tainted =
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). still not schedulable, preemption: 0/1 nodes";
    let unbound =
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found preemption: 0/1 nodes";
    let no_volume = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.";
    let no_claim = "0/1 nodes are available: persistentvolumeclaim \"weights\" not found.";
    let cases = [
        (2, tainted, None),
        (6, tainted, Some((Obstacle::Unschedulable, false))),
        (20, tainted, Some((Obstacle::Unschedulable, true))),
        (20, unbound, Some((Obstacle::VolumeUnavailable, false))),
        (120, unbound, Some((Obstacle::VolumeUnavailable, true))),
        (120, no_volume, Some((Obstacle::VolumeUnavailable, true))),
        (120, no_claim, Some((Obstacle::VolumeUnavailable, true))),
    ];
    for (seconds, words, expected) in cases {
        assert_eq!(unscheduled(seconds, words), expected, "{seconds} {words}");
    }
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
        (5, quota, Obstacle::QuotaExceeded, false),
        (20, quota, Obstacle::QuotaExceeded, true),
        (20, policy, Obstacle::PodsRefused, true),
        (300, webhook, Obstacle::PodsRefused, false),
    ];
    for (seconds, words, obstacle, is_sure) in cases {
        let of = PodEvent {
            pod: "ReplicaSet pv-1-worker-6d".into(),
            ..event("FailedCreate", words)
        };
        let found = refused(&[of], Duration::from_secs(seconds)).expect(words);
        assert_eq!(
            (found.trouble.obstacle, found.is_sure),
            (obstacle, is_sure),
            "{seconds} {words}"
        );
        let evidence = found.trouble.evidence;
        assert!(
            evidence.starts_with("ReplicaSet pv-1-worker-6d: Error creating: "),
            "{evidence}"
        );
        assert!(!evidence.contains("-x2x") && !evidence.contains("-abc"), "{evidence}");
    }
    assert_eq!(refused(&[], Duration::from_mins(9)), None);
}

#[test]
fn a_node_that_went_away_is_believed_after_twenty_seconds_and_one_that_is_gone_at_once() {
    let unready = |seconds| {
        Seen::Present(NodeSeen {
            ready: false,
            since: Some(now() - TimeDelta::seconds(seconds)),
            message: "Kubelet stopped posting node status.".into(),
        })
    };
    let ready = Seen::Present(NodeSeen {
        ready: true,
        since: None,
        message: "kubelet is posting ready status".into(),
    });
    let cases = [
        (unready(5), Some((Obstacle::NodeNotReady, false))),
        (unready(20), Some((Obstacle::NodeNotReady, true))),
        (Seen::Absent, Some((Obstacle::NodeNotReady, true))),
        (ready, None),
        (Seen::Unknown("500".into()), None),
        (Seen::NotAsked, None),
    ];
    for (seen, expected) in cases {
        assert_eq!(told(node("gpu-node-1", &seen, now())), expected, "{seen:?}");
    }
}

#[test]
fn what_is_believed_goes_before_what_may_pass() {
    let may_pass = pod(600, waiting("ErrImagePull", "dial tcp: i/o timeout"));
    let never = pod(600, waiting("ErrImageNeverPull", "not present"));
    let found = sign([&may_pass, &never], &[], &[], now()).expect("a sign");
    assert!(
        found.is_sure && found.trouble.evidence.contains("not present"),
        "{found:?}"
    );
}
