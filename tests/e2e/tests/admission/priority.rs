//! The operator's priority level on a real API server.

use crate::{cluster, kubectl};

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_priority_level_and_its_flow_schemas_are_accepted() {
    cluster().await;
    let apply = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "config/components/api-priority/api_priority.yaml",
    ];
    let (applied, warnings) = kubectl(&apply, "").await;
    assert_eq!(applied.lines().count(), 3, "{applied}");
    assert_eq!(warnings, "");
    // The lease has a level of the API server's own.
    kubectl(&["get", "prioritylevelconfiguration", "leader-election"], "").await;
}
