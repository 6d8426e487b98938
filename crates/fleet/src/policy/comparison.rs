//! Comparison of nodes by the newest run of each, and by the confirmations of the slow ones.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use perfval_api::Verdict;
use perfval_api::fleet::{ComparisonRules, NodePerformanceStatus, Outlier, OutlierConfidence, OutlierReason};

use crate::calibration::Calibration;
use crate::centre::trimmed_mean;
use crate::findings::{Answer, Certainty, FleetFinding, FleetRules, LevelRule, NodeAssessment, assess};
use crate::measurement::{speed, whole};
use crate::metric::FleetMetric;
use crate::past::Past;
use crate::prior::prior;
use crate::reading::{NodePass, NodeSpeeds, Speeds};
use crate::running::Running;

/// Most outliers in a status, so that it stays below 32 KiB.
pub(super) const MOST: usize = 20;

/// Result of the comparison of a policy's nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeComparison {
    /// Nodes that need attention, at most 20, the worst first.
    pub outliers: Vec<Outlier>,
    /// Nodes whose newest run is to be confirmed, each with the time at which that run ended.
    pub suspects: BTreeMap<String, DateTime<Utc>>,
    /// Check of the p-values of the nodes that are taken for healthy.
    pub calibration: Calibration,
    /// Number of slow nodes, if they were too many at once.
    pub too_many: Option<usize>,
}

/// Compares the nodes that `is_selected` accepts. All nodes with the same environment are compared with each other. The newest
/// run of each node only raises a suspicion; its confirmation in a new deployment decides.
pub fn compare_nodes(
    rules: &ComparisonRules,
    measured: &BTreeMap<String, &NodePerformanceStatus>,
    is_selected: impl Fn(&str) -> bool,
) -> NodeComparison {
    let mut found = NodeComparison {
        outliers: below_gate(measured, &is_selected),
        ..NodeComparison::default()
    };
    for ((_, product), stratum) in strata(measured) {
        let assessed = assess(
            &fleet_rules(rules),
            &prior(product).spread,
            &BTreeMap::new(),
            &stratum.screen,
            &stratum.fresh,
        );
        if !assessed.nodes.keys().any(|name| is_selected(name)) {
            continue;
        }
        found.calibration = found.calibration.worse(assessed.calibration);
        found.too_many = found.too_many.max(assessed.too_many);
        for (name, node) in assessed.nodes.iter().filter(|(name, _)| is_selected(name)) {
            let Some(status) = measured.get(name) else { continue };
            if node.suspicion.is_some() {
                found.suspects.insert(name.clone(), status.measured_at);
            }
            let least = f64::from(rules.report.minimum_effect_percent);
            let losses = list_losses(node).into_iter().filter(|loss| loss.percent <= -least);
            found.outliers.extend(losses.map(|loss| Outlier {
                gpu: loss.gpu,
                confidence: Some(loss.confidence),
                percent: whole(100.0 + loss.percent),
                ..outlier(name, status, loss.reason)
            }));
        }
    }
    // A policy has one condition for all of its environments.
    if found.calibration.is_poor || found.too_many.is_some() {
        for outlier in &mut found.outliers {
            let is_actionable = outlier.confidence == Some(OutlierConfidence::Actionable);
            outlier.confidence = if is_actionable {
                Some(OutlierConfidence::Confirmed)
            } else {
                outlier.confidence
            };
        }
    }
    let place = |outlier: &Outlier| {
        let is_suspected = outlier.confidence == Some(OutlierConfidence::Suspected);
        (is_suspected, outlier.percent.unwrap_or(i64::MAX), outlier.reason)
    };
    found
        .outliers
        .sort_by(|a, b| (place(a), &a.node, &a.gpu).cmp(&(place(b), &b.node, &b.gpu)));
    found.outliers.truncate(MOST);
    found
}

/// Nodes that missed a gate.
fn below_gate(measured: &BTreeMap<String, &NodePerformanceStatus>, is_selected: impl Fn(&str) -> bool) -> Vec<Outlier> {
    let failed = measured.iter().filter(|(_, status)| status.verdict == Verdict::Failed);
    failed
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

/// Loss of a node, or of one GPU of it.
struct Loss {
    reason: OutlierReason,
    gpu: Option<String>,
    /// Below 0.
    percent: f64,
    confidence: OutlierConfidence,
}

fn list_losses(node: &NodeAssessment) -> Vec<Loss> {
    let found = |finding: &FleetFinding| {
        Some(Loss {
            reason: reason(finding.answer),
            gpu: finding.gpu.clone(),
            percent: finding.percent?,
            confidence: match finding.certainty {
                Certainty::Report => OutlierConfidence::Confirmed,
                Certainty::Act => OutlierConfidence::Actionable,
            },
        })
    };
    let suspected = node.suspicion.iter().map(|suspicion| Loss {
        reason: reason(suspicion.answer),
        gpu: suspicion.gpu.clone(),
        percent: suspicion.percent,
        confidence: OutlierConfidence::Suspected,
    });
    node.findings.iter().filter_map(found).chain(suspected).collect()
}

const fn reason(answer: Answer) -> OutlierReason {
    match answer {
        Answer::BelowGate => OutlierReason::BelowGate,
        Answer::SlowerThanItself => OutlierReason::SlowerThanItself,
        Answer::SlowerThanPeers => OutlierReason::SlowerThanPeers,
    }
}

fn fleet_rules(rules: &ComparisonRules) -> FleetRules {
    FleetRules {
        report: LevelRule {
            minimum_effect_percent: f64::from(rules.report.minimum_effect_percent),
            false_discovery_rate: f64::from(rules.report.false_discovery_percent) / 100.0,
        },
        least_nodes: usize::try_from(rules.peers.min_nodes).unwrap_or(usize::MAX),
        ..FleetRules::default()
    }
}

/// Nodes with the same environment.
#[derive(Default)]
struct StratumPasses {
    /// Newest run of each node.
    screen: BTreeMap<String, NodePass>,
    /// Its confirmation.
    fresh: BTreeMap<String, NodePass>,
}

/// Nodes by environment and product.
fn strata<'a>(measured: &'a BTreeMap<String, &NodePerformanceStatus>) -> BTreeMap<(&'a str, &'a str), StratumPasses> {
    let mut strata: BTreeMap<(&str, &str), StratumPasses> = BTreeMap::new();
    for (name, status) in measured {
        let Some(environment) = status.environment.as_deref() else {
            continue;
        };
        let Some((screen, fresh)) = read(status, environment) else {
            continue;
        };
        let product = status.product.as_deref().unwrap_or_default();
        let stratum = strata.entry((environment, product)).or_default();
        stratum.screen.insert(name.clone(), screen);
        if let Some(fresh) = fresh {
            stratum.fresh.insert(name.clone(), fresh);
        }
    }
    strata
}

/// Newest run of a node and its confirmation; `None` if it measured no GPU, or measured it badly.
fn read(status: &NodePerformanceStatus, environment: &str) -> Option<(NodePass, Option<NodePass>)> {
    if status.verdict == Verdict::Inconclusive {
        return None;
    }
    let (mut screen, mut fresh) = (NodeSpeeds::default(), NodeSpeeds::default());
    for gpu in &status.gpus {
        let Some(time) = gpu.token_microseconds.filter(|time| *time > 0) else {
            continue;
        };
        let stored = Running::read(gpu.operator_state.as_ref(), Some(environment));
        let shown = [speed(time).ln()];
        let (newest, confirmation) = stored.newest().unwrap_or((&shown, &[]));
        let speeds = |logarithms: &[f64]| Speeds {
            trials: logarithms.iter().map(|logarithm| logarithm.exp()).collect(),
            past: stored.past(),
        };
        screen.gpus.insert(gpu.uuid.clone(), speeds(newest));
        if !confirmation.is_empty() {
            fresh.gpus.insert(gpu.uuid.clone(), speeds(confirmation));
        }
    }
    let pasts: Vec<Past> = screen.gpus.values().map(|speeds| speeds.past).collect();
    screen.whole.past = node_past(&pasts);
    let in_one_pass = |speeds: NodeSpeeds| {
        (!speeds.gpus.is_empty()).then(|| NodePass {
            metrics: BTreeMap::from([(FleetMetric::DecodeSpeed, speeds)]),
            ..NodePass::default()
        })
    };
    Some((in_one_pass(screen)?, in_one_pass(fresh)))
}

/// Past of a node as a whole: no object stores it, but those of its GPUs give it. The residuals of several GPUs lack the part
/// that they share, so they do not show how noisy the node is.
fn node_past(gpus: &[Past]) -> Past {
    if let [only] = gpus {
        return *only;
    }
    let means: Vec<f64> = gpus.iter().map(|past| past.mean).collect();
    Past {
        count: gpus.iter().map(|past| past.count).min().unwrap_or_default(),
        mean: trimmed_mean(&means).unwrap_or_default(),
        ..Past::default()
    }
}
