//! The nodes, the worst first.

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::desk::{Desk, golden};

fn measured(node: &str, verdict: &str, reason: &str, numbers: &Value) -> Value {
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

fn node(name: &str, gpus: &str, ready: &str, cordoned: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": name}},
        "spec": {"unschedulable": cordoned},
        "status": {"capacity": {"nvidia.com/gpu": gpus}, "conditions": [{"type": "Ready", "status": ready}]},
    })
}

fn fleet() -> Desk {
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
    assert!(
        desk.types("nodes -l pool=new")
            .await
            .out
            .contains("no run has measured it")
    );
}

#[tokio::test]
async fn measured_nodes_are_listed_without_the_right_to_list_nodes() {
    let desk = fleet();
    desk.server.fail(Fault::refuse("list", "nodes", 403));
    let answer = desk.types("nodes").await;
    assert!(
        answer.out.contains("slow") && !answer.out.contains("never"),
        "{}",
        answer.out
    );
    assert!(answer.err.contains("never measured are not listed"), "{}", answer.err);
    assert_eq!(answer.code, 0);
}

#[tokio::test]
async fn a_refused_list_of_resource_slices_is_reported() {
    let desk = fleet();
    desk.server.fail(Fault::refuse("list", "resourceslices", 403));
    let answer = desk.types("nodes").await;
    assert!(answer.out.contains("slow"), "{}", answer.out);
    assert!(
        answer.err.contains("may be missing") && answer.err.contains("ResourceSlices"),
        "{}",
        answer.err
    );
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
    assert!(refused.err.contains("/no/such/directory/nodes.html"), "{}", refused.err);
}
