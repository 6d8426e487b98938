//! An operator that is killed at any moment goes on where it was. It runs outside the cluster here, with a kubeconfig.

use std::time::Duration;

use perfval_api::{Phase, Verdict};
use perfval_e2e::{OutOfCluster, Validation, eventually, quick};

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn an_operator_killed_in_phase_after_phase_and_a_restarted_api_server_change_no_verdict() {
    let (lab, installed) = ready().await;
    installed.scale(0).await;
    let namespace = lab.namespace("e2e-kill").await;
    let mut operator = OutOfCluster::start();
    let run = Validation::create(&lab, quick("killed", &namespace)).await;
    let mut killed_in = Vec::new();
    loop {
        // The next phase that no operator was killed in yet, or the end of the run.
        let phase = eventually("the next phase", Duration::from_mins(4), || async {
            match run.status().await?.phase {
                Some(phase) if !killed_in.contains(&phase) => Ok(phase),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        if phase == Phase::Completed {
            break;
        }
        operator.kill().await;
        if phase == Phase::WaitingForReady {
            lab.run(&["fault", "restart-apiserver"]).await;
        }
        killed_in.push(phase);
        operator = OutOfCluster::start();
    }
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
    // Other phases may be over before a look.
    for phase in [Phase::WaitingForReady, Phase::Benchmarking, Phase::CleaningUp] {
        assert!(killed_in.contains(&phase), "{killed_in:?}");
    }
    println!("killed in {killed_in:?}");
    run.left_nothing().await;
    run.delete().await;
    operator.kill().await;
    installed.scale(1).await;
}
