//! An operator that is away, or stands still, for longer than its limits and its lease.

use std::time::Duration;

use chrono::Utc;
use perfval_api::{Phase, Verdict};
use perfval_e2e::takeover::{Account, Takeover, created, holds};
use perfval_e2e::{Audit, OutOfCluster, Validation, quick};
use serde_json::json;
use tokio::time::timeout;

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn an_operator_that_is_away_for_longer_than_a_limit_fails_nothing() {
    let (lab, installed) = ready().await;
    let namespace = lab.namespace("e2e-away").await;
    // Otherwise Dynamo is ready before the operator is back, and the limit that passed is no longer asked.
    lab.run(&["fault", "dgd", &format!("never-ready@{namespace}")]).await;
    let mut manifest = quick("away", &namespace);
    manifest["spec"]["timeouts"]["workloadReady"] = json!("30s");
    let run = Validation::create(&lab, manifest).await;
    run.phase(Phase::WaitingForReady).await;
    installed.scale(0).await;
    // The outage itself: half as long again as the whole limit.
    tokio::time::sleep(Duration::from_secs(45)).await;
    installed.scale(1).await;
    let looked = run
        .until("the outage is noticed, or the run is over", |status| {
            !status.state.gaps.is_empty() || status.phase == Some(Phase::Completed)
        })
        .await;
    assert_eq!(looked.phase, Some(Phase::WaitingForReady), "{:?}", looked.message);
    lab.run(&["fault", "clear"]).await;
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(status.run.map(|run| run.number), Some(1), "the same run goes on");
    run.left_nothing().await;
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_leader_that_was_frozen_for_a_minute_does_nothing_more() {
    let (lab, installed) = ready().await;
    installed.scale(0).await;
    let namespace = lab.namespace("e2e-frozen").await;
    let [one, other] = [Account::of(&lab, "first").await, Account::of(&lab, "second").await];
    let since = Utc::now();
    let first = OutOfCluster::elected("e2e-frozen", &one);
    holds(&lab, "e2e-frozen", "first", Duration::from_secs(30)).await;
    let second = OutOfCluster::elected("e2e-frozen", &other);
    let run = Validation::create(&lab, quick("frozen", &namespace)).await;
    run.phase(Phase::Benchmarking).await;
    let frozen = Utc::now();
    first.signal("STOP").await;
    holds(&lab, "e2e-frozen", "second", Duration::from_mins(1)).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    first.signal("CONT").await;
    let ended_well = timeout(Duration::from_secs(20), first.ended()).await;
    assert_eq!(ended_well, Ok(false), "it leads no more, and says so by its end");
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(
        status.run.as_ref().map(|run| run.number),
        Some(1),
        "the same run goes on"
    );
    assert_eq!(
        status.state.trials.len(),
        1,
        "no trial is repeated: {:?}",
        status.state.trials
    );
    holds(&lab, "e2e-frozen", "second", Duration::from_secs(5)).await;
    // The API server's own word, the minute after the thaw included.
    let calls = Audit::calls(&lab, since).await;
    let takeover = Takeover::of(&calls, "e2e-frozen", "first", "second").expect("one acts after the other");
    println!(
        "{takeover:?}, {} s after the freeze",
        (takeover.taken - frozen).num_seconds()
    );
    assert_eq!(created(&calls, "jobs", &namespace), 1, "one Job for one trial");
    run.left_nothing().await;
    run.delete().await;
    second.kill().await;
    installed.scale(1).await;
}
