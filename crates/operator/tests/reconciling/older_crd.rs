use perfval_testkit::api_server::{ApiServer, Call};
use serde_json::json;

use crate::{NAMESPACE, Operator, condition, eventually, manifest, phase, with_gpus};

#[tokio::test]
async fn a_field_that_an_older_crd_drops_does_not_park_the_object() {
    let server = with_gpus(4);
    server.withdraw("dynamographdeployments");
    server.delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    server.prune("perfvalidations", "/status/message");
    let _operator = Operator::start(&server);
    server.put(manifest("early"));
    eventually(&server, "told that Dynamo is missing", |server| {
        condition(server, "early", "PrerequisitesMet").is_some_and(|c| c["reason"] == "DynamoNotInstalled")
    })
    .await;
    // From here on a pass has nothing but the message to write, and the API server keeps nothing of it.
    server.forget_calls();
    let labels = json!({"perfvalidation.dev/name": "early"});
    server.put(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "child", "namespace": NAMESPACE, "labels": labels}}));
    eventually(&server, "a pass writes in vain", |server: &ApiServer| {
        let writes = |call: &Call| call.resource == "perfvalidations/status";
        server.calls().iter().any(writes)
    })
    .await;
    server.install_dynamo(&["v1beta1"], Some("1.4.2"));
    eventually(&server, "the run goes on", |server| {
        phase(server, "early") == "WaitingForReady"
    })
    .await;
}
