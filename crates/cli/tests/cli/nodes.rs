//! The nodes, the worst first.

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::desk::{Desk, golden, stored};

pub fn measured(node: &str, verdict: &str, reason: &str, numbers: &Value) -> Value {
    let mut status = json!({
        "verdict": verdict, "reason": reason, "measuredAt": "2026-09-21T12:20:00Z", "environment": "0123456789ab", "gpuCount": 8,
        "validation": {"namespace": "perf", "name": "h100", "uid": "u", "run": 1},
    });
    for (key, value) in numbers.as_object().into_iter().flatten() {
        status[key] = value.clone();
    }
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "NodePerformance",
        "metadata": {"name": node}, "spec": {}, "status": status,
    })
}

pub fn node(name: &str, gpus: &str, ready: &str, cordoned: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": name}},
        "spec": {"unschedulable": cordoned},
        "status": {"capacity": {"nvidia.com/gpu": gpus}, "conditions": [{"type": "Ready", "status": ready}]},
    })
}

/// Policy that calls nodes slow, each with a GPU or as a whole.
pub fn policy(outliers: &Value) -> Value {
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "metadata": {"name": "gpu-nodes"},
        "spec": {
            "nodeSelector": {}, "budgets": [{"nodes": "5%"}],
            "validationTemplate": {"metadata": {"namespace": "perf"}, "spec": {
                "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}},
                "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
            }},
        },
        "status": {
            "observedGeneration": 1, "gpuMinutesToday": 77, "expectedCompletionTime": "2026-09-21T16:00:00Z",
            "nodes": {"selected": 6, "fresh": 4, "passed": 2, "failed": 1, "inconclusive": 1, "neverMeasured": 2, "stale": 0,
                      "running": 1, "busy": 0},
            "outliers": outliers,
        },
    })
}

pub fn fleet() -> Desk {
    let desk = Desk::new();
    for object in [
        measured(
            "good",
            "Passed",
            "GatesMet",
            &json!({"outputTokensPerSecond": 36_123, "percentOfGate": 108}),
        ),
        measured(
            "drifting",
            "Passed",
            "GatesMet",
            &json!({"percentOfGate": 109, "percentOfOwnPast": 95, "percentOfPeers": 99}),
        ),
        measured(
            "unsure",
            "Inconclusive",
            "TrialsDisagree",
            &json!({"percentOfGate": 120}),
        ),
        measured(
            "slow",
            "Failed",
            "GatesMissed",
            &json!({"outputTokensPerSecond": 28_001, "percentOfGate": 84}),
        ),
        measured("removed", "Failed", "GatesMissed", &json!({})),
        node("good", "8", "True", false),
        node("drifting", "8", "True", false),
        node("unsure", "8", "True", false),
        node("slow", "8", "True", true),
        node("new", "8", "True", false),
        node("broken", "8", "False", true),
        node("cordoned", "8", "True", true),
        node("cpu", "0", "True", false),
    ] {
        desk.server.put(object);
    }
    desk
}

#[tokio::test]
async fn nodes_are_listed_from_the_worst_to_the_ones_never_measured() {
    let desk = fleet();
    let answer = desk.types("nodes").await;
    golden("nodes", &answer.out);
    golden("nodes-wide", &desk.types("nodes -o wide").await.out);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
}

#[tokio::test]
async fn outliers_of_a_policy_come_after_the_misses() {
    let desk = fleet();
    desk.server.put(policy(&json!([
        {"node": "slow", "reason": "BelowGate", "percent": 84, "validation": "perf/h100"},
        {"node": "good", "gpu": "GPU-7", "reason": "SlowerThanPeers", "confidence": "Suspected", "percent": 97, "validation": "perf/h100"},
        {"node": "good", "reason": "SlowerThanItself", "confidence": "Confirmed", "percent": 91, "validation": "perf/h100"},
    ])));
    let answer = desk.types("nodes").await;
    let lines: Vec<&str> = answer.out.lines().collect();
    let places = ["slow", "good", "unsure", "drifting"].map(|node| {
        let place = lines.iter().position(|line| line.contains(&format!("   {node} ")));
        place.unwrap_or_else(|| panic!("{node} is not in {}", answer.out))
    });
    assert_eq!(places, [1, 2, 3, 4], "{}", answer.out);
    assert!(lines[2].contains("Confirmed: 91% of past"), "{}", answer.out);
    assert!(!lines[1].contains("of gate"), "{}", answer.out);

    desk.server.fail(Fault::refuse("list", "perfvalidationpolicies", 403));
    let answer = desk.types("nodes").await;
    answer.prints("good");
    assert!(!answer.out.contains("Confirmed"), "{}", answer.out);
    answer.notes("Outliers are not shown");
    answer.notes("ask for the cluster role perfvalidation-operator-node-view");
    assert_eq!(answer.code, 0);
}

#[tokio::test]
async fn a_full_list_of_outliers_is_noted() {
    let desk = fleet();
    let outlier = |_| json!({"node": "gone", "reason": "BelowGate", "validation": "perf/h100"});
    desk.server.put(policy(&(0..19).map(outlier).collect()));
    assert_eq!(desk.types("nodes").await.err, "");
    desk.server.put(policy(&(0..20).map(outlier).collect()));
    let answer = desk.types("nodes").await;
    answer.notes("Policy gpu-nodes lists at most 20 outliers");
}

#[tokio::test]
async fn a_node_that_was_never_measured_shows_what_its_policy_does() {
    let desk = fleet();
    let ready = |status: &str, reason: &str| {
        let at = "2026-09-21T12:20:00Z";
        json!([{"type": "Ready", "status": status, "reason": reason, "message": "", "lastTransitionTime": at}])
    };
    let waits = "policy gpu-nodes has not validated it yet (running: 1, busy: 0; its condition Ready shows obstacles)";
    for (field, value, expected) in [
        (
            "/spec/nodeSelector",
            json!({"matchLabels": {"pool": "slow"}}),
            "no run has measured it, and no policy selects it",
        ),
        ("/spec/suspend", json!(true), "policy gpu-nodes is suspended"),
        (
            "/status/conditions",
            json!([]),
            "the operator has not read policy gpu-nodes yet",
        ),
        ("/status/conditions", ready("False", "Overlapping"), waits),
        ("/status/conditions", ready("True", "Reconciled"), waits),
        (
            "/status/conditions",
            ready("False", "BudgetZero"),
            "policy gpu-nodes has not validated it yet: BudgetZero",
        ),
        (
            "/status/conditions",
            ready("False", "ScheduleInvalid"),
            "policy gpu-nodes has not validated it yet: ScheduleInvalid",
        ),
        (
            "/status/conditions",
            ready("Unknown", "NodesUnreadable"),
            "policy gpu-nodes has not validated it yet: NodesUnreadable",
        ),
    ] {
        let mut policy = policy(&json!([]));
        policy["spec"]["suspend"] = json!(false);
        policy["status"]["conditions"] = json!([]);
        *policy.pointer_mut(field).expect("a field") = value;
        desk.server.put(policy);
        let answer = desk.types("nodes -l pool=new").await.out;
        assert!(answer.trim_end().ends_with(expected), "{answer}");
    }
}

/// A policy that is Ready, and two nodes without a measurement: one has a hostname, and one is cordoned.
fn unmeasured(tolerations: &Value) -> Desk {
    let desk = Desk::new();
    let mut policy = policy(&json!([]));
    policy["spec"]["validationTemplate"]["spec"]["placement"] = json!({"tolerations": tolerations});
    policy["status"]["conditions"] = json!([
        {"type": "Ready", "status": "True", "reason": "Reconciled", "message": "", "lastTransitionTime": "2026-09-21T12:20:00Z"},
    ]);
    let mut new = node("new", "8", "True", false);
    new["metadata"]["labels"]["kubernetes.io/hostname"] = json!("new.example");
    for object in [policy, new, node("cordoned", "8", "True", true)] {
        desk.server.put(object);
    }
    desk
}

fn validation_of_new(name: &str, created: &str, status: &Value) -> Value {
    let mut object = stored("passed");
    object["metadata"] = json!({
        "name": name, "namespace": "perf", "uid": name, "creationTimestamp": created,
        "labels": {"perfvalidation.dev/policy": "gpu-nodes", "perfvalidation.dev/node": "new.example"},
    });
    object["status"] = status.clone();
    object
}

#[tokio::test]
async fn a_node_that_was_never_measured_shows_its_last_validation() {
    let desk = unmeasured(&json!([]));
    let error = json!({"observedGeneration": 1, "phase": "Completed", "verdict": "Error", "reason": "Saturated"});
    desk.server
        .put(validation_of_new("first", "2026-09-21T12:00:00Z", &error));
    let answer = desk.types("nodes").await;
    answer.prints("validation perf/first ended with Error (Saturated)");
    answer.prints("the node is cordoned");
    let waits = json!({"observedGeneration": 1, "phase": "Sizing"});
    desk.server
        .put(validation_of_new("a-second", "2026-09-21T12:10:00Z", &waits));
    desk.types("nodes")
        .await
        .prints("validation perf/a-second is in phase Sizing");

    desk.server.fail(Fault::refuse("list", "perfvalidations", 403));
    let answer = desk.types("nodes").await;
    answer.prints("policy gpu-nodes has not validated it yet (running: 1, busy: 0;");
    answer.notes("Runs of policy gpu-nodes on unmeasured nodes are not shown: ");
    assert_eq!(answer.code, 0);
}

#[tokio::test]
async fn a_node_that_changed_its_policy_shows_validations_of_the_new_one() {
    let desk = unmeasured(&json!([]));
    desk.server.edit("perfvalidationpolicies", "", "gpu-nodes", |policy| {
        policy["metadata"]["creationTimestamp"] = json!("2026-09-21T10:00:00Z");
    });
    let mut older = policy(&json!([]));
    older["metadata"] = json!({"name": "old-nodes", "uid": "o", "creationTimestamp": "2026-09-20T10:00:00Z"});
    older["spec"]["nodeSelector"] = json!({"matchLabels": {"pool": "old"}});
    let mut waiting = node("old", "8", "True", false);
    waiting["metadata"]["labels"]["kubernetes.io/hostname"] = json!("old.example");
    let passed = json!({"observedGeneration": 1, "phase": "Completed", "verdict": "Passed", "reason": "GatesMet"});
    let mut of_older = validation_of_new("earlier", "2026-09-21T12:20:00Z", &passed);
    of_older["metadata"]["labels"]["perfvalidation.dev/policy"] = json!("old-nodes");
    let sizing = json!({"observedGeneration": 1, "phase": "Sizing"});
    let now = validation_of_new("now", "2026-09-21T12:10:00Z", &sizing);
    for object in [older, waiting, of_older, now] {
        desk.server.put(object);
    }
    let answer = desk.types("nodes").await;
    answer.prints("validation perf/now is in phase Sizing");
    assert!(!answer.out.contains("perf/earlier"), "{}", answer.out);

    let unknown = json!({"observedGeneration": 1, "phase": "Dreaming"});
    desk.server
        .put(validation_of_new("newer", "2026-09-21T12:30:00Z", &unknown));
    desk.types("nodes")
        .await
        .prints("validation perf/newer cannot be read by this program");
}

#[tokio::test]
async fn a_cordoned_node_that_its_policy_tolerates_shows_what_the_policy_does() {
    let tolerated = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
    let desk = unmeasured(&tolerated);
    let answer = desk.types("nodes").await.out;
    assert!(!answer.contains("the node is cordoned"), "{answer}");
    assert_eq!(
        answer.matches("policy gpu-nodes has not validated it yet").count(),
        2,
        "{answer}"
    );
}

#[tokio::test]
async fn a_page_shows_outliers_cost_and_what_differs() {
    let desk = fleet();
    let with_kernel = |name: &str, kernel: &str| {
        let mut node = node(name, "8", "True", false);
        node["status"]["nodeInfo"] = json!({
            "architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "containerd://2.1", "kernelVersion": kernel,
            "kubeProxyVersion": "", "kubeletVersion": "v1.34.1", "machineID": "m", "operatingSystem": "linux", "osImage": "Ubuntu",
            "systemUUID": "s",
        });
        node
    };
    for (name, kernel) in [("slow", "6.9.1"), ("drifting", "6.9.1"), ("good", "6.8.0")] {
        desk.server.put(with_kernel(name, kernel));
    }
    desk.server.put(policy(&json!([
        {"node": "slow", "reason": "BelowGate", "percent": 84, "validation": "perf/h100"},
        {"node": "drifting", "gpu": "GPU-7", "reason": "SlowerThanItself", "confidence": "Actionable", "percent": 90, "validation": "perf/h100"},
    ])));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.html");
    desk.types(&format!("nodes --html {}", path.display())).await;
    let page = std::fs::read_to_string(&path).unwrap();
    for part in [
        "Reasons to take a node out of service: 1 of 2 outliers.",
        "<td>GPU-7</td><td>SlowerThanItself</td><td>Actionable</td><td class=\"number\">90 %</td><td>perf/h100</td>",
        "<th scope=\"row\">kernel</th><td>6.9.1</td><td class=\"number\">2 of 2</td><td class=\"number\">0 of 1</td>",
        "<th scope=\"row\">gpu-nodes</th><td class=\"number\">6</td><td class=\"number\">4</td>",
        "<td class=\"number\">77</td><td>2026-09-21 16:00 UTC</td>",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("kubelet</th>"), "it is the same on all nodes");

    // Outliers of other nodes are not shown.
    desk.types(&format!("nodes -l pool=drifting --html {}", path.display()))
        .await;
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        page.contains("1 of 1 outliers") && !page.contains("BelowGate"),
        "{page}"
    );
    for title in ["<title>1 node measured, 0 failed", "<h1>1 node measured, 0 failed</h1>"] {
        assert!(page.contains(title), "{page}");
    }
    assert!(page.contains("Too few nodes"), "{page}");
}

#[tokio::test]
async fn numbers_of_a_policy_whose_nodes_were_never_read_are_unknown() {
    let desk = fleet();
    let mut new = policy(&json!([]));
    new["status"] = Value::Null;
    desk.server.put(new);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.html");
    desk.types(&format!("nodes --html {}", path.display())).await;
    let page = std::fs::read_to_string(&path).unwrap();
    for part in [
        "<th scope=\"row\">gpu-nodes</th><td class=\"number\"><span class=\"none\">",
        "No comparison by a PerfValidationPolicy was read.",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
}

#[tokio::test]
async fn a_selector_chooses_by_labels_of_nodes() {
    let desk = fleet();
    let list = desk.types("nodes -l pool=slow -o json").await.json();
    let names: Vec<_> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| &row["metadata"]["name"])
        .collect();
    assert_eq!(names, ["slow"]);
    assert_eq!(desk.types("nodes -l pool=new -o name").await.out, "");
    desk.types("nodes -l pool=new").await.prints("no run has measured it");
}

#[tokio::test]
async fn measured_nodes_are_listed_without_the_right_to_list_nodes() {
    let desk = fleet();
    desk.server.fail(Fault::refuse("list", "nodes", 403));
    let answer = desk.types("nodes").await;
    answer.prints("slow");
    assert!(!answer.out.contains("never"), "{}", answer.out);
    answer.notes("never measured are not listed");
    assert_eq!(answer.code, 0);
}

#[tokio::test]
async fn a_refused_list_of_resource_slices_is_reported() {
    let desk = fleet();
    desk.server.fail(Fault::refuse("list", "resourceslices", 403));
    let answer = desk.types("nodes").await;
    answer.prints("slow");
    answer.notes("may be missing");
    answer.notes("ResourceSlices");
}

#[tokio::test]
async fn a_list_that_the_cluster_cannot_give_now_is_no_success() {
    for (resource, note) in [
        ("nodes", "never measured are not listed"),
        ("perfvalidationpolicies", "Outliers are not shown"),
        ("resourceslices", "may be missing"),
    ] {
        let desk = fleet();
        desk.server.fail(Fault::refuse("list", resource, 503));
        let answer = desk.types("nodes").await;
        answer.exits(4, note);
        answer.prints("slow");
    }
}

#[tokio::test]
async fn a_cluster_without_gpus_gets_one_sentence() {
    let answer = Desk::new().types("nodes").await;
    assert_eq!((answer.code, answer.out.as_str()), (0, ""));
    assert_eq!(answer.err, "No node has GPUs or a measurement.\n");
}

#[tokio::test]
async fn a_page_shows_each_gpu_beside_all_of_its_environment() {
    let desk = fleet();
    let gpus = |times: [i64; 2]| {
        let gpu = |(at, time)| json!({"uuid": format!("GPU-{at}-{time}"), "tokenMicroseconds": time});
        json!({"percentOfGate": 105, "gpus": times.into_iter().enumerate().map(gpu).collect::<Vec<_>>()})
    };
    for (name, times) in [("fast", [10_000, 10_100]), ("<b>odd</b>", [10_050, 12_600])] {
        desk.server.put(measured(name, "Passed", "GatesMet", &gpus(times)));
        desk.server.put(node(name, "2", "True", false));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.html");
    let answer = desk.types(&format!("nodes --html {}", path.display())).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert_eq!(answer.out, format!("{} is written\n", path.display()));
    let page = std::fs::read_to_string(&path).unwrap();
    // The median of the four is 10,050 µs.
    for part in [
        "<h1>6 nodes measured, 1 failed</h1>",
        r#"<td class="number heat-0" title="GPU-1-12600">80</td>"#,
        r#"<td class="number heat-3" title="GPU-0-10000">101</td>"#,
        "&lt;b&gt;odd&lt;/b&gt;",
        "the node is not ready",
        "6 of 9 nodes with GPUs",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("<b>odd"), "a name became markup");

    let refused = desk.types("nodes --html /no/such/directory/nodes.html").await;
    assert_ne!(refused.code, 0);
    refused.notes("/no/such/directory/nodes.html");
}

#[tokio::test]
async fn a_page_shows_which_nodes_could_not_be_read() {
    let desk = fleet();
    desk.server.put(measured("new", "Splendid", "GatesMet", &json!({})));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.html");
    let command = format!("nodes --html {}", path.display());
    let unparsed = "<dt>Measurement cannot be parsed</dt><dd>1</dd>";

    desk.types(&command).await.exits(4, "(read NodePerformances): new");
    let page = std::fs::read_to_string(&path).unwrap();
    for part in ["<dt>Measured</dt><dd>4 of 7 nodes with GPUs</dd>", unparsed] {
        assert!(page.contains(part), "{part} is not in {page}");
    }

    desk.server.fail(Fault::refuse("list", "nodes", 403));
    desk.types(&command).await.notes("never measured are not listed");
    let page = std::fs::read_to_string(&path).unwrap();
    for part in [
        "<dt>Measured</dt><dd>5 nodes</dd>",
        unparsed,
        "Nodes were not read, so those without a measurement are unknown.",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
}
