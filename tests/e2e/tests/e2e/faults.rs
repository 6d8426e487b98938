//! What is broken in the cluster is named, never taken for a slow GPU.

use perfval_api::Verdict;
use perfval_e2e::failures::TABLE;
use perfval_e2e::{Validation, quick};

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn a_stale_dra_plugin_is_named_with_its_remedy() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-stale").await;
    lab.run(&["fault", "stale-dra"]).await;
    let run = Validation::create(&lab, quick("stale", &namespace)).await;
    let status = run.ends(Verdict::Error).await;
    lab.run(&["fault", "heal-dra"]).await;
    assert_eq!(status.reason.as_deref(), Some("NodeNotReady"));
    let message = status.message.clone().unwrap_or_default();
    assert!(
        message.contains("restart the node's GPU driver pod, then its DRA kubelet plugin pod"),
        "no remedy in: {message}"
    );
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn failures_before_a_benchmark_are_named() {
    let (lab, _operator) = ready().await;
    for failure in TABLE.iter().filter(|failure| failure.in_every_run) {
        failure.happens(&lab).await;
    }
    lab.run(&["fault", "clear"]).await;
}
