//! What the GPUs of the node say of themselves, by its DCGM exporter.

use perfval_api::{Finding, PerfValidationStatus, Severity, Verdict};
use perfval_e2e::{Gpus, Lab, Validation, quick};
use perfval_verdict::diagnosis::cause::Cause;
use serde_json::json;

use crate::ready;

/// Where the operator looks for the exporter by default.
const EXPORTER: &str = "gpu-operator";

/// The pod that stands for the exporter's: the program itself serves the page on the node's own address, which a pod with
/// the host's network shares.
async fn exporter(lab: &Lab, namespace: &str) {
    lab.apply(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": "dcgm", "labels": {"app": "nvidia-dcgm-exporter"}},
        "spec": {
            "hostNetwork": true, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "exporter", "image": "localhost/pause:lab", "imagePullPolicy": "Never",
                "ports": [{"name": "metrics", "containerPort": 9400}]}],
        },
    }))
    .await;
    let ready = ["wait", "pod/dcgm", "--for=condition=Ready", "--timeout=60s"];
    lab.kubectl(&[&ready[..], &["-n", namespace]].concat()).await;
}

/// What is said of this cause, which names one GPU and no other.
fn of_one_gpu(status: &PerfValidationStatus, cause: Cause) -> &Finding {
    let is_meant = |finding: &&Finding| Cause::from_finding(finding) == Some(cause);
    let finding = status.diagnosis.iter().find(is_meant);
    let finding = finding.unwrap_or_else(|| panic!("no {cause:?} in {:?}", status.diagnosis));
    let gpus = finding.evidence.matches("GPU-").count();
    assert_eq!(gpus, 1, "one GPU: {}", finding.evidence);
    finding
}

fn uuid<'a>(status: &'a PerfValidationStatus, device: &str) -> &'a str {
    let devices = &status.state.plan.device_ids;
    let device = devices.iter().find(|of| of.name == device);
    device.and_then(|device| device.uuid.as_deref()).expect("its UUID")
}

async fn end(lab: &Lab, run: Validation) {
    run.left_nothing().await;
    lab.run(&["fault", "clear"]).await;
    lab.kubectl(&["delete", "namespace", EXPORTER, "--timeout=60s"]).await;
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_hot_gpu_that_is_slow_is_named_with_its_uuid() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-hot").await;
    exporter(&lab, &lab.namespace(EXPORTER).await).await;
    let first = Gpus::count(&lab).await.first;
    let gpu = first.trim_start_matches("gpu-");
    lab.run(&["fault", "slow-gpu", gpu, "0.1"]).await;
    lab.run(&["fault", "throttle-gpu", gpu]).await;
    let mut manifest = quick("hot", &namespace);
    manifest["spec"]["placement"]["maxGPUs"] = json!(3);
    manifest["spec"]["workload"]["dynamo"]["routerMode"] = json!("RoundRobin");
    manifest["spec"]["gates"] = json!([{"name": "latency", "metric": "RequestLatency", "statistic": "P99", "operator": "<=", "threshold": "2000"}]);
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Failed).await;

    let workload = status.workload.as_ref().expect("a workload");
    let page = workload.gpu_metrics.as_deref().expect("a source of metrics");
    assert!(page.ends_with(":9400/metrics"), "{page}");
    let finding = of_one_gpu(&status, Cause::GPUThrottled);
    assert_eq!(finding.severity, Severity::Warning);
    let hot = uuid(&status, &first);
    assert!(
        finding.evidence.contains(hot) && finding.evidence.contains("hardware thermal slowdown"),
        "{}",
        finding.evidence
    );
    // How far the worker lags on two busy cores decides which of the two it is.
    let causes = &status.state.trials[0].causes;
    let slow = |cause: &String| cause == "SlowWorker" || cause == "WorkerStall";
    assert!(causes.iter().any(slow), "it explains a worker that is slow: {causes:?}");
    end(&lab, run).await;
}

/// Nothing is slow and every gate is met: what the GPUs say of themselves is reported all the same, each with its own.
#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn errors_and_links_are_named_with_the_gpu_that_has_them() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-says").await;
    exporter(&lab, &lab.namespace(EXPORTER).await).await;
    let mut manifest = quick("says", &namespace);
    manifest["spec"]["placement"]["maxGPUs"] = json!(3);
    let benchmark = &mut manifest["spec"]["benchmark"];
    benchmark["duration"] = json!("20s");
    for count in ["requestsPerConcurrency", "minRequests"] {
        benchmark.as_object_mut().map(|benchmark| benchmark.remove(count));
    }
    let run = Validation::create(&lab, manifest).await;
    let status = run.phase(perfval_api::Phase::Benchmarking).await;
    let devices = status.state.plan.device_ids;
    let number = |at: usize| devices[at].name.trim_start_matches("gpu-").to_owned();
    lab.run(&["fault", "ecc-gpu", &number(1), "2"]).await;
    lab.run(&["fault", "xid-gpu", &number(1), "79"]).await;
    lab.run(&["fault", "narrow-link", &number(2)]).await;
    lab.run(&["fault", "nvlink-gpu", &number(2)]).await;
    let status = run.ends(Verdict::Passed).await;

    for (cause, at, said) in [
        (Cause::GPUErrors, 1, vec!["XID 79", "2 double-bit ECC errors"]),
        (Cause::LinkDegraded, 2, vec!["its PCIe link runs at width 8", "NVLink"]),
    ] {
        let finding = of_one_gpu(&status, cause);
        let uuid = devices[at].uuid.as_deref().expect("its UUID");
        for words in said.into_iter().chain([uuid]) {
            assert!(finding.evidence.contains(words), "{words}: {}", finding.evidence);
        }
    }
    end(&lab, run).await;
}

/// Something that is not of this run computes on one of its GPUs. While AIPerf starts, no worker has anything to do, and
/// the GPU is busy all the same.
#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_gpu_with_another_user_is_reported_with_its_uuid() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-shared").await;
    exporter(&lab, &lab.namespace(EXPORTER).await).await;
    let first = Gpus::count(&lab).await.first;
    lab.run(&["fault", "share-gpu", first.trim_start_matches("gpu-")]).await;
    let mut manifest = quick("shared", &namespace);
    manifest["spec"]["placement"]["maxGPUs"] = json!(3);
    // AIPerf makes them before it asks anything: time for three readings of idle GPUs on a fast machine too.
    manifest["spec"]["benchmark"]["datasetEntries"] = json!(70_000);
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Passed).await;

    let finding = of_one_gpu(&status, Cause::GPUShared);
    let shared = uuid(&status, &first);
    assert!(
        finding.evidence.contains(shared) && finding.evidence.contains("while no worker had requests"),
        "{}",
        finding.evidence
    );
    end(&lab, run).await;
}
