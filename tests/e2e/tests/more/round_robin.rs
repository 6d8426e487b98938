//! The worker of a slow GPU stalls if the router does not regard load. `e2e/plugin.rs` has a slow GPU with least-loaded routing.

use perfval_api::{TrialOutcome, Verdict};
use perfval_e2e::{Gpus, Validation, quick};
use serde_json::json;

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn one_slow_gpu_under_round_robin_fails_and_is_named() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-slow").await;
    let first = Gpus::count(&lab).await.first;
    lab.run(&["fault", "slow-gpu", first.trim_start_matches("gpu-"), "0.2"])
        .await;
    let mut manifest = quick("slow", &namespace);
    manifest["spec"]["placement"]["maxGPUs"] = json!(3);
    manifest["spec"]["workload"]["dynamo"]["routerMode"] = json!("RoundRobin");
    manifest["spec"]["gates"] = json!([{"name": "latency", "metric": "RequestLatency", "statistic": "P99", "operator": "<=", "threshold": "2000"}]);
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Failed).await;

    // A load generator that the slow worker holds up until its limit leaves no gates to miss (seen once).
    let reason = status.reason.as_deref();
    assert!(matches!(reason, Some("GatesMissed" | "WorkerStall")), "{reason:?}");
    assert_eq!(status.state.trials[0].outcome, Some(TrialOutcome::Miss));
    let found = &status.diagnosis;
    assert!(
        found
            .iter()
            .any(|finding| finding.cause == "WorkerStall" && finding.evidence.contains(&first)),
        "{first} is not named: {found:?}"
    );
    run.left_nothing().await;
    lab.run(&["fault", "clear"]).await;
    run.delete().await;
}
