//! Nothing is removed when the user asks to keep it, and nothing stays otherwise.

use perfval_api::{Phase, condition};
use perfval_e2e::{Gpus, Lab, Validation, leftovers, quick};
use serde_json::json;

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
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

/// A run that ended with the annotation `no-cleanup`: everything is there until the annotation is removed.
pub async fn kept_while_the_annotation_is_set(lab: &Lab, run: &Validation) {
    let status = run.status().await.expect("a status");
    let (verdict, held) = (status.verdict, status.placement.as_ref().expect("a placement").gpus);
    let cleaned = condition::find(&status, condition::CLEANED_UP).expect("CleanedUp");
    assert_eq!(
        (cleaned.status.as_str(), cleaned.reason.as_str()),
        ("False", "NoCleanupRequested")
    );
    let kept = leftovers(lab, &run.namespace, &run.name).await;
    assert!(
        kept.iter().any(|name| name.contains("dynamographdeployment")),
        "{kept:?}"
    );
    let gpus = Gpus::count(lab).await;
    assert_eq!(i64::try_from(gpus.held.len()), Ok(held), "{gpus:?}");

    run.annotate("perfvalidation.dev/no-cleanup", None).await;
    let status = run
        .until("cleaned up", |status| {
            status.phase == Some(Phase::Completed) && condition::is_true(status, condition::CLEANED_UP)
        })
        .await;
    assert_eq!(status.verdict, verdict, "a cleanup does not change the verdict");
    run.left_nothing().await;
    assert_eq!(Gpus::count(lab).await.free(), 8);
}
