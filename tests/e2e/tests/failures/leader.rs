//! A leader that the API server does not hear of any more.

use std::time::Duration;

use chrono::Utc;
use perfval_api::{Phase, Verdict};
use perfval_e2e::takeover::{Account, Takeover, api_server, created, holds};
use perfval_e2e::{Audit, OutOfCluster, Relay, Validation, quick};
use tokio::time::timeout;

use crate::ready;

const LEASE: &str = "fail-cut";

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_leader_that_is_cut_off_ends_and_its_successor_goes_on() {
    let (lab, installed) = ready().await;
    // With an operator, which removes what an earlier attempt left.
    let namespace = lab.namespace("fail-cut").await;
    installed.scale(0).await;
    let way = Relay::to(api_server(&lab).await).await.expect("a relay");
    let one = Account::through(&lab, "first", Some(&format!("https://{}", way.address))).await;
    let other = Account::of(&lab, "second").await;
    let since = Utc::now();
    let first = OutOfCluster::elected(LEASE, &one);
    holds(&lab, LEASE, "first", Duration::from_mins(1)).await;
    let second = OutOfCluster::elected(LEASE, &other);
    let run = Validation::create(&lab, quick("cut", &namespace)).await;
    run.phase(Phase::Benchmarking).await;
    let cut = Utc::now();
    way.cut();
    holds(&lab, LEASE, "second", Duration::from_mins(1)).await;
    let ended_well = timeout(Duration::from_secs(20), first.ended()).await;
    assert_eq!(ended_well, Ok(false), "it leads no more, and says so by its end");
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(status.run.map(|run| run.number), Some(1), "the same run goes on");
    assert_eq!(
        status.state.trials.len(),
        1,
        "no trial is repeated: {:?}",
        status.state.trials
    );
    let calls = Audit::calls(&lab, since).await;
    let takeover = Takeover::of(&calls, LEASE, "first", "second").expect("one acts after the other");
    println!("{takeover:?}, {} s after the cut", (takeover.taken - cut).num_seconds());
    assert_eq!(created(&calls, "jobs", &namespace), 1, "one Job for one trial");
    run.delete().await;
    second.kill().await;
    installed.scale(1).await;
}
