//! Laws that hold at every change: a node is measured once at a time, and no more validations are active than the budget allows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use perfval_testkit::api_server::{ApiServer, Changed};
use serde_json::Value;

/// Phases in which a validation has a node.
const HOLDS: [&str; 5] = [
    "Deploying",
    "WaitingForReady",
    "Benchmarking",
    "Evaluating",
    "CleaningUp",
];
/// Objects that a run makes.
const OF_A_RUN: [&str; 5] = [
    "dynamographdeployments",
    "jobs",
    "pods",
    "resourceclaims",
    "resourceclaimtemplates",
];
/// Finished validations of a node that the policy keeps: three that failed, one that passed.
const HISTORY: usize = 4;
/// Broken laws that are kept.
const MOST: usize = 10;

/// What the validations did until now.
#[derive(Default)]
pub struct Laws {
    budget: usize,
    /// Node of each active validation, by name.
    active: HashMap<String, String>,
    /// Nodes that are measured, with their validation.
    holds: HashMap<String, String>,
    /// Nodes of ended validations without a measurement, with their reason.
    pub unmeasured: BTreeMap<String, String>,
    /// Nodes with a measurement.
    pub covered: BTreeSet<String>,
    /// Size of the largest measurement of a node (bytes).
    pub largest_node: usize,
    /// Nodes whose trial runs.
    pub benchmarking: HashSet<String>,
    pub most_active: usize,
    pub broken: Vec<String>,
    /// Outliers that the policy has shown at any time, without suspicions: node, GPU and reason.
    pub named: BTreeSet<(String, Option<String>, String)>,
    /// Size of the largest status of a policy (bytes).
    pub largest_status: usize,
}

impl Laws {
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// Validations that are not over.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    pub fn note(&mut self, changed: &Changed) {
        match changed.plural.as_str() {
            "perfvalidations" => self.note_validation(changed),
            "perfvalidationpolicies" => self.note_policy(&changed.object),
            "nodeperformances" => self.note_node(changed),
            _ => {}
        }
    }

    fn note_node(&mut self, changed: &Changed) {
        if !changed.object["status"].is_null() && changed.kind != "DELETED" {
            self.largest_node = self.largest_node.max(changed.object.to_string().len());
            self.covered.insert(changed.name.clone());
        }
    }

    fn note_policy(&mut self, policy: &Value) {
        let status = &policy["status"];
        self.largest_status = self.largest_status.max(status.to_string().len());
        let outliers = status["outliers"].as_array().into_iter().flatten();
        for outlier in outliers.filter(|outlier| !is_suspicion(outlier)) {
            let text = |field: &str| outlier[field].as_str().map(str::to_owned);
            let named = (
                text("node").unwrap_or_default(),
                text("gpu"),
                text("reason").unwrap_or_default(),
            );
            self.named.insert(named);
        }
    }

    fn note_validation(&mut self, changed: &Changed) {
        let (name, object) = (&changed.name, &changed.object);
        let phase = object["status"]["phase"].as_str().unwrap_or("Pending");
        // A finished validation that the history drops passes CleaningUp once more, without GPUs.
        let was_over = !object["metadata"]["deletionTimestamp"].is_null() && !self.active.contains_key(name);
        let is_over = changed.kind == "DELETED" || phase == "Completed" || was_over;
        let host = object["spec"]["placement"]["nodeSelector"]["kubernetes.io/hostname"].as_str();
        let host = host.unwrap_or_default().to_owned();
        if is_over {
            self.active.remove(name);
        } else if self.active.insert(name.clone(), host.clone()).is_none() {
            let twin = self
                .active
                .iter()
                .find(|(other, node)| *other != name && **node == host);
            if let Some((twin, _)) = twin {
                let broken = format!("{host} has two active validations: {twin} and {name}");
                self.break_law(broken);
            }
            self.most_active = self.most_active.max(self.active.len());
            if self.active.len() > self.budget {
                let broken = format!(
                    "{} validations are active, but the budget is {}",
                    self.active.len(),
                    self.budget
                );
                self.break_law(broken);
            }
        }
        let node = object["status"]["placement"]["node"]
            .as_str()
            .unwrap_or(&host)
            .to_owned();
        if !is_over && HOLDS.contains(&phase) {
            let other = self.holds.get(&node).filter(|other| *other != name).cloned();
            if let Some(other) = other {
                self.break_law(format!("{node} is measured twice at a time: by {other} and {name}"));
            }
            self.holds.insert(node.clone(), name.clone());
        } else if self.holds.get(&node) == Some(name) {
            self.holds.remove(&node);
        }
        if phase == "Benchmarking" && !is_over {
            self.benchmarking.insert(node.clone());
        } else {
            self.benchmarking.remove(&node);
        }
        if is_over && changed.kind != "DELETED" {
            if let Some("Passed" | "Failed" | "Inconclusive") = object["status"]["verdict"].as_str() {
                self.unmeasured.remove(&node);
            } else {
                let reason = object["status"]["reason"].as_str().unwrap_or("no verdict");
                self.unmeasured.insert(node, reason.to_owned());
            }
        }
    }

    fn break_law(&mut self, what: String) {
        if self.broken.len() < MOST {
            self.broken.push(what);
        }
    }
}

/// Returns true for a suspicion, which is confirmed or dropped after another run.
pub fn is_suspicion(outlier: &Value) -> bool {
    outlier["confidence"] == "Suspected"
}

/// Validations that are left behind: active ones, objects of runs, and more finished ones of a node than the policy keeps.
pub fn left_behind(server: &ApiServer, namespace: &str) -> Vec<String> {
    let mut left = Vec::new();
    let mut finished: BTreeMap<String, usize> = BTreeMap::new();
    for object in server.shared("perfvalidations") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if object["status"]["phase"] != "Completed" {
            left.push(format!(
                "PerfValidation {name} is in phase {}",
                object["status"]["phase"]
            ));
        }
        let host = &object["spec"]["placement"]["nodeSelector"]["kubernetes.io/hostname"];
        *finished
            .entry(host.as_str().unwrap_or_default().to_owned())
            .or_default() += 1;
    }
    let surplus = finished.iter().filter(|(_, count)| **count > HISTORY);
    left.extend(surplus.map(|(host, count)| format!("{host} has {count} validations")));
    left.extend(remains(server, namespace));
    left
}

/// Objects of runs.
pub fn remains(server: &ApiServer, namespace: &str) -> Vec<String> {
    let of_runs = OF_A_RUN.iter().filter(|plural| server.serves(plural));
    let objects = of_runs.flat_map(|plural| server.shared(plural).into_iter().map(move |object| (plural, object)));
    let here = objects.filter(|(_, object)| object["metadata"]["namespace"] == namespace);
    here.map(|(plural, object)| format!("{plural} {}", object["metadata"]["name"]))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn change(name: &str, host: &str, phase: &str) -> Changed {
        Changed {
            kind: "MODIFIED",
            plural: "perfvalidations".into(),
            namespace: "perf".into(),
            name: name.into(),
            object: Arc::new(json!({
                "spec": {"placement": {"nodeSelector": {"kubernetes.io/hostname": host}}},
                "status": {"phase": phase, "placement": {"node": host}},
            })),
        }
    }

    #[test]
    fn a_node_that_is_measured_twice_at_a_time_breaks_the_law() {
        let mut laws = Laws::new(9);
        for (name, phase) in [("a", "Benchmarking"), ("a", "Completed"), ("b", "Deploying")] {
            laws.note(&change(name, "n1", phase));
        }
        assert_eq!(laws.broken, Vec::<String>::new());
        laws.note(&change("c", "n1", "Benchmarking"));
        assert!(
            laws.broken.iter().any(|broken| broken.contains("measured twice")),
            "{:?}",
            laws.broken
        );
    }

    #[test]
    fn a_finished_validation_that_is_deleted_is_not_active() {
        let mut laws = Laws::new(1);
        laws.note(&change("a", "n1", "Completed"));
        laws.note(&change("b", "n2", "Sizing"));
        let mut dropped = change("a", "n1", "CleaningUp");
        Arc::make_mut(&mut dropped.object)["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z".into();
        laws.note(&dropped);
        assert_eq!((laws.active(), &laws.broken), (1, &Vec::new()));
    }

    #[test]
    fn more_validations_than_the_budget_break_the_law() {
        let mut laws = Laws::new(1);
        laws.note(&change("a", "n1", "Sizing"));
        laws.note(&change("b", "n2", "Sizing"));
        assert_eq!(laws.broken, ["2 validations are active, but the budget is 1"]);
    }

    #[test]
    fn what_a_run_leaves_is_found() {
        let server = ApiServer::new();
        assert_eq!(left_behind(&server, "perf"), Vec::<String>::new());
        let meta = json!({"namespace": "perf", "name": "x"});
        server.put(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta}));
        server.put(json!({"apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": meta, "status": {"phase": "Sizing"}}));
        assert_eq!(left_behind(&server, "perf").len(), 2);
    }
}
