//! Every failure that a run names, on one lab: `just failures`, apart from the other tests because it takes half an
//! hour. `just failures NAME` has those whose name holds NAME.

mod failures {
    pub mod control_plane;
    pub mod leader;
    pub mod node;
    pub mod orphans;
    pub mod removal;
    pub mod served;
    pub mod webhook;
}

use perfval_api::PerfValidationStatus;
use perfval_e2e::failures::{TABLE, install_world, remove_world};
use perfval_e2e::ready;

/// Returns true if a status has this reason, and these words in its message.
fn has_message(status: &PerfValidationStatus, reason: &str, words: &str) -> bool {
    let message = status.message.as_deref().unwrap_or_default();
    status.reason.as_deref() == Some(reason) && message.contains(words)
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn every_row_of_the_table_is_named() {
    let (lab, _operator) = ready().await;
    install_world(&lab).await;
    let only = std::env::var("PERFVAL_FAILURE").unwrap_or_default();
    let mut unnamed = Vec::new();
    for failure in TABLE.iter().filter(|failure| failure.name.contains(&only)) {
        // A task of its own: one that fails does not keep the others from being seen.
        let lab = lab.clone();
        if tokio::spawn(async move { failure.happens(&lab).await }).await.is_err() {
            unnamed.push(failure.name);
        }
    }
    lab.run(&["fault", "clear"]).await;
    remove_world(&lab).await;
    assert!(unnamed.is_empty(), "not named, or something stayed: {unnamed:?}");
}
