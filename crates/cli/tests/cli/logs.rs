//! The logs of a run.

use std::time::Duration;

use perfval_testkit::api_server::{Call, Fault};
use serde_json::json;

use super::desk::{Desk, golden, run_id, stored};

/// A run under way with a model cache, a frontend, a worker, a load generator, and the operator, each with a log.
pub fn under_way() -> Desk {
    let desk = Desk::new();
    let mut object = stored("benchmarking-second-trial");
    object["spec"]["workload"]["dynamo"]["env"] = json!([{"name": "CACHE_PASSWORD", "value": "correct horse"}]);
    let id = run_id(&object);
    desk.server.put(object);
    for (pod, component, container, log) in [
        (
            "filler",
            "model-cache",
            "fill",
            "2026-09-21T14:13:31.0Z download failed hf_0123456789abcdef\n",
        ),
        (
            "w0",
            "worker",
            "main",
            "2026-09-21T14:13:33.2Z loading weights\n2026-09-21T14:13:35.0Z login with correct horse\n",
        ),
        (
            "front",
            "frontend",
            "main",
            "2026-09-21T14:13:34.0Z HF_TOKEN=hf_0123456789abcdef listening\n",
        ),
        (
            "generator",
            "benchmark",
            "aiperf",
            "2026-09-21T14:13:36.0Z 10 requests\n",
        ),
    ] {
        desk.server.put(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": pod, "namespace": "perf", "labels": {
                "perfvalidation.dev/name": "run", "perfvalidation.dev/run": id, "perfvalidation.dev/component": component,
            }},
            "spec": {"containers": [{
                "name": container, "image": "i", "args": ["--api-key", "plain-secret"],
                "env": [
                    {"name": "HF_TOKEN", "value": "hf_0123456789abcdef"},
                ],
            }]},
        }));
        desk.server.set_log("perf", pod, container, log);
    }
    put_operator(&desk);
    desk
}

fn put_operator(desk: &Desk) {
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "operator-0", "namespace": "perfvalidation-system",
            "labels": {"app.kubernetes.io/part-of": "perfvalidation-operator"},
        },
        "spec": {"containers": [{"name": "operator", "image": "i"}]},
    }));
    let log = "2026-09-21T14:13:32.0Z INFO pass{namespace=\"perf\" name=\"run\"}: trial 1\n2026-09-21T14:13:34.5Z INFO pass{namespace=\"perf\" name=\"other\"}: perf/other\n";
    desk.server
        .set_log("perfvalidation-system", "operator-0", "operator", log);
}

/// Puts the results of a run with log lines of a trial with errors.
fn save_lines(desk: &Desk) {
    let name = stored("passed")["status"]["resultsRef"]["name"].clone();
    let lines = "==> w0, container main, before its restart <==\n2026-09-21T14:13:33Z CUDA error hf_0123456789abcdef\n";
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "perf"},
        "data": {"summary.json": "{}", "trial-2.log": lines},
    }));
}

#[tokio::test]
async fn logs_are_merged_by_time_without_secrets_and_without_the_operators_other_work() {
    let answer = under_way().types("logs run").await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    golden("logs", &answer.out);
    for secret in ["correct horse", "hf_0123456789abcdef", "perf/other"] {
        assert!(!answer.out.contains(secret), "{}", answer.out);
    }
}

#[tokio::test]
async fn a_part_or_a_gpu_is_chosen() {
    let desk = under_way();
    let worker = desk.types("logs run --gpu gpu-0").await.out;
    assert!(
        worker.contains("loading weights") && !worker.contains("listening"),
        "{worker}"
    );
    let wrong = desk.types("logs run --gpu gpu-0 --gpu gpu-7").await;
    wrong.exits(2, "no worker has GPU gpu-7: there are gpu-0");
    let frontend = desk.types("logs run -p frontend --gpu gpu-0").await;
    frontend.exits(2, "only workers have GPUs: add -p worker, or leave --gpu out");
    let two = desk.types("logs run -p frontend -p operator").await.out;
    assert!(
        two.contains("listening") && two.contains("trial 1") && !two.contains("weights"),
        "{two}"
    );
    let cache = desk.types("logs run -p model-cache").await.out;
    assert!(
        cache.contains("download failed") && !cache.contains("listening"),
        "{cache}"
    );
    // Before the first trial.
    desk.server.delete("pods", "perf", "generator");
    let benchmark = desk.types("logs run -p benchmark").await;
    benchmark.exits(0, "No such pod of run is there. ");
    let logs = desk.start("logs run -p benchmark --follow");
    logs.notes("No such pod of run is there yet").await;
    desk.becomes("run", "failed");
    assert_eq!(logs.ends().await.code, 0);
}

#[tokio::test]
async fn a_run_without_pods_shows_the_reason() {
    let answer = Desk::with("passed").types("logs run").await;
    answer.exits(0, "a run removes its own");
    let early = Desk::with("sizing").types("logs run").await;
    assert_eq!(
        (early.code, early.err.as_str()),
        (
            0,
            "No pod of run is there. `kubectl perfval describe run -n perf` shows the phase of the run.\n"
        )
    );
}

#[tokio::test]
async fn the_saved_lines_of_a_trial_with_errors_are_shown_once_the_pods_are_gone() {
    let desk = Desk::with("passed");
    save_lines(&desk);
    let answer = desk.types("logs run").await;
    assert_eq!(answer.code, 0);
    assert!(answer.out.starts_with("trial 2\n==> w0, container main"), "{answer:?}");
    answer.prints("CUDA error [hidden]");
    answer.notes("last lines of its trials with errors");
}

#[tokio::test]
async fn the_operators_pod_is_no_pod_of_the_run() {
    let desk = Desk::with("passed");
    save_lines(&desk);
    let absent = desk.types("logs run -p operator").await;
    absent.notes("No pod of the operator is in namespace perfvalidation-system: give --operator-namespace");
    put_operator(&desk);
    let answer = desk.types("logs run").await;
    answer.prints("pass{namespace=\"perf\" name=\"run\"}: trial 1");
    answer.prints("CUDA error [hidden]");
    answer.notes("last lines of its trials with errors");
    let operator = desk.types("logs run -p operator").await;
    assert_eq!((operator.code, operator.err.as_str()), (0, ""));
    assert!(
        operator.out.contains("trial 1") && !operator.out.contains("CUDA"),
        "{operator:?}"
    );

    let desk = Desk::with("sizing");
    put_operator(&desk);
    let logs = desk.start("logs run --follow");
    logs.notes("No pod of run is there yet").await;
    desk.becomes("run", "failed");
    assert_eq!(logs.ends().await.code, 0);
}

#[tokio::test]
async fn the_newest_lines_of_a_log_beyond_the_limit_are_shown() {
    let desk = under_way();
    let line = |text: &str| format!("2026-09-21T14:13:33.2Z {text}\n");
    let log = line(&"x".repeat(4 << 20)).repeat(2) + &line("last words");
    desk.server.set_log("perf", "w0", "main", log);
    let answer = desk.types("logs run -p worker --tail 3").await;
    answer.prints("last words");
}

#[tokio::test]
async fn a_byte_that_is_no_text_costs_no_log() {
    let desk = under_way();
    let log = b"2026-09-21T14:13:33.2Z caf\xe9 opens\n";
    desk.server.set_log("perf", "w0", "main", log.as_slice());
    let answer = desk.types("logs run -p worker").await;
    answer.prints(" opens");
    assert_eq!(answer.err, "");
}

#[tokio::test]
async fn one_log_that_cannot_be_read_costs_no_other() {
    let desk = under_way();
    desk.server.delete("pods", "perf", "w0");
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "w9", "namespace": "perf", "labels": {
            "perfvalidation.dev/name": "run", "perfvalidation.dev/component": "worker",
            "perfvalidation.dev/run": run_id(&stored("benchmarking-second-trial")),
        }},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    }));
    let answer = desk.types("logs run").await;
    answer.prints("listening");
    let why = "worker w9 has printed nothing yet: its container waits to start";
    answer.notes(why);
}

#[tokio::test]
async fn following_prints_each_new_line_once_and_ends_with_the_run() {
    let desk = under_way();
    let logs = desk.start("logs run --follow");
    logs.shows("10 requests").await;
    let log = "2026-09-21T14:13:36.0Z 10 requests\n2026-09-21T14:13:41.0Z 20 requests\n";
    desk.server.set_log("perf", "generator", "aiperf", log);
    logs.shows("20 requests").await;
    // A pod that comes later, of the next trial.
    let mut later = desk.server.get("pods", "perf", "generator").expect("it is there");
    later["metadata"]["name"] = json!("generator-2");
    desk.server.put(later);
    desk.server
        .set_log("perf", "generator-2", "aiperf", "2026-09-21T14:13:50.0Z second trial\n");
    logs.shows("second trial").await;
    desk.becomes("run", "failed");
    let answer = logs.ends().await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    for line in ["10 requests", "20 requests", "second trial", "loading weights"] {
        assert_eq!(answer.out.matches(line).count(), 1, "{line}: {}", answer.out);
    }
}

#[tokio::test]
async fn following_waits_for_the_first_pod_and_reports_an_unreadable_one_once() {
    let desk = Desk::with("sizing");
    desk.server
        .fail(Fault::refuse("list", "pods", 403).asked_with("labelSelector=app.kubernetes.io"));
    let logs = desk.start("logs run --follow");
    logs.notes("No pod of run is there yet").await;
    desk.server.forget_calls();
    let of_operator = |call: &Call| call.namespace.as_deref() == Some("perfvalidation-system");
    let looks = async {
        while desk.server.calls().iter().filter(|call| of_operator(call)).count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let looked = tokio::time::timeout(Duration::from_mins(1), looks).await;
    assert!(looked.is_ok(), "it does not look again");
    desk.server.delete("perfvalidations", "perf", "run");
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["metadata"]["finalizers"] = serde_json::Value::Null;
    });
    let answer = logs.ends().await;
    assert_eq!(answer.code, 4);
    assert!(
        answer.err.ends_with("PerfValidation perf/run was deleted\n"),
        "{answer:?}"
    );
    assert_eq!(answer.err.matches("is left out").count(), 1, "{}", answer.err);
}

/// Makes a worker's container one that crashed: its status, and what the container before printed last.
pub fn crash(desk: &Desk, restarts: i64, last_words: &str) {
    desk.server.edit("pods", "perf", "w0", |pod| {
        pod["spec"]["initContainers"] = json!([{"name": "fetch", "image": "i"}]);
        pod["status"] = json!({
            "containerStatuses": [{"name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": restarts}],
            "initContainerStatuses": [{"name": "fetch", "image": "i", "imageID": "", "ready": true, "restartCount": 0}],
        });
    });
    desk.server
        .set_log("perf", "w0", "fetch", "2026-09-21T14:13:30.0Z weights are there\n");
    desk.server.set_previous_log("perf", "w0", "main", last_words);
}

#[tokio::test]
async fn a_crashed_workers_last_words_and_its_init_containers_are_there() {
    let desk = under_way();
    crash(&desk, 1, "2026-09-21T14:13:32.5Z CUDA error: out of memory\n");
    let answer = desk.types("logs run -p worker").await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let lines: Vec<_> = answer.out.lines().collect();
    assert!(
        lines[0].contains("worker gpu-0 (init fetch) ") && lines[0].ends_with("weights are there"),
        "{answer:?}"
    );
    assert!(
        lines[1].contains("worker gpu-0 (previous) ") && lines[1].ends_with("CUDA error: out of memory"),
        "{answer:?}"
    );
    assert!(lines[2].ends_with("loading weights"), "{}", answer.out);
}

#[tokio::test]
async fn a_previous_log_that_the_kubelet_has_no_more_costs_no_other() {
    let desk = under_way();
    crash(&desk, 1, "");
    let gone = "previous terminated container \"main\" in pod \"w0\" not found";
    desk.server.fail(
        Fault::refuse("get", "pods/log", 400)
            .saying(gone)
            .asked_with("previous=true"),
    );
    let answer = desk.types("logs run -p worker").await;
    answer.prints("loading weights");
    answer.notes("worker gpu-0 (previous) is left out: the node keeps that log no longer");
}

#[tokio::test]
async fn a_restart_while_following_repeats_no_line_and_loses_none() {
    let desk = under_way();
    let logs = desk.start("logs run --follow -p worker");
    logs.shows("login with").await;
    let before = "2026-09-21T14:13:33.2Z loading weights\n2026-09-21T14:13:41.0Z CUDA error\n";
    crash(&desk, 1, before);
    desk.server
        .set_log("perf", "w0", "main", "2026-09-21T14:13:43.0Z loading them again\n");
    logs.shows("loading them again").await;
    desk.becomes("run", "failed");
    let answer = logs.ends().await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    for line in ["loading weights", "CUDA error", "loading them again"] {
        assert_eq!(answer.out.matches(line).count(), 1, "{line}: {}", answer.out);
    }
}

#[tokio::test]
async fn nodes_with_other_offsets_are_merged_by_the_moment_and_the_rest_of_a_line_stays_with_it() {
    let desk = under_way();
    let log = "2026-09-21T16:13:33.9+02:00 first\nthe rest of it\n2026-09-21T16:13:34+02:00 second\n";
    desk.server.set_log("perf", "w0", "main", log);
    let listening = "2026-09-21T14:13:34.000000001Z third\n";
    desk.server.set_log("perf", "front", "main", listening);
    let answer = desk.types("logs run -p worker -p frontend").await;
    let texts: Vec<_> = answer
        .out
        .lines()
        .map(|line| line.rsplit("  ").next().unwrap_or_default())
        .collect();
    assert_eq!(texts, ["first", "the rest of it", "second", "third"], "{}", answer.out);
}

#[tokio::test]
async fn of_the_operators_log_only_the_lines_about_exactly_this_validation_are_shown() {
    let desk = under_way();
    let ours = [
        // As the operator writes it in a pod: the field `name` of the span, and then the span's own.
        r#"{"level":"INFO","message":"one","span":{"name":"run","namespace":"perf","run":"ab","name":"pass"}}"#,
        r#"{"level":"WARN","message":"two","span":{"object.ref":"PerfValidation.v1alpha1.perfvalidation.dev/run.perf","name":"reconciling object"}}"#,
        r#"WARN perfval: three name="run" namespace="perf""#,
        r"INFO reconciling object{object.ref=PerfValidation.v1alpha1.perfvalidation.dev/run.perf object.reason=x}: four",
    ];
    let others = [
        r#"{"level":"INFO","message":"run 1","span":{"name":"run-2","namespace":"perf","name":"pass"}}"#,
        r#"{"level":"INFO","message":"run 2","span":{"name":"run","namespace":"perf-b","name":"pass"}}"#,
        r#"{"level":"INFO","message":"\"namespace\":\"perf\",\"name\":\"run\" 3","span":{"name":"other","namespace":"b"}}"#,
        r#"INFO pass{namespace="perf" name="my-run"}: run 4"#,
        r#"INFO pass{namespace="my-perf" name="run"}: run 5"#,
        r"INFO reconciling object{object.ref=PerfValidation.v1alpha1.perfvalidation.dev/run.perf-b object.reason=x}: run 6",
        r"INFO reconciling object{object.ref=PerfValidation.v1alpha1.perfvalidation.dev/a.run.perf object.reason=x}: run 7",
    ];
    let dated = |line: &&str| format!("2026-09-21T14:13:32.0Z {line}");
    let log = ours.iter().chain(&others).map(dated).collect::<Vec<_>>().join("\n");
    desk.server
        .set_log("perfvalidation-system", "operator-0", "operator", log);
    let answer = desk.types("logs run -p operator").await;
    let shown: Vec<_> = answer
        .out
        .lines()
        .map(|line| line.split_once("operator  ").expect("its label").1)
        .collect();
    assert_eq!(shown, ours);
    // The fields are at the end of a line, beyond what is shown of a long one.
    let lengthy = ours[0].replace("one", &"long ".repeat(1000));
    desk.server.set_log(
        "perfvalidation-system",
        "operator-0",
        "operator",
        dated(&lengthy.as_str()),
    );
    let answer = desk.types("logs run -p operator").await;
    answer.prints("long long");
}
