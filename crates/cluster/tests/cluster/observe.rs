//! What each need reads when all is well, and when something is not there.

use perfval_core::Seen;
use perfval_core::line::{Contender, Stand};
use perfval_core::observed::{Admission, ChildKind, Need};
use perfval_core::{build, job, names};
use perfval_testkit::api_server::{Call, Fault, KUBERNETES, Kind};
use serde_json::json;

use crate::world::{NAME, NAMESPACE, World, container_status, validation};

#[tokio::test]
async fn the_newest_version_of_dynamo_that_we_speak_is_taken() {
    let world = World::new();
    let seen = world.observe(Need::Dynamo).await;
    let Seen::Present(api) = seen.dynamo else {
        panic!("{:?}", seen.dynamo)
    };
    assert_eq!(api.resource.api_version, "nvidia.com/v1beta1");
    assert_eq!(api.resource.plural, "dynamographdeployments");
    assert_eq!(api.operator_version.as_deref(), Some("1.4.2"));
    assert_eq!(seen.kubernetes.as_deref(), Some(KUBERNETES));

    world.server.install_dynamo(&["v1alpha1"], None);
    let seen = world.observe(Need::Dynamo).await;
    assert_eq!(
        seen.dynamo.present().unwrap().resource.api_version,
        "nvidia.com/v1alpha1"
    );
}

#[tokio::test]
async fn dynamo_is_absent_only_without_its_crd() {
    let world = World::new();
    // Another operator of the same group, and a CRD that discovery does not show yet.
    world.server.withdraw("dynamographdeployments");
    world.server.serve(Kind::new(
        "nvidia.com",
        "v1alpha1",
        "nvidiadrivers",
        "NVIDIADriver",
        false,
    ));
    let seen = world.observe(Need::Dynamo).await;
    assert!(
        seen.dynamo.unknown().unwrap().contains("not served"),
        "{:?}",
        seen.dynamo
    );

    world
        .server
        .delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    assert!(world.observe(Need::Dynamo).await.dynamo.is_absent());
}

#[tokio::test]
async fn only_unfinished_runs_of_others_hold_or_want_a_node() {
    let world = World::new();
    let mut cleaned = validation("cleaned", "node-4", "Completed");
    cleaned["status"]["conditions"] = json!([{
        "type": "CleanedUp", "status": "True", "reason": "Removed", "message": "", "lastTransitionTime": "2026-11-21T00:00:00Z",
    }]);
    // Written by another version of the CRD.
    cleaned["status"]["verdict"] = "Splendid".into();
    let mut strange = validation("strange", "node-5", "Dreaming");
    strange["spec"]["gates"] = json!("many");
    strange["status"]["conditions"] = cleaned["status"]["conditions"].clone();
    let mut waiting = validation("waiting", "", "Sizing");
    waiting["status"]["placement"] = json!(null);
    let mut unreadable = waiting.clone();
    unreadable["metadata"]["name"] = json!("unreadable");
    unreadable["spec"]["gates"] = json!("many");
    for object in [
        waiting,
        unreadable,
        validation("running", "node-2", "Deploying"),
        validation("kept", "node-3", "Completed"),
        cleaned,
        strange,
    ] {
        world.server.put(object);
    }
    let seen = world.observe(Need::OtherRuns).await;
    let mut held: Vec<_> = seen
        .other_runs
        .present()
        .unwrap()
        .iter()
        .filter_map(|run| match &run.stand {
            Stand::Holds { node, .. } => Some((run.name.as_str(), node.as_str())),
            Stand::Waits(_) => None,
        })
        .collect();
    held.sort_unstable();
    assert_eq!(
        held,
        [
            ("perf/kept", "node-3"),
            ("perf/running", "node-2"),
            ("perf/strange", "node-5")
        ]
    );
    let waits = |run: &&Contender| matches!(&run.stand, Stand::Waits(spec) if spec.model.name == "lab/tiny-qwen3");
    let waiting: Vec<_> = seen.other_runs.present().unwrap().iter().filter(waits).collect();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(waiting[0].name, "perf/waiting");
}

#[tokio::test]
async fn children_are_told_from_namesakes_by_their_owner() {
    let world = World::new();
    world.put_child("batch/v1", "Job", "pv-1-t1", &json!({}));
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-1", &json!({}));
    world.put_child("v1", "Service", "pv-1-workers", &json!({}));
    world.put_child("resource.k8s.io/v1", "ResourceClaimTemplate", "pv-1", &json!({}));
    world.put_child("v1", "PersistentVolumeClaim", "demo-weights", &json!({}));
    world.put_child("v1", "ConfigMap", "demo-1", &json!({}));
    world.put_child("batch/v1", "Job", "strangers", &json!({}));
    world.server.edit("jobs", NAMESPACE, "strangers", |job| {
        job["metadata"]["ownerReferences"] = json!([]);
    });
    let seen = world.observe(Need::Children).await;
    let mut children: Vec<_> = seen
        .children
        .present()
        .unwrap()
        .iter()
        .map(|child| {
            (
                child.id.kind,
                child.id.name.as_str(),
                child.ours,
                child.run == world.run_id(),
            )
        })
        .collect();
    children.sort_unstable();
    let expected = [
        (ChildKind::Job, "pv-1-t1", true, true),
        (ChildKind::Job, "strangers", false, true),
        (ChildKind::Deployment, "pv-1", true, true),
        (ChildKind::Service, "pv-1-workers", true, true),
        (ChildKind::ClaimTemplate, "pv-1", true, true),
    ];
    assert_eq!(children, expected);
}

#[tokio::test]
async fn a_deployment_is_found_when_its_recorded_version_is_not_served_any_more() {
    let world = World::new();
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-1", &json!({}));
    world.server.install_dynamo(&["v1alpha1"], None);
    let seen = world.observe(Need::Children).await;
    assert_eq!(seen.children.present().unwrap()[0].id.name, "pv-1");
}

#[tokio::test]
async fn without_dynamo_there_are_no_deployments() {
    let world = World::new();
    world.server.withdraw("dynamographdeployments");
    world
        .server
        .delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    let seen = world.observe(Need::Children).await;
    assert_eq!(seen.children, Seen::Present(Vec::new()));
    assert!(world.observe(Need::Deployment).await.deployment.is_absent());
}

#[tokio::test]
async fn the_deployment_of_the_run_is_read() {
    let world = World::new();
    assert!(world.observe(Need::Deployment).await.deployment.is_absent());
    let name = names::deployment(&world.run_id());
    world.put_child(
        "nvidia.com/v1beta1",
        "DynamoGraphDeployment",
        &name,
        &json!({"status": {"state": "failed"}}),
    );
    let seen = world.observe(Need::Deployment).await;
    assert_eq!(seen.deployment.present().unwrap().data["status"]["state"], "failed");
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
        world.server.put(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": NAMESPACE, "name": name},
            "involvedObject": {"kind": "Pod", "uid": pod["metadata"]["uid"]},
            "type": kind, "reason": "FailedPrepareDynamicResources", "message": name, "lastTimestamp": last,
        }));
    }
    world.put_child(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "waiting-gpu",
        &json!({"spec": {}}),
    );
    let seen = world.observe(Need::Workload).await;
    assert_eq!(seen.pods.present().unwrap().len(), 3);
    assert_eq!(seen.claims.present().unwrap().len(), 1);
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
async fn events_are_read_only_where_a_phase_waits_for_pods_and_once_per_pod() {
    for (phase, lists) in [
        ("Sizing", 0),
        ("WaitingForReady", 2),
        ("Benchmarking", 2),
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
        world.server.edit("perfvalidations", NAMESPACE, NAME, |object| {
            object["status"]["phase"] = phase.into();
        });
        world.server.forget_calls();
        let seen = world.observe(Need::Workload).await;
        assert_eq!(seen.pods.present().map(Vec::len), Some(3), "{phase}");
        let events = |call: &&Call| call.resource == "events";
        assert_eq!(world.server.calls().iter().filter(events).count(), lists, "{phase}");
        assert_eq!(seen.pod_events == Seen::NotAsked, lists == 0, "{phase}");
    }
}

#[tokio::test]
async fn the_log_of_a_crash_is_read_without_colours_and_secrets_and_no_other() {
    let world = World::new();
    world.server.edit("perfvalidations", NAMESPACE, NAME, |object| {
        object["status"]["phase"] = "WaitingForReady".into();
        object["spec"]["workload"]["env"] = json!([{"name": "CACHE_PASSWORD", "value": "correct-horse"}]);
    });
    let crashing = |restarts: i32| {
        json!({"containerStatuses": [{"name": build::MAIN, "image": "", "imageID": "", "ready": false, "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}]})
    };
    for (pod, restarts) in [("once", 1), ("again", 2)] {
        world.put_child("v1", "Pod", pod, &json!({"status": crashing(restarts)}));
        world.server.edit("pods", NAMESPACE, pod, |pod| {
            pod["metadata"]["labels"]["perfvalidation.dev/component"] = names::WORKER.into();
        });
    }
    let noise = "INFO loading\n".repeat(1_000);
    let end = "\u{1b}[31mERROR\u{1b}[0m login with correct-horse and hf_0123456789abcdef failed\n";
    world
        .server
        .set_previous_log(NAMESPACE, "again", build::MAIN, format!("{noise}{end}"));
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

#[tokio::test]
async fn a_trial_is_read_step_by_step() {
    let world = World::new();
    let seen = world.observe(Need::Trial).await;
    assert!(seen.trial.present().unwrap().job.is_none());

    world.put_trial(None);
    let seen = world.observe(Need::Trial).await;
    let trial = seen.trial.present().unwrap();
    assert!(trial.pod.is_some() && !job::is_over(trial.job.as_ref().unwrap()));
    assert_eq!(trial.log, Seen::NotAsked, "a running container's log is not read");

    world.put_trial(Some("result\n"));
    let seen = world.observe(Need::Trial).await;
    assert_eq!(seen.trial.present().unwrap().log, Seen::Present("result\n".into()));
}

#[tokio::test]
async fn a_result_of_two_megabytes_is_read_whole() {
    let world = World::new();
    // As a kubelet serves it: AIPerf's lines, then the result in pieces of 16 KiB.
    let noise = "AIPerf says something\n".repeat(2_000);
    let result = format!("{}\n", "x".repeat(16 << 10)).repeat(128);
    world.put_trial(Some(&format!("{noise}BEGIN\n{result}END\n")));
    let seen = world.observe(Need::Results).await;
    let Some(Seen::Present(log)) = seen.trial_logs.get(&1) else {
        panic!("{:?}", seen.trial_logs)
    };
    assert!(log.contains(&format!("BEGIN\n{result}END\n")));
    assert!(log.len() < noise.len() + result.len(), "not the whole log");
}

#[tokio::test]
async fn a_log_that_begins_within_a_character_is_read() {
    let world = World::new();
    world.put_trial(Some("?"));
    let pod = format!("{}-abcde", names::trial_job(&world.run_id(), 1));
    world.server.set_log(
        NAMESPACE,
        &pod,
        build::AIPERF_CONTAINER,
        b"\xa4 and the result\n".as_slice(),
    );
    let seen = world.observe(Need::Results).await;
    let Some(Seen::Present(log)) = seen.trial_logs.get(&1) else {
        panic!("{:?}", seen.trial_logs)
    };
    assert!(log.ends_with(" and the result\n"));
}

#[tokio::test]
async fn no_pod_and_a_container_that_never_ran_have_no_log() {
    let world = World::new();
    assert_eq!(world.observe(Need::Results).await.trial_logs[&1], Seen::Absent);

    world.put_trial(Some("result"));
    let pod = format!("{}-abcde", names::trial_job(&world.run_id(), 1));
    let waiting = container_status(&json!({"waiting": {"reason": "ImagePullBackOff"}}));
    world
        .server
        .edit("pods", NAMESPACE, &pod, |pod| pod["status"] = waiting);
    assert_eq!(world.observe(Need::Results).await.trial_logs[&1], Seen::Absent);
}

#[tokio::test]
async fn saved_results_are_known_by_their_digest() {
    let world = World::new();
    assert!(world.observe(Need::Results).await.results.is_absent());
    let name = names::results(NAME, &world.run_id());
    world.put_child("v1", "ConfigMap", &name, &json!({}));
    assert_eq!(world.observe(Need::Results).await.results, Seen::Present(None));
    world.server.edit("configmaps", NAMESPACE, &name, |saved| {
        saved["metadata"]["annotations"] = json!({"perfvalidation.dev/sha256": "abc"});
    });
    assert_eq!(
        world.observe(Need::Results).await.results,
        Seen::Present(Some("abc".into()))
    );
}

#[tokio::test]
async fn the_cache_job_and_storage_classes_are_read() {
    let world = World::new();
    assert!(world.observe(Need::CacheJob).await.cache_job.is_absent());
    world.put_child("batch/v1", "Job", &names::cache_job(&world.run_id()), &json!({}));
    assert!(world.observe(Need::CacheJob).await.cache_job.present().is_some());

    world.server.put(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "x",
    }));
    assert_eq!(
        world
            .observe(Need::StorageClasses)
            .await
            .storage_classes
            .present()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_dry_run_creates_nothing() {
    let world = World::new();
    assert_eq!(
        world.observe(Need::DryRun).await.dry_run,
        Seen::Present(Admission::Accepted)
    );
    assert!(world.server.objects("dynamographdeployments").is_empty());

    let name = names::deployment(&world.run_id());
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", &name, &json!({}));
    assert_eq!(
        world.observe(Need::DryRun).await.dry_run,
        Seen::Present(Admission::Accepted),
        "it exists"
    );
}

#[tokio::test]
async fn a_dry_run_has_unknown_fields_refused() {
    let world = World::new();
    let words = "strict decoding error: unknown field \"spec.typo\"";
    let strictly = Fault::refuse("create", "dynamographdeployments", 400).asked_with("fieldValidation=Strict");
    world.server.fail(strictly.saying(words));
    let rejected = Admission::Rejected(words.into());
    assert_eq!(world.observe(Need::DryRun).await.dry_run, Seen::Present(rejected));
}

#[tokio::test]
async fn only_a_refusal_of_the_object_is_a_rejection() {
    let refuse = |code| Fault::refuse("create", "dynamographdeployments", code);
    let words = "exceeded quota: gpus";
    let rejected = [refuse(400), refuse(403).saying(words), refuse(413), refuse(422)];
    for fault in rejected {
        let world = World::new();
        world.server.fail(fault.clone());
        let seen = world.observe(Need::DryRun).await.dry_run;
        assert!(
            matches!(seen, Seen::Present(Admission::Rejected(_))),
            "{fault:?}: {seen:?}"
        );
    }
    // RBAC, an unserved kind, a server in trouble.
    for fault in [
        refuse(401),
        refuse(403),
        refuse(404),
        refuse(409),
        refuse(429),
        refuse(500),
        refuse(503),
    ] {
        let world = World::new();
        world.server.fail(fault.clone());
        let seen = world.observe(Need::DryRun).await.dry_run;
        assert!(
            matches!(&seen, Seen::Unknown(why) if why.contains("dry run")),
            "{fault:?}: {seen:?}"
        );
    }
}

#[tokio::test]
async fn what_was_not_asked_for_is_not_read() {
    let world = World::new();
    world.server.forget_calls();
    let seen = world.observe(Need::StorageClasses).await;
    assert_eq!(seen.children, Seen::NotAsked);
    assert_eq!(world.server.calls().len(), 1);
}
