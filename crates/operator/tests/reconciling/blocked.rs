use perfval_testkit::api_server::Fault;
use serde_json::json;

use crate::{Operator, change_child, condition, eventually, is_blocked, manifest, phase, reaches, with_gpus};

#[tokio::test]
async fn what_blocks_the_operator_is_written_to_the_status_and_removed() {
    let server = with_gpus(4);
    server.fail(Fault::refuse("create", "services", 403));
    let _operator = Operator::start(&server);
    server.put(manifest("blocked"));
    eventually(&server, "the reason is written", |server| {
        condition(server, "blocked", "Reconciling").is_some_and(|c| {
            c["status"] == "True" && c["reason"] == "CallFailed" && c["message"].as_str().unwrap().contains("Service")
        })
    })
    .await;
    assert_eq!(phase(&server, "blocked"), "Deploying");

    server.heal();
    change_child(&server, "blocked");
    eventually(&server, "taken back", |server| {
        phase(server, "blocked") == "WaitingForReady" && !is_blocked(server, "blocked")
    })
    .await;
}

#[tokio::test]
async fn a_finished_object_keeps_its_record_when_nothing_blocks_it_any_more() {
    let server = with_gpus(4);
    let _operator = Operator::start(&server);
    server.put(manifest("over"));
    reaches(&server, "over", "WaitingForReady").await;
    server.edit("perfvalidations", crate::NAMESPACE, "over", |object| {
        object["spec"]["suspend"] = json!(true);
    });
    reaches(&server, "over", "Suspended").await;
    let trials = json!([{"number": 1, "outcome": "Pass", "startedAt": "2026-11-20T10:00:00Z"}]);
    server.edit("perfvalidations", crate::NAMESPACE, "over", |object| {
        let status = &mut object["status"];
        status["phase"] = json!("Completed");
        status["verdict"] = json!("Passed");
        status["operatorState"]["trials"] = trials;
    });
    eventually(&server, "it rests", |server| {
        condition(server, "over", "Complete").is_some_and(|complete| complete["status"] == "True")
    })
    .await;
    server.edit("perfvalidations", crate::NAMESPACE, "over", |object| {
        let status = &mut object["status"];
        status["operatorState"]["blocked"] = json!({"reason": "OperatorBug", "message": "as before an upgrade",
            "since": "2026-11-20T10:00:00Z"});
    });
    eventually(&server, "nothing blocks it", |server| !is_blocked(server, "over")).await;
    let kept = &crate::status(&server, "over")["trials"];
    assert_eq!(*kept, json!([{"number": 1, "outcome": "Pass"}]));
}
