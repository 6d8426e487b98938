//! Objects that this program cannot parse hide no others.

use serde_json::json;

use super::answer::Answer;
use super::desk::{Desk, stored};
use super::nodes::{fleet, measured, node, policy};

/// No verdict. Somebody typed a token into it.
const VERDICT: &str = "Splendid hf_abcdefghijklmnop";

fn put(desk: &Desk, name: &str) {
    let mut object = stored("passed");
    object["metadata"]["name"] = name.into();
    object["metadata"]["uid"] = name.into();
    object["status"]["verdict"] = VERDICT.into();
    desk.server.put(object);
}

/// Checks that the answer names the object and the reason without the token, in one line, and has the exit code.
#[track_caller]
fn names(answer: &Answer, object: &str) {
    answer.exits(4, &format!("{object}: "));
    answer.notes("Splendid [hidden]");
    answer.notes("use the plug-in of the operator's release");
    assert!(!answer.err.contains("hf_abc"), "{}", answer.err);
    assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
}

#[tokio::test]
async fn a_list_shows_the_others_and_names_the_object() {
    let desk = Desk::with("passed");
    put(&desk, "odd");
    for (words, call) in [
        ("get", "(read PerfValidations): "),
        ("get -o wide", "(read PerfValidations): "),
        ("get -o json", "(read PerfValidations): "),
        ("get -A", "(read PerfValidations of all namespaces): "),
    ] {
        let answer = desk.types(words).await;
        names(&answer, &format!("{call}perf/odd"));
        answer.prints("run");
        assert!(!answer.out.contains("odd"), "{words}: {}", answer.out);
    }
    let elsewhere = desk.types("get --context prod").await;
    elsewhere.notes("`kubectl --context prod cluster-info`");
    let other = desk.types("get run").await;
    assert_eq!((other.code, other.err.as_str()), (0, ""));

    let desk = Desk::new();
    put(&desk, "odd");
    let answer = desk.types("get").await;
    names(&answer, "perf/odd");
    assert_eq!(answer.out, "");
}

#[tokio::test]
async fn a_command_without_a_name_is_about_the_only_object() {
    let desk = Desk::new();
    put(&desk, "odd");
    for words in ["describe", "history", "suspend"] {
        names(&desk.types(words).await, "perf/odd");
    }
    desk.server.put(stored("passed"));
    for words in ["describe", "history", "suspend"] {
        let answer = desk.types(words).await;
        answer.exits(2, "namespace perf has 2 PerfValidations: name one of odd, run");
    }
}

#[tokio::test]
async fn a_measurement_hides_no_other_node() {
    let desk = fleet();
    desk.server.put(measured("new", VERDICT, "GatesMet", &json!({})));
    desk.server.put(measured("gone", VERDICT, "GatesMet", &json!({})));
    for words in ["nodes", "nodes -o wide", "nodes -o json"] {
        let answer = desk.types(words).await;
        names(&answer, "(read NodePerformances): new");
        answer.prints("drifting");
        let is_listed = answer.out.split_whitespace().any(|word| word == "new");
        assert!(!is_listed, "a run has measured it: {}", answer.out);
    }
    let other = desk.types("nodes -l pool=slow").await;
    assert_eq!((other.code, other.err.as_str()), (0, ""));

    let desk = Desk::new();
    desk.server.put(node("new", "8", "True", false));
    desk.server.put(measured("new", VERDICT, "GatesMet", &json!({})));
    names(&desk.types("nodes").await, "(read NodePerformances): new");
}

#[tokio::test]
async fn a_policy_hides_no_outlier_of_another() {
    let desk = fleet();
    desk.server.put(policy(&json!([
        {"node": "good", "reason": "SlowerThanItself", "confidence": "Confirmed", "percent": 91, "validation": "perf/h100"},
    ])));
    let mut odd = policy(&json!([{"node": "slow", "reason": VERDICT, "validation": "perf/h100"}]));
    odd["metadata"]["name"] = "odd".into();
    desk.server.put(odd);
    let answer = desk.types("nodes").await;
    names(&answer, "(read PerfValidationPolicies): odd");
    answer.prints("Confirmed: 91% of past");
    // It may be the policy that selects this node.
    answer.prints("no run has measured it");
    assert!(!answer.out.contains("policy gpu-nodes"), "{}", answer.out);

    // Not even where it may be the only one with outliers.
    desk.server.put(policy(&json!([])));
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("nodes.html");
    let answer = desk.types(&format!("nodes --html {}", path.display())).await;
    names(&answer, "(read PerfValidationPolicies): odd");
    let page = std::fs::read_to_string(&path).expect("written");
    let missing = "Policies that could not be parsed, and are missing here with their outliers: 1.";
    assert_eq!(
        page.matches(missing).count(),
        3,
        "outliers, difference, coverage: {page}"
    );
    assert!(page.contains("No node is an outlier by the other policies."), "{page}");
}
