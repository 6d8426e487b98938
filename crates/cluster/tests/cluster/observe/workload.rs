//! Reads of the workload: pods, claims, events, and the log of a crash.

use std::time::Duration;

use chrono::Utc;
use perfval_run::Run;
use perfval_run::names::dynamo::{MAIN, WORKER};
use perfval_run::observed::{Need, Needs, PodEvent};
use perfval_sizing::Seen;
use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World, validation};

/// Puts an Event on an object, whose message is its name unless `rest` has another one.
fn put_event(world: &World, name: &str, object: &Value, rest: &Value) {
    let mut event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": NAMESPACE, "name": name},
        "involvedObject": object, "message": name, "lastTimestamp": "2026-11-21T00:00:01Z",
    });
    for (key, value) in rest.as_object().into_iter().flatten() {
        event[key] = value.clone();
    }
    world.server.put(event);
}

#[tokio::test]
async fn events_are_read_for_pods_on_their_way() {
    let world = World::new();
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    world.put_child("v1", "Pod", "ready", &ready);
    let waiting = world.put_child("v1", "Pod", "waiting", &json!({}));
    let ready = world.server.get("pods", NAMESPACE, "ready").unwrap();
    let over = world.put_child("v1", "Pod", "over", &json!({"status": {"phase": "Succeeded"}}));
    for (name, pod, kind, last) in [
        ("a", &waiting, "Warning", "2026-11-21T00:00:01Z"),
        ("b", &waiting, "Warning", "2026-11-21T00:00:02Z"),
        ("c", &waiting, "Normal", "2026-11-21T00:00:03Z"),
        ("d", &ready, "Warning", "2026-11-21T00:00:04Z"),
        ("e", &over, "Warning", "2026-11-21T00:00:05Z"),
    ] {
        let pod = json!({"kind": "Pod", "uid": pod["metadata"]["uid"]});
        let rest = json!({"type": kind, "reason": "FailedPrepareDynamicResources", "lastTimestamp": last});
        put_event(&world, name, &pod, &rest);
    }
    world.put_child(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "waiting-gpu",
        &json!({"spec": {}}),
    );
    let seen = world.observe(Need::Workload).await;
    assert_eq!(seen.pods.present().unwrap().len(), 3);
    let claims = world.observe(Need::Claims).await.claims;
    assert_eq!(claims.present().unwrap().len(), 1);
    let events = seen.pod_events.present().unwrap();
    let texts: Vec<_> = events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(
        texts,
        ["b", "a"],
        "the newest first, warnings only, of the waiting pod only"
    );
    assert_eq!(events[0].pod, "waiting");
}

#[tokio::test]
async fn events_are_read_only_where_a_phase_waits_for_pods_and_once_for_all_pods() {
    for (phase, lists) in [
        ("Sizing", 0),
        // One more for what may not create the pods that are missing, and one for preemptions.
        ("WaitingForReady", 3),
        ("Benchmarking", 3),
        ("CleaningUp", 0),
        ("Completed", 0),
    ] {
        let world = World::new();
        for pod in ["one", "two"] {
            world.put_child("v1", "Pod", pod, &json!({}));
        }
        let going = world.put_child("v1", "Pod", "going", &json!({}));
        let mut going = going.clone();
        going["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z".into();
        going["metadata"]["finalizers"] = json!(["example.com/hold"]);
        world.server.put(going);
        world.edit(|object| object["status"]["phase"] = phase.into());
        world.server.forget_calls();
        let seen = world.observe(Need::Workload).await;
        assert_eq!(seen.pods.present().map(Vec::len), Some(3), "{phase}");
        assert_eq!(world.count_calls("events"), lists, "{phase}");
        assert_eq!(seen.pod_events == Seen::NotAsked, lists == 0, "{phase}");
    }
}

#[tokio::test]
async fn no_warnings_are_read_for_pods_that_the_kubelet_has_prepared() {
    let loads = json!({"containerStatuses": [{"name": MAIN, "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"running": {}}}]});
    let pulls = json!({"conditions": [{"type": "PodReadyToStartContainers", "status": "True"}]});
    for (status, lists) in [(json!({}), 3), (loads, 2), (pulls, 2)] {
        let world = World::new();
        for pod in ["one", "two"] {
            world.put_child("v1", "Pod", pod, &json!({"status": status}));
        }
        world.server.forget_calls();
        let seen = world.observe(Need::Workload).await;
        assert_eq!(seen.pod_events, Seen::Present(Vec::new()), "{status}");
        // Two are for the pods that are missing.
        assert_eq!(world.count_calls("events"), lists, "{status}");
    }
}

#[tokio::test]
async fn a_crowded_namespace_has_a_list_of_events_for_each_pod() {
    // Two lists are for the pods that are missing.
    for (strangers, reason, lists) in [
        (0, "FailedMount", 3),
        (300, "FailedMount", 5),
        // Each worker that loads a model has one.
        (300, "Unhealthy", 3),
    ] {
        let world = World::new();
        let event = |name: &str, uid: &str, reason: &str| {
            let pod = json!({"kind": "Pod", "name": "p", "uid": uid});
            put_event(&world, name, &pod, &json!({"type": "Warning", "reason": reason}));
        };
        for pod in ["one", "two"] {
            let made = world.put_child("v1", "Pod", pod, &json!({}));
            event(pod, made["metadata"]["uid"].as_str().unwrap(), "FailedMount");
        }
        for number in 0..strangers {
            event(&format!("a-{number}"), "another-pod", reason);
        }
        world.server.forget_calls();
        let seen = world.observe(Need::Workload).await;
        let mut found: Vec<_> = (seen.pod_events.present().unwrap().iter())
            .map(|event| (event.pod.as_str(), event.message.as_str()))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [("one", "one"), ("two", "two")], "{strangers} {reason}");
        assert_eq!(world.count_calls("events"), lists, "{strangers} {reason}");
    }
}

#[tokio::test]
async fn preemptions_are_read_once_a_worker_is_gone() {
    let world = World::new();
    let deployment = format!("pv-{}", world.run_id());
    let event = |name: &str, pod: &str, uid: &str, reason: &str| {
        let pod = json!({"kind": "Pod", "name": pod, "uid": uid});
        put_event(&world, name, &pod, &json!({"type": "Normal", "reason": reason}));
    };
    event("grove", &format!("{deployment}-0-worker-x"), "gone", "Preempted");
    event("ours", &format!("{deployment}-worker-x"), "gone", "Preempted");
    event("another's", "pv-00000000-worker-x", "gone", "Preempted");
    event("generator", &format!("{deployment}-t1-x"), "gone", "Preempted");
    event("killed", &format!("{deployment}-worker-x"), "gone", "Killing");
    let known = |uid: &str| json!([{"pod": "w", "uid": uid, "restarts": 0, "devices": []}]);
    let pod = world.put_child("v1", "Pod", "there", &json!({}));
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = "n1".into();
    world.server.put(pod.clone());
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    event("kept", &format!("{deployment}-worker-y"), uid, "Preempted");
    for (uid, expected) in [
        (&pod["metadata"]["uid"], None),
        (&json!("gone"), Some(["grove", "ours"])),
    ] {
        world.edit(|object| {
            object["status"]["phase"] = "Benchmarking".into();
            object["status"]["operatorState"] = json!({"workerPods": known(uid.as_str().unwrap())});
        });
        let seen = world.observe(Need::Workload).await;
        let texts = seen.preemptions.present().map(|events| {
            let mut texts: Vec<_> = events.iter().map(|event| event.message.as_str()).collect();
            texts.sort_unstable();
            texts
        });
        assert_eq!(texts.as_deref(), expected.as_ref().map(<[&str; 2]>::as_slice));
    }
}

#[tokio::test]
async fn refusals_and_the_node_are_read_while_pods_are_missing() {
    let world = World::new();
    let deployment = format!("pv-{}", world.run_id());
    let refused = |event: &str, of: &str, reason: &str| {
        let controller = json!({"kind": "ReplicaSet", "name": of, "uid": "rs-1"});
        let rest = json!({"type": "Warning", "reason": reason, "message": "forbidden"});
        put_event(&world, event, &controller, &rest);
    };
    refused("ours", &format!("{deployment}-worker-6d"), "FailedCreate");
    refused("other-reason", &format!("{deployment}-worker-6d"), "SuccessfulCreate");
    refused("other-run", "pv-ffffffff-worker-6d", "FailedCreate");
    // More than a page, and all of them come before ours.
    for number in 0..600 {
        refused(&format!("crowd-{number:03}"), "another-controller", "FailedCreate");
    }
    let gone = world.observe(Need::Workload).await;
    let refusals = gone.refusals.present().expect("refusals");
    let texts: Vec<_> = refusals.iter().map(|event| event.pod.clone()).collect();
    assert_eq!(texts, [format!("ReplicaSet {deployment}-worker-6d")]);
    assert_eq!(gone.node, Seen::Absent);

    let kubelet = json!({"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-11-21T00:00:00Z",
        "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."});
    world.server.put(
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
        "status": {"conditions": [kubelet], "nodeInfo": {
            "architecture": "arm64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
            "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
        }}}),
    );
    let unready = world.observe(Need::Workload).await;
    let node = unready.node.present().expect("the node");
    assert!(!node.ready && node.message.contains("stopped posting"), "{node:?}");
    assert_eq!(node.architecture, "arm64");

    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    for component in ["worker", "frontend", "benchmark"] {
        for number in 0..8 {
            let name = format!("{component}-{number}");
            world.put_child("v1", "Pod", &name, &ready);
            world.server.edit("pods", NAMESPACE, &name, |pod| {
                pod["metadata"]["labels"]["perfvalidation.dev/component"] = component.into();
            });
        }
    }
    let whole = world.observe(Need::Workload).await;
    assert_eq!(
        (whole.refusals, whole.node),
        (Seen::NotAsked, Seen::NotAsked),
        "all is there and ready"
    );

    // The pod of trial 1 may be gone, but that of the open trial is needed, some seconds after its Job.
    let edit_trials = |second_started_at: &str| {
        let trial = |number: i64, started_at: &str| json!({"number": number, "startedAt": started_at});
        let mut trials = json!([trial(1, "2026-11-20T00:01:00Z"), trial(2, second_started_at)]);
        trials[0]["outcome"] = "Pass".into();
        world.edit(|object| object["status"]["operatorState"]["trials"] = trials);
    };
    edit_trials(&Utc::now().to_rfc3339());
    let begins = world.observe(Need::Workload).await;
    assert_eq!((begins.refusals, begins.node), (Seen::NotAsked, Seen::NotAsked));
    edit_trials("2026-11-20T00:01:00Z");
    let lacks = world.observe(Need::Workload).await;
    assert!(lacks.refusals.present().is_some(), "trial 2 has no pod");
    world.server.delete("pods", NAMESPACE, "benchmark-0");
    for number in 2..8 {
        world.server.delete("pods", NAMESPACE, &format!("benchmark-{number}"));
    }
    world.server.edit("pods", NAMESPACE, "benchmark-1", |pod| {
        pod["metadata"]["ownerReferences"][0] = json!({"apiVersion": "batch/v1", "kind": "Job", "controller": true,
            "name": format!("{deployment}-t2"), "uid": "t2"});
    });
    let whole = world.observe(Need::Workload).await;
    assert_eq!((whole.refusals, whole.node), (Seen::NotAsked, Seen::NotAsked));

    // A pod that is not late yet: only an image for another architecture is worth the call.
    let pull_error = async |message: &str| {
        world.server.edit("pods", NAMESPACE, "worker-0", |pod| {
            pod["metadata"]["creationTimestamp"] = json!("2099-01-01T00:00:00Z");
            pod["status"] = json!({"containerStatuses": [{"name": "main", "image": "i", "imageID": "", "ready": false,
                "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull", "message": message}}}]});
        });
        world.observe(Need::Workload).await.node
    };
    assert_eq!(pull_error("dial tcp: i/o timeout").await, Seen::NotAsked);
    let node = pull_error("no match for platform in manifest: not found").await;
    assert!(
        node.present().is_some(),
        "its architecture explains the error: {node:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn refusals_serve_all_runs_of_a_namespace_for_ten_seconds() {
    let world = World::new();
    let other = serde_json::from_value(validation("other", "node-2", "Benchmarking")).expect("a PerfValidation");
    let other = Run::new(&other, &world.settings);
    let controller = json!({"kind": "ReplicaSet", "name": format!("pv-{}-worker-6d", other.id()), "uid": "rs-2"});
    let rest = json!({"type": "Warning", "reason": "FailedCreate", "message": "forbidden"});
    put_event(&world, "refused", &controller, &rest);
    let needs = Needs {
        parts: [Need::Workload].into(),
        ..Needs::default()
    };

    assert_eq!(world.observe(Need::Workload).await.refusals, Seen::Present(Vec::new()));
    let refusals = world.cluster.observe(&other, &needs).await.refusals;
    assert_eq!(refusals.present().map(Vec::len), Some(1));
    assert_eq!(world.count_calls("events"), 1);

    tokio::time::advance(Duration::from_secs(10)).await;
    world.fail(Fault::refuse("list", "events", 403).times(1));
    assert!(matches!(world.observe(Need::Workload).await.refusals, Seen::Unknown(_)));
    let refusals = world.cluster.observe(&other, &needs).await.refusals;
    assert_eq!(refusals.present().map(Vec::len), Some(1), "a failure is not kept");
}

/// Bytes of the longest text among Events.
fn longest(events: &[PodEvent]) -> Option<usize> {
    let texts = events
        .iter()
        .flat_map(|event| [&event.pod, &event.pod_uid, &event.reason, &event.message]);
    texts.map(String::len).max()
}

#[tokio::test(start_paused = true)]
async fn warnings_that_a_tenant_writes_take_no_memory_without_limit() {
    let world = World::new();
    let made = world.put_child("v1", "Pod", "one", &json!({}));
    world.put_child("v1", "Pod", "two", &json!({}));
    let pod = json!({"kind": "Pod", "name": "one", "uid": made["metadata"]["uid"]});
    // One page of them has 17 MB.
    for number in 0..12 {
        let rest = json!({"type": "Warning", "reason": "FailedMount", "message": "m".repeat(1_400_000)});
        put_event(&world, &format!("large-{number:02}"), &pod, &rest);
    }
    let seen = world.observe(Need::Workload).await;
    let events = seen.pod_events.present().expect("events");
    assert!((1..12).contains(&events.len()), "{} of one smaller page", events.len());
    assert_eq!(longest(events), Some(1024));
}

#[tokio::test]
async fn refusals_that_a_tenant_writes_take_no_memory_without_limit() {
    let world = World::new();
    let deployment = format!("pv-{}", world.run_id());
    for number in 0..520 {
        let name = format!("{deployment}-{}", "w".repeat(3_000));
        let controller = json!({"kind": "ReplicaSet", "name": name, "uid": "u".repeat(3_000)});
        let rest = json!({"type": "Warning", "reason": "FailedCreate", "message": "m".repeat(3_000)});
        put_event(&world, &format!("forged-{number:03}"), &controller, &rest);
    }
    let seen = world.observe(Need::Workload).await;
    let refusals = seen.refusals.present().expect("refusals");
    assert_eq!((refusals.len(), longest(refusals)), (500, Some(1024)));
}

#[tokio::test]
async fn the_log_of_a_crash_is_read_without_colours_and_secrets_and_no_other() {
    let world = World::new();
    world.edit(|object| {
        object["status"]["phase"] = "WaitingForReady".into();
        object["spec"]["workload"]["dynamo"]["env"] = json!([{"name": "CACHE_PASSWORD", "value": "correct-horse"}]);
    });
    let crashing = |restarts: i32| {
        json!({"containerStatuses": [{"name": MAIN, "image": "", "imageID": "", "ready": false, "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}]})
    };
    for (pod, restarts) in [("once", 0), ("again", 1)] {
        world.put_child("v1", "Pod", pod, &json!({"status": crashing(restarts)}));
        world.server.edit("pods", NAMESPACE, pod, |pod| {
            pod["metadata"]["labels"]["perfvalidation.dev/component"] = WORKER.into();
        });
    }
    let noise = "INFO loading\n".repeat(1_000);
    let end = "\u{1b}[31mERROR\u{1b}[0m login with correct-horse and hf_0123456789abcdef failed\n";
    world
        .server
        .set_previous_log(NAMESPACE, "again", MAIN, format!("{noise}{end}"));
    let seen = world.observe(Need::Workload).await;
    let [log] = seen.pod_logs.as_slice() else {
        panic!("{:?}", seen.pod_logs)
    };
    assert_eq!((log.of.pod.as_str(), log.of.previous), ("again", true));
    let text = log.text.present().expect("a log");
    assert!(
        text.ends_with("ERROR login with [hidden] and [hidden] failed"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 200, "the end of it");

    world.server.fail(Fault::refuse("get", "pods/log", 500));
    let seen = world.observe(Need::Workload).await;
    let unknown = seen.pod_logs[0].text.unknown().expect("no log");
    assert!(unknown.contains("get the log of Pod perf/again"), "{unknown}");
    assert_eq!(
        seen.pods.present().map(Vec::len),
        Some(2),
        "the rest is known all the same"
    );
}

/// A worker pod that restarted once.
fn put_restarted(world: &World) -> Value {
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
        {"name": MAIN, "image": "", "imageID": "", "ready": true, "restartCount": 1, "state": {"running": {}},
         "lastState": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]});
    world.put_child("v1", "Pod", "w0", &json!({"status": status}));
    world.server.edit("pods", NAMESPACE, "w0", |pod| {
        pod["metadata"]["labels"]["perfvalidation.dev/component"] = WORKER.into();
    });
    world.server.get("pods", NAMESPACE, "w0").expect("the pod")
}

#[tokio::test]
async fn the_events_of_a_worker_are_read_once_it_restarted() {
    let world = World::new();
    let uid = put_restarted(&world)["metadata"]["uid"].clone();
    for (name, kind, reason, message) in [
        (
            "a",
            "Normal",
            "Killing",
            "Container main failed liveness probe, will be restarted",
        ),
        ("b", "Warning", "Unhealthy", "Liveness probe failed: timeout"),
        ("c", "Normal", "Started", "Container started"),
    ] {
        let rest = json!({"type": kind, "reason": reason, "message": message});
        put_event(&world, name, &json!({"kind": "Pod", "uid": uid}), &rest);
    }
    let recorded = |restarts: i64| {
        let worker = json!({"pod": "w0", "uid": uid, "restarts": restarts});
        world.edit(|object| object["status"]["operatorState"]["workerPods"] = json!([worker]));
    };
    recorded(0);
    let endings = world.observe(Need::Workload).await.endings;
    let mut reasons: Vec<_> = endings
        .present()
        .expect("events")
        .iter()
        .map(|event| event.reason.as_str())
        .collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["Killing", "Unhealthy"]);

    world.server.fail(Fault::refuse("list", "events", 403));
    let unread = world.observe(Need::Workload).await.endings;
    assert!(unread.unknown().is_some(), "{unread:?}");

    recorded(1);
    world.server.forget_calls();
    assert_eq!(world.observe(Need::Workload).await.endings, Seen::NotAsked);
    // The refusals are those of the first look.
    assert_eq!(
        world.count_calls("events"),
        0,
        "a restart that is recorded costs no list"
    );
}

/// Puts a run that saves the results of a trial with errors into the world.
fn save_after_errors(world: &World, loss: &str) {
    world.edit(|object| {
        object["status"]["phase"] = "Evaluating".into();
        object["status"]["operatorState"]["trials"] = json!([{"number": 1, "outcome": "Invalid", "startedAt": "2026-11-20T00:01:00Z",
            "completedAt": "2026-11-20T00:01:50Z", "workerLoss": (!loss.is_empty()).then_some(loss)}]);
    });
}

#[tokio::test(start_paused = true)]
async fn workers_whose_kubelet_does_not_answer_hold_up_no_result() {
    let world = World::new();
    world.put_result(1);
    for pod in ["w0", "w1", "w2", "w3"] {
        world.put_child("v1", "Pod", pod, &json!({}));
        world.server.edit("pods", NAMESPACE, pod, |pod| {
            pod["metadata"]["labels"]["perfvalidation.dev/component"] = WORKER.into();
        });
        world.server.fail(Fault::hang("get", "pods/log").named(pod));
    }
    save_after_errors(&world, "Crashed");
    let results = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::time::timeout(Duration::from_secs(10), Box::pin(world.observe(Need::Results))).await
    };
    let (_, seen) = futures::join!(Box::pin(world.observe(Need::Workload)), Box::pin(results));
    let seen = seen.expect("the kubelet of the load generator answers");
    assert!(seen.packed_trials[&1].present().is_some(), "{:?}", seen.packed_trials);
}

#[tokio::test]
async fn the_last_lines_of_a_trial_with_errors_are_read_while_the_results_are_saved() {
    let world = World::new();
    put_restarted(&world);
    let line = |second: u8, text: &str| format!("2026-11-20T00:01:{second:02}.5Z {text}\n");
    world
        .server
        .set_log(NAMESPACE, "w0", MAIN, line(40, "again ") + &line(59, "after the trial"));
    world
        .server
        .set_previous_log(NAMESPACE, "w0", MAIN, line(30, "EngineDeadError"));
    save_after_errors(&world, "Crashed");
    let logs = world.observe(Need::Workload).await.error_logs;
    let seen: Vec<_> = logs
        .iter()
        .map(|log| (log.of.previous, log.trials.present().expect("a log")[&1].as_str()))
        .collect();
    let [previous, current] = [line(30, "EngineDeadError"), line(40, "again ")];
    assert_eq!(seen, [(true, previous.as_str()), (false, current.as_str())]);

    save_after_errors(&world, "");
    assert_eq!(world.observe(Need::Workload).await.error_logs, []);
}
