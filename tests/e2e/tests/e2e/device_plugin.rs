//! A node whose GPUs a device plugin gives out.

use std::time::Duration;

use perfval_api::Verdict;
use perfval_e2e::{DRA_PLUGIN, Gpus, Holder, Lab, NODE, Validation, eventually, quick};
use serde_json::json;

use crate::ready;

/// Takes the DRA driver away and gives the node three extended resources: the kubelet admits pods for them.
async fn switch_to_device_plugin(lab: &Lab) {
    lab.run(&["fault", "stop", DRA_PLUGIN]).await;
    lab.kubectl(&["delete", "resourceslices", "--all", "--timeout=60s"])
        .await;
    patch_node(lab, "add").await;
}

async fn switch_back(lab: &Lab) {
    patch_node(lab, "remove").await;
    lab.run(&["fault", "start", DRA_PLUGIN]).await;
    eventually("the GPUs are published again", Duration::from_mins(1), || async {
        match Gpus::count(lab).await.all {
            8 => Ok(()),
            count => Err(count),
        }
    })
    .await;
}

async fn patch_node(lab: &Lab, op: &str) {
    let change = |part: &str| json!({"op": op, "path": format!("/status/{part}/nvidia.com~1gpu"), "value": "3"});
    let patch = json!([change("capacity"), change("allocatable")]).to_string();
    lab.kubectl(&[
        "patch",
        "node",
        NODE,
        "--subresource=status",
        "--type=json",
        "-p",
        &patch,
    ])
    .await;
}

/// Runs a test while a device plugin gives out the GPUs of the node.
pub async fn with_device_plugin(lab: &Lab, test: impl Future<Output = ()> + Send + 'static) {
    switch_to_device_plugin(lab).await;
    // A task of its own: the lab is put right again whatever comes out.
    let outcome = tokio::spawn(test).await;
    switch_back(lab).await;
    outcome.expect("the run is as it should be");
}

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn gpus_of_a_device_plugin_that_others_hold_are_not_counted() {
    let (lab, _operator) = ready().await;
    with_device_plugin(&lab, Box::pin(run_next_to_another(lab.clone()))).await;
}

async fn run_next_to_another(lab: Lab) {
    let others = lab.namespace("e2e-plugin-others").await;
    let namespace = lab.namespace("e2e-plugin").await;
    let trainer = Holder::by_device_plugin(&lab, &others, "trainer", 1)
        .await
        .holding()
        .await;
    let mut manifest = quick("plugin", &namespace);
    manifest["spec"]["placement"] = json!({});
    // There is no plugin behind the number, so no device in the container either.
    manifest["spec"]["workload"]["dynamo"]["env"] = json!([{"name": "LAB_ALLOW_NO_GPU", "value": "1"}]);
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Passed).await;
    let plan = status.placement.expect("a plan");
    assert_eq!(
        (plan.allocation.as_ref(), plan.gpus, plan.node_gpus),
        ("DevicePlugin", 2, 3),
        "{plan:?}"
    );
    run.delete().await;
    trainer.leave().await;
}
