//! Validations that the operator creates for a policy.

use perfval_testkit::api_server::{ApiServer, Fault};
use perfval_testkit::inventory::Cluster as Hardware;
use serde_json::{Value, json};

use crate::{NAMESPACE, Operator, eventually, manifest, with_hardware};

pub fn put_policy(server: &ApiServer, name: &str, change: &Value) {
    let mut spec = json!({
        "nodeSelector": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]},
        "budgets": [{"nodes": 10}],
        "validationTemplate": {"metadata": {"namespace": NAMESPACE}, "spec": manifest("unused")["spec"]},
    });
    for (field, value) in change.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    server.put(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy",
        "metadata": {"name": name}, "spec": spec,
    }));
}

/// Nodes with a validation of a policy, sorted.
pub fn validated(server: &ApiServer, policy: &str) -> Vec<String> {
    let children = server.objects("perfvalidations").into_iter();
    let mut nodes: Vec<String> = children
        .filter(|child| child["metadata"]["labels"]["perfvalidation.dev/policy"] == policy)
        .map(|child| {
            child["spec"]["placement"]["nodeSelector"]["kubernetes.io/hostname"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    nodes.sort();
    nodes
}

pub fn policy(server: &ApiServer, name: &str) -> Value {
    server.get("perfvalidationpolicies", "", name).unwrap_or_default()
}

fn reason(server: &ApiServer, name: &str) -> String {
    let reason = &policy(server, name)["status"]["conditions"][0]["reason"];
    reason.as_str().unwrap_or_default().to_owned()
}

/// Waits until the policy `p` has a reason.
async fn has_reason(server: &ApiServer, wanted: &str) {
    eventually(server, wanted, |server| reason(server, "p") == wanted).await;
}

/// Waits until the policy `p` validates these nodes.
async fn validates(server: &ApiServer, nodes: &[&str]) {
    eventually(server, "validated", |server| validated(server, "p") == nodes).await;
}

fn message(server: &ApiServer, name: &str) -> String {
    let message = &policy(server, name)["status"]["conditions"][0]["message"];
    message.as_str().unwrap_or_default().to_owned()
}

/// Waits until the operator has looked at all policies once more. A policy that cannot be parsed starts a look, which exports it
/// first. The export of the second one shows that the look at the first one is over.
pub async fn looks_again(server: &ApiServer, operator: &Operator) {
    for name in ["look-1", "look-2"] {
        put_policy(server, name, &json!({"budgets": "of another version"}));
        let series = format!("perfvalidation_policy_ready{{policy=\"{name}\"");
        eventually(server, "a look begins", |_| {
            operator.metrics().text([]).contains(&series)
        })
        .await;
    }
}

fn count_creates(server: &ApiServer) -> usize {
    server.count_calls("create", "perfvalidations")
}

#[tokio::test]
async fn each_due_node_gets_one_validation_also_after_a_crash() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2"]));
    put_policy(&server, "p", &json!({}));
    // The answers to both creations are lost, so the operator does not learn that it created them.
    server.fail(Fault::lose_answer("create", "perfvalidations").times(2));
    let operator = Operator::start(&server);
    eventually(&server, "a node is validated", |server| {
        !validated(server, "p").is_empty()
    })
    .await;
    operator.end().await;
    let _operator = Operator::start(&server);
    eventually(&server, "both nodes run", |server| {
        policy(server, "p")["status"]["nodes"]["running"] == 2
    })
    .await;
    assert_eq!(validated(&server, "p"), ["n1", "n2"]);
    let owner = server.objects("perfvalidations")[0]["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["uid"], policy(&server, "p")["metadata"]["uid"]);
    let status = policy(&server, "p")["status"].clone();
    assert_eq!(status["nodes"]["selected"], 2);
    assert_eq!(status["nodes"]["neverMeasured"], 2);
    assert_eq!(
        (
            status["conditions"][0]["status"].as_str(),
            reason(&server, "p").as_str()
        ),
        (Some("True"), "Reconciled")
    );
}

#[tokio::test]
async fn a_node_of_two_policies_gets_the_validation_of_one() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2"]));
    put_policy(
        &server,
        "a",
        &json!({"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "n1"}}}),
    );
    put_policy(&server, "b", &json!({}));
    let operator = Operator::start(&server);
    eventually(&server, "both policies have a node", |server| {
        reason(server, "a") == "Reconciled" && reason(server, "b") == "Overlapping"
    })
    .await;
    eventually(&server, "each policy validates", |server| {
        !validated(server, "a").is_empty() && !validated(server, "b").is_empty()
    })
    .await;
    looks_again(&server, &operator).await;
    assert_eq!(
        (validated(&server, "a"), validated(&server, "b")),
        (vec!["n1".to_owned()], vec!["n2".to_owned()])
    );
}

#[tokio::test]
async fn a_suspended_policy_creates_nothing_until_it_continues() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    put_policy(&server, "p", &json!({"suspend": true}));
    let _operator = Operator::start(&server);
    has_reason(&server, "Suspended").await;
    assert!(server.objects("perfvalidations").is_empty());
    server.edit("perfvalidationpolicies", "", "p", |policy| {
        policy["spec"]["suspend"] = json!(false);
    });
    validates(&server, &["n1"]).await;
}

#[tokio::test]
async fn a_refused_list_of_policies_is_counted_and_repeated() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    put_policy(&server, "p", &json!({}));
    server.fail(Fault::refuse("list", "perfvalidationpolicies", 403).times(1));
    let operator = Operator::start(&server);
    validates(&server, &["n1"]).await;
    let text = operator.metrics().text([]);
    let counted = "perfvalidation_watch_errors_total{kind=\"PerfValidationPolicy\"} 1";
    assert!(text.contains(counted), "{text}");
}

#[tokio::test]
async fn a_policy_that_cannot_be_parsed_is_reported_and_holds_up_no_other() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    put_policy(&server, "newer", &json!({"budgets": "of another version"}));
    put_policy(&server, "p", &json!({}));
    let operator = Operator::start(&server);
    validates(&server, &["n1"]).await;
    let text = operator.metrics().text([]);
    for series in [
        "perfvalidation_policy_ready{policy=\"newer\",reason=\"SpecUnreadable\"} 0",
        "perfvalidation_reconcile_errors_total{reason=\"SpecUnreadable\"} 1",
    ] {
        assert!(text.contains(series), "{series} is missing in {text}");
    }
}

#[tokio::test]
async fn a_policy_that_cannot_be_parsed_any_more_shows_it_and_its_node_has_one_validation() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2"]));
    let of_n1 = json!({"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "n1"}}});
    put_policy(&server, "older", &of_n1);
    let operator = Operator::start(&server);
    eventually(&server, "the older policy runs", |server| {
        policy(server, "older")["status"]["nodes"]["running"] == 1
    })
    .await;
    let write_budgets = |budgets: Value| {
        server.edit("perfvalidationpolicies", "", "older", |policy| {
            policy["spec"]["budgets"] = budgets;
        });
    };
    write_budgets(json!("hf_abcdefghijklmnop"));
    put_policy(&server, "p", &json!({}));
    eventually(&server, "the status shows it", |server| {
        reason(server, "older") == "SpecUnreadable"
    })
    .await;
    let status = policy(&server, "older")["status"].clone();
    let ready = &status["conditions"][0];
    assert_eq!(
        (&ready["type"], &ready["status"], &status["observedGeneration"]),
        (&json!("Ready"), &json!("False"), &json!(2))
    );
    let message = message(&server, "older");
    assert!(
        message.contains("cannot parse") && !message.contains("hf_abc"),
        "{message}"
    );
    assert_eq!(status["nodes"]["running"], 1, "the other fields stay");
    assert_eq!(status["conditions"][1]["type"], "ComparisonReliable");
    validates(&server, &["n2"]).await;
    let text = operator.metrics().text([]);
    let reported = "perfvalidation_reconcile_errors_total{reason=\"SpecUnreadable\"} 1";
    assert!(text.contains(reported), "{text}");

    write_budgets(json!([{"nodes": 10}]));
    eventually(&server, "the older policy is followed again", |server| {
        reason(server, "older") == "Reconciled" && reason(server, "p") == "Overlapping"
    })
    .await;
    assert_eq!(
        (validated(&server, "older"), validated(&server, "p")),
        (vec!["n1".to_owned()], vec!["n2".to_owned()])
    );
}

#[tokio::test]
async fn a_policy_waits_until_runs_are_allowed_in_its_namespace() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    put_policy(&server, "p", &json!({}));
    server.fail(Fault::refuse("create", "dynamographdeployments", 403));
    let _operator = Operator::start(&server);
    has_reason(&server, "Refused").await;
    let message = message(&server, "p");
    assert!(message.contains("kubectl perfval doctor -n"), "{message}");
    assert!(server.objects("perfvalidations").is_empty());
}

#[tokio::test]
async fn a_refusal_is_reported_with_the_words_of_the_server_and_does_not_loop() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2"]));
    let mut template = json!({"metadata": {"namespace": NAMESPACE}, "spec": manifest("unused")["spec"]});
    template["spec"]["workload"]["dynamo"]["env"] = json!([{"name": "LICENSE_KEY", "value": "opensesame"}]);
    put_policy(&server, "p", &json!({"validationTemplate": template}));
    let refused = Fault::refuse("create", "perfvalidations", 403);
    server.fail(refused.saying("exceeded quota: runs, by opensesame"));
    let operator = Operator::start(&server);
    has_reason(&server, "Refused").await;
    let message = message(&server, "p");
    assert!(message.contains("exceeded quota: runs, by [hidden]"), "{message}");
    looks_again(&server, &operator).await;
    let creates = count_creates(&server);
    assert!(creates <= 2, "{creates} creations: one a pause, and not one a look");
}

#[tokio::test]
async fn a_webhook_that_stays_away_is_reported_and_asked_less_often() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    put_policy(&server, "p", &json!({}));
    server.fail(Fault::refuse("create", "perfvalidations", 500).saying("failed calling webhook"));
    let operator = Operator::start(&server);
    has_reason(&server, "Refused").await;
    let message = message(&server, "p");
    assert!(message.contains("failed calling webhook"), "{message}");
    looks_again(&server, &operator).await;
    let creates = count_creates(&server);
    assert!(
        (3..=4).contains(&creates),
        "{creates} creations: one a pause, and not one a look"
    );
}

/// The clock is paused: it jumps to the next timer whenever every task waits.
#[tokio::test(start_paused = true)]
async fn a_time_out_of_a_look_is_counted_although_there_is_no_run() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    server.fail(Fault::hang("list", "nodes"));
    put_policy(&server, "p", &json!({}));
    let operator = Operator::start(&server);
    eventually(&server, "it is counted", |_| {
        !operator
            .metrics()
            .text([])
            .contains("\nperfvalidation_api_timeouts_total 0\n")
    })
    .await;
}

#[tokio::test]
async fn a_template_that_is_too_large_creates_nothing() {
    let server = with_hardware(&Hardware::of_nodes(&["n1"]));
    let mut template = json!({"metadata": {"namespace": NAMESPACE}, "spec": manifest("unused")["spec"]});
    template["spec"]["model"]["name"] = "m".repeat(17 << 10).into();
    put_policy(&server, "p", &json!({"validationTemplate": template}));
    let _operator = Operator::start(&server);
    has_reason(&server, "Refused").await;
    let message = message(&server, "p");
    let why = "No validation can be created: spec.validationTemplate is too large: the spec has ";
    assert!(message.starts_with(why), "{message}");
    assert_eq!(count_creates(&server), 0);
}

/// A quota refuses all nodes alike, so the order stays.
#[tokio::test]
async fn a_node_whose_validation_is_refused_makes_way_for_the_others() {
    for (code, message, next) in [
        (422, "node n1 is not allowed", "n2"),
        (403, "exceeded quota: runs", "n1"),
    ] {
        let server = with_hardware(&Hardware::of_nodes(&["n1", "n2"]));
        put_policy(&server, "p", &json!({"budgets": [{"nodes": 1}]}));
        let refused = Fault::refuse("create", "perfvalidations", code).saying(message);
        server.fail(refused.times(1));
        let operator = Operator::start(&server);
        has_reason(&server, "Refused").await;
        // A new spec ends the pause.
        server.edit("perfvalidationpolicies", "", "p", |policy| {
            policy["spec"]["freshness"] = json!({"maxAge": "100h"});
        });
        validates(&server, &[next]).await;
        operator.end().await;
    }
}

#[tokio::test]
async fn a_taken_name_holds_up_only_its_node() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2"]));
    put_policy(&server, "p", &json!({}));
    let operator = Operator::start(&server);
    validates(&server, &["n1", "n2"]).await;
    operator.end().await;
    for child in server.objects("perfvalidations") {
        let name = child["metadata"]["name"].as_str().expect("a name");
        server.edit("perfvalidations", NAMESPACE, name, |child| {
            child["metadata"]["finalizers"] = json!([]);
        });
        server.delete("perfvalidations", NAMESPACE, name);
        if name.contains("n1") {
            let metadata = json!({"name": name, "namespace": NAMESPACE});
            let spec = json!({"suspend": true, "model": child["spec"]["model"], "workload": child["spec"]["workload"]});
            server.put(json!({
                "apiVersion": child["apiVersion"], "kind": child["kind"], "metadata": metadata, "spec": spec,
            }));
        }
    }
    let _operator = Operator::start(&server);
    validates(&server, &["n2"]).await;
}

#[tokio::test]
async fn a_validation_that_cannot_be_parsed_holds_up_only_its_node() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2"]));
    put_policy(&server, "p", &json!({}));
    let operator = Operator::start(&server);
    validates(&server, &["n1", "n2"]).await;
    operator.end().await;
    let mut unreadable = String::new();
    for child in server.objects("perfvalidations") {
        let name = child["metadata"]["name"].as_str().expect("a name");
        let is_first = name.contains("n1");
        server.edit("perfvalidations", NAMESPACE, name, |child| {
            child["metadata"]["finalizers"] = json!([]);
            if is_first {
                child["spec"]["model"] = json!(7);
            }
        });
        if is_first {
            name.clone_into(&mut unreadable);
        } else {
            server.delete("perfvalidations", NAMESPACE, name);
        }
    }
    let _operator = Operator::start(&server);
    validates(&server, &["n1", "n2"]).await;
    has_reason(&server, "Refused").await;
    let message = message(&server, "p");
    assert!(
        message.contains(&unreadable) && message.contains("cannot be parsed"),
        "{message}"
    );
}

/// Measurement of a node with eight GPUs by the policy `p`.
pub fn put_measurement(server: &ApiServer, node: &str, microseconds: i64) {
    let gpus = (0..8).map(|gpu| json!({"uuid": format!("GPU-{node}-{gpu}"), "tokenMicroseconds": microseconds}));
    server.put(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "NodePerformance", "metadata": {"name": node}, "spec": {},
        "status": {
            // It never becomes stale.
            "verdict": "Passed", "measuredAt": "2099-01-01T00:00:00Z", "environment": "0123456789ab", "product": "NVIDIA H100",
            "validation": {"namespace": NAMESPACE, "name": "earlier", "uid": "u", "run": 1, "policy": "p"},
            "gpus": gpus.collect::<Vec<_>>(),
        },
    }));
}

#[tokio::test]
async fn a_slow_node_is_suspected_and_measured_again() {
    let server = with_hardware(&Hardware::of_nodes(&["n1", "n2", "n3", "n4"]));
    for (node, microseconds) in [("n1", 8000), ("n2", 8010), ("n3", 12_000), ("n4", 7990)] {
        put_measurement(&server, node, microseconds);
    }
    put_policy(&server, "p", &json!({}));
    let _operator = Operator::start(&server);
    validates(&server, &["n3"]).await;
    let child = server.objects("perfvalidations").remove(0);
    assert_eq!(
        child["metadata"]["annotations"]["perfvalidation.dev/due-reason"],
        "Confirmation"
    );
    eventually(&server, "it is shown as suspected", |server| {
        let outlier = &policy(server, "p")["status"]["outliers"][0];
        outlier["node"] == "n3" && outlier["confidence"] == "Suspected"
    })
    .await;
}
