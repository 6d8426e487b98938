//! What is read of trials: their Jobs, their logs, and the results that were saved.

use perfval_run::observed::Need;
use perfval_run::{build, job, names};
use perfval_sizing::Seen;
use serde_json::json;

use crate::world::{NAME, NAMESPACE, World, container_status};

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
async fn the_results_of_every_run_are_found_and_nothing_else() {
    let world = World::new();
    let put = |name: &str, labels: &serde_json::Value| {
        world.put_child("v1", "ConfigMap", name, &json!({"data": {"summary.json": "{}"}}));
        world.server.edit("configmaps", NAMESPACE, name, |map| {
            for (key, value) in labels.as_object().into_iter().flatten() {
                map["metadata"]["labels"][key] = value.clone();
            }
        });
    };
    put(
        "demo-1",
        &json!({"perfvalidation.dev/component": "results", "perfvalidation.dev/run": "an-earlier-run"}),
    );
    put("demo-2", &json!({"perfvalidation.dev/component": "results"}));
    put(
        "another",
        &json!({"perfvalidation.dev/component": "results", "perfvalidation.dev/name": "another"}),
    );
    put("settings", &json!({}));
    put("strangers", &json!({"perfvalidation.dev/component": "results"}));
    world.server.edit("configmaps", NAMESPACE, "strangers", |map| {
        map["metadata"]["ownerReferences"] = json!([]);
    });
    let seen = world.observe(Need::SavedResults).await;
    let saved = seen.saved_results.present().unwrap().iter();
    let mut saved: Vec<_> = saved
        .map(|saved| (saved.id.name.as_str(), saved.run == world.run_id(), saved.ours))
        .collect();
    saved.sort_unstable();
    assert_eq!(
        saved,
        [
            ("demo-1", false, true),
            ("demo-2", true, true),
            ("strangers", true, false)
        ]
    );
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
