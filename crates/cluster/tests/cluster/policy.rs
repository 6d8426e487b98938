//! Writes for a policy.

use perfval_api::PerfValidation;
use perfval_api::fleet::{PerfValidationPolicy, PerfValidationPolicyStatus};
use perfval_cluster::{Class, Creation};
use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

fn spec() -> Value {
    json!({"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}})
}

pub fn policy() -> PerfValidationPolicy {
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy",
        "metadata": {"name": "h100"},
        "spec": {
            "nodeSelector": {}, "budgets": [{"nodes": 1}],
            "validationTemplate": {"metadata": {"namespace": NAMESPACE}, "spec": spec()},
        },
    }))
    .expect("a policy")
}

pub fn child() -> PerfValidation {
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": "h100-n1-1", "namespace": NAMESPACE, "ownerReferences": [{
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "name": "h100", "uid": "policy-uid",
            "controller": true,
        }]},
        "spec": spec(),
    }))
    .expect("a validation")
}

#[tokio::test]
async fn a_validation_that_exists_is_not_created_twice() {
    let world = World::new();
    let created = world.cluster.create_validation(&child()).await.expect("created");
    assert!(matches!(&created, Creation::Done(created) if created.metadata.uid.is_some()));
    let again = world.cluster.create_validation(&child()).await.expect("no failure");
    assert_eq!(again, created);
}

#[tokio::test]
async fn a_validation_that_goes_away_in_between_is_a_conflict() {
    let world = World::new();
    world.cluster.create_validation(&child()).await.expect("created");
    world.server.fail(Fault::refuse("get", "perfvalidations", 404));
    let failure = world.cluster.create_validation(&child()).await.expect_err("gone");
    assert_eq!(failure.class(), Class::Conflict, "{failure}");
}

#[tokio::test]
async fn the_name_of_a_validation_may_be_taken() {
    let world = World::new();
    let mut theirs = child();
    theirs.metadata.owner_references = None;
    world.cluster.create_validation(&theirs).await.expect("created");
    let outcome = world.cluster.create_validation(&child()).await;
    assert_eq!(outcome.expect("no failure"), Creation::Taken);
}

#[tokio::test]
async fn a_validation_that_exists_may_be_of_another_version() {
    let world = World::new();
    world.cluster.create_validation(&child()).await.expect("created");
    let edit = |change: fn(&mut Value)| world.server.edit("perfvalidations", NAMESPACE, "h100-n1-1", change);
    edit(|object| object["spec"]["model"] = json!(7));
    let outcome = world.cluster.create_validation(&child()).await;
    assert_eq!(outcome.expect("no failure"), Creation::Unreadable);
    edit(|object| object["metadata"]["ownerReferences"] = json!([]));
    let outcome = world.cluster.create_validation(&child()).await;
    assert_eq!(outcome.expect("no failure"), Creation::Taken);
}

#[tokio::test]
async fn no_validation_is_created_where_its_run_would_only_wait() {
    let world = World::new();
    world.fail(Fault::refuse("create", "dynamographdeployments", 403));
    let outcome = world.cluster.create_validation(&child()).await;
    assert_eq!(outcome.expect("no failure"), Creation::NotAllowed);
    assert_eq!(world.server.get("perfvalidations", NAMESPACE, "h100-n1-1"), None);
    world.fail(Fault::refuse("create", "selfsubjectaccessreviews", 500));
    let outcome = world.cluster.create_validation(&child()).await;
    outcome.expect_err("it is not known");
}

#[tokio::test]
async fn a_refused_validation_is_a_failure() {
    let world = World::new();
    world.server.fail(Fault::refuse("create", "perfvalidations", 403));
    let failure = world.cluster.create_validation(&child()).await.expect_err("refused");
    assert!(!failure.is_namespace_missing());
}

#[tokio::test]
async fn a_validation_that_a_changing_quota_refuses_is_tried_again() {
    let world = World::new();
    world.server.fail(Fault::refuse("create", "perfvalidations", 409));
    let failure = world.cluster.create_validation(&child()).await.expect_err("refused");
    assert_eq!(failure.class(), Class::Conflict, "{failure}");
}

#[tokio::test]
async fn only_the_validation_with_this_uid_is_deleted() {
    let world = World::new();
    let created = world.cluster.create_validation(&child()).await.expect("created");
    let Creation::Done(created) = created else {
        panic!("the name is free")
    };
    let (uid, version) = (created.metadata.uid.expect("a uid"), created.metadata.resource_version);
    let exists = || world.server.get("perfvalidations", NAMESPACE, "h100-n1-1").is_some();
    let delete = async |uid: &str, version: Option<String>| {
        let deleted = world.cluster.delete_validation((NAMESPACE, "h100-n1-1"), uid, version);
        deleted.await.expect("no failure")
    };
    assert!(!delete("another", None).await);
    // It began to run after the decision.
    let begun = world.server.edit("perfvalidations", NAMESPACE, "h100-n1-1", |object| {
        object["status"] = serde_json::json!({"phase": "Deploying"});
    });
    assert!(!delete(&uid, version).await);
    assert!(exists());
    let version = begun["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    assert!(delete(&uid, version).await);
    assert!(!exists());
    assert!(!delete(&uid, None).await);
}

#[tokio::test]
async fn only_the_status_of_a_policy_is_written_and_a_policy_that_is_gone_is_no_failure() {
    let world = World::new();
    let status = PerfValidationPolicyStatus {
        observed_generation: 1,
        ..PerfValidationPolicyStatus::default()
    };
    let put = world.server.put(serde_json::to_value(policy()).expect("JSON"));
    let policy: PerfValidationPolicy = serde_json::from_value(put).expect("a policy");
    world
        .cluster
        .write_policy_status(&policy, &status)
        .await
        .expect("written");
    let written = world.server.get("perfvalidationpolicies", "", "h100").expect("there");
    assert_eq!(written["status"], json!({"observedGeneration": 1}));
    world.server.delete("perfvalidationpolicies", "", "h100");
    let again = world.cluster.write_policy_status(&policy, &status).await;
    again.expect("no failure");
}
