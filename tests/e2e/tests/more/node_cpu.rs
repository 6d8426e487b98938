//! A worker that its liveness probe ends: a crash where the node has idle CPUs, unknown where it has none.

use perfval_api::{EndedBy, PerfValidationStatus, Phase, Verdict};
use perfval_e2e::{Gpus, Lab, Validation, quick};
use serde_json::json;

use crate::ready;

/// Busy threads for each CPU of the node: each of them waits for most of the time.
const LOOPS_PER_CPU: usize = 4;

/// A pod that keeps all CPUs of the node busy. It has no CPU request, so it takes only what others leave.
async fn keep_cpus_busy(lab: &Lab, namespace: &str) {
    let loops = LOOPS_PER_CPU * std::thread::available_parallelism().map_or(1, usize::from);
    let script = format!("for i in $(seq {loops}); do (while :; do :; done) & done; wait");
    lab.apply(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": "stress"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "stress", "image": "localhost/busybox:lab", "imagePullPolicy": "Never",
                "command": ["sh", "-c", script]}],
        },
    }))
    .await;
    let ready = ["wait", "pod/stress", "--for=condition=Ready", "--timeout=60s"];
    lab.kubectl(&[&ready[..], &["-n", namespace]].concat()).await;
}

/// Freezes a worker in a trial that outlasts its liveness probe and the 30 s that Kubernetes gives it to end.
async fn run_with_a_frozen_worker(lab: &Lab, namespace: &str) -> (PerfValidationStatus, Validation) {
    lab.run(&["fault", "dgd", "liveness=1"]).await;
    let mut manifest = quick("frozen", namespace);
    manifest["spec"]["benchmark"]["duration"] = json!("90s");
    manifest["spec"]["benchmark"]["requestTimeout"] = json!("20s");
    for field in ["requestsPerConcurrency", "minRequests"] {
        manifest["spec"]["benchmark"]
            .as_object_mut()
            .expect("fields")
            .remove(field);
    }
    let run = Validation::create(lab, manifest).await;
    run.until("the trial has answers", |status| {
        let answered = status.state.progress.as_ref().map_or(0, |progress| progress.requests);
        status.phase == Some(Phase::Benchmarking) && answered > 0
    })
    .await;
    let pod = lab.first_pod(namespace, "worker").await;
    lab.run(&["fault", "freeze", &format!("{namespace}/{pod}")]).await;
    let status = run.phase(Phase::Completed).await;
    lab.run(&["fault", "clear"]).await;
    (status, run)
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_worker_that_its_probe_ends_on_a_node_without_idle_cpus_is_inconclusive() {
    let (lab, _operator) = ready().await;
    let others = lab.namespace("e2e-cpu-others").await;
    keep_cpus_busy(&lab, &others).await;
    let namespace = lab.namespace("e2e-cpu").await;
    let (status, run) = run_with_a_frozen_worker(&lab, &namespace).await;
    lab.kubectl(&["delete", "pod", "stress", "-n", &others, "--timeout=60s"])
        .await;

    let message = status.message.clone().unwrap_or_default();
    assert_eq!(
        (status.verdict, status.reason.as_deref()),
        (Some(Verdict::Inconclusive), Some("NodeCPUPressure")),
        "{message}"
    );
    assert!(message.contains("% busy"), "{message}");
    let workers = &status.state.worker_pods;
    let ended: Vec<_> = workers.iter().filter_map(|worker| worker.ended_by).collect();
    assert_eq!(ended, [EndedBy::Probe], "{workers:?}");
    run.left_nothing().await;
    run.delete().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_worker_that_its_probe_ends_on_a_node_with_idle_cpus_fails() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-cpu-idle").await;
    let (status, run) = run_with_a_frozen_worker(&lab, &namespace).await;
    let message = status.message.clone().unwrap_or_default();
    assert_eq!(
        (status.verdict, status.reason.as_deref()),
        (Some(Verdict::Failed), Some("WorkerCrashed")),
        "{message}"
    );
    run.left_nothing().await;
    run.delete().await;
}
