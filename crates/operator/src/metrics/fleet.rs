//! Series of the nodes and of the policies. No GPU is a label: 5,000 nodes have 25,000 series.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perfval_api::fleet::{NodePerformanceStatus, Outlier, OutlierConfidence, PerfValidationPolicyStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};

use super::samples::Samples;
use super::series;

#[derive(Clone, Debug, EncodeLabelSet)]
struct NodeLabel {
    node: Arc<str>,
}

#[derive(Debug, EncodeLabelSet)]
struct NodeVerdict {
    node: Arc<str>,
    verdict: &'static str,
}

#[derive(Debug, EncodeLabelSet)]
struct PolicyLabels {
    policy: Arc<str>,
    state: &'static str,
}

#[derive(Debug, EncodeLabelSet)]
struct OutlierLabels {
    policy: Arc<str>,
    node: Arc<str>,
    reason: &'static str,
}

/// Series that each look at the policies replaces.
#[derive(Debug)]
pub(super) struct FleetSeries {
    /// False: nodes have no series of their own.
    each: bool,
    nodes: Mutex<NodeSeries>,
    policies: Mutex<PolicySeries>,
}

#[derive(Debug)]
struct NodeSeries {
    verdict: Samples<NodeVerdict, i64>,
    measured_at: Samples<NodeLabel, i64>,
    of_gate: Samples<NodeLabel, f64>,
    of_own_past: Samples<NodeLabel, f64>,
    of_peers: Samples<NodeLabel, f64>,
}

#[derive(Debug)]
struct PolicySeries {
    nodes: Samples<PolicyLabels, i64>,
    outliers: Samples<OutlierLabels, i64>,
}

impl FleetSeries {
    /// `each`: each node has series of its own.
    pub(super) fn new(each: bool) -> Self {
        Self {
            each,
            nodes: Mutex::new(NodeSeries::new(std::iter::empty())),
            policies: Mutex::new(PolicySeries::new(std::iter::empty())),
        }
    }

    /// Replaces the series of the nodes.
    pub(super) fn set_nodes<'a>(&self, nodes: impl Iterator<Item = (String, &'a NodePerformanceStatus)>) {
        *lock(&self.nodes) = NodeSeries::new(nodes.filter(|_| self.each));
    }

    /// Replaces the series of the policies.
    pub(super) fn set_policies<'a>(&self, policies: impl Iterator<Item = (String, &'a PerfValidationPolicyStatus)>) {
        *lock(&self.policies) = PolicySeries::new(policies);
    }
}

impl Collector for FleetSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let policies = lock(&self.policies);
        policies.nodes.encode(&mut encoder)?;
        if !self.each {
            return Ok(());
        }
        policies.outliers.encode(&mut encoder)?;
        let nodes = lock(&self.nodes);
        nodes.verdict.encode(&mut encoder)?;
        nodes.measured_at.encode(&mut encoder)?;
        nodes.of_gate.encode(&mut encoder)?;
        nodes.of_own_past.encode(&mut encoder)?;
        nodes.of_peers.encode(&mut encoder)
    }
}

impl NodeSeries {
    fn new<'a>(nodes: impl Iterator<Item = (String, &'a NodePerformanceStatus)>) -> Self {
        let mut all = Self {
            verdict: Samples::new(&series::NODE_VERDICT),
            measured_at: Samples::new(&series::NODE_MEASURED_TIME),
            of_gate: Samples::new(&series::NODE_OF_GATE),
            of_own_past: Samples::new(&series::NODE_OF_OWN_PAST),
            of_peers: Samples::new(&series::NODE_OF_PEERS),
        };
        for (node, status) in nodes {
            let of = NodeLabel { node: node.into() };
            for (ratio, percent) in [
                (&mut all.of_gate, status.percent_of_gate),
                (&mut all.of_own_past, status.percent_of_own_past),
                (&mut all.of_peers, status.percent_of_peers),
            ] {
                if let Some(percent) = percent.and_then(|percent| i32::try_from(percent).ok()) {
                    ratio.add(of.clone(), f64::from(percent) / 100.0);
                }
            }
            all.measured_at.add(of.clone(), status.measured_at.timestamp());
            let judged = NodeVerdict {
                node: of.node,
                verdict: status.verdict.as_str(),
            };
            all.verdict.add(judged, 1);
        }
        all
    }
}

impl PolicySeries {
    fn new<'a>(policies: impl Iterator<Item = (String, &'a PerfValidationPolicyStatus)>) -> Self {
        let mut all = Self {
            nodes: Samples::new(&series::POLICY_NODES),
            outliers: Samples::new(&series::NODE_OUTLIER),
        };
        for (policy, status) in policies {
            let policy: Arc<str> = policy.into();
            let nodes = status.nodes.unwrap_or_default();
            for (state, count) in [
                ("Selected", nodes.selected),
                ("Fresh", nodes.fresh),
                ("Stale", nodes.stale),
                ("NeverMeasured", nodes.never_measured),
                ("Failed", nodes.failed),
                ("Running", nodes.running),
                ("Busy", nodes.busy),
            ] {
                let policy = policy.clone();
                all.nodes.add(PolicyLabels { policy, state }, count);
            }
            // A suspicion may be chance, and an alert follows from the series.
            let is_sure = |outlier: &&Outlier| outlier.confidence != Some(OutlierConfidence::Suspected);
            let sure = status.outliers.iter().filter(is_sure);
            // Several GPUs of a node may be slow for one reason.
            let odd: BTreeSet<(&str, &'static str)> = sure
                .map(|outlier| (outlier.node.as_str(), outlier.reason.as_str()))
                .collect();
            for (node, reason) in odd {
                let odd = OutlierLabels {
                    policy: policy.clone(),
                    node: node.into(),
                    reason,
                };
                all.outliers.add(odd, 1);
            }
        }
        all
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
