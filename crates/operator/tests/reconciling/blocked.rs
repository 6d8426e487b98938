use perfval_testkit::api_server::Fault;

use crate::{Operator, condition, eventually, manifest, phase, with_gpus};

#[tokio::test]
async fn what_blocks_the_operator_is_written_to_the_status_and_removed() {
    let server = with_gpus(4);
    server.fail(Fault::refuse("create", "services", 403));
    let _operator = Operator::start(&server);
    server.put(manifest("blocked"));
    eventually(&server, "the reason is written", |server| {
        condition(server, "blocked", "Blocked").is_some_and(|c| {
            c["status"] == "True" && c["reason"] == "Create" && c["message"].as_str().unwrap().contains("Service")
        })
    })
    .await;
    assert_eq!(phase(&server, "blocked"), "Deploying");

    server.heal();
    // Anything that happens to a child makes the operator look again.
    let id = crate::status(&server, "blocked")["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    server.edit("resourceclaimtemplates", crate::NAMESPACE, &format!("pv-{id}"), |_| {});
    eventually(&server, "taken back", |server| {
        phase(server, "blocked") == "WaitingForReady" && condition(server, "blocked", "Blocked").is_none()
    })
    .await;
}
