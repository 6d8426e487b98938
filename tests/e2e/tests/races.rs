//! Ten validations at once on one node: `just races`, apart from the other tests because it takes five minutes.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use kube::ResourceExt as _;
use perfval_api::{Phase, TimelineEntry, Verdict};
use perfval_e2e::{Gpus, Validation, quick, ready};
use serde_json::json;

const RUNS: usize = 10;

/// From the plan to the confirmed end: no other run may touch the node.
fn held(timeline: &[TimelineEntry]) -> (DateTime<Utc>, DateTime<Utc>) {
    let entry = |phase| {
        timeline
            .iter()
            .find(|entry| entry.phase == phase)
            .expect("it came so far")
    };
    let over = entry(Phase::CleaningUp).completed_at.expect("it is over");
    (entry(Phase::Deploying).started_at, over)
}

#[tokio::test]
#[ignore = "needs the lab: just races"]
async fn ten_runs_at_once_are_served_one_by_one_in_their_order() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("races").await;
    let create = |number: usize| {
        let mut manifest = quick(&format!("run-{number}"), &namespace);
        // A fraction of what the line takes: standing in it must not count.
        manifest["spec"]["timeouts"]["sizing"] = json!("30s");
        manifest["spec"]["benchmark"]["concurrencyPerGPU"] = json!(4);
        manifest["spec"]["benchmark"]["requestsPerConcurrency"] = json!(2);
        manifest["spec"]["benchmark"]["minRequests"] = json!(16);
        Validation::create(&lab, manifest)
    };
    let began = Utc::now();
    let mut runs = Vec::new();
    for run in join_all((0..RUNS).map(create)).await {
        let object = run.get().await.expect("it exists");
        let created = object.creation_timestamp().expect("a creation time").0;
        runs.push(((created, object.uid().expect("a uid")), run));
    }
    runs.sort_by(|(a, _), (b, _)| a.cmp(b));

    let mut before: Option<(String, DateTime<Utc>)> = None;
    for (_, run) in &runs {
        let status = run.ends(Verdict::Passed).await;
        let (from, to) = held(&status.state.timeline);
        println!(
            "{}: {} s to {} s",
            run.name,
            (from - began).num_seconds(),
            (to - began).num_seconds()
        );
        if let Some((earlier, over)) = before.replace((run.name.clone(), to)) {
            assert!(over <= from, "{} held the node with or before {earlier}", run.name);
        }
        assert_eq!(status.placement.map(|plan| plan.gpus), Some(2));
        assert_eq!(Some(status.state.resizes), Some(0));
        run.left_nothing().await;
    }
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}
