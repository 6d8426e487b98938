//! Without Dynamo a run ends as the user asked, and goes on by itself when Dynamo comes.

use std::time::Duration;

use perfval_api::{Phase, Verdict};
use perfval_e2e::{Lab, Validation, eventually, quick};
use serde_json::json;

use crate::ready;

const CRD: &str = "crd/dynamographdeployments.nvidia.com";

/// Takes the CRD away; its manifest, to bring it back.
async fn remove_crd(lab: &Lab) -> String {
    let text = lab.kubectl(&["get", CRD, "-o", "json"]).await;
    let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("a CRD");
    for server_side in [
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "generation",
        "managedFields",
    ] {
        manifest["metadata"]
            .as_object_mut()
            .expect("metadata")
            .remove(server_side);
    }
    manifest.as_object_mut().expect("a CRD").remove("status");
    lab.kubectl(&["delete", CRD, "--timeout=60s"]).await;
    manifest.to_string()
}

async fn restore_crd(lab: &Lab, manifest: &str) {
    let file = std::env::temp_dir().join("perfval-e2e-dgd-crd.json");
    std::fs::write(&file, manifest).expect("write the CRD");
    lab.kubectl(&["create", "-f", &file.to_string_lossy()]).await;
    // kubectl's own wait fails on a CRD that has no condition yet.
    eventually("the CRD is served", Duration::from_mins(1), || async {
        lab.try_kubectl(&["get", "dynamographdeployments", "-A"]).await
    })
    .await;
    std::fs::remove_file(&file).expect("remove the file");
}

#[tokio::test]
async fn a_missing_dynamo_fails_skips_or_is_waited_for() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-no-dynamo").await;
    let crd = remove_crd(&lab).await;
    let with = |name: &str, on_missing: &str, limit: &str| {
        let mut manifest = quick(name, &namespace);
        manifest["spec"]["onMissingDynamo"] = json!(on_missing);
        manifest["spec"]["timeouts"]["prerequisites"] = json!(limit);
        manifest
    };
    let fails = Validation::create(&lab, with("fails", "Fail", "3s")).await;
    let skips = Validation::create(&lab, with("skips", "Skip", "3s")).await;
    let waits = Validation::create(&lab, with("waits", "Fail", "5m")).await;
    assert_eq!(
        fails.ends(Verdict::Error).await.reason.as_deref(),
        Some("DynamoNotInstalled")
    );
    assert_eq!(
        skips.ends(Verdict::Skipped).await.reason.as_deref(),
        Some("DynamoNotInstalled")
    );
    fails.delete().await;
    skips.delete().await;
    waits
        .until("waiting for Dynamo", |status| {
            status.phase == Some(Phase::Pending) && status.reason.as_deref() == Some("DynamoNotInstalled")
        })
        .await;

    // The operator is not restarted: it has to notice the new API by itself.
    restore_crd(&lab, &crd).await;
    waits.ends(Verdict::Passed).await;
    waits.delete().await;
}
