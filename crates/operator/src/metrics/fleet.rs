//! Series of the nodes and of the policies. No GPU is a label: 5,000 nodes have 25,000 series.

use std::sync::atomic::AtomicU64;

use perfval_api::fleet::{NodePerformanceStatus, Outlier, OutlierConfidence, PerfValidationPolicyStatus};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::series;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Node {
    node: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Judged {
    node: String,
    verdict: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPolicy {
    policy: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Odd {
    policy: String,
    node: String,
    reason: &'static str,
}

type Ratio = Family<Node, Gauge<f64, AtomicU64>>;

/// Series that each look at the policies replaces.
#[derive(Default)]
pub(super) struct FleetSeries {
    verdict: Family<Judged, Gauge>,
    measured_at: Family<Node, Gauge>,
    of_gate: Ratio,
    of_own_past: Ratio,
    of_peers: Ratio,
    nodes: Family<OfPolicy, Gauge>,
    outliers: Family<Odd, Gauge>,
}

impl FleetSeries {
    /// Those of the policies, and of each node unless the series of single objects are switched off.
    pub(super) fn register(registry: &mut Registry, each: bool) -> Self {
        let all = Self::default();
        series::POLICY_NODES.register(registry, all.nodes.clone());
        if each {
            series::NODE_VERDICT.register(registry, all.verdict.clone());
            series::NODE_MEASURED_TIME.register(registry, all.measured_at.clone());
            series::NODE_OF_GATE.register(registry, all.of_gate.clone());
            series::NODE_OF_OWN_PAST.register(registry, all.of_own_past.clone());
            series::NODE_OF_PEERS.register(registry, all.of_peers.clone());
            series::NODE_OUTLIER.register(registry, all.outliers.clone());
        }
        all
    }

    /// Replaces the series of the nodes.
    pub(super) fn set_nodes<'a>(&self, nodes: impl Iterator<Item = (String, &'a NodePerformanceStatus)>) {
        self.verdict.clear();
        self.measured_at.clear();
        for ratio in [&self.of_gate, &self.of_own_past, &self.of_peers] {
            ratio.clear();
        }
        for (node, status) in nodes {
            let of = Node { node };
            for (ratio, percent) in [
                (&self.of_gate, status.percent_of_gate),
                (&self.of_own_past, status.percent_of_own_past),
                (&self.of_peers, status.percent_of_peers),
            ] {
                if let Some(percent) = percent.and_then(|percent| i32::try_from(percent).ok()) {
                    ratio.get_or_create(&of).set(f64::from(percent) / 100.0);
                }
            }
            self.measured_at.get_or_create(&of).set(status.measured_at.timestamp());
            let judged = Judged {
                node: of.node,
                verdict: status.verdict.as_str(),
            };
            self.verdict.get_or_create(&judged).set(1);
        }
    }

    /// Replaces the series of the policies.
    pub(super) fn set_policies<'a>(&self, policies: impl Iterator<Item = (String, &'a PerfValidationPolicyStatus)>) {
        self.nodes.clear();
        self.outliers.clear();
        for (policy, status) in policies {
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
                self.nodes.get_or_create(&OfPolicy { policy, state }).set(count);
            }
            // A suspicion may be chance, and an alert follows from the series.
            let is_sure = |outlier: &&Outlier| outlier.confidence != Some(OutlierConfidence::Suspected);
            for outlier in status.outliers.iter().filter(is_sure) {
                let odd = Odd {
                    policy: policy.clone(),
                    node: outlier.node.clone(),
                    reason: outlier.reason.as_str(),
                };
                self.outliers.get_or_create(&odd).set(1);
            }
        }
    }
}
