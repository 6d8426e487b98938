//! What does not want to go.

use std::time::Duration;

use perfval_api::{Phase, Verdict, condition};
use perfval_e2e::{Gpus, Lab, Validation, eventually, leftovers, quick};
use serde_json::json;

use crate::ready;

/// Worker pods of a run that are being deleted.
async fn ending(lab: &Lab, namespace: &str) -> usize {
    let template = "{range .items[*]}{.metadata.deletionTimestamp}{'\\n'}{end}";
    let selector = "perfvalidation.dev/component=worker";
    let output = format!("jsonpath={}", template.replace('\'', "\""));
    let times = lab
        .kubectl(&["get", "pods", "-n", namespace, "-l", selector, "-o", &output])
        .await;
    times.lines().filter(|line| !line.is_empty()).count()
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_worker_that_ignores_its_end_keeps_its_gpu_until_it_is_over() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-deaf").await;
    lab.run(&["fault", "dgd", &format!("grace=20@{namespace}")]).await;
    let mut manifest = quick("deaf", &namespace);
    manifest["spec"]["workload"]["dynamo"]["worker"]["command"] =
        json!(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]);
    manifest["spec"]["workload"]["dynamo"]["worker"]["args"] = json!([]);
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::WaitingForReady).await;
    eventually("its workers hold GPUs", Duration::from_mins(1), || async {
        match Gpus::count(&lab).await.free() {
            6 => Ok(()),
            free => Err(free),
        }
    })
    .await;
    run.patch(json!({"spec": {"suspend": true}})).await;
    eventually("its pods are told to end", Duration::from_mins(1), || async {
        match ending(&lab, &namespace).await {
            2 => Ok(()),
            some => Err(some),
        }
    })
    .await;
    let status = run.status().await.expect("a status");
    assert_eq!(status.phase, Some(Phase::CleaningUp), "the GPUs are not given back yet");
    assert_eq!(
        Gpus::count(&lab).await.free(),
        6,
        "no pod with a claim is removed by force"
    );
    run.phase(Phase::Suspended).await;
    run.left_nothing().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_deployment_whose_finalizer_hangs_is_reported_and_swept_once_it_goes() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-hangs").await;
    lab.run(&[
        "fault",
        "dgd",
        &format!("grace=1@{namespace},slow-delete=100000@{namespace}"),
    ])
    .await;
    let mut manifest = quick("hangs", &namespace);
    manifest["spec"]["workload"]["dynamo"]["image"] = json!("localhost/no-such-image:1.4.9");
    manifest["spec"]["timeouts"]["cleanup"] = json!("10s");
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Error).await;
    let cleaned = condition::find(&status, condition::CLEANED_UP).expect("CleanedUp");
    assert_eq!(
        (cleaned.status.as_str(), cleaned.reason.as_str()),
        ("False", "TeardownUnconfirmed")
    );
    assert!(cleaned.message.contains("Deployment pv-"), "{}", cleaned.message);
    assert_eq!(
        status.reason.as_deref(),
        Some("ContainerFailed"),
        "the verdict keeps its reason"
    );
    assert!(!leftovers(&lab, &namespace, "hangs").await.is_empty());

    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    run.until("it is swept", |status| {
        condition::is_true(status, condition::CLEANED_UP)
    })
    .await;
    run.left_nothing().await;
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_namespace_deleted_under_a_run_takes_everything_with_it() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-namespace").await;
    let mut manifest = quick("gone", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(20_000);
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    lab.kubectl(&["delete", "namespace", &namespace, "--timeout=180s"])
        .await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);

    // The operator goes on.
    let namespace = lab.namespace("fail-namespace-next").await;
    let run = Validation::create(&lab, quick("next", &namespace)).await;
    run.ends(Verdict::Passed).await;
    run.delete().await;
}
