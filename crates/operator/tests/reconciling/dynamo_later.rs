use perfval_testkit::api_server::ApiServer;

use crate::{Operator, eventually, has_reason, manifest, reaches, reason, with_gpus};

fn count_calls(server: &ApiServer, verb: &str) -> usize {
    server.count_calls(verb, "dynamographdeployments")
}

#[tokio::test]
async fn dynamo_installed_later_is_picked_up_without_a_restart() {
    let server = with_gpus(4);
    server.withdraw("dynamographdeployments");
    server.delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    let _operator = Operator::start(&server);
    server.put(manifest("early"));
    has_reason(&server, "early", "DynamoNotInstalled").await;
    assert_eq!(count_calls(&server, "*"), 0, "nothing that is not served is watched");

    server.install_dynamo(&["v1beta1"], Some("1.4.2"));
    reaches(&server, "early", "WaitingForReady").await;
    eventually(&server, "deployments are watched", |server| {
        count_calls(server, "watch") > 0
    })
    .await;
    assert_eq!(server.objects("dynamographdeployments").len(), 1);
}

#[tokio::test]
async fn a_crd_that_serves_other_versions_gets_a_new_watch() {
    // One that is supported, and one that is not.
    for before in ["v1alpha1", "v0"] {
        let server = with_gpus(4);
        server.install_dynamo(&[before], Some("1.4.2"));
        let _operator = Operator::start(&server);
        server.put(manifest("early"));
        eventually(&server, "the run is looked at, and deployments are watched", |server| {
            !reason(server, "early").is_empty() && (count_calls(server, "watch") > 0 || before == "v0")
        })
        .await;
        server.forget_calls();
        server.install_dynamo(&["v1beta1"], Some("1.4.2"));
        eventually(&server, "deployments are watched anew", |server| {
            count_calls(server, "watch") > 0
        })
        .await;
    }
}
