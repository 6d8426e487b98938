//! Workers with several GPUs each, on all eight of a node.

use perfval_api::Verdict;
use perfval_e2e::{Gpus, Lab, Validation, quick};
use serde_json::{Value, json};

use crate::ready;

/// A run whose workers have `each` GPUs.
fn split(name: &str, namespace: &str, each: i64) -> Value {
    let mut manifest = quick(name, namespace);
    manifest["spec"]["placement"] = json!({"minGPUs": 8});
    let dynamo = &mut manifest["spec"]["workload"]["dynamo"];
    dynamo["worker"]["gpus"] = json!(each);
    dynamo["env"] = json!([{"name": "LAB_GPUS", "value": each.to_string()}]);
    manifest["spec"]["benchmark"]["concurrencyPerGPU"] = json!(4);
    manifest
}

async fn passes(lab: &Lab, namespace: &str, each: i64) {
    let run = Validation::create(lab, split(&format!("each-{each}"), namespace, each)).await;
    let status = run.ends(Verdict::Passed).await;
    let plan = status.placement.expect("a plan");
    assert_eq!((plan.gpus, plan.devices.len()), (8, 8), "{plan:?}");
    let held: Vec<usize> = status.workers.iter().map(|worker| worker.gpus.len()).collect();
    let wanted = usize::try_from(each).expect("a small number");
    assert_eq!(held, vec![wanted; 8 / wanted], "{:?}", status.workers);
    let mut uuids: Vec<&String> = status.workers.iter().flat_map(|worker| &worker.gpus).collect();
    uuids.sort_unstable();
    uuids.dedup();
    assert_eq!(uuids.len(), 8, "each GPU has one worker");
    run.left_nothing().await;
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn eight_gpus_serve_as_four_workers_two_or_one() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-split").await;
    for each in [2, 4, 8] {
        passes(&lab, &namespace, each).await;
    }
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_slow_gpu_names_its_whole_worker() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-split-slow").await;
    let first = Gpus::count(&lab).await.first;
    lab.run(&["fault", "slow-gpu", first.trim_start_matches("gpu-"), "0.3"])
        .await;
    let mut manifest = split("slow", &namespace, 2);
    // In less than some ten seconds of load the workers' speeds are not compared.
    let benchmark = manifest["spec"]["benchmark"].as_object_mut().expect("an object");
    benchmark.retain(|key, _| key != "requestsPerConcurrency" && key != "minRequests");
    benchmark.insert("duration".to_owned(), json!("20s"));
    benchmark.insert("outputTokens".to_owned(), json!(32));
    manifest["spec"]["gates"] =
        json!([{"name": "slowest", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "80"}]);
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Failed).await;
    let slow = status.state.trials.iter().map(|trial| trial.slow_gpus.len()).max();
    assert_eq!(slow, Some(2), "{:?}", status.diagnosis);
    let finding = status.diagnosis.iter().find(|finding| finding.cause == "SlowWorker");
    let evidence = &finding.expect("a finding").evidence;
    assert!(evidence.contains(&first), "{first} is not in {evidence}");
    lab.run(&["fault", "clear"]).await;
    run.delete().await;
}
