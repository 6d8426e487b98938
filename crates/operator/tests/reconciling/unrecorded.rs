use perfval_testkit::api_server::{ApiServer, Fault};
use serde_json::Value;

use crate::{Operator, eventually, manifest, phase};

#[tokio::test]
async fn a_status_that_is_refused_for_good_is_reported_by_an_event() {
    let server = ApiServer::new();
    let words = "status.phase: Unsupported value";
    server.fail(Fault::refuse("patch", "perfvalidations/status", 422).saying(words));
    let _operator = Operator::start(&server);
    server.put(manifest("refused"));
    eventually(&server, "an event says why", |server| {
        let says_why = |event: &Value| {
            event["reason"] == "CallFailed"
                && event["action"] == "RecordStatus"
                && event["type"] == "Warning"
                && event["regarding"]["name"] == "refused"
                && event["note"].as_str().is_some_and(|note| note.contains(words))
        };
        server.objects("events").iter().any(says_why)
    })
    .await;
    assert_eq!(phase(&server, "refused"), "", "nothing was decided");
    assert_eq!(server.objects("events").len(), 1, "and nothing else is reported");
}
