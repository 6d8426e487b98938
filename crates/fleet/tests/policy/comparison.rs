//! Comparison of nodes: suspicion, confirmation, and the check of the p-values.

use std::collections::BTreeMap;

use perfval_api::fleet::{
    NodeIdentity, NodePerformance, NodePerformanceStatus, Outlier, OutlierConfidence, OutlierReason, StatisticsText,
};
use perfval_api::{PerfValidation, Verdict};
use perfval_fleet::baseline::Approved;
use perfval_fleet::measurement::Measurement;
use perfval_fleet::node::{NodeChange, decide};
use perfval_fleet::policy::{NodeComparison, Suspicion, compare_nodes};
use serde_json::{Value, json};

use crate::{World, ready};

/// Time from token to token of a healthy GPU (µs).
const USUAL: f64 = 8000.0;

/// Runs on nodes with eight GPUs, recorded as the operator does. `time` returns the time from token to token of a GPU (µs).
pub struct Fleet {
    pub objects: BTreeMap<String, NodePerformance>,
    random: fastrand::Rng,
}

impl Fleet {
    pub fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            random: fastrand::Rng::with_seed(7),
        }
    }

    /// Records one run on each of the nodes. `slower` is the loss of a GPU in percent.
    pub fn run(&mut self, nodes: usize, run: i64, slower: impl Fn(usize, usize) -> f64) {
        for node in 0..nodes {
            self.run_node(node, run, "Stale", |gpu| slower(node, gpu));
        }
    }

    /// Records a run on one node. Half a percent is noise.
    pub fn run_node(&mut self, node: usize, run: i64, reason: &str, slower: impl Fn(usize) -> f64) {
        let (workers, loads): (Vec<Value>, Vec<Value>) = (0..8)
            .map(|gpu| {
                let noise = 1.0 + 0.01 * (self.random.f64() - 0.5);
                let time = USUAL * noise / (1.0 - slower(gpu) / 100.0);
                (
                    json!({"name": format!("w{gpu}"), "gpus": [format!("GPU-{node}-{gpu}")]}),
                    json!({"name": format!("w{gpu}"), "tokenMsOfTrials": [format!("{:.3}", time / 1000.0)]}),
                )
            })
            .unzip();
        self.record(node, run, reason, "Passed", &(workers, loads));
    }

    /// Records a run with these published workers and their loads.
    fn record(
        &mut self,
        node: usize,
        run: i64,
        reason: &str,
        verdict: &str,
        (workers, loads): &(Vec<Value>, Vec<Value>),
    ) {
        let object: PerfValidation = serde_json::from_value(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {
                "namespace": "perf", "name": format!("v{node}"), "uid": format!("v{node}-{run}"),
                "annotations": {"perfvalidation.dev/due-reason": reason},
                "ownerReferences": [{
                    "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "name": "p", "uid": "uid-p",
                    "controller": true,
                }],
            },
            "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}},
            "status": {
                "observedGeneration": 1, "phase": "Completed", "verdict": verdict,
                "run": {"number": 1, "trigger": "Created", "generation": 1,
                        "startedAt": format!("2026-11-20T11:{:02}:30Z", run - 1), "completedAt": format!("2026-11-20T11:{run:02}:00Z")},
                "placement": {"node": format!("n{node}"), "allocation": "DRA", "gpus": 8, "nodeGPUs": 8, "product": "NVIDIA H100"},
                "environment": {"digest": "0123456789ab", "aiperf": "0.13.0"},
                "workers": workers,
                "operatorState": {"workers": loads},
            },
        }))
        .expect("a validation");
        let status = object.status.as_ref().expect("a status");
        let measured = Measurement::read(&object, status).expect("a measurement");
        let change = decide(
            &measured,
            &NodeIdentity::default(),
            self.objects.values(),
            std::iter::empty(),
            |_| None,
        );
        if let NodeChange::Write(written) | NodeChange::Replace(written) = change {
            self.objects.insert(measured.node, *written);
        }
    }

    pub fn statuses(&self) -> BTreeMap<String, &NodePerformanceStatus> {
        let objects = self.objects.iter();
        let statuses = objects.filter_map(|(name, object)| Some((name.clone(), object.status.as_ref()?)));
        statuses.collect()
    }

    fn compare(&self, change: &Value) -> NodeComparison {
        let rules = serde_json::from_value(change.clone()).expect("rules");
        compare_nodes(&rules, &self.statuses(), &Approved::new(), |name| name != "n99")
    }

    fn outliers(&self, change: &Value) -> Vec<Outlier> {
        self.compare(change).outliers
    }
}

pub type Found<'a> = (&'a str, Option<&'a str>, OutlierReason, Option<OutlierConfidence>);

pub fn found(outliers: &[Outlier]) -> Vec<Found<'_>> {
    let found = outliers.iter().map(|outlier| {
        let (node, gpu) = (outlier.node.as_str(), outlier.gpu.as_deref());
        (node, gpu, outlier.reason, outlier.confidence)
    });
    found.collect()
}

/// Twelve nodes with seven runs each.
fn healthy() -> Fleet {
    healthy_nodes(12)
}

fn healthy_nodes(nodes: usize) -> Fleet {
    let mut fleet = Fleet::new();
    for run in 1..8 {
        fleet.run(nodes, run, |_, _| 0.0);
    }
    fleet
}

#[test]
fn healthy_nodes_are_no_outliers() {
    let compared = healthy().compare(&json!({}));
    assert_eq!(compared.outliers, []);
    assert!(compared.suspects.is_empty());
    assert!(!compared.calibration.is_poor && compared.calibration.values > 100);
}

#[test]
fn a_gpu_that_became_slower_is_suspected_until_a_new_deployment_shows_it_too() {
    let slow = |loss: f64| move |gpu: usize| if gpu == 5 { loss } else { 0.0 };
    let mut fleet = healthy();
    fleet.run(12, 8, |node, gpu| if node == 3 { slow(12.0)(gpu) } else { 0.0 });
    let compared = fleet.compare(&json!({}));
    let (gpu, reason) = (Some("GPU-3-5"), OutlierReason::SlowerThanItself);
    assert_eq!(
        found(&compared.outliers),
        [("n3", gpu, reason, Some(OutlierConfidence::Suspected))]
    );
    let percent = compared.outliers[0].percent.expect("a percentage");
    assert!((86..=90).contains(&percent), "{percent}");
    assert_eq!(compared.outliers[0].validation, "perf/v3");
    let measured_at = fleet.objects["n3"].status.as_ref().expect("a status").measured_at;
    let suspicion = |is_decisive| Suspicion {
        measured_at,
        is_decisive,
    };
    assert_eq!(compared.suspects.get("n3"), Some(&suspicion(false)));
    assert_eq!(compared.suspects.len(), 1);
    // The same loss is below a larger minimum.
    assert_eq!(fleet.outliers(&json!({"report": {"minimumEffectPercent": 15}})), []);
    // Trials near a gate may disagree, and their numbers count all the same.
    let verdict = |fleet: &mut Fleet, verdict| {
        fleet
            .objects
            .get_mut("n3")
            .and_then(|object| object.status.as_mut())
            .expect("a status")
            .verdict = verdict;
    };
    verdict(&mut fleet, Verdict::Inconclusive);
    assert_eq!(fleet.compare(&json!({})), compared);
    verdict(&mut fleet, Verdict::Passed);

    fleet.run_node(3, 9, "Confirmation", slow(12.0));
    let compared = fleet.compare(&json!({}));
    assert_eq!(
        found(&compared.outliers),
        [("n3", gpu, reason, Some(OutlierConfidence::Suspected))],
        "the first one only chooses"
    );
    assert!(compared.suspects["n3"].is_decisive);
    fleet.run_node(3, 10, "Confirmation", slow(12.0));
    let compared = fleet.compare(&json!({}));
    assert_eq!(
        found(&compared.outliers),
        [("n3", gpu, reason, Some(OutlierConfidence::Actionable))]
    );
    assert!(compared.suspects.is_empty(), "two confirmations are enough");
    // The loss was not learned: the next run shows it again.
    fleet.run_node(3, 11, "Stale", slow(12.0));
    assert_eq!(
        found(&fleet.outliers(&json!({}))),
        [("n3", gpu, reason, Some(OutlierConfidence::Suspected))]
    );
}

#[test]
fn a_run_without_speeds_leaves_an_outlier_and_its_suspicion() {
    let mut fleet = healthy();
    fleet.run_node(3, 8, "Stale", |gpu| if gpu == 5 { 12.0 } else { 0.0 });
    let before = fleet.compare(&json!({}));
    fleet.record(3, 9, "Confirmation", "Inconclusive", &(Vec::new(), Vec::new()));
    let compared = fleet.compare(&json!({}));
    assert_eq!(compared.outliers, before.outliers);
    assert_eq!(found(&compared.outliers).len(), 1);
    assert!(compared.suspects["n3"].measured_at > before.suspects["n3"].measured_at);
    fleet.run_node(3, 10, "Confirmation", |_| 0.0);
    let compared = fleet.compare(&json!({}));
    assert_eq!((found(&compared.outliers), compared.suspects.len()), (vec![], 0));
}

#[test]
fn a_loss_that_a_new_deployment_does_not_show_is_no_outlier() {
    let mut fleet = healthy();
    fleet.run_node(3, 8, "Stale", |gpu| if gpu == 5 { 50.0 } else { 0.0 });
    let percent = fleet.outliers(&json!({}))[0].percent.expect("a percentage");
    assert!((48..=52).contains(&percent), "{percent}");
    fleet.run_node(3, 9, "Confirmation", |_| 0.0);
    let compared = fleet.compare(&json!({}));
    assert_eq!((found(&compared.outliers), compared.suspects.len()), (vec![], 0));
}

#[test]
fn a_deciding_run_that_is_not_sure_is_repeated_once() {
    let slow = |loss: f64| move |gpu: usize| if gpu == 5 { loss } else { 0.0 };
    let mut fleet = healthy();
    for (run, reason, loss) in [(8, "Stale", 12.0), (9, "Confirmation", 12.0), (10, "Confirmation", 3.8)] {
        fleet.run_node(3, run, reason, slow(loss));
    }
    let compared = fleet.compare(&json!({}));
    let suspected = Some(OutlierConfidence::Suspected);
    assert_eq!(compared.outliers[0].confidence, suspected);
    assert!(compared.suspects["n3"].is_decisive);

    let mut not_slow = Fleet {
        objects: fleet.objects.clone(),
        random: fleet.random.clone(),
    };
    not_slow.run_node(3, 11, "Confirmation", slow(3.8));
    let compared = not_slow.compare(&json!({}));
    assert_eq!((found(&compared.outliers), compared.suspects.len()), (vec![], 0));

    fleet.run_node(3, 11, "Confirmation", slow(12.0));
    let compared = fleet.compare(&json!({}));
    assert_eq!(compared.outliers[0].confidence, Some(OutlierConfidence::Actionable));
    assert!(compared.suspects.is_empty());

    // Beyond the loss, and beyond the promised share of wrong names.
    let strict = json!({"act": {"minimumEffectPercent": 20}});
    assert_eq!(
        fleet.outliers(&strict)[0].confidence,
        Some(OutlierConfidence::Confirmed)
    );
}

#[test]
fn a_small_loss_is_confirmed_and_not_actionable() {
    let mut fleet = healthy();
    for (run, reason) in [(8, "Stale"), (9, "Confirmation"), (10, "Confirmation")] {
        fleet.run_node(3, run, reason, |_| 7.0);
    }
    for node in 4..7 {
        fleet.run_node(node, 11, "Stale", |_| 0.0);
    }
    let outliers = fleet.outliers(&json!({"report": {"falseDiscoveryPercent": 20}}));
    assert_eq!(
        found(&outliers),
        [(
            "n3",
            None,
            OutlierReason::SlowerThanItself,
            Some(OutlierConfidence::Confirmed)
        )]
    );
}

/// Whole nodes are blamed for no change of all, and a GPU is compared with the others of its node, which share it.
#[test]
fn a_slow_gpu_is_found_while_all_nodes_change() {
    for (all, percent) in [(5.0, -5), (-5.0, 5)] {
        let slow = 100.0 - 0.85 * (100.0 - all);
        let loss = |gpu: usize| if gpu == 5 { slow } else { all };
        let mut fleet = healthy();
        fleet.run(12, 8, |node, gpu| if node == 3 { loss(gpu) } else { all });
        let named = |confidence| ("n3", Some("GPU-3-5"), OutlierReason::SlowerThanItself, Some(confidence));
        let compared = fleet.compare(&json!({}));
        assert_eq!(
            found(&compared.outliers),
            [named(OutlierConfidence::Suspected)],
            "{percent}"
        );
        assert_eq!(compared.suspects.len(), 1);
        for run in [9, 10] {
            fleet.run_node(3, run, "Confirmation", loss);
        }
        let compared = fleet.compare(&json!({}));
        assert_eq!(
            found(&compared.outliers),
            [named(OutlierConfidence::Actionable)],
            "{percent}"
        );
        assert!(compared.suspects.is_empty());
        let shift = compared.shifted.as_ref().expect("a shift");
        assert_eq!(
            (shift.environment.as_str(), shift.percent, shift.nodes),
            ("0123456789ab", percent, 12)
        );
        for (run, reason) in [(11, "Stale"), (12, "Confirmation"), (13, "Confirmation")] {
            fleet.run_node(7, run, reason, |_| 20.0);
        }
        assert_eq!(
            found(&fleet.outliers(&json!({}))),
            [named(OutlierConfidence::Actionable)],
            "{percent}"
        );
    }
    assert_eq!(healthy().compare(&json!({})).shifted, None);
}

#[test]
fn selected_nodes_that_pass_without_speeds_are_noticed() {
    let mut fleet = Fleet::new();
    let lacks_speeds = |fleet: &Fleet| fleet.compare(&json!({})).lacks_speeds;
    let without = (Vec::new(), Vec::new());
    fleet.record(1, 1, "Stale", "Failed", &without);
    fleet.record(99, 1, "Stale", "Passed", &without);
    assert!(!lacks_speeds(&fleet));
    fleet.record(2, 1, "Stale", "Passed", &without);
    assert!(lacks_speeds(&fleet));
    fleet.run_node(3, 1, "Stale", |_| 0.0);
    assert!(!lacks_speeds(&fleet));
}

#[test]
fn a_node_that_was_always_slower_is_slower_than_its_peers() {
    let mut fleet = Fleet::new();
    fleet.run(12, 1, |node, _| if node == 4 { 15.0 } else { 0.0 });
    fleet.run_node(4, 2, "Confirmation", |_| 15.0);
    let once = fleet.compare(&json!({}));
    assert_eq!(once.outliers[0].confidence, Some(OutlierConfidence::Suspected));
    assert!(
        once.suspects.contains_key("n4"),
        "the first run of a machine decides nothing"
    );
    fleet.run_node(4, 3, "Confirmation", |_| 15.0);
    let outliers = fleet.outliers(&json!({}));
    let confirmed = Some(OutlierConfidence::Confirmed);
    assert_eq!(
        found(&outliers),
        [("n4", None, OutlierReason::SlowerThanPeers, confirmed)]
    );
    let percent = outliers[0].percent.expect("a percentage");
    assert!((83..=87).contains(&percent), "{percent}");
    assert_eq!(fleet.outliers(&json!({"peers": {"minNodes": 13}})), [], "too few nodes");
}

#[test]
fn many_slow_nodes_at_once_are_reported_and_none_is_actionable() {
    let slow = |nodes: usize| {
        let mut fleet = healthy();
        for node in 0..nodes {
            for (run, reason) in [(8, "Stale"), (9, "Confirmation"), (10, "Confirmation")] {
                fleet.run_node(node, run, reason, |gpu| if gpu == 5 { 15.0 } else { 0.0 });
            }
        }
        let compared = fleet.compare(&json!({}));
        let is_actionable = |outlier: &&Outlier| outlier.confidence == Some(OutlierConfidence::Actionable);
        let actionable = compared.outliers.iter().filter(is_actionable).count();
        (compared.outliers.len(), actionable, compared.too_many)
    };
    assert_eq!(slow(2), (2, 2, None));
    assert_eq!(slow(3), (3, 0, Some(3)));
}

/// A policy with small budgets confirms the first slow nodes before it measures others.
#[test]
fn a_slow_node_is_reported_once_others_were_measured_and_did_not_share_its_loss() {
    // Four slow ones are not too many of so many.
    let mut fleet = healthy_nodes(70);
    for (run, reason) in [(8, "Stale"), (9, "Confirmation"), (10, "Confirmation")] {
        fleet.run_node(3, run, reason, |_| 12.0);
    }
    let confidence = |fleet: &Fleet| {
        let outliers = fleet.outliers(&json!({}));
        let slow = outliers.iter().find(|outlier| outlier.node == "n3").expect("n3");
        assert_eq!(slow.gpu, None);
        slow.confidence
    };
    let [suspected, actionable] = [OutlierConfidence::Suspected, OutlierConfidence::Actionable].map(Some);
    assert_eq!(confidence(&fleet), suspected, "the runs of the others are older");
    let suspects = fleet.compare(&json!({})).suspects;
    assert!(!suspects.contains_key("n3"), "its own runs are enough");
    fleet.run_node(4, 11, "Stale", |_| 0.0);
    fleet.run_node(5, 11, "Stale", |_| 0.0);
    assert_eq!(confidence(&fleet), suspected, "two are too few");
    let mut shared = Fleet {
        objects: fleet.objects.clone(),
        random: fleet.random.clone(),
    };
    // One that ended beside the slow run is enough.
    fleet.run_node(6, 8, "Stale", |_| 0.0);
    assert_eq!(confidence(&fleet), actionable);
    for node in [6, 7, 8] {
        shared.run_node(node, 12, "Stale", |_| 12.0);
    }
    assert_eq!(confidence(&shared), suspected, "three of five share it");

    // The loss goes on, and began before the others were measured.
    for (run, reason) in [(13, "Stale"), (14, "Confirmation"), (15, "Confirmation")] {
        fleet.run_node(3, run, reason, |_| 12.0);
    }
    assert_eq!(confidence(&fleet), actionable);
    // It was repaired, and is slow again.
    fleet.run_node(3, 16, "Stale", |_| 0.0);
    for (run, reason) in [(17, "Stale"), (18, "Confirmation"), (19, "Confirmation")] {
        fleet.run_node(3, run, reason, |_| 12.0);
    }
    assert_eq!(confidence(&fleet), suspected);
}

/// A policy has one condition for all of its environments.
#[test]
fn one_unreliable_environment_leaves_no_outlier_actionable() {
    let other_environment = json!("ba9876543210");
    let actionable = |slow: usize| {
        let mut fleet = healthy();
        let mut other = healthy();
        for (run, reason) in [(8, "Stale"), (9, "Confirmation"), (10, "Confirmation")] {
            let loss = |gpu| if gpu == 5 { 15.0 } else { 0.0 };
            other.run_node(3, run, reason, loss);
            for node in 0..slow {
                fleet.run_node(node, run, reason, loss);
            }
        }
        for (name, mut object) in other.objects {
            let status = object.status.as_mut().expect("a status");
            status.environment = Some("ba9876543210".to_owned());
            for gpu in &mut status.gpus {
                gpu.uuid = format!("{}-other", gpu.uuid);
                let mut state: Value = gpu
                    .operator_state
                    .as_ref()
                    .and_then(StatisticsText::read)
                    .expect("a past");
                state["e"] = other_environment.clone();
                gpu.operator_state = StatisticsText::new(&state);
            }
            fleet.objects.insert(format!("other-{name}"), object);
        }
        let compared = fleet.compare(&json!({}));
        let slow = compared.outliers.iter().find(|outlier| outlier.node == "other-n3");
        slow.and_then(|slow| slow.confidence)
    };
    assert_eq!(actionable(0), Some(OutlierConfidence::Actionable));
    assert_eq!(actionable(3), Some(OutlierConfidence::Confirmed));
}

#[test]
fn poor_p_values_switch_the_level_off_that_acts() {
    // Some GPUs of each node are slow by turns, and no slow one is confirmed.
    let actionable = |turns: bool| {
        let mut fleet = Fleet::new();
        for run in 1..12 {
            fleet.run(40, run, |node, gpu| {
                let is_slow = turns && (node * 5 + gpu * 3 + usize::try_from(run).unwrap_or_default() * 7) % 16 == 0;
                if is_slow { 12.0 } else { 0.0 }
            });
        }
        for (run, reason) in [(12, "Stale"), (13, "Confirmation"), (14, "Confirmation")] {
            fleet.run_node(3, run, reason, |gpu| if gpu == 5 { 60.0 } else { 0.0 });
        }
        let compared = fleet.compare(&json!({}));
        let slow = compared.outliers.iter().find(|outlier| outlier.node == "n3");
        (compared.calibration.is_poor, slow.and_then(|slow| slow.confidence))
    };
    assert_eq!(actionable(false), (false, Some(OutlierConfidence::Actionable)));
    assert_eq!(actionable(true), (true, Some(OutlierConfidence::Confirmed)));
}

#[test]
fn a_failed_verdict_is_below_the_gate_and_only_selected_nodes_are_reported() {
    let mut fleet = Fleet::new();
    fleet.record(1, 1, "Stale", "Failed", &(Vec::new(), Vec::new()));
    fleet.record(99, 1, "Stale", "Failed", &(Vec::new(), Vec::new()));
    assert_eq!(
        found(&fleet.outliers(&json!({}))),
        [("n1", None, OutlierReason::BelowGate, None)]
    );
}

#[test]
fn a_failure_without_a_number_comes_before_smaller_losses() {
    let mut fleet = Fleet::new();
    fleet.record(1, 1, "Stale", "Failed", &(Vec::new(), Vec::new()));
    fleet.record(2, 1, "Stale", "Failed", &(Vec::new(), Vec::new()));
    // A latency of three times its gate is -100 percent.
    for percent in [84, -100] {
        let slower = fleet.objects.get_mut("n1").and_then(|object| object.status.as_mut());
        slower.expect("a status").percent_of_gate = Some(percent);
        let nodes: Vec<String> = fleet
            .outliers(&json!({}))
            .into_iter()
            .map(|outlier| outlier.node)
            .collect();
        assert_eq!(nodes, ["n2", "n1"], "{percent}");
    }
}

#[test]
fn a_comparison_has_more_outliers_than_a_status_lists() {
    let mut fleet = Fleet::new();
    for node in 1..=25 {
        fleet.record(node, 1, "Stale", "Failed", &(Vec::new(), Vec::new()));
    }
    assert_eq!(fleet.outliers(&json!({})).len(), 25);
}

#[test]
fn at_most_twenty_outliers_fit_into_a_small_status() {
    let names: Vec<String> = (0..40).map(|number| format!("{number:02}{}", "n".repeat(61))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names, &json!({}));
    world.comparison.outliers = names
        .iter()
        .map(|name| Outlier {
            node: (*name).to_owned(),
            gpu: Some("GPU-00000000-0000-0000-0000-000000000000".to_owned()),
            reason: OutlierReason::SlowerThanItself,
            confidence: Some(OutlierConfidence::Actionable),
            percent: Some(91),
            validation: format!("{}/{}", "n".repeat(63), "v".repeat(63)),
        })
        .collect();
    let mut foreign = world.comparison.outliers[0].clone();
    foreign.node = "foreign".to_owned();
    world.comparison.outliers.insert(0, foreign);
    let decision = world.decide();
    assert_eq!(decision.status.outliers, world.comparison.outliers[1..21]);
    let (_, reason, message) = ready(&decision);
    assert_eq!(reason, "Reconciled");
    assert!(
        message.ends_with("status.outliers lists the worst 20 of 40."),
        "{message}"
    );
    let bytes = serde_json::to_string(&decision.status).expect("JSON").len();
    assert!(bytes < 32 << 10, "{bytes}");
}
