//! The node under the run: no driver, no kubelet, a taint, an eviction.

use std::time::Duration;

use perfval_api::{Phase, TrialOutcome, Verdict};
use perfval_e2e::{DRA_PLUGIN, Gpus, Lab, NODE, OutOfCluster, TAINT, Validation, eventually, quick};
use perfval_verdict::diagnosis::cause::Cause;
use serde_json::json;

use crate::{has_message, ready};

const LOAD_GENERATOR: &str = "perfvalidation.dev/component=benchmark";

async fn all_gpus(lab: &Lab) {
    eventually("the GPUs are published", Duration::from_mins(2), || async {
        match Gpus::count(lab).await.all {
            8 => Ok(()),
            count => Err(count),
        }
    })
    .await;
}

async fn load_generator_runs(lab: &Lab, namespace: &str) {
    let ready = ["wait", "pod", "--for=condition=Ready", "--timeout=60s"];
    let words = [ready, ["-n", namespace, "-l", LOAD_GENERATOR]].concat();
    eventually("the load generator runs", Duration::from_mins(2), || {
        lab.try_kubectl(&words)
    })
    .await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_driver_that_is_away_is_named_while_it_is_waited_for() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-no-plugin").await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    // The scheduler gives out what the slice says; by then nobody prepares it.
    lab.run(&["fault", "stop", "kube-scheduler"]).await;
    let run = Validation::create(&lab, quick("no-plugin", &namespace)).await;
    run.phase(Phase::WaitingForReady).await;
    lab.run(&["fault", "stop", DRA_PLUGIN]).await;
    lab.run(&["fault", "start", "kube-scheduler"]).await;
    run.until("the missing driver is named", |status| {
        has_message(status, "NodeNotReady", "is not registered")
    })
    .await;
    lab.run(&["fault", "start", DRA_PLUGIN]).await;
    run.ends(Verdict::Passed).await;
    run.delete().await;
    all_gpus(&lab).await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_node_that_stops_reporting_ends_the_trial_that_it_has() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-node").await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    let mut manifest = quick("node", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(20_000);
    manifest["spec"]["timeouts"]["benchmark"] = json!("10m");
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    lab.run(&["fault", "stop", "kubelet"]).await;
    let told = run
        .until("the node is named", |status| has_message(status, "NodeNotReady", NODE))
        .await;
    assert!(
        told.message
            .unwrap_or_default()
            .contains("Kubelet stopped posting node status")
    );
    let status = run
        .until("the run has its verdict", |status| status.verdict.is_some())
        .await;
    assert_eq!(
        (status.verdict, status.reason.as_deref()),
        (Some(Verdict::Error), Some("NodeNotReady"))
    );
    lab.run(&["fault", "start", "kubelet"]).await;
    run.ends(Verdict::Error).await;
    run.delete().await;
    all_gpus(&lab).await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_taint_that_comes_after_the_plan_is_named_and_sized_again() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-taint").await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    lab.run(&["fault", "stop", "kube-scheduler"]).await;
    let run = Validation::create(&lab, quick("taint", &namespace)).await;
    run.phase(Phase::WaitingForReady).await;
    lab.kubectl(&["taint", "node", NODE, &format!("{TAINT}=yes:NoSchedule")])
        .await;
    lab.run(&["fault", "start", "kube-scheduler"]).await;
    let named = run
        .until("the taint is named", |status| {
            has_message(status, "Unschedulable", "untolerated taint")
        })
        .await;
    assert_eq!(named.phase, Some(Phase::WaitingForReady));
    run.until("sizing names the taint", |status| {
        has_message(status, "Unschedulable", &format!("{TAINT}=yes:NoSchedule"))
    })
    .await;
    lab.kubectl(&["taint", "node", NODE, &format!("{TAINT}-")]).await;
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(Some(status.state.resizes), Some(1));
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_load_generator_that_is_evicted_is_not_taken_for_a_broken_benchmark() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-evicted").await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    let mut manifest = quick("evicted", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(1500);
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    load_generator_runs(&lab, &namespace).await;
    let pod = lab.first_pod(&namespace, "benchmark").await;
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}});
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), eviction.to_string()).expect("write the eviction");
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    lab.kubectl(&["create", "--raw", &path, "-f", &file.path().to_string_lossy()])
        .await;
    // The trial counts for nothing, and another one is made.
    let told = run
        .until("the eviction is named", |status| {
            status
                .state
                .trials
                .first()
                .is_some_and(|trial| !trial.causes.is_empty())
        })
        .await;
    assert_eq!(
        told.state.trials[0].causes,
        ["BenchmarkFailed"],
        "{:?}",
        told.state.trials[0]
    );
    let found = told.diagnosis.iter().find_map(Cause::from_finding);
    assert_eq!(found, Some(Cause::LoadGeneratorEvicted), "{:?}", told.diagnosis);
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(status.state.trials.len(), 2, "{:?}", status.state.trials);
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_node_that_reboots_in_a_trial_voids_it_and_is_free_afterwards() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-reboot").await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    let mut manifest = quick("reboot", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(1500);
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    load_generator_runs(&lab, &namespace).await;
    lab.run(&["fault", "reboot"]).await;
    let status = run.phase(Phase::Completed).await;
    let first = &status.state.trials[0];
    assert_eq!(first.outcome, Some(TrialOutcome::Invalid), "{:?}", status.state.trials);
    assert!(
        status.state.trials.len() > 1,
        "another one is made: {:?}",
        status.state.trials
    );
    assert_eq!(
        (status.verdict, status.reason.as_deref()),
        (Some(Verdict::Inconclusive), Some("WorkerRestarted")),
        "{:?}: {:?}",
        status.message,
        status.state.trials
    );
    run.delete().await;
    all_gpus(&lab).await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}

/// Its pods run on until the garbage collector of pods takes them, 40 s later and more: until then nothing is lost. The lab
/// has no second node that the operator's own pod could go to.
#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_node_that_is_deleted_ends_the_trial_that_it_has() {
    let (lab, operator) = ready().await;
    operator.scale(0).await;
    let operator = OutOfCluster::start();
    let namespace = lab.namespace("fail-deleted-node").await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    let mut manifest = quick("deleted-node", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(20_000);
    manifest["spec"]["timeouts"]["benchmark"] = json!("10m");
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    load_generator_runs(&lab, &namespace).await;
    lab.kubectl(&["delete", "node", NODE]).await;
    let status = run
        .until("the run has its verdict", |status| status.verdict.is_some())
        .await;
    assert!(
        has_message(&status, "NodeNotReady", "does not exist any more"),
        "{:?}: {:?}",
        status.reason,
        status.message
    );
    assert_eq!(status.verdict, Some(Verdict::Error));
    // A kubelet makes its node when it starts, and the driver's slices belong to the node that was.
    for process in ["kubelet", DRA_PLUGIN] {
        lab.run(&["fault", "stop", process]).await;
        lab.run(&["fault", "start", process]).await;
    }
    run.ends(Verdict::Error).await;
    run.delete().await;
    all_gpus(&lab).await;
    operator.kill().await;
}
