use std::fs;

use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};

use crate::{NAMESPACE, Operator, eventually, status};

const FINISHED: &str =
    "../../config/argocd/resource_customizations/perfvalidation.dev/PerfValidation/testdata/passed-rerun-done.yaml";

/// A finished object with some runs before its last one.
fn finished(server: &ApiServer) -> String {
    let text = fs::read_to_string(FINISHED).expect("a saved object");
    let mut object: Value = serde_saphyr::from_str(&text).expect("YAML");
    object["metadata"]["namespace"] = json!(NAMESPACE);
    let earlier = |run: i64| json!({"run": run, "verdict": "Passed", "reason": "GatesMet", "completedAt": "2026-11-20T10:00:00Z"});
    object["status"]["operatorState"]["history"] = json!([earlier(3), earlier(2), earlier(1)]);
    object["status"]["run"]["number"] = json!(4);
    server.put(object)["metadata"]["name"]
        .as_str()
        .expect("a name")
        .to_owned()
}

#[tokio::test]
async fn a_rerun_of_a_finished_object_keeps_what_the_store_does_not_hold() {
    let server = ApiServer::new();
    let name = finished(&server);
    let before = status(&server, &name);
    let _operator = Operator::start(&server);
    server.edit("perfvalidations", NAMESPACE, &name, |object| {
        object["metadata"]["annotations"]["perfvalidation.dev/rerun"] = json!("once more");
    });
    eventually(&server, "run 5 begins", |server| {
        status(server, &name)["run"]["number"] == 5
    })
    .await;
    let after = status(&server, &name);
    let runs: Vec<i64> = after["history"]
        .as_array()
        .expect("a history")
        .iter()
        .filter_map(|run| run["run"].as_i64())
        .collect();
    assert_eq!(runs, [4, 3, 2, 1], "{before}\n{after}");
}

#[tokio::test]
async fn a_label_on_a_finished_object_writes_no_status() {
    let server = ApiServer::new();
    let name = finished(&server);
    let before = status(&server, &name);
    let _operator = Operator::start(&server);
    for label in ["a", "b", "c"] {
        server.edit("perfvalidations", NAMESPACE, &name, |object| {
            object["metadata"]["labels"] = json!({"l": label});
        });
    }
    // Another object has been looked at after it.
    server.put(crate::manifest("later"));
    eventually(&server, "the later one is looked at", |server| {
        status(server, "later")["phase"] == "Pending"
    })
    .await;
    assert_eq!(status(&server, &name), before);
}
