//! Results of a run whose trials are over.

use std::sync::Arc;

use perfval_operator::controller::reconcile;
use perfval_operator::objects;
use perfval_operator::rights::Rights;
use perfval_operator::stored::Stored;
use perfval_testkit::api_server::ApiServer;
use perfval_verdict::spec_digests;
use serde_json::{Value, json};

use crate::{context, manifest, status};

/// The second run of an object, whose only trial is over. Its logs are gone.
fn put_measured(server: &ApiServer, name: &str) -> Arc<Stored> {
    let mut object = manifest(name);
    object["metadata"]["finalizers"] = json!(["perfvalidation.dev/cleanup"]);
    object["spec"]["trials"] = json!({"rule": "Single", "max": 1});
    let spec = serde_json::from_value(object["spec"].clone()).expect("a spec");
    let environment = json!({"model": "lab/tiny", "image": "localhost/dynamo:1.4.2"});
    object["status"] = json!({
        "observedGeneration": 1, "phase": "Evaluating", "message": "saving",
        "run": {"number": 2, "trigger": "Rerun", "generation": 1, "startedAt": "2026-11-20T10:00:00Z"},
        "placement": {"node": "n1", "allocation": "DRA", "gpus": 1, "nodeGPUs": 4},
        "operatorState": {
            "digests": spec_digests::digests(&spec), "metrics": {"outputTokenThroughput": "100"}, "environment": environment,
            "lastPassed": {"run": 1, "environment": environment},
            "trials": [{"number": 1, "outcome": "Pass", "startedAt": "2026-11-20T10:05:00Z"}],
            "timeline": [{"phase": "Evaluating", "startedAt": "2099-01-01T00:00:00Z"}],
        },
    });
    Arc::new(serde_json::from_value(server.put(object)).expect("well-formed"))
}

#[tokio::test]
async fn the_pass_after_the_write_of_results_reads_no_trial_again() {
    let server = ApiServer::new();
    let measured = put_measured(&server, "measured");
    let (objects, _scopes) = objects::watched(vec![None]);
    let (context, _answers) = context(&server, objects, Rights::default());
    let Ok(_) = reconcile(measured.clone(), context.clone()).await;
    assert_eq!(status(&server, "measured")["verdict"], Value::Null);
    assert_eq!(server.objects("configmaps").len(), 1);

    server.forget_calls();
    let Ok(_) = reconcile(measured, context).await;
    let status = status(&server, "measured");
    assert_eq!(status["verdict"], "Passed", "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("run 1"), "it is compared: {message}");
    let calls = server.calls();
    assert!(calls.iter().all(|call| call.resource != "jobs"), "{calls:?}");
}
