//! Baselines that the operator learns for the environments of policies.

use perfval_testkit::api_server::ApiServer;
use perfval_testkit::inventory::Cluster as Hardware;
use serde_json::{Value, json};

use crate::policy::{looks_again, policy, put_measurement, put_policy};
use crate::{Operator, count_writes, eventually, with_hardware};

const NAME: &str = "nvidia-h100-0123456789ab";

fn baseline(server: &ApiServer, name: &str) -> Value {
    server.get("perfbaselines", "", name).unwrap_or_default()
}

/// Reason of a condition.
fn reason(server: &ApiServer, name: &str, type_: &str) -> String {
    let baseline = baseline(server, name);
    let conditions = baseline["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |found| {
        found["reason"].as_str().unwrap_or_default().to_owned()
    })
}

/// A baseline that a person provides for an environment.
fn put_contract(server: &ApiServer, environment: &str, approved: Option<i64>) {
    put_provided(server, ("contract", environment), approved);
}

fn put_provided(server: &ApiServer, (name, environment): (&str, &str), approved: Option<i64>) {
    server.put(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline", "metadata": {"name": name},
        "spec": {
            "environment": {"digest": environment}, "source": "Provided", "approvedRevision": approved,
            "metrics": [{"name": "DecodeSpeed", "centre": "125"}],
        },
    }));
}

/// Waits until a revision of a baseline waits for its approval.
async fn waits_for_approval(server: &ApiServer, name: &str) {
    eventually(server, "a revision waits", |server| {
        reason(server, name, "Approved") == "WaitingForApproval"
    })
    .await;
}

fn approve(server: &ApiServer, name: &str, revision: i64) {
    server.edit("perfbaselines", "", name, |baseline| {
        baseline["spec"]["approvedRevision"] = json!(revision);
    });
}

#[tokio::test]
async fn an_environment_of_a_policy_gets_a_baseline_that_a_person_approves() {
    let nodes = ["n1", "n2", "n3"];
    let server = with_hardware(&Hardware::of_nodes(&nodes));
    for (node, microseconds) in nodes.into_iter().zip([8000, 8010, 7990]) {
        put_measurement(&server, node, microseconds);
    }
    put_policy(&server, "p", &json!({}));
    let operator = Operator::start(&server);
    waits_for_approval(&server, NAME).await;
    let waiting = baseline(&server, NAME);
    assert_eq!(waiting["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(waiting["spec"]["source"], "Learned");
    assert_eq!(waiting["spec"]["approvedRevision"], Value::Null);
    assert_eq!(waiting["status"]["newest"]["nodes"], 3);
    assert_eq!(waiting["status"]["approved"], Value::Null);
    approve(&server, NAME, 1);
    // A person does not wait ten minutes for the answer.
    eventually(&server, "the approved revision is in use", |server| {
        reason(server, NAME, "Approved") == "Approved" && reason(server, NAME, "Shifted") == "AsApproved"
    })
    .await;
    let writes = count_writes(&server, "perfbaselines");
    assert_eq!(writes, 3, "one create and two statuses");
    looks_again(&server, &operator).await;
    assert_eq!(count_writes(&server, "perfbaselines"), writes, "nothing has changed");
}

/// Otherwise its command to approve it would stand there for ten minutes more.
#[tokio::test]
async fn a_baseline_shows_at_once_that_another_one_counts() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2", "n3"]));
    for node in ["n1", "n2", "n3"] {
        put_measurement(&server, node, 8000);
    }
    put_policy(&server, "p", &json!({}));
    let _operator = Operator::start(&server);
    waits_for_approval(&server, NAME).await;
    put_contract(&server, "0123456789ab", Some(1));
    eventually(&server, "the provided one is used", |server| {
        reason(server, "contract", "Approved") == "Approved" && reason(server, NAME, "Approved") == "Duplicate"
    })
    .await;
}

#[tokio::test]
async fn nodes_of_no_policy_get_no_baseline_and_a_provided_one_is_read_all_the_same() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2", "n3"]));
    for node in ["n1", "n2", "n3"] {
        put_measurement(&server, node, 8000);
    }
    put_contract(&server, "ba9876543210", Some(1));
    let _operator = Operator::start(&server);
    eventually(&server, "it is of another environment", |server| {
        reason(server, "contract", "Shifted") == "OtherEnvironment"
    })
    .await;
    assert_eq!(server.objects("perfbaselines").len(), 1);
}

#[tokio::test]
async fn a_baseline_that_cannot_be_parsed_holds_up_no_other_and_none_is_learned_in_its_place() {
    let nodes = ["n1", "n2", "n3"];
    let server = with_hardware(&Hardware::of_nodes(&nodes));
    for node in nodes {
        put_measurement(&server, node, 8000);
    }
    put_policy(&server, "p", &json!({}));
    put_contract(&server, "0123456789ab", None);
    server.edit("perfbaselines", "", "contract", |baseline| {
        baseline["spec"]["source"] = json!("SourceOfAnotherVersion");
    });
    put_provided(&server, ("other", "ba9876543210"), None);
    let _operator = Operator::start(&server);
    eventually(&server, "the nodes are known", |server| {
        policy(server, "p")["status"]["nodes"]["selected"] == 3
    })
    .await;
    waits_for_approval(&server, "other").await;
    approve(&server, "other", 1);
    eventually(&server, "the other one is approved", |server| {
        reason(server, "other", "Approved") == "Approved"
    })
    .await;
    assert_eq!(server.objects("perfbaselines").len(), 2);
    server.delete("perfbaselines", "", "contract");
    eventually(&server, "one is learned", |server| {
        server.get("perfbaselines", "", NAME).is_some()
    })
    .await;
}

#[tokio::test]
async fn one_node_is_suspected_beside_an_approved_baseline() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    put_measurement(&server, "n1", 12_000);
    put_contract(&server, "0123456789ab", None);
    put_policy(&server, "p", &json!({"suspend": true}));
    let _operator = Operator::start(&server);
    waits_for_approval(&server, "contract").await;
    assert_eq!(policy(&server, "p")["status"]["outliers"], Value::Null);
    approve(&server, "contract", 1);
    eventually(&server, "the node is suspected", |server| {
        let outlier = &policy(server, "p")["status"]["outliers"][0];
        outlier["node"] == "n1" && outlier["reason"] == "SlowerThanPeers"
    })
    .await;
}
