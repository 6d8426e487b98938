//! Comparison of nodes by the newest run of each, and by the confirmations of the slow ones.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use perfval_api::Verdict;
use perfval_api::fleet::{ComparisonRules, NodePerformanceStatus, Outlier, OutlierConfidence, OutlierReason};

use crate::baseline::Approved;
use crate::calibration::Calibration;
use crate::detectable::DetectableLoss;
use crate::findings::assess;
use crate::measurement::whole;
use crate::numbers::percent;
use crate::prior::prior;
use crate::strata::strata;

/// Confirmation that a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// Time at which the run ended that was slow.
    pub measured_at: DateTime<Utc>,
    /// True if that run needs enough trials to decide.
    pub is_decisive: bool,
}

/// Change that all nodes of one environment share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentShift {
    /// Digest of the environment.
    pub environment: String,
    /// Median difference from the nodes' own pasts (percent); below 0 is slower.
    pub percent: i64,
    /// Number of nodes with a past.
    pub nodes: usize,
}

/// Result of the comparison of a policy's nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeComparison {
    /// Nodes that need attention, the worst first.
    pub outliers: Vec<Outlier>,
    /// Nodes whose newest run is to be confirmed.
    pub suspects: BTreeMap<String, Suspicion>,
    /// Check of the p-values of the nodes that are taken for healthy.
    pub calibration: Calibration,
    /// Number of slow nodes, if they were too many at once.
    pub too_many: Option<usize>,
    /// Losses that nine of ten passes report, in the environment in which they are largest.
    pub detectable: Option<DetectableLoss>,
    /// Environment whose nodes all changed, the one with the largest loss.
    pub shifted: Option<EnvironmentShift>,
    /// True if nodes passed, and no node has a decode speed by GPU UUID.
    pub lacks_speeds: bool,
}

/// Compares the nodes that `is_selected` accepts. All nodes with the same environment are compared with each other, or with the
/// approved baseline if they are few. The newest run of each node only raises a suspicion; its last confirmation in a new deployment
/// decides.
pub fn compare_nodes(
    rules: &ComparisonRules,
    measured: &BTreeMap<String, &NodePerformanceStatus>,
    approved: &Approved,
    is_selected: impl Fn(&str) -> bool,
) -> NodeComparison {
    let mut passed = measured.iter().filter(|(_, status)| status.verdict == Verdict::Passed);
    let mut found = NodeComparison {
        outliers: below_gate(measured, &is_selected),
        lacks_speeds: passed.any(|(name, _)| is_selected(name)),
        ..NodeComparison::default()
    };
    for ((environment, product), stratum) in strata(measured) {
        if !stratum.screen.keys().any(|name| is_selected(name)) {
            continue;
        }
        found.lacks_speeds = false;
        let (spread, norm) = (prior(product), approved.get(environment));
        let assessed = assess(rules, &spread, norm, &stratum.screen, &stratum.fresh, &is_selected);
        found.calibration = found.calibration.worse(assessed.calibration);
        found.too_many = found.too_many.max(assessed.too_many);
        let shifted = assessed.shift.and_then(|shift| {
            Some(EnvironmentShift {
                environment: environment.to_owned(),
                percent: whole(percent(shift.value))?,
                nodes: shift.nodes,
            })
        });
        let shifts = found.shifted.take().into_iter().chain(shifted);
        found.shifted = shifts.min_by_key(|shift| shift.percent);
        // A node alone in its environment has no peers yet.
        if usize::try_from(rules.peers.min_nodes).is_ok_and(|least| assessed.nodes.len() >= least) {
            let others = found.detectable.unwrap_or(assessed.detectable);
            found.detectable = Some(others.worse(assessed.detectable));
        }
        for (name, node) in assessed.nodes.iter().filter(|(name, _)| is_selected(name)) {
            let Some(status) = measured.get(name) else { continue };
            if node.is_unconfirmed {
                let suspicion = Suspicion {
                    measured_at: status.measured_at,
                    is_decisive: node.is_decisive,
                };
                found.suspects.insert(name.clone(), suspicion);
            }
            let least = f64::from(rules.report.minimum_effect_percent);
            let loss = node.loss.as_ref().filter(|loss| loss.percent <= -least);
            found.outliers.extend(loss.map(|loss| Outlier {
                gpu: loss.gpu.clone(),
                confidence: Some(loss.confidence),
                percent: whole(100.0 + loss.percent),
                ..outlier(name, status, loss.reason)
            }));
        }
    }
    // A policy has one condition for all of its environments.
    if found.calibration.is_poor || found.too_many.is_some() {
        for outlier in &mut found.outliers {
            if outlier.confidence == Some(OutlierConfidence::Actionable) {
                outlier.confidence = Some(OutlierConfidence::Confirmed);
            }
        }
    }
    let place = |outlier: &Outlier| {
        let is_suspected = outlier.confidence == Some(OutlierConfidence::Suspected);
        // A failure without a number, such as a crash, is the worst. A latency far above its gate has a number below 0.
        (is_suspected, outlier.percent, outlier.reason)
    };
    found
        .outliers
        .sort_by(|a, b| (place(a), &a.node, &a.gpu).cmp(&(place(b), &b.node, &b.gpu)));
    found
}

/// Nodes that missed a gate of a policy.
fn below_gate(measured: &BTreeMap<String, &NodePerformanceStatus>, is_selected: impl Fn(&str) -> bool) -> Vec<Outlier> {
    let of_policies = measured.iter().filter(|(_, status)| status.validation.policy.is_some());
    of_policies
        .filter(|(_, status)| status.verdict == Verdict::Failed)
        .filter(|(name, _)| is_selected(name))
        .map(|(name, status)| Outlier {
            percent: status.percent_of_gate.filter(|percent| *percent < 100),
            ..outlier(name, status, OutlierReason::BelowGate)
        })
        .collect()
}

fn outlier(node: &str, status: &NodePerformanceStatus, reason: OutlierReason) -> Outlier {
    let run = &status.validation;
    Outlier {
        node: node.to_owned(),
        gpu: None,
        reason,
        confidence: None,
        percent: None,
        validation: format!("{}/{}", run.namespace, run.name),
    }
}
