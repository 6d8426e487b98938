//! How Dynamo's API is served: one version of it, only one that is newer than we speak, a conversion that does not answer.

use perfval_api::{PerfValidationStatus, Phase, Verdict};
use perfval_e2e::dynamo::{serve, until_served};
use perfval_e2e::{Lab, Validation, quick};
use serde_json::{Value, json};

use crate::ready;

const CRD: &str = "dynamographdeployments.nvidia.com";

/// The definitions anew, at these versions.
async fn install(lab: &Lab, versions: &str) {
    lab.kubectl(&["delete", "crd", CRD, "--ignore-not-found", "--timeout=180s"])
        .await;
    serve(lab, versions).await;
}

/// Runs a test that changes how the API is served.
async fn with_another_api(lab: &Lab, test: impl Future<Output = ()> + Send + 'static) {
    // A task of its own: the lab is put right again whatever comes out.
    let outcome = tokio::spawn(test).await;
    // A deployment that cannot be converted cannot be deleted, and keeps its definition. A test may have deleted that.
    let converts = r#"[{"op": "add", "path": "/spec/conversion", "value": {"strategy": "None"}}]"#;
    let _ = lab
        .try_kubectl(&["patch", "crd", CRD, "--type=json", "--patch", converts])
        .await;
    install(lab, "both").await;
    outcome.expect("the run is as it should be");
}

async fn patch(lab: &Lab, change: Value) {
    // Three schemas are longer than one argument may be.
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), change.to_string()).expect("write the patch");
    let path = file.path().to_string_lossy().into_owned();
    lab.kubectl(&["patch", "crd", CRD, "--type=json", "--patch-file", &path])
        .await;
}

fn message(status: &PerfValidationStatus) -> &str {
    status.message.as_deref().unwrap_or_default()
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn only_the_new_version_is_enough() {
    let (lab, _operator) = ready().await;
    with_another_api(&lab, Box::pin(passes_on_the_new_version(lab.clone()))).await;
}

async fn passes_on_the_new_version(lab: Lab) {
    install(&lab, "v1beta1").await;
    let namespace = lab.namespace("served-beta").await;
    let run = Validation::create(&lab, quick("beta", &namespace)).await;
    let status = run.ends(Verdict::Passed).await;
    let version = status.state.deployment.map(|deployment| deployment.api_version);
    assert_eq!(version.as_deref(), Some("nvidia.com/v1beta1"));
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_version_newer_than_we_speak_is_not_taken_for_a_missing_dynamo() {
    let (lab, _operator) = ready().await;
    with_another_api(&lab, Box::pin(waits_for_a_known_version(lab.clone()))).await;
}

async fn waits_for_a_known_version(lab: Lab) {
    install(&lab, "both").await;
    let found = lab.kubectl(&["get", "crd", CRD, "-o", "json"]).await;
    let definition: Value = serde_json::from_str(&found).expect("a definition");
    let mut versions = definition["spec"]["versions"].as_array().expect("versions").clone();
    let mut newer = versions[0].clone();
    newer["name"] = json!("v1");
    for version in &mut versions {
        (version["served"], version["storage"]) = (json!(false), json!(false));
    }
    versions.push(newer);
    patch(
        &lab,
        json!([{"op": "replace", "path": "/spec/versions", "value": versions}]),
    )
    .await;
    until_served(&lab, "v1").await;
    let namespace = lab.namespace("served-newer").await;
    let run = Validation::create(&lab, quick("newer", &namespace)).await;
    let status = run
        .until("it says what it found", |status| {
            status.reason.as_deref() == Some("CallFailed")
        })
        .await;
    assert!(
        message(&status).contains("is not served as v1beta1 or v1alpha1"),
        "{}",
        message(&status)
    );
    assert_eq!(status.phase, Some(Phase::Pending));
    // The right version comes back, and the run goes on by itself.
    install(&lab, "both").await;
    run.ends(Verdict::Passed).await;
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_conversion_that_does_not_answer_is_unknown_and_waited_for() {
    let (lab, _operator) = ready().await;
    with_another_api(&lab, Box::pin(waits_for_an_answer(lab.clone()))).await;
}

async fn waits_for_an_answer(lab: Lab) {
    install(&lab, "both").await;
    let service = json!({"namespace": "kube-system", "name": "no-such-webhook", "path": "/convert"});
    let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": service}}});
    let stores = |beta: bool| {
        json!([{"op": "replace", "path": "/spec/versions/0/storage", "value": beta},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": !beta},
            {"op": "add", "path": "/spec/conversion", "value": if beta { json!({"strategy": "None"}) } else { webhook.clone() }}])
    };
    patch(&lab, stores(false)).await;
    let namespace = lab.namespace("served-conversion").await;
    let run = Validation::create(&lab, quick("conversion", &namespace)).await;
    let status = run
        .until("it says what does not answer", |status| {
            message(status).contains("conversion webhook")
        })
        .await;
    assert_ne!(status.reason.as_deref(), Some("DynamoNotInstalled"));
    assert_eq!((status.phase, status.verdict), (Some(Phase::Deploying), None));
    patch(&lab, stores(true)).await;
    run.ends(Verdict::Passed).await;
    run.delete().await;
}
