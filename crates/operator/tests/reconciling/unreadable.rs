use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};

use crate::{Operator, eventually, manifest, phase};

#[tokio::test]
async fn an_object_that_cannot_be_parsed_is_told_about_and_holds_up_no_other() {
    let server = ApiServer::new();
    let mut newer = manifest("newer");
    newer["spec"]["gates"][0]["metric"] = json!("MetricOfAnotherVersion");
    server.put(newer);
    server.put(manifest("readable"));
    let _operator = Operator::start(&server);
    eventually(&server, "the readable one is looked at", |server| {
        phase(server, "readable") == "Pending"
    })
    .await;
    eventually(&server, "an event names the unreadable one", |server| {
        let told = |event: &Value| event["reason"] == "SpecUnreadable" && event["regarding"]["name"] == "newer";
        server.objects("events").iter().any(told)
    })
    .await;
    assert_eq!(phase(&server, "newer"), "", "nothing is done to it");
}
