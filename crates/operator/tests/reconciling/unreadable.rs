use perfval_testkit::api_server::ApiServer;
use serde_json::json;

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
        server
            .calls()
            .iter()
            .any(|call| call.resource == "events" && call.verb == "create" && call.group == "events.k8s.io")
            && phase(server, "newer").is_empty()
    })
    .await;
}
