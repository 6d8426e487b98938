//! A whole run on one release of Dynamo, which `PERFVAL_DYNAMO` names: `just dynamo-versions`.

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::{Finding, TrialOutcome, Verdict};
use perfval_e2e::{Gpus, Lab, Operator, Validation, quick};
use serde_json::{Value, json};

/// From a container's start until the pod's status is known to count it.
const SETTLED: TimeDelta = TimeDelta::seconds(10);

/// When the kubelet started a worker's container again after it had killed it; Events outlive their pod.
async fn restarted(lab: &Lab, namespace: &str, pod: &str) -> Option<DateTime<Utc>> {
    let of_pod = format!("involvedObject.name={pod}");
    let get = [
        "get",
        "events",
        "-n",
        namespace,
        "-o",
        "json",
        "--field-selector",
        &of_pod,
    ];
    let events: Value = serde_json::from_str(&lab.kubectl(&get).await).expect("a list of events");
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let killed = events.iter().any(|event| {
        let says = event["message"].as_str().unwrap_or_default();
        event["reason"] == "Killing" && says.contains("failed liveness probe")
    });
    let started = events
        .iter()
        .filter(|event| event["reason"] == "Started" && event["count"].as_i64() > Some(1));
    let at = started
        .filter_map(|event| event["lastTimestamp"].as_str()?.parse().ok())
        .max();
    at.filter(|_| killed)
}

async fn ready() -> (Lab, String, Operator) {
    let (lab, operator) = perfval_e2e::ready().await;
    let version = std::env::var("PERFVAL_DYNAMO").expect("PERFVAL_DYNAMO names the release");
    (lab, version, operator)
}

fn on(version: &str, name: &str, namespace: &str) -> Value {
    let mut manifest = quick(name, namespace);
    let image = format!("localhost/dynamo-lab:{version}");
    manifest["spec"]["workload"]["dynamo"]["image"] = json!(image);
    manifest["spec"]["benchmark"]["image"] = json!(image);
    manifest
}

/// The whole status is printed: it is what docs/compatibility.md is written from.
#[tokio::test]
#[ignore = "needs the lab: just dynamo-versions"]
async fn a_healthy_node_passes() {
    let (lab, version, _operator) = ready().await;
    let namespace = lab.namespace("version-pass").await;
    let run = Validation::create(&lab, on(&version, "healthy", &namespace)).await;
    let status = run.ends(Verdict::Passed).await;
    let metrics = status.state.metrics.as_ref().expect("metrics");
    println!(
        "Dynamo {version}: {:?} tok/s, {:?}",
        metrics.output_token_throughput, status.message
    );
    assert_eq!(
        status
            .state
            .environment
            .as_ref()
            .and_then(|environment| environment.dynamo.as_deref()),
        Some(version.as_str())
    );
    assert_eq!(
        status.state.workers.len(),
        2,
        "both workers were sampled: {:?}",
        status.diagnosis
    );
    run.left_nothing().await;
    run.delete().await;
}

/// A worker that stands still. Whether it stalls or crashes is the kubelet's to say: one that its liveness probe restarted
/// within the trial crashed, as every release before 1.5 does after one missed answer; one that stood still to the trial's
/// end stalled. Neither passes, and both name it.
#[tokio::test]
#[ignore = "needs the lab: just dynamo-versions"]
async fn a_worker_that_freezes_is_reported_as_frozen() {
    let (lab, version, _operator) = ready().await;
    let namespace = lab.namespace("version-freeze").await;
    let mut manifest = on(&version, "freeze", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(3000);
    manifest["spec"]["benchmark"]["requestTimeout"] = json!("30s");
    manifest["spec"]["timeouts"]["benchmark"] = json!("3m");
    let run = Validation::create(&lab, manifest).await;
    run.phase(perfval_api::Phase::Benchmarking).await;
    let pod = lab.first_pod(&namespace, "worker").await;
    lab.run(&["fault", "freeze", &format!("{namespace}/{pod}")]).await;
    let status = run.phase(perfval_api::Phase::Completed).await;
    println!(
        "Dynamo {version}, frozen worker: {:?} {:?}: {:?}",
        status.verdict, status.reason, status.message
    );
    for finding in &status.diagnosis {
        println!("  {:?} {}: {}", finding.severity, finding.cause, finding.evidence);
    }
    assert_ne!(status.verdict, Some(Verdict::Passed));
    assert_ne!(status.state.trials[0].outcome, Some(TrialOutcome::Pass));
    let restarted = restarted(&lab, &namespace, &pod).await;
    println!("  the kubelet restarted it: {restarted:?}");
    for trial in &status.state.trials {
        let (began, ended) = (trial.started_at, trial.completed_at.expect("the run is over"));
        let has = |cause: &str| trial.causes.iter().any(|known| known == cause);
        match restarted {
            // An earlier trial has it.
            Some(at) if at < began => {}
            Some(at) if at + SETTLED < ended => {
                assert!(has("WorkerCrashed"), "restarted, and told as {:?}", trial.causes);
            }
            // The count of restarts in the pod's status is seconds behind.
            Some(at) if at <= ended => {}
            _ => {
                assert!(has("WorkerStall"), "stood still, and is told as {:?}", trial.causes);
                assert!(!has("WorkerCrashed"), "never restarted, and told as {:?}", trial.causes);
            }
        }
    }
    let told = ["WorkerStall", "WorkerCrashed"];
    let names_it = |finding: &Finding| told.contains(&finding.cause.as_str()) && finding.evidence.contains(&pod);
    assert!(
        status.diagnosis.iter().any(names_it),
        "{pod} is not named in {:?}",
        status.diagnosis
    );
    run.delete().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}

/// A worker that is ten times slower still answers its canaries: it is slow, and neither frozen nor crashed.
#[tokio::test]
#[ignore = "needs the lab: just dynamo-versions"]
async fn a_worker_that_is_slow_is_reported_as_slow() {
    let (lab, version, _operator) = ready().await;
    let namespace = lab.namespace("version-slow").await;
    let first = Gpus::count(&lab).await.first;
    lab.run(&["fault", "slow-gpu", first.trim_start_matches("gpu-"), "0.1"])
        .await;
    let mut manifest = on(&version, "slow", &namespace);
    manifest["spec"]["placement"]["maxGPUs"] = json!(3);
    manifest["spec"]["benchmark"]["minRequests"] = json!(400);
    let run = Validation::create(&lab, manifest).await;
    let status = run.phase(perfval_api::Phase::Completed).await;
    println!(
        "Dynamo {version}, slow worker: {:?} {:?}: {:?}",
        status.verdict, status.reason, status.message
    );
    let causes = &status.state.trials[0].causes;
    assert!(causes.contains(&"WorkerStall".to_owned()), "{:?}", status.diagnosis);
    assert!(!causes.contains(&"WorkerCrashed".to_owned()), "{:?}", status.diagnosis);
    assert_eq!(status.verdict, Some(Verdict::Failed));
    lab.run(&["fault", "clear"]).await;
    run.left_nothing().await;
    run.delete().await;
}
