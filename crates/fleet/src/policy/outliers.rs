//! Nodes that need attention, from the newest measurement of each node.

use std::collections::BTreeMap;

use perfval_api::Verdict;
use perfval_api::fleet::{ComparisonRules, NodePerformanceStatus, Outlier, OutlierReason};

use crate::centre::trimmed_mean;
use crate::findings::{Answer, FleetFinding, FleetRules, LevelRule, assess};
use crate::measurement::whole;
use crate::metric::{FleetMetric, count};
use crate::past::Past;
use crate::prior::prior;
use crate::reading::{NodePass, NodeSpeeds, Speeds};
use crate::running::Running;

/// Most outliers in a status, so that it stays below 32 KiB.
pub(super) const MOST: usize = 20;
/// Microseconds per second.
const MICRO: f64 = 1e6;

/// Returns the outliers among the nodes that `is_selected` accepts, the worst first. All nodes with the same environment are
/// compared with each other. The newest run of each node is its only pass, so every comparison counts, and none was chosen
/// for its result.
pub fn find_outliers(
    rules: &ComparisonRules,
    measured: &BTreeMap<String, &NodePerformanceStatus>,
    is_selected: impl Fn(&str) -> bool,
) -> Vec<Outlier> {
    let mut strata: BTreeMap<(&str, &str), BTreeMap<String, NodePass>> = BTreeMap::new();
    for (name, status) in measured {
        let Some(environment) = status.environment.as_deref() else {
            continue;
        };
        if let Some(pass) = read(status, environment) {
            let product = status.product.as_deref().unwrap_or_default();
            strata
                .entry((environment, product))
                .or_default()
                .insert(name.clone(), pass);
        }
    }
    let outlier = |name: &str, gpu: Option<String>, reason: OutlierReason, percent: Option<i64>| {
        let run = &measured.get(name)?.validation;
        Some(Outlier {
            node: name.to_owned(),
            gpu,
            reason,
            percent,
            validation: format!("{}/{}", run.namespace, run.name),
        })
    };
    let failed = measured.iter().filter(|(_, status)| status.verdict == Verdict::Failed);
    let mut outliers: Vec<Outlier> = failed
        .filter(|(name, _)| is_selected(name))
        .filter_map(|(name, status)| {
            let percent = status.percent_of_gate.filter(|percent| *percent < 100);
            outlier(name, None, OutlierReason::BelowGate, percent)
        })
        .collect();
    let least = f64::from(rules.report.minimum_effect_percent);
    for ((_, product), passes) in strata {
        let assessed = assess(
            &fleet_rules(rules),
            &prior(product).spread,
            &BTreeMap::new(),
            &passes,
            &passes,
        );
        for (name, node) in assessed.nodes.iter().filter(|(name, _)| is_selected(name)) {
            outliers.extend(node.findings.iter().filter_map(|finding| {
                let (reason, percent) = compared(finding)?;
                (percent <= -least).then(|| outlier(name, finding.gpu.clone(), reason, whole(100.0 + percent)))?
            }));
        }
    }
    let place = |outlier: &Outlier| (outlier.percent.unwrap_or(i64::MAX), outlier.reason);
    outliers.sort_by(|a, b| (place(a), &a.node, &a.gpu).cmp(&(place(b), &b.node, &b.gpu)));
    outliers.truncate(MOST);
    outliers
}

fn compared(finding: &FleetFinding) -> Option<(OutlierReason, f64)> {
    let reason = match finding.answer {
        // The verdict shows it.
        Answer::BelowGate => return None,
        Answer::SlowerThanItself => OutlierReason::SlowerThanItself,
        Answer::SlowerThanPeers => OutlierReason::SlowerThanPeers,
    };
    Some((reason, finding.percent?))
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

/// Newest run of a node; `None` if it measured no GPU, or measured it badly.
fn read(status: &NodePerformanceStatus, environment: &str) -> Option<NodePass> {
    if status.verdict == Verdict::Inconclusive {
        return None;
    }
    let mut speeds = NodeSpeeds::default();
    for gpu in &status.gpus {
        let Some(time) = gpu.token_microseconds.filter(|time| *time > 0) else {
            continue;
        };
        #[expect(clippy::cast_precision_loss, reason = "microseconds between two tokens")]
        let speed = MICRO / time as f64;
        let past = Running::read(gpu.operator_state.as_ref(), Some(environment)).before(speed);
        let trials = vec![speed];
        speeds.gpus.insert(gpu.uuid.clone(), Speeds { trials, past });
    }
    let pasts: Vec<Past> = speeds.gpus.values().map(|speeds| speeds.past).collect();
    speeds.whole.past = node_past(&pasts);
    (!speeds.gpus.is_empty()).then(|| NodePass {
        metrics: BTreeMap::from([(FleetMetric::DecodeSpeed, speeds)]),
        ..NodePass::default()
    })
}

/// Past of a node as a whole: no object stores it, but those of its GPUs give it.
fn node_past(gpus: &[Past]) -> Past {
    let means: Vec<f64> = gpus.iter().map(|past| past.mean).collect();
    Past {
        count: gpus.iter().map(|past| past.count).min().unwrap_or_default(),
        mean: trimmed_mean(&means).unwrap_or_default(),
        m2: gpus.iter().map(|past| past.m2).sum::<f64>() / count(gpus.len().max(1)),
        cusum: 0.0,
    }
}
