//! Watches end, and what happened meanwhile is seen all the same.

use perfval_testkit::api_server::ApiServer;
use serde_json::json;

use crate::{NAMESPACE, Operator, eventually, manifest, status};

/// Requests per kind that take a watch up again: a list in pages, and attempts while it backs off.
const AGAIN: usize = 12;

fn waits_for_dynamo(server: &ApiServer, name: &str) -> bool {
    status(server, name)["reason"] == "DynamoNotInstalled"
}

fn lists(server: &ApiServer) -> usize {
    let of_validations =
        |call: &&perfval_testkit::api_server::Call| call.resource == "perfvalidations" && call.verb == "list";
    server.calls().iter().filter(of_validations).count()
}

async fn survives(end: fn(&ApiServer)) {
    let server = ApiServer::new();
    let _operator = Operator::start(&server);
    server.put(manifest("first"));
    eventually(&server, "the first is seen", |server| waits_for_dynamo(server, "first")).await;
    for round in 0..3 {
        let later = format!("later-{round}");
        server.forget_calls();
        end(&server);
        // In the gap: no watch brings either.
        server.put(manifest(&later));
        server.edit("perfvalidations", NAMESPACE, "first", |object| {
            object["metadata"]["generation"] = json!(round + 2);
            object["spec"]["timeouts"] = json!({"sizing": format!("{}m", round + 20)});
        });
        eventually(&server, "what was created in the gap is seen", |server| {
            waits_for_dynamo(server, &later)
        })
        .await;
        eventually(&server, "what was changed in the gap is seen", |server| {
            status(server, "first")["observedGeneration"] == json!(round + 2)
        })
        .await;
        assert!(lists(&server) <= AGAIN, "{} lists in round {round}", lists(&server));
    }
}

#[tokio::test]
async fn a_watch_that_is_closed_is_taken_up_again() {
    survives(ApiServer::end_watches).await;
}

#[tokio::test]
async fn a_watch_whose_version_expired_lists_anew() {
    survives(ApiServer::expire_watches).await;
}
