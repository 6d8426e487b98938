//! GPUs of others are left alone, and one that another pod takes at the last moment is missed at once.

use std::collections::BTreeSet;

use perfval_api::{Phase, PlanDetails, Verdict};
use perfval_e2e::{Holder, Validation, quick};
use serde_json::json;

use crate::ready;

const CONTROLLERS: &str = "kube-controller-manager";

fn devices(plan: &PlanDetails) -> BTreeSet<String> {
    plan.device_ids.iter().map(|device| device.name.clone()).collect()
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_gpu_lost_between_plan_and_start_is_named_and_the_run_makes_do_with_the_rest() {
    let (lab, _operator) = ready().await;
    let others = lab.namespace("e2e-others").await;
    let namespace = lab.namespace("e2e-sharing").await;
    let trainer = Holder::by_claim(&lab, &others, "trainer", 3).await.holding().await;
    let held = trainer.devices().await;
    assert_eq!(held.len(), 3);

    let mut manifest = quick("rest", &namespace);
    manifest["spec"]["placement"] = json!({});
    // Without controllers a deployment has no pods that could be scheduled before the thief.
    lab.run(&["fault", "stop", CONTROLLERS]).await;
    let run = Validation::create(&lab, manifest).await;
    let status = run
        .until("the plan is final", |status| {
            matches!(status.phase, Some(Phase::Deploying | Phase::WaitingForReady))
        })
        .await;
    let thief = Holder::by_claim(&lab, &others, "thief", 1).await.holding().await;
    lab.run(&["fault", "start", CONTROLLERS]).await;
    let stolen = thief.devices().await;
    let plan = status.placement.expect("a plan");
    assert_eq!((plan.gpus, plan.node_gpus), (5, 8), "{plan:?}");
    assert!(devices(&status.state.plan).is_disjoint(&held), "{plan:?} and {held:?}");
    assert!(
        stolen.is_subset(&devices(&status.state.plan)),
        "{plan:?} and {stolen:?}"
    );

    let status = run.ends(Verdict::Passed).await;
    let plan = status.placement.expect("a plan");
    assert_eq!((plan.gpus, plan.node_gpus), (4, 8), "{plan:?}");
    assert!(devices(&status.state.plan).is_disjoint(&held) && devices(&status.state.plan).is_disjoint(&stolen));
    assert_eq!(Some(status.state.resizes), Some(1));
    let lost = status.diagnosis.iter().find(|finding| finding.cause == "LostRace");
    let lost = lost.unwrap_or_else(|| panic!("no lost race in {:?}", status.diagnosis));
    // Whoever may read this object need not be allowed to see the other namespace's.
    let evidence = &lost.evidence;
    assert!(evidence.contains("a claim of another namespace has gpu-"), "{evidence}");
    assert!(
        !evidence.contains("thief") && !evidence.contains("e2e-others"),
        "{evidence}"
    );
    run.delete().await;
    thief.leave().await;
    trainer.leave().await;
}
