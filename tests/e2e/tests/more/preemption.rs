//! A run of low priority gives its GPUs to a pod of higher priority, and is tried again afterwards.

use std::time::Instant;

use perfval_api::{Phase, Trigger, Verdict};
use perfval_e2e::{Gpus, Holder, Validation, quick};
use serde_json::json;

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_run_gives_way_to_a_pod_of_higher_priority() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-preemption").await;
    lab.apply(&json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "e2e-low"}, "value": -100, "preemptionPolicy": "Never"}))
        .await;
    let mut manifest = quick("gives-way", &namespace);
    manifest["spec"]["podTemplate"]["spec"]["priorityClassName"] = json!("e2e-low");
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;

    let asked = Instant::now();
    let other = Holder::by_claim(&lab, &namespace, "urgent", 8).await.holding().await;
    println!("another pod got all GPUs after {:?}", asked.elapsed());
    let waits = run
        .until("run 2 waits for GPUs", |status| {
            status.run.as_ref().map(|run| run.number) == Some(2) && status.phase == Some(Phase::Sizing)
        })
        .await;
    assert_eq!(waits.run.map(|run| run.trigger), Some(Trigger::Preempted));
    assert_eq!(waits.state.history.first().and_then(|run| run.verdict), None);
    assert_eq!(other.devices().await.len(), 8);

    other.leave().await;
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(status.run.map(|run| run.number), Some(2));
    run.delete().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
    lab.kubectl(&["delete", "priorityclass", "e2e-low"]).await;
}
