//! What is left of an object that was removed without its finalizer.

use std::time::{Duration, Instant};

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use perfval_api::Phase;
use perfval_e2e::{Gpus, Lab, OutOfCluster, Validation, eventually, leftovers, quick};
use serde_json::json;

use crate::ready;

const NAME: &str = "vanished";
const CONTROLLERS: &str = "kube-controller-manager";
/// Younger objects may be ahead of what the operator knows, and it looks a minute after its start: together, and some.
const OLD: Duration = Duration::from_secs(70);
const LIMIT: Duration = Duration::from_mins(4);

/// A run in the middle of its trial, whose object vanishes while no operator looks and nobody collects garbage.
async fn vanish(lab: &Lab, namespace: &str, operator: OutOfCluster) {
    let mut manifest = quick(NAME, namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(20_000);
    manifest["spec"]["timeouts"]["benchmark"] = json!("30m");
    let run = Validation::create(lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    run.until("the trial has its Job", |status| {
        status.state.trials.first().is_some_and(|trial| trial.job_uid.is_some())
    })
    .await;
    operator.kill().await;
    lab.run(&["fault", "stop", CONTROLLERS]).await;
    let named = ["perfvalidation", NAME, "-n", namespace];
    lab.kubectl(&[&["delete", "--wait=false"], &named[..]].concat()).await;
    let by_force = [
        "patch",
        "--type=merge",
        "--patch",
        r#"{"metadata":{"finalizers":null}}"#,
    ];
    lab.kubectl(&[&by_force, &named[..]].concat()).await;
    assert!(run.get().await.is_err(), "it is gone");
}

/// Kinds that the operator says it has found orphaned.
async fn reported(lab: &Lab, namespace: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(lab.client.clone(), namespace);
    let listed = events.list(&ListParams::default()).await.expect("list events");
    let orphaned = listed
        .items
        .into_iter()
        .filter(|event| event.action.as_deref() == Some("Orphaned"));
    let mut kinds: Vec<String> = orphaned.filter_map(|event| event.regarding?.kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Those of what is left that a run itself makes: pods and claims belong to others.
async fn made(lab: &Lab, namespace: &str) -> Vec<String> {
    let mut left = leftovers(lab, namespace, NAME).await;
    left.retain(|name| !name.starts_with("pod/") && !name.starts_with("resourceclaim."));
    left
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn what_a_vanished_object_leaves_is_reported_until_the_garbage_collector_removes_it() {
    let (lab, installed) = ready().await;
    // With an operator, which removes what an earlier attempt left.
    let namespace = lab.namespace("fail-orphans").await;
    installed.scale(0).await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    let log = tempfile::NamedTempFile::new().expect("a file");
    let began = Instant::now();
    let operator = OutOfCluster::logging(log.path(), &[]);
    vanish(&lab, &namespace, operator).await;
    let before = made(&lab, &namespace).await;
    assert_eq!(before.len(), 4, "{before:?}");
    tokio::time::sleep(OLD.saturating_sub(began.elapsed())).await;

    let operator = OutOfCluster::logging(log.path(), &[]);
    let kinds = ["DynamoGraphDeployment", "Job", "ResourceClaimTemplate", "Service"];
    eventually("all are reported", LIMIT, || async {
        let found = reported(&lab, &namespace).await;
        if found == kinds { Ok(()) } else { Err(found) }
    })
    .await;
    let said = std::fs::read_to_string(log.path()).expect("the log");
    assert!(
        said.contains("which was removed without its finalizer"),
        "the log names the cause: {said}"
    );
    assert_eq!(made(&lab, &namespace).await, before, "only reported");

    lab.run(&["fault", "start", CONTROLLERS]).await;
    eventually("nothing is left", LIMIT, || async {
        let left = leftovers(&lab, &namespace, NAME).await;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
    operator.kill().await;
    installed.scale(1).await;
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn an_object_that_is_deleted_without_its_dependents_gives_its_gpus_back() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-cascade").await;
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    let mut manifest = quick("cascade", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(20_000);
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::Benchmarking).await;
    let named = ["perfvalidation", "cascade", "-n", &namespace];
    lab.kubectl(&[&["delete", "--cascade=orphan", "--wait=false"], &named[..]].concat())
        .await;
    eventually("nothing is left", LIMIT, || async {
        let mut left = leftovers(&lab, &namespace, "cascade").await;
        if run.get().await.is_ok() {
            left.push("the object".to_owned());
        }
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}
