//! Reads of trials: their Jobs, their logs, and the saved results.

use std::collections::BTreeSet;
use std::time::Duration;

use perfval_run::build::PackedTrial;
use perfval_run::observed::Need;
use perfval_run::{Needs, Run, job, names};
use perfval_sizing::Seen;
use perfval_testkit::api_server::Fault;
use perfval_testkit::trial;
use perfval_verdict::frame::{self, Framed, Payload};
use perfval_verdict::progress::Progress;
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
    assert_eq!(trial.record, Seen::NotAsked, "a running container has no record");

    world.put_result(1);
    let seen = world.observe(Need::Trial).await;
    let record = &seen.trial.present().unwrap().record;
    assert_eq!(*record, Seen::Present(Framed::Complete(world.record(1))));
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
async fn a_result_of_a_megabyte_is_read_whole() {
    let world = World::new();
    // As a kubelet serves it: AIPerf's lines, then the result.
    let noise = "AIPerf says something\n".repeat(2_000);
    let export = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
    let payload = Payload::new(world.record(1)).with_export(&export).expect("JSON");
    let log = noise + &frame::frame(&payload).expect("JSON");
    world.put_trial(Some(&log));
    let seen = world.observe(Need::Results).await;
    let whole = PackedTrial::new(&serde_json::to_string(&payload).expect("JSON"));
    assert_eq!(seen.packed_trials[&1], Seen::Present(whole));
}

#[tokio::test]
async fn a_log_without_a_complete_record_has_no_result() {
    let world = World::new();
    let log = trial::log(world.record(1));
    let cut = &log[..log.len() - 5];
    for log in ["another result\n", cut] {
        world.put_trial(Some(log));
        assert_eq!(
            world.observe(Need::Results).await.packed_trials[&1],
            Seen::Absent,
            "{log}"
        );
    }
}

#[tokio::test]
async fn a_log_that_begins_within_a_character_is_read() {
    let world = World::new();
    world.put_trial(Some("?"));
    let pod = format!("{}-abcde", names::trial_job(&world.run_id(), 1));
    let log = [b"\xa4\n".as_slice(), trial::log(world.record(1)).as_bytes()].concat();
    world.server.set_log(NAMESPACE, &pod, names::AIPERF_CONTAINER, log);
    let seen = world.observe(Need::Results).await;
    assert!(seen.packed_trials[&1].present().is_some(), "{:?}", seen.packed_trials);
}

#[tokio::test]
async fn a_log_that_the_kubelet_has_no_more_is_absent() {
    let world = World::new();
    world.put_result(1);
    world.server.fail(Fault::refuse("get", "pods/log", 400));
    let seen = world.observe(Need::Trial).await;
    assert_eq!(seen.trial.present().expect("a trial").record, Seen::Absent);
    assert_eq!(world.observe(Need::Results).await.packed_trials[&1], Seen::Absent);
}

#[tokio::test]
async fn no_pod_and_a_container_that_never_ran_have_no_log() {
    let world = World::new();
    assert_eq!(world.observe(Need::Results).await.packed_trials[&1], Seen::Absent);

    world.put_trial(Some("result"));
    let pod = format!("{}-abcde", names::trial_job(&world.run_id(), 1));
    let waiting = container_status(&json!({"waiting": {"reason": "ImagePullBackOff"}}));
    world
        .server
        .edit("pods", NAMESPACE, &pod, |pod| pod["status"] = waiting);
    assert_eq!(world.observe(Need::Results).await.packed_trials[&1], Seen::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_does_not_answer_holds_up_no_pass() {
    const TRIALS: i64 = 20;
    /// The operator gives a pass up after this time, with everything that it saw.
    const PASS_LIMIT: Duration = Duration::from_mins(4);
    let world = World::new();
    for number in 1..=TRIALS {
        world.put_result(number);
    }
    world.put_child("v1", "ConfigMap", &names::results(NAME, &world.run_id()), &json!({}));
    // The first two are still served.
    world.server.fail(Fault::hang("get", "pods/log").skip(2));
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let needs = Needs {
        parts: BTreeSet::from([Need::Results]),
        finished_trials: (1..=TRIALS).collect(),
        ..Needs::default()
    };
    let look = world.cluster.observe(&run, &needs);
    let seen = tokio::time::timeout(PASS_LIMIT, look)
        .await
        .expect("a pass that decides");
    assert_eq!(seen.results, Seen::Present(None), "what came in time is kept");
    let read = |trial: &&Seen<PackedTrial>| trial.present().is_some();
    assert_eq!(seen.packed_trials.values().filter(read).count(), 2);
    let unread: Vec<_> = seen.packed_trials.values().filter_map(Seen::unknown).collect();
    assert_eq!(unread.len(), 18, "{unread:?}");
    assert!(unread[17].contains("within the 60 s of one look"), "{}", unread[17]);
}

#[tokio::test]
async fn saved_results_are_known_by_their_digest() {
    let world = World::new();
    assert!(world.observe(Need::Results).await.results.is_absent());
    let name = names::results(NAME, &world.run_id());
    world.put_child("v1", "ConfigMap", &name, &json!({}));
    assert_eq!(world.observe(Need::Results).await.results, Seen::Present(None));
    // Any client may write an annotation of 256 KiB.
    for (digits, is_digest) in [(64, true), (63, false), (200_000, false)] {
        let text = "a".repeat(digits);
        world.server.edit("configmaps", NAMESPACE, &name, |saved| {
            saved["metadata"]["annotations"] = json!({"perfvalidation.dev/sha256": text});
        });
        let expected = is_digest.then_some(text);
        assert_eq!(world.observe(Need::Results).await.results, Seen::Present(expected));
    }
}

#[tokio::test]
async fn the_results_that_the_status_names_are_read_whole() {
    let world = World::new();
    // Those of an earlier run: not the name that this one would give its own.
    world.edit(|object| object["status"]["resultsRef"] = json!({"name": "demo-earlier", "sha256": "s"}));
    assert!(world.observe(Need::SavedRun).await.saved_run.is_absent());
    let content = json!({"data": {"summary.json": "{}"}, "binaryData": {"trial-1.json.gz": "AAAA"}});
    world.put_child("v1", "ConfigMap", "demo-earlier", &content);
    let seen = world.observe(Need::SavedRun).await;
    let saved = seen.saved_run.present().unwrap();
    assert_eq!(saved.data.as_ref().unwrap()["summary.json"], "{}");
    assert_eq!(saved.binary_data.as_ref().unwrap()["trial-1.json.gz"].0, [0, 0, 0]);
    world.server.fail(Fault::refuse("get", "configmaps", 403));
    assert!(world.observe(Need::SavedRun).await.saved_run.unknown().is_some());
}

/// Nothing of the trial's Job may be read, neither while it runs nor for the results.
async fn reads_nothing(world: &World, what: &str) {
    world.server.forget_calls();
    let seen = Box::pin(world.observe(Need::Trial)).await;
    let trial = seen.trial.present().expect("a trial");
    assert!(
        trial.pod.is_none() && trial.record.present().is_none(),
        "{what}: {trial:?}"
    );
    let seen = Box::pin(world.observe(Need::Results)).await;
    assert_eq!(seen.packed_trials[&1], Seen::Absent, "{what}");
    assert_eq!(world.count_calls("pods/log"), 0, "{what}");
}

#[tokio::test]
async fn a_job_of_our_name_that_another_client_made_is_not_read() {
    let forged = [
        ("/metadata/ownerReferences", json!([])),
        ("/metadata/ownerReferences/0/uid", json!("another")),
        ("/metadata/ownerReferences/0/controller", json!(false)),
        ("/metadata/labels/perfvalidation.dev~1run", json!("00000000")),
    ];
    for (field, value) in forged {
        let world = World::new();
        world.put_result(1);
        let job = names::trial_job(&world.run_id(), 1);
        world.server.edit("jobs", NAMESPACE, &job, |job| {
            *job.pointer_mut(field).expect("it is set") = value;
        });
        reads_nothing(&world, field).await;
    }
}

#[tokio::test]
async fn a_job_of_another_uid_than_recorded_is_not_read() {
    let world = World::new();
    world.put_result(1);
    let record = |uid: serde_json::Value| {
        world.edit(|object| {
            object["status"]["operatorState"]["trials"] =
                json!([{"number": 1, "startedAt": "2026-01-01T00:00:00Z", "jobUid": uid}]);
        });
    };
    let job = names::trial_job(&world.run_id(), 1);
    record(world.server.get("jobs", NAMESPACE, &job).unwrap()["metadata"]["uid"].clone());
    let seen = world.observe(Need::Results).await;
    assert!(seen.packed_trials[&1].present().is_some(), "{:?}", seen.packed_trials);
    record(json!("another"));
    reads_nothing(&world, "another uid").await;
}

#[tokio::test]
async fn a_pod_that_the_job_does_not_own_is_not_read() {
    let world = World::new();
    world.put_result(1);
    let pod = format!("{}-abcde", names::trial_job(&world.run_id(), 1));
    world.server.edit("pods", NAMESPACE, &pod, |pod| {
        pod["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    });
    reads_nothing(&world, "another owner").await;
}

#[tokio::test]
async fn progress_of_a_running_trial_is_read_from_its_log_and_not_every_time() {
    let world = World::new();
    world.put_trial(None);
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let pod = format!("{}-abcde", names::trial_job(&run.id(), 1));
    let nonce = names::nonce(run.uid(), &run.id(), 1);
    let line = |requests| {
        let progress = Progress {
            requests,
            ..Progress::default()
        };
        progress.line(&nonce)
    };
    let log = line(7) + "AIPerf says something\n" + &line(9);
    world.server.set_log(NAMESPACE, &pod, names::AIPERF_CONTAINER, log);
    let read = async || {
        let seen = world.observe(Need::Trial).await;
        let progress = seen.trial.present().expect("it is read").progress.clone();
        progress.map(|progress| progress.requests)
    };
    assert_eq!(read().await, Some(9), "the last line counts");

    world.server.fail(Fault::refuse("get", "pods/log", 403));
    assert_eq!(read().await, None, "the trial goes on without");
    world.server.heal();

    let now = chrono::Utc::now();
    world.edit(|object| {
        object["status"]["operatorState"]["progress"] =
            json!({"trial": 1, "requests": 9, "failedRequests": 0, "seconds": 1, "summary": "1: 1%", "updatedAt": now});
    });
    world.server.forget_calls();
    assert_eq!(read().await, None);
    assert_eq!(world.count_calls("pods/log"), 0, "it was read a moment ago");
}
