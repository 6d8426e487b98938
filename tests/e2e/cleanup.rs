//! Nothing is removed when the user asks to keep it, and nothing stays otherwise.

use perfval_api::{Phase, Verdict};
use perfval_e2e::{Gpus, Validation, leftovers, quick};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn everything_is_kept_while_the_annotation_is_set() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-keep").await;
    let mut manifest = quick("keep", &namespace);
    manifest["metadata"]["annotations"] = json!({"perfvalidation.dev/no-cleanup": "true"});
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Passed).await;

    let cleaned = status
        .conditions
        .iter()
        .find(|c| c.type_ == "CleanedUp")
        .expect("CleanedUp");
    assert_eq!(
        (cleaned.status.as_str(), cleaned.reason.as_str()),
        ("False", "NoCleanupRequested")
    );
    let kept = leftovers(&lab, &namespace, "keep").await;
    assert!(
        kept.iter().any(|name| name.contains("dynamographdeployment")),
        "{kept:?}"
    );
    assert_eq!(Gpus::count(&lab).await.free(), 6);

    run.annotate("perfvalidation.dev/no-cleanup", None).await;
    let status = run
        .until("cleaned up", |status| {
            status.phase == Some(Phase::Completed)
                && status
                    .conditions
                    .iter()
                    .any(|c| c.type_ == "CleanedUp" && c.status == "True")
        })
        .await;
    assert_eq!(
        status.verdict,
        Some(Verdict::Passed),
        "a cleanup does not change the verdict"
    );
    run.left_nothing().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
    run.delete().await;
}

#[tokio::test]
async fn an_object_deleted_while_benchmarking_leaves_nothing() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-delete").await;
    let mut manifest = quick("deleted", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(5000);
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    run.delete().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}
