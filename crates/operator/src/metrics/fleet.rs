//! Series of the nodes and of the policies. No GPU is a label: 5,000 nodes have 25,000 series.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use perfval_api::Reason;
use perfval_api::condition::READY;
use perfval_api::fleet::{NodePerformanceStatus, Outlier, OutlierConfidence, PerfValidationPolicyStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::samples::Samples;
use super::series::{self, Series};

/// Series of the policies, in the order of the page.
const OF_POLICIES: &[Series] = &[
    series::NODE_OUTLIER,
    series::POLICY_READY,
    series::POLICY_NODES,
    series::POLICY_GPU_MINUTES,
];

/// Series of the nodes, in the order of the page.
const OF_NODES: &[Series] = &[
    series::NODE_VERDICT,
    series::NODE_MEASURED_TIME,
    series::NODE_OF_GATE,
    series::NODE_OF_OWN_PAST,
    series::NODE_OF_PEERS,
];

/// Series that each look at the policies replaces.
#[derive(Debug)]
pub(super) struct FleetSeries {
    /// False: nodes have no series of their own.
    each: bool,
    policies: Mutex<Samples>,
    nodes: Mutex<Samples>,
}

impl FleetSeries {
    /// `each`: each node has series of its own.
    pub(super) fn new(each: bool) -> Self {
        Self {
            each,
            policies: Mutex::new(Samples::new(OF_POLICIES)),
            nodes: Mutex::new(Samples::new(OF_NODES)),
        }
    }

    pub(super) fn set_nodes<'a>(&self, nodes: impl Iterator<Item = (String, &'a NodePerformanceStatus)>) {
        let mut all = Samples::new(OF_NODES);
        for (node, status) in nodes.filter(|_| self.each) {
            add_node(&mut all, &node.into(), status);
        }
        *self.nodes.lock() = all;
    }

    /// Replaces the series of the policies. A policy that cannot be parsed has no status, and is not ready.
    pub(super) fn set_policies<'a>(
        &self,
        policies: impl Iterator<Item = (String, Option<&'a PerfValidationPolicyStatus>)>,
    ) {
        let mut all = Samples::new(OF_POLICIES);
        for (policy, status) in policies {
            let policy: Arc<str> = policy.into();
            let Some(status) = status else {
                let reason = Reason::SpecUnreadable.as_str();
                all.add(&series::POLICY_READY, [&policy, &reason.into()], 0);
                continue;
            };
            add_ready(&mut all, &policy, status);
            add_counts(&mut all, &policy, status);
            if self.each {
                add_outliers(&mut all, &policy, status);
            }
        }
        *self.policies.lock() = all;
    }
}

impl Collector for FleetSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.policies.lock().encode(&mut encoder)?;
        self.nodes.lock().encode(&mut encoder)
    }
}

fn add_node(all: &mut Samples, node: &Arc<str>, status: &NodePerformanceStatus) {
    for (ratio, percent) in [
        (series::NODE_OF_GATE, status.percent_of_gate),
        (series::NODE_OF_OWN_PAST, status.percent_of_own_past),
        (series::NODE_OF_PEERS, status.percent_of_peers),
    ] {
        if let Some(percent) = percent.and_then(|percent| i32::try_from(percent).ok()) {
            all.add(&ratio, [node], f64::from(percent) / 100.0);
        }
    }
    all.add(&series::NODE_MEASURED_TIME, [node], status.measured_at.timestamp());
    all.add(&series::NODE_VERDICT, [node, &status.verdict.as_str().into()], 1);
}

/// Adds the condition `Ready` with its present reason. A new policy has none.
fn add_ready(all: &mut Samples, policy: &Arc<str>, status: &PerfValidationPolicyStatus) {
    let mut conditions = status.conditions.iter();
    if let Some(ready) = conditions.find(|condition| condition.type_ == READY) {
        let value = i64::from(ready.status == "True");
        all.add(&series::POLICY_READY, [policy, &ready.reason.as_str().into()], value);
    }
}

/// Adds the numbers of nodes and the GPU minutes. A policy whose nodes were never read has none.
fn add_counts(all: &mut Samples, policy: &Arc<str>, status: &PerfValidationPolicyStatus) {
    let Some(nodes) = status.nodes else { return };
    for (state, count) in [
        ("Selected", nodes.selected),
        ("Fresh", nodes.fresh),
        ("Stale", nodes.stale),
        ("NeverMeasured", nodes.never_measured),
        ("Failed", nodes.failed),
        ("Running", nodes.running),
        ("Busy", nodes.busy),
    ] {
        all.add(&series::POLICY_NODES, [policy, &state.into()], count);
    }
    if let Some(minutes) = status.gpu_minutes_today {
        all.add(&series::POLICY_GPU_MINUTES, [policy], minutes);
    }
}

fn add_outliers(all: &mut Samples, policy: &Arc<str>, status: &PerfValidationPolicyStatus) {
    // A suspicion may be chance, and an alert follows from the series.
    let is_sure = |outlier: &&Outlier| outlier.confidence != Some(OutlierConfidence::Suspected);
    let sure = status.outliers.iter().filter(is_sure);
    // Several GPUs of a node may be slow for one reason.
    let odd: BTreeSet<(&str, &str)> = sure
        .map(|outlier| (outlier.node.as_str(), outlier.reason.as_str()))
        .collect();
    for (node, reason) in odd {
        all.add(&series::NODE_OUTLIER, [policy, &node.into(), &reason.into()], 1);
    }
}
