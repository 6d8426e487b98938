//! Decisions about policies.

mod baselines;
mod budgets;
mod children;
mod comparison;
mod conditions;
mod confirmations;
mod nodes;
mod scale;
mod schedule;
mod selection;

use std::cell::RefCell;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::PerfValidation;
use perfval_api::fleet::{NodePerformanceStatus, PerfBaseline, PerfValidationPolicy, baselines_in_use};
use perfval_fleet::policy::{
    CreateRefusal, NodeComparison, Outline, PolicyDecision, PolicyFacts, SelectedNode, Snapshot, ValidationFacts,
    decide,
};
use serde_json::{Value, json};

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

/// Noon of a day in the tests.
fn now() -> DateTime<Utc> {
    at("2026-11-20T12:00:00Z")
}

fn ago(hours: i64) -> DateTime<Utc> {
    now() - TimeDelta::hours(hours)
}

/// Policy with a JSON merge of its spec.
fn policy(name: &str, change: &Value) -> PerfValidationPolicy {
    let mut spec = json!({
        "nodeSelector": {}, "budgets": [{"nodes": "100%"}],
        "validationTemplate": {
            "metadata": {"namespace": "perf", "labels": {"team": "a"}},
            "spec": {
                "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}},
                "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
            },
        },
    });
    for (field, value) in change.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 3, "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": spec,
    }))
    .expect("a policy")
}

fn node(name: &str) -> SelectedNode {
    SelectedNode {
        name: name.to_owned(),
        hostname: Some(name.to_owned()),
        is_free: true,
        ..SelectedNode::default()
    }
}

fn measured(verdict: &str, at: DateTime<Utc>) -> NodePerformanceStatus {
    serde_json::from_value(json!({
        "verdict": verdict, "measuredAt": at,
        "validation": {"namespace": "perf", "name": "earlier", "uid": "u", "run": 1, "policy": "p"},
    }))
    .expect("a status")
}

/// Cluster with policies that all select all nodes.
struct World {
    policies: Vec<PerfValidationPolicy>,
    nodes: Vec<SelectedNode>,
    measured: BTreeMap<String, NodePerformanceStatus>,
    validations: Vec<ValidationFacts>,
    comparison: NodeComparison,
    baselines: Vec<PerfBaseline>,
    refusal: Option<CreateRefusal>,
    set_back: BTreeMap<String, DateTime<Utc>>,
    /// What the last decision about each policy hands to the next one.
    missed_since: RefCell<Vec<BTreeMap<String, DateTime<Utc>>>>,
    now: DateTime<Utc>,
}

impl World {
    fn new(nodes: &[&str], change: &Value) -> Self {
        Self {
            policies: vec![policy("p", change)],
            nodes: nodes.iter().map(|name| node(name)).collect(),
            measured: BTreeMap::new(),
            validations: Vec::new(),
            comparison: NodeComparison::default(),
            baselines: Vec::new(),
            refusal: None,
            set_back: BTreeMap::new(),
            missed_since: RefCell::default(),
            now: now(),
        }
    }

    fn decide_all(&self) -> Vec<PolicyDecision> {
        let mut missed_since = self.missed_since.take();
        missed_since.resize(self.policies.len(), BTreeMap::new());
        let facts = self.policies.iter().zip(&missed_since);
        let facts = facts.map(|(policy, missed_since)| PolicyFacts {
            policy,
            nodes: &self.nodes,
            comparison: &self.comparison,
            refusal: self.refusal.as_ref(),
            set_back: &self.set_back,
            missed_since,
        });
        let measured = self.measured.iter().map(|(name, status)| (name.clone(), status));
        let decided = decide(&Snapshot {
            policies: &facts.collect::<Vec<_>>(),
            measured: &measured.collect(),
            baselines: &baselines_in_use(&self.baselines),
            validations: &self.validations,
            now: self.now,
        });
        let missed_since = decided.iter().map(|decision| decision.missed_since.clone());
        *self.missed_since.borrow_mut() = missed_since.collect();
        decided
    }

    fn decide(&self) -> PolicyDecision {
        self.decide_all().swap_remove(0)
    }

    fn measure(&mut self, node: &str, verdict: &str, at: DateTime<Utc>) {
        self.measured.insert(node.to_owned(), measured(verdict, at));
    }

    /// Lets the API server store what the first policy creates now.
    fn create(&mut self, status: &Value) -> Vec<String> {
        let created: Vec<PerfValidation> = self.decide().create;
        for child in &created {
            self.add(child, status);
        }
        names(&created)
    }

    fn add(&mut self, child: &PerfValidation, status: &Value) {
        let mut object = serde_json::to_value(child).expect("JSON");
        let name = child.metadata.name.as_deref().expect("a name");
        object["metadata"]["uid"] = json!(format!("uid-{name}"));
        object["metadata"]["creationTimestamp"] = json!(self.now);
        object["status"] = status.clone();
        let object: PerfValidation = serde_json::from_value(object).expect("a validation");
        let facts = ValidationFacts::new(&object.metadata, Outline::new(&object));
        self.validations.retain(|known| known.uid != facts.uid);
        self.validations.push(facts);
    }
}

/// Status of a run that is over.
fn ended(verdict: &str, at: DateTime<Utc>) -> Value {
    json!({
        "observedGeneration": 1, "phase": "Completed", "verdict": verdict,
        "run": {"number": 1, "trigger": "Created", "generation": 1,
                "startedAt": at - TimeDelta::minutes(10), "completedAt": at},
        "placement": {"node": "n", "allocation": "DRA", "gpus": 8, "nodeGPUs": 8},
        "conditions": [{"type": "CleanedUp", "status": "True", "reason": "r", "message": "", "lastTransitionTime": at}],
    })
}

fn phase(phase: &str) -> Value {
    json!({"observedGeneration": 1, "phase": phase})
}

fn names(created: &[PerfValidation]) -> Vec<String> {
    created.iter().filter_map(|child| child.metadata.name.clone()).collect()
}

/// Nodes of created validations, in order.
fn targets(decision: &PolicyDecision) -> Vec<&str> {
    let targets = decision.create.iter();
    targets
        .filter_map(|child| child.spec.placement.node_selector.get("kubernetes.io/hostname"))
        .map(String::as_str)
        .collect()
}

fn ready(decision: &PolicyDecision) -> (&str, &str, &str) {
    let condition = &decision.status.conditions[0];
    (&condition.status, &condition.reason, &condition.message)
}
