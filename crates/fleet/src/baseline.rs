//! Speed that is normal for a stratum, learned from passes and then frozen as a revision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::centre::{hodges_lehmann, trimmed_deviation};
use crate::metric::{FleetMetric, count, percent};
use crate::reading::{Average, NodePass, Summary};

/// Fewest nodes and GPUs of a learned baseline; one of fewer is provisional.
const NODES: usize = 3;
/// Fewest GPUs.
const GPUS: usize = 20;
/// Quantiles that are kept, from the lowest value to the highest.
const QUANTILES: usize = 33;
/// Standard deviations from the centre beyond which a node or a GPU is not normal.
const NORMAL: f64 = 2.5;
/// Rounds of leaving values out until none is left out any more.
const ROUNDS: usize = 10;

/// Normal speeds of one stratum. A revision never changes; a newer one waits for its approval.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// Nodes that it was learned from.
    pub nodes: usize,
    /// GPUs of these nodes.
    pub gpus: usize,
    /// Nodes that were left out because they have a cause or missed a gate.
    pub excluded: usize,
    /// True below 3 nodes or 20 GPUs.
    pub is_provisional: bool,
    /// By metric.
    pub metrics: BTreeMap<FleetMetric, Norm>,
}

/// Normal speed in one metric, in the unit of the metric.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Norm {
    /// Hodges–Lehmann centre of the subjects (GPUs, or nodes for a metric of the whole node).
    pub centre: f64,
    /// Standard deviation of the subjects (percent), of one pass.
    pub spread_percent: f64,
    /// 33 quantiles of equal distance, from the lowest to the highest of the normal values.
    pub quantiles: Vec<f64>,
}

/// Node from which a baseline is learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its pass.
    pub pass: NodePass,
    /// True if a cause was found for a fault of the node.
    pub has_cause: bool,
}

impl Baseline {
    /// Learns from the last pass of each node of one stratum, by name. Up to a tenth of the nodes may be slow without being
    /// known: values beyond three standard deviations are left out until none is. `None` without a usable node.
    pub fn learn(samples: &BTreeMap<String, Sample>) -> Option<Self> {
        let healthy = |sample: &&Sample| !sample.has_cause && !sample.pass.missed_gate;
        let used: Vec<&NodePass> = samples
            .values()
            .filter(healthy)
            .map(|sample| &sample.pass)
            .filter(|pass| {
                pass.metrics
                    .values()
                    .any(|speeds| Summary::new(speeds, Average::Mean).is_some())
            })
            .collect();
        let metrics: std::collections::BTreeSet<FleetMetric> =
            used.iter().flat_map(|pass| pass.metrics.keys().copied()).collect();
        let norms: BTreeMap<FleetMetric, Norm> = metrics
            .into_iter()
            .filter_map(|metric| Some((metric, Norm::learn(&subjects(&normal_nodes(&used, metric), metric))?)))
            .collect();
        let gpus = used.iter().map(|pass| count_gpus(pass)).sum();
        (!norms.is_empty()).then(|| Self {
            nodes: used.len(),
            gpus,
            excluded: samples.len() - samples.values().filter(healthy).count(),
            is_provisional: used.len() < NODES || gpus < GPUS,
            metrics: norms,
        })
    }

    /// Speed of a node's slowest subject as a percentage of the baseline's centre, for a gate such as "90 % of it".
    /// `None` if either has no such metric.
    pub fn percent_of(&self, metric: FleetMetric, pass: &NodePass) -> Option<f64> {
        let norm = self.metrics.get(&metric)?;
        let slowest = subjects(&[pass], metric).into_iter().min_by(f64::total_cmp)?;
        Some(100.0 * slowest.exp() / norm.centre)
    }

    /// Change of each metric's centre (percent) from this revision to a newer one, to be shown beside its approval.
    pub fn changes(&self, newer: &Self) -> BTreeMap<FleetMetric, f64> {
        let change = |(metric, norm): (&FleetMetric, &Norm)| {
            let newer = newer.metrics.get(metric)?;
            Some((*metric, percent((newer.centre / norm.centre).ln())))
        };
        self.metrics.iter().filter_map(change).collect()
    }
}

impl Norm {
    /// Norm of logarithms; `None` without any.
    fn learn(logarithms: &[f64]) -> Option<Self> {
        let (low, high) = normal_range(logarithms)?;
        let mut kept: Vec<f64> = logarithms
            .iter()
            .copied()
            .filter(|value| (low..=high).contains(value))
            .collect();
        kept.sort_by(f64::total_cmp);
        let centre = hodges_lehmann(&kept)?;
        let spread = trimmed_deviation(&kept).unwrap_or_default();
        let quantile = |at: usize| {
            let place = count(at) / count(QUANTILES - 1) * count(kept.len().saturating_sub(1));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place in a list"
            )]
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            let between = kept[below] + (kept[above] - kept[below]) * place.fract();
            round(between.exp())
        };
        Some(Self {
            centre: round(centre.exp()),
            spread_percent: round(100.0 * spread),
            quantiles: (0..QUANTILES).map(quantile).collect(),
        })
    }
}

/// Nodes whose value as a whole is normal: among nodes a slow one stands out more than its GPUs do among all GPUs.
fn normal_nodes<'a>(passes: &[&'a NodePass], metric: FleetMetric) -> Vec<&'a NodePass> {
    let value = |pass: &NodePass| Some(Summary::new(pass.metrics.get(&metric)?, Average::Mean)?.whole.mean);
    let values: Vec<f64> = passes.iter().filter_map(|pass| value(pass)).collect();
    let Some((low, high)) = normal_range(&values) else {
        return Vec::new();
    };
    let passes = passes.iter().copied();
    passes
        .filter(|pass| value(pass).is_some_and(|value| (low..=high).contains(&value)))
        .collect()
}

/// Lowest and highest normal value: those further from the centre are left out until none is left out any more.
fn normal_range(values: &[f64]) -> Option<(f64, f64)> {
    let mut kept = values.to_vec();
    let mut range = (f64::NEG_INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let centre = hodges_lehmann(&kept)?;
        let reach = NORMAL * trimmed_deviation(&kept).unwrap_or_default().max(f64::EPSILON);
        range = (centre - reach, centre + reach);
        let before = kept.len();
        kept.retain(|value| (range.0..=range.1).contains(value));
        if kept.len() == before {
            break;
        }
    }
    Some(range)
}

/// Logarithms of the subjects: GPUs where the metric has them, else whole nodes.
fn subjects(passes: &[&NodePass], metric: FleetMetric) -> Vec<f64> {
    let speeds = passes.iter().filter_map(|pass| pass.metrics.get(&metric));
    let values = speeds
        .filter_map(|speeds| Summary::new(speeds, Average::Mean))
        .flat_map(|summary| {
            let gpus: Vec<f64> = summary.gpus.iter().map(|(_, value)| value.mean).collect();
            if gpus.is_empty() {
                vec![summary.whole.mean]
            } else {
                gpus
            }
        });
    values.collect()
}

fn count_gpus(pass: &NodePass) -> usize {
    pass.metrics
        .values()
        .map(|speeds| speeds.gpus.len())
        .max()
        .unwrap_or_default()
}

/// Six significant digits.
fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a speed")]
    let digits = 5 - value.abs().log10().floor() as i32;
    let factor = 10_f64.powi(digits.clamp(-12, 12));
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{NodeSpeeds, Speeds};

    fn sample(speeds: &[f64]) -> Sample {
        let gpus = speeds.iter().enumerate().map(|(at, speed)| {
            let trials = vec![*speed];
            (
                format!("GPU-{at}"),
                Speeds {
                    trials,
                    ..Speeds::default()
                },
            )
        });
        let speeds = NodeSpeeds {
            gpus: gpus.collect(),
            ..NodeSpeeds::default()
        };
        Sample {
            pass: NodePass {
                metrics: BTreeMap::from([(FleetMetric::DecodeSpeed, speeds)]),
                ..NodePass::default()
            },
            has_cause: false,
        }
    }

    #[test]
    fn faulty_nodes_are_left_out_and_counted_and_few_nodes_are_provisional() {
        let speeds = [99.0, 100.0, 101.0, 100.0, 99.5, 100.5, 100.0, 100.0];
        let mut samples: BTreeMap<String, Sample> = ["a", "b"].map(|name| (name.to_owned(), sample(&speeds))).into();
        let mut faulty = sample(&[50.0; 8]);
        faulty.has_cause = true;
        samples.insert("c".to_owned(), faulty);
        let found = Baseline::learn(&samples).expect("a baseline");
        assert!((found.nodes, found.gpus, found.excluded, found.is_provisional) == (2, 16, 1, true));
        samples.insert("d".to_owned(), sample(&speeds));
        let found = Baseline::learn(&samples).expect("a baseline");
        assert!(!found.is_provisional);
        let norm = &found.metrics[&FleetMetric::DecodeSpeed];
        assert!((norm.centre - 100.0).abs() < 0.1, "{norm:?}");
        assert_eq!(norm.quantiles.len(), 33);
        assert!(norm.quantiles.is_sorted());
        let percent = found.percent_of(FleetMetric::DecodeSpeed, &sample(&[100.0, 88.0]).pass);
        assert!((percent.expect("a percentage") - 88.0).abs() < 0.1);
        assert_eq!(found.percent_of(FleetMetric::Throughput, &sample(&[1.0]).pass), None);
    }

    #[test]
    fn a_new_revision_is_shown_beside_the_old_one() {
        let learn = |speed: f64| {
            let samples = ["a", "b", "c"]
                .map(|name| (name.to_owned(), sample(&[speed; 8])))
                .into();
            Baseline::learn(&samples).expect("a baseline")
        };
        let changes = learn(100.0).changes(&learn(97.0));
        assert!((changes[&FleetMetric::DecodeSpeed] + 3.0).abs() < 0.01, "{changes:?}");
        assert_eq!(Baseline::learn(&BTreeMap::new()), None);
    }
}
