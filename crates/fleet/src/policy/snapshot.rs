//! Input of a decision.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use perfval_api::fleet::{NodePerformanceStatus, PerfBaseline, PerfValidationPolicy};

use super::comparison::NodeComparison;
use super::facts::{CreateRefusal, SelectedNode, ValidationFacts};

/// Cluster as policies see it.
pub struct Snapshot<'a> {
    /// Policies.
    pub policies: &'a [PolicyFacts<'a>],
    /// Newest measurement of each node.
    pub measured: &'a BTreeMap<String, &'a NodePerformanceStatus>,
    /// Baseline of each environment, by digest.
    pub baselines: &'a BTreeMap<&'a str, &'a PerfBaseline>,
    /// Validations of policies, and all active ones.
    pub validations: &'a [ValidationFacts],
    /// Time of the decision.
    pub now: DateTime<Utc>,
}

/// One policy with the nodes that it selects.
pub struct PolicyFacts<'a> {
    /// Policy.
    pub policy: &'a PerfValidationPolicy,
    /// Nodes with GPUs that its selector matches.
    pub nodes: &'a [SelectedNode],
    /// Comparison of these nodes.
    pub comparison: &'a NodeComparison,
    /// Last refusal of a validation.
    pub refusal: Option<&'a CreateRefusal>,
    /// Nodes that go to the back, with the time at which their validation gave up.
    pub set_back: &'a BTreeMap<String, DateTime<Utc>>,
    /// Times at which nodes of its validations were first missed in the selection, by hostname: those of the last decision.
    pub missed_since: &'a BTreeMap<String, DateTime<Utc>>,
}
