//! Writes for a baseline.

use perfval_api::fleet::{PerfBaseline, PerfBaselineStatus};
use perfval_cluster::Class;
use perfval_run::observed::Need;
use perfval_testkit::api_server::Fault;
use serde_json::json;

use crate::world::World;

pub fn baseline() -> PerfBaseline {
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline", "metadata": {"name": "h100"},
        "spec": {"environment": {"digest": "0123456789ab"}, "source": "Learned"},
    }))
    .expect("a baseline")
}

fn status() -> PerfBaselineStatus {
    PerfBaselineStatus {
        observed_generation: 1,
        ..PerfBaselineStatus::default()
    }
}

#[tokio::test]
async fn a_baseline_that_exists_is_left_as_it_is() {
    let world = World::new();
    let mut approved = serde_json::to_value(baseline()).expect("JSON");
    approved["spec"]["approvedRevision"] = json!(3);
    world.server.put(approved);
    world.cluster.create_baseline(&baseline()).await.expect("no failure");
    let known = world.server.get("perfbaselines", "", "h100").expect("there");
    assert_eq!(known["spec"]["approvedRevision"], 3);
    world.server.fail(Fault::refuse("create", "perfbaselines", 403));
    world.cluster.create_baseline(&baseline()).await.expect_err("refused");
}

#[tokio::test]
async fn a_baseline_that_a_conflict_refuses_is_not_taken_for_created() {
    let world = World::new();
    world.fail(Fault::refuse("create", "perfbaselines", 409).times(1));
    let failure = world.cluster.create_baseline(&baseline()).await.expect_err("refused");
    assert_eq!(failure.class(), Class::Conflict, "{failure}");
    world.cluster.create_baseline(&baseline()).await.expect("created");
    assert!(world.server.get("perfbaselines", "", "h100").is_some());
}

#[tokio::test]
async fn the_status_of_an_old_copy_is_not_written() {
    let world = World::new();
    let put = world.server.put(serde_json::to_value(baseline()).expect("JSON"));
    let read: PerfBaseline = serde_json::from_value(put).expect("a baseline");
    world.server.edit("perfbaselines", "", "h100", |baseline| {
        baseline["spec"]["approvedRevision"] = json!(1);
    });
    let write = async |baseline: &PerfBaseline| {
        let status = status();
        let written = world.cluster.write_baseline_status(baseline, &status).await;
        written.expect("no failure")
    };
    assert!(!write(&read).await);
    let newest = world.server.get("perfbaselines", "", "h100").expect("there");
    assert_eq!(newest["status"], json!({"observedGeneration": -1}), "the default");
    let newest: PerfBaseline = serde_json::from_value(newest).expect("a baseline");
    assert!(write(&newest).await);
    let written = world.server.get("perfbaselines", "", "h100").expect("there");
    assert_eq!(written["status"], json!({"observedGeneration": 1}));
    assert_eq!(written["spec"]["approvedRevision"], 1);
    world.server.delete("perfbaselines", "", "h100");
    assert!(!write(&newest).await, "it is gone");
}

/// Its environment is not known, so it may be the one that a gate asks for.
#[tokio::test]
async fn a_baseline_that_cannot_be_parsed_is_named() {
    let world = World::new();
    world.server.put(serde_json::to_value(baseline()).expect("JSON"));
    let mut newer = serde_json::to_value(baseline()).expect("JSON");
    newer["metadata"]["name"] = json!("b200");
    newer["spec"]["source"] = json!("Measured");
    world.server.put(newer);
    let seen = world.observe(Need::Baselines).await.baselines;
    let why = seen.unknown().expect("unknown");
    assert!(why.contains("cannot parse PerfBaseline b200"), "{why}");
}
