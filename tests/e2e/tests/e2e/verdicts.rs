//! A healthy deployment passes with its numbers, and one without gates is skipped.

use perfval_api::{Phase, Verdict, condition};
use perfval_e2e::{Audit, Gpus, Validation, quick};
use serde_json::json;

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn a_healthy_node_passes_and_shows_its_numbers() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-pass").await;
    let since = chrono::Utc::now();
    let run = Validation::create(&lab, quick("healthy", &namespace)).await;
    let status = run.ends(Verdict::Passed).await;
    let audit = Audit::read(&lab, &namespace, since).await;
    assert!(
        (10..=25).contains(&audit.total()),
        "a run of one trial made {} API writes: {:?}",
        audit.total(),
        audit.writes
    );

    assert_eq!(status.reason.as_deref(), Some("GatesMet"));
    let metrics = status.state.metrics.as_ref().expect("metrics");
    assert!(
        metrics.output_token_throughput.is_some() && metrics.ttft_p99_ms.is_some(),
        "{metrics:?}"
    );
    assert_eq!(status.state.trials.len(), 1);
    assert_eq!(status.state.trials[0].errors, Some(0));
    let placement = status.placement.as_ref().expect("placement");
    assert_eq!((placement.gpus, placement.node_gpus), (2, 8));
    let devices = &placement.devices;
    assert!(
        devices.len() == 2 && devices.iter().all(|device| device.starts_with("GPU-")),
        "{placement:?}"
    );

    let phases: Vec<Phase> = status.state.timeline.iter().map(|entry| entry.phase).collect();
    assert_eq!(
        phases,
        [
            Phase::Pending,
            Phase::Sizing,
            Phase::Deploying,
            Phase::WaitingForReady,
            Phase::Benchmarking,
            Phase::Evaluating,
            Phase::CleaningUp
        ]
    );
    for (kind, value) in [
        (condition::READY, "True"),
        (condition::RECONCILING, "False"),
        (condition::STALLED, "False"),
        (condition::CLEANED_UP, "True"),
    ] {
        let found = condition::find(&status, kind).expect(kind);
        assert_eq!(found.status, value, "{found:?}");
    }
    let results = status.results_ref.as_ref().expect("results");
    let saved = lab
        .kubectl(&["get", "configmap", &results.name, "-n", &namespace, "-o", "json"])
        .await;
    assert!(saved.contains("trial-1.json.gz"), "{saved}");
    run.left_nothing().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);

    let table = lab.kubectl(&["get", "perfvalidations", "-n", &namespace]).await;
    assert!(
        table.contains("PHASE") && table.contains("Completed") && table.contains("Passed"),
        "{table}"
    );
    let events = lab
        .kubectl(&[
            "get",
            "events",
            "-n",
            &namespace,
            "-o",
            "jsonpath={range .items[*]}{.reason}/{.action} {end}",
        ])
        .await;
    // The phases are in the status.
    for event in ["Running/Deploying1 ", "GatesMet/Judge1 "] {
        assert!(events.contains(event), "no event {event}in {events}");
    }
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn without_gates_nothing_is_touched() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-skip").await;
    let mut manifest = quick("skip", &namespace);
    manifest["spec"]["gates"] = json!([]);
    let since = chrono::Utc::now();
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Skipped).await;
    assert_eq!(status.reason.as_deref(), Some("NothingToJudge"));
    assert!(status.placement.is_none(), "{:?}", status.placement);
    run.delete().await;
    let writes = Audit::read(&lab, &namespace, since).await.writes;
    let touches_nothing = |kind: &String| kind.starts_with("perfvalidations") || kind == "events";
    assert!(!writes.is_empty() && writes.keys().all(touches_nothing), "{writes:?}");
}
