//! Nodes that need attention.

use std::collections::BTreeMap;

use perfval_api::PerfValidation;
use perfval_api::fleet::{NodePerformance, NodePerformanceStatus, Outlier, OutlierReason};
use perfval_fleet::measurement::Measurement;
use perfval_fleet::node::{Change, decide};
use perfval_fleet::policy::find_outliers;
use serde_json::{Value, json};

use crate::{World, ready};

/// Time from token to token of a healthy GPU (µs).
const USUAL: f64 = 8000.0;

/// Runs on nodes with eight GPUs, recorded as the operator does. `time` returns the time from token to token of a GPU (µs).
struct Fleet {
    objects: BTreeMap<String, NodePerformance>,
    random: fastrand::Rng,
}

impl Fleet {
    fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            random: fastrand::Rng::with_seed(7),
        }
    }

    /// Records one run on each of the nodes. `slower` is the loss of a GPU in percent.
    fn run(&mut self, nodes: usize, run: i64, slower: impl Fn(usize, usize) -> f64) {
        for node in 0..nodes {
            let (workers, loads): (Vec<Value>, Vec<Value>) = (0..8)
                .map(|gpu| {
                    // Half a percent of noise.
                    let noise = 1.0 + 0.01 * (self.random.f64() - 0.5);
                    let time = USUAL * noise / (1.0 - slower(node, gpu) / 100.0);
                    (
                        json!({"name": format!("w{gpu}"), "gpus": [format!("GPU-{node}-{gpu}")]}),
                        json!({"name": format!("w{gpu}"), "tokenMs": format!("{:.3}", time / 1000.0)}),
                    )
                })
                .unzip();
            self.record(node, run, "Passed", &workers, &loads);
        }
    }

    fn record(&mut self, node: usize, run: i64, verdict: &str, workers: &[Value], loads: &[Value]) {
        let object: PerfValidation = serde_json::from_value(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {"namespace": "perf", "name": format!("v{node}"), "uid": format!("v{node}-{run}")},
            "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}},
            "status": {
                "observedGeneration": 1, "phase": "Completed", "verdict": verdict,
                "run": {"number": run, "trigger": "Created", "generation": 1,
                        "startedAt": "2026-11-20T10:00:00Z", "completedAt": format!("2026-11-20T11:{run:02}:00Z")},
                "placement": {"node": format!("n{node}"), "allocation": "DRA", "gpus": 8, "nodeGPUs": 8, "product": "NVIDIA H100"},
                "environment": {"digest": "0123456789ab"},
                "workers": workers,
                "operatorState": {"workers": loads},
            },
        }))
        .expect("a validation");
        let status = object.status.as_ref().expect("a status");
        let measured = Measurement::read(&object, status).expect("a measurement");
        let change = decide(&measured, "uid", self.objects.values());
        if let Change::Write(written) | Change::Replace(written) = change {
            self.objects.insert(measured.node, *written);
        }
    }

    fn outliers(&self, change: &Value) -> Vec<Outlier> {
        let statuses: BTreeMap<String, &NodePerformanceStatus> = self
            .objects
            .iter()
            .filter_map(|(name, object)| Some((name.clone(), object.status.as_ref()?)))
            .collect();
        let rules = serde_json::from_value(change.clone()).expect("rules");
        find_outliers(&rules, &statuses, |name| name != "n99")
    }
}

fn found(outliers: &[Outlier]) -> Vec<(&str, Option<&str>, OutlierReason)> {
    outliers
        .iter()
        .map(|outlier| (outlier.node.as_str(), outlier.gpu.as_deref(), outlier.reason))
        .collect()
}

#[test]
fn healthy_nodes_are_no_outliers() {
    let mut fleet = Fleet::new();
    for run in 1..8 {
        fleet.run(12, run, |_, _| 0.0);
    }
    assert_eq!(fleet.outliers(&json!({})), []);
}

#[test]
fn a_gpu_that_became_slower_is_slower_than_itself() {
    let mut fleet = Fleet::new();
    for run in 1..8 {
        fleet.run(12, run, |_, _| 0.0);
    }
    fleet.run(12, 8, |node, gpu| if (node, gpu) == (3, 5) { 12.0 } else { 0.0 });
    let outliers = fleet.outliers(&json!({}));
    assert_eq!(
        found(&outliers),
        [("n3", Some("GPU-3-5"), OutlierReason::SlowerThanItself)]
    );
    let percent = outliers[0].percent.expect("a percentage");
    assert!((86..=90).contains(&percent), "{percent}");
    assert_eq!(outliers[0].validation, "perf/v3");
    // A loss beyond the step by which one run may move the mean is reported whole.
    let mut half = Fleet::new();
    for run in 1..8 {
        half.run(12, run, |_, _| 0.0);
    }
    half.run(12, 8, |node, gpu| if (node, gpu) == (3, 5) { 50.0 } else { 0.0 });
    let percent = half.outliers(&json!({}))[0].percent.expect("a percentage");
    assert!((48..=52).contains(&percent), "{percent}");
    // The same loss is below a larger minimum.
    assert_eq!(fleet.outliers(&json!({"report": {"minimumEffectPercent": 15}})), []);
}

#[test]
fn a_node_that_was_always_slower_is_slower_than_its_peers() {
    let mut fleet = Fleet::new();
    fleet.run(12, 1, |node, _| if node == 4 { 15.0 } else { 0.0 });
    let outliers = fleet.outliers(&json!({}));
    assert_eq!(found(&outliers), [("n4", None, OutlierReason::SlowerThanPeers)]);
    let percent = outliers[0].percent.expect("a percentage");
    assert!((83..=87).contains(&percent), "{percent}");
    assert_eq!(fleet.outliers(&json!({"peers": {"minNodes": 13}})), [], "too few nodes");
}

#[test]
fn a_failed_verdict_is_below_the_gate_and_only_selected_nodes_are_reported() {
    let mut fleet = Fleet::new();
    fleet.record(1, 1, "Failed", &[], &[]);
    fleet.record(99, 1, "Failed", &[], &[]);
    assert_eq!(
        found(&fleet.outliers(&json!({}))),
        [("n1", None, OutlierReason::BelowGate)]
    );
}

#[test]
fn at_most_twenty_outliers_fit_into_a_small_status() {
    let names: Vec<String> = (0..40).map(|number| format!("{number:02}{}", "n".repeat(61))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names, &json!({}));
    world.outliers = names
        .iter()
        .map(|name| Outlier {
            node: (*name).to_owned(),
            gpu: Some("GPU-00000000-0000-0000-0000-000000000000".to_owned()),
            reason: OutlierReason::SlowerThanItself,
            percent: Some(91),
            validation: format!("{}/{}", "n".repeat(63), "v".repeat(63)),
        })
        .collect();
    let mut foreign = world.outliers[0].clone();
    foreign.node = "foreign".to_owned();
    world.outliers.insert(0, foreign);
    let decision = world.decide();
    assert_eq!(decision.status.outliers, world.outliers[1..21]);
    assert_eq!(ready(&decision).1, "Reconciled");
    let bytes = serde_json::to_string(&decision.status).expect("JSON").len();
    assert!(bytes < 32 << 10, "{bytes}");
}
