use perfval_testkit::api_server::{ApiServer, Fault};

use crate::{
    NAMESPACE, Operator, change_child, eventually, goes, has_reason, is_deployed, manifest, reaches, with_gpus,
};

#[tokio::test]
async fn a_field_that_an_older_crd_drops_does_not_park_the_object() {
    let server = with_gpus(4);
    server.withdraw("dynamographdeployments");
    server.delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    server.prune("perfvalidations", "/status/message");
    let _operator = Operator::start(&server);
    server.put(manifest("early"));
    has_reason(&server, "early", "DynamoNotInstalled").await;
    // From here on a pass has nothing but the message to write, and the API server keeps nothing of it.
    server.forget_calls();
    change_child(&server, "early");
    eventually(&server, "a pass writes in vain", |server: &ApiServer| {
        server.count_calls("patch", "perfvalidations/status") > 0
    })
    .await;
    server.install_dynamo(&["v1beta1"], Some("1.4.2"));
    reaches(&server, "early", "WaitingForReady").await;
}

#[tokio::test]
async fn a_status_that_an_older_crd_refuses_does_not_block_a_deletion() {
    let server = with_gpus(4);
    let _operator = Operator::start(&server);
    server.put(manifest("refused"));
    is_deployed(&server, "refused").await;
    let words = "status.phase: Unsupported value";
    server.fail(Fault::refuse("patch", "perfvalidations/status", 422).saying(words));
    server.delete("perfvalidations", NAMESPACE, "refused");
    goes(&server, "refused").await;
    for plural in ["dynamographdeployments", "services", "resourceclaimtemplates"] {
        assert!(server.objects(plural).is_empty(), "{plural}");
    }
    let explains = |event: &serde_json::Value| event["note"].as_str().is_some_and(|note| note.contains(words));
    assert!(server.objects("events").iter().any(explains), "the user gets an Event");
}
