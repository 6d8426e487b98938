use perfval_testkit::api_server::ApiServer;

use crate::{NAMESPACE, Operator, change_child, eventually, has_reason, manifest, phase};

fn count_passes(server: &ApiServer) -> usize {
    server.count_calls("get", "customresourcedefinitions")
}

#[tokio::test]
async fn a_pass_that_changes_nothing_writes_nothing() {
    let server = ApiServer::new();
    let _operator = Operator::start(&server);
    server.put(manifest("waits"));
    has_reason(&server, "waits", "DynamoNotInstalled").await;
    // A settled object: the passes that its own last writes cause are over once a look finds nothing new to write.
    let mut version = serde_json::Value::Null;
    for round in 0..4 {
        let before = count_passes(&server);
        change_child(&server, "waits");
        eventually(&server, "the changed child causes a pass", |server| {
            count_passes(server) > before
        })
        .await;
        let now = server.get("perfvalidations", NAMESPACE, "waits").unwrap()["metadata"]["resourceVersion"].clone();
        if round > 1 {
            assert_eq!(now, version, "round {round} wrote");
        }
        version = now;
    }
    assert_eq!(phase(&server, "waits"), "Pending");
}
