//! The logs of a run.

use std::time::Duration;

use perfval_testkit::api_server::{Call, Fault};
use serde_json::json;

use super::desk::{Desk, golden, stored};

/// A run under way with a frontend, a worker, a load generator, and the operator, each with a log.
pub fn under_way() -> Desk {
    let desk = Desk::new();
    let mut object = stored("benchmarking-second-trial");
    object["spec"]["workload"]["env"] = json!([{"name": "CACHE_PASSWORD", "value": "correct horse"}]);
    let id = object["status"]["run"]["id"].clone();
    desk.server.put(object);
    for (pod, component, container, log) in [
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
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "operator-0", "namespace": "perfvalidation-system",
            "labels": {"app.kubernetes.io/name": "perfvalidation-operator"},
        },
        "spec": {"containers": [{"name": "operator", "image": "i"}]},
    }));
    let log = "2026-09-21T14:13:32.0Z INFO perf/run trial 1\n2026-09-21T14:13:34.5Z INFO perf/other\n";
    desk.server
        .set_log("perfvalidation-system", "operator-0", "operator", log);
    desk
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
    assert_eq!(desk.types("logs run --gpu gpu-7").await.out, "");
    let two = desk.types("logs run -p frontend -p operator").await.out;
    assert!(
        two.contains("listening") && two.contains("trial 1") && !two.contains("weights"),
        "{two}"
    );
}

#[tokio::test]
async fn a_run_without_pods_says_why() {
    let answer = Desk::with("passed").types("logs run").await;
    assert_eq!(answer.code, 0);
    assert!(answer.err.contains("a run removes its own"), "{}", answer.err);
}

#[tokio::test]
async fn one_log_that_cannot_be_read_costs_no_other() {
    let desk = under_way();
    desk.server.delete("pods", "perf", "w0");
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "w9", "namespace": "perf", "labels": {
            "perfvalidation.dev/name": "run", "perfvalidation.dev/component": "worker",
            "perfvalidation.dev/run": stored("benchmarking-second-trial")["status"]["run"]["id"],
        }},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    }));
    let answer = desk.types("logs run").await;
    assert!(answer.out.contains("listening"), "{}", answer.out);
    let why = "worker w9 has printed nothing yet: its container waits to start";
    assert!(answer.err.contains(why), "{}", answer.err);
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
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"] = stored("failed")["status"].clone();
    });
    let answer = logs.ends().await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    for line in ["10 requests", "20 requests", "second trial", "loading weights"] {
        assert_eq!(answer.out.matches(line).count(), 1, "{line}: {}", answer.out);
    }
}

#[tokio::test]
async fn following_waits_for_the_first_pod_and_says_what_cannot_be_read_once() {
    let desk = Desk::with("sizing");
    desk.server
        .fail(Fault::refuse("list", "pods", 403).asked_with("labelSelector=app.kubernetes.io"));
    let logs = desk.start("logs run --follow");
    logs.says("No pod of run is there yet").await;
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
        "{}",
        answer.err
    );
    assert_eq!(answer.err.matches("is left out").count(), 1, "{}", answer.err);
}
