//! Watches end, and what happened meanwhile is seen all the same.

use perfval_testkit::api_server::ApiServer;
use serde_json::json;

use crate::{NAMESPACE, Operator, eventually, manifest, status};

/// Requests per kind that take a watch up again: a list in pages, and attempts while it backs off.
const AGAIN: usize = 12;

fn waits_for_dynamo(server: &ApiServer, name: &str) -> bool {
    status(server, name)["reason"] == "DynamoNotInstalled"
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
        let lists = server.count_calls("list", "perfvalidations");
        assert!(lists <= AGAIN, "{lists} lists in round {round}");
    }
}

#[tokio::test]
async fn a_watch_that_is_closed_is_taken_up_again() {
    survives(ApiServer::end_watches).await;
}

#[tokio::test]
async fn a_watch_whose_version_expired_lists_again() {
    survives(ApiServer::expire_watches).await;
}

/// A tenant may put the operator's label on objects with megabytes of metadata.
#[tokio::test]
async fn a_first_list_of_children_has_short_pages() {
    let server = ApiServer::new();
    server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2"));
    let kinds = [
        ("batch/v1", "Job", "jobs"),
        ("v1", "Pod", "pods"),
        ("resource.k8s.io/v1", "ResourceClaim", "resourceclaims"),
        ("nvidia.com/v1beta1", "DynamoGraphDeployment", "dynamographdeployments"),
    ];
    for (api_version, kind, _) in kinds {
        for number in 0..6 {
            let labels = json!({"perfvalidation.dev/name": "gone"});
            server.put(json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {"namespace": NAMESPACE, "name": format!("child-{number}"), "labels": labels},
            }));
        }
    }
    let _operator = Operator::start(&server);
    for (_, _, plural) in kinds {
        eventually(&server, &format!("{plural} come in two pages"), |server| {
            server.count_calls("list", plural) == 2
        })
        .await;
    }
}
