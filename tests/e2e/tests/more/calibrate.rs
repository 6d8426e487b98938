//! `kubectl perfval calibrate` finds the knee of an engine whose largest batch is known.

use perfval_e2e::{Gpus, Validation, quick};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::e2e::plugin::folder;
use crate::ready;

/// Requests that the simulated engine runs at once. A token takes it the same time with any batch, so its throughput
/// grows up to here and then no more.
const BATCH: i32 = 40;

/// One GPU with that engine, measured for as long as the demo measures.
fn manifest(namespace: &str) -> Value {
    let mut manifest = quick("knee", namespace);
    let spec = &mut manifest["spec"];
    spec["placement"]["maxGPUs"] = json!(1);
    spec["workload"]["dynamo"]["worker"]["args"] = json!(["--max-num-seqs", BATCH.to_string()]);
    let benchmark = spec["benchmark"].as_object_mut().expect("fields");
    benchmark.retain(|field, _| field != "requestsPerConcurrency" && field != "minRequests");
    benchmark.insert("duration".to_owned(), json!("15s"));
    manifest
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn calibrate_finds_the_knee_of_an_engine_within_ten_percent() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-knee").await;
    let desk = tempfile::tempdir().expect("a folder");
    let (given, written) = (desk.path().join("given.json"), desk.path().join("calibrated.yaml"));
    std::fs::write(&given, manifest(&namespace).to_string()).expect("written");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("kubectl")
        .args([
            "perfval",
            "calibrate",
            "--from=8",
            "--to=512",
            "--runs=1",
            "-n",
            &namespace,
        ])
        .arg("--filename")
        .arg(&given)
        .arg("--output")
        .arg(&written)
        .env("PATH", format!("{}:{path}", folder().display()))
        .kill_on_drop(true)
        .output()
        .await
        .expect("kubectl starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success(), "{text}");
    let knee = text.split("knee: ").nth(1).and_then(|rest| rest.split(' ').next());
    let knee: i32 = knee.and_then(|knee| knee.parse().ok()).expect("a knee");
    assert!((knee * 10 - BATCH * 10).abs() <= BATCH, "{knee} of {BATCH}");

    // The manifest is admitted, and a healthy engine meets its gates.
    lab.kubectl(&["create", "-f", &written.to_string_lossy()]).await;
    let run = Validation::existing(&lab, &namespace, "knee");
    run.ends(perfval_api::Verdict::Passed).await;
    run.delete().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
}
