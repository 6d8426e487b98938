use crate::{Operator, eventually, manifest, phase, reason, with_gpus};

#[tokio::test]
async fn dynamo_installed_later_is_picked_up_without_a_restart() {
    let server = with_gpus(4);
    server.withdraw("dynamographdeployments");
    server.delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    let _operator = Operator::start(&server);
    server.put(manifest("early"));
    eventually(&server, "a condition says that Dynamo is missing", |server| {
        reason(server, "early") == "DynamoNotInstalled"
    })
    .await;
    let asked = |server: &perfval_testkit::api_server::ApiServer| {
        server
            .calls()
            .into_iter()
            .filter(|call| call.resource == "dynamographdeployments")
            .count()
    };
    assert_eq!(asked(&server), 0, "nothing that is not served is watched");

    server.install_dynamo(&["v1beta1"], Some("1.4.2"));
    eventually(&server, "the run goes on", |server| {
        phase(server, "early") == "WaitingForReady"
    })
    .await;
    eventually(&server, "deployments are watched", |server| {
        server
            .calls()
            .iter()
            .any(|call| call.resource == "dynamographdeployments" && call.verb == "watch")
    })
    .await;
    assert_eq!(server.objects("dynamographdeployments").len(), 1);
}
