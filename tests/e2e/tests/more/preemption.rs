//! A run of low priority gives its GPUs to a pod of higher priority, and is tried again afterwards. The scheduler of Kubernetes
//! 1.36 preempts for the GPUs of a device plugin only, and not for those of claims.

use std::time::Instant;

use perfval_api::{Phase, Trigger, Verdict};
use perfval_e2e::{Holder, Lab, Validation, quick};
use serde_json::json;

use crate::e2e::device_plugin::with_device_plugin;
use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_run_gives_way_to_a_pod_of_higher_priority() {
    let (lab, _operator) = ready().await;
    with_device_plugin(&lab, Box::pin(gives_way(lab.clone()))).await;
}

async fn gives_way(lab: Lab) {
    let namespace = lab.namespace("e2e-preemption").await;
    lab.apply(&json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "e2e-low"}, "value": -100, "preemptionPolicy": "Never"}))
        .await;
    let mut manifest = quick("gives-way", &namespace);
    let spec = &mut manifest["spec"];
    spec["placement"] = json!({});
    // There is no plugin behind the number, so no device in the container either.
    spec["workload"]["dynamo"]["env"] = json!([{"name": "LAB_ALLOW_NO_GPU", "value": "1"}]);
    spec["podTemplate"]["spec"]["priorityClassName"] = json!("e2e-low");
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;

    let asked = Instant::now();
    let other = Holder::by_device_plugin(&lab, &namespace, "urgent", 2).await;
    let other = other.holding().await;
    println!("another pod got its GPUs after {:?}", asked.elapsed());
    let waits = run
        .until("run 2 has the GPU that is left, or waits", |status| {
            status.run.as_ref().map(|run| run.number) == Some(2)
        })
        .await;
    println!("run 1 was over after {:?}", asked.elapsed());
    assert_eq!(waits.run.map(|run| run.trigger), Some(Trigger::Preempted));
    assert!(waits.state.history.is_empty(), "{:?}", waits.state.history);

    other.leave().await;
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(status.run.map(|run| run.number), Some(2));
    run.left_nothing().await;
    run.delete().await;
    lab.kubectl(&["delete", "priorityclass", "e2e-low"]).await;
}
