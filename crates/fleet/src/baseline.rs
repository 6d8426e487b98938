//! Speed that is normal for a stratum, learned from passes and then frozen as a revision.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::centre::{hodges_lehmann, trimmed_deviation};
use crate::numbers::count;
use crate::peers::{Deviation, node_variance};
use crate::prior::PriorSpread;
use crate::reading::{Average, NodePass, NodeSummary};
use crate::scale::{Scale, Squares};
use crate::shift::{CommonShift, shift_against};

/// Fewest nodes of a learned baseline; one of fewer is provisional.
pub const NODES: usize = 3;
/// Fewest GPUs.
pub const GPUS: usize = 20;
/// Standard deviations from the centre beyond which a node or a GPU is not normal.
const NORMAL: f64 = 2.5;
/// Standard deviations from the centre within which nodes make up the centre. Of 60 simulated baselines of 10 nodes with one bad
/// one, 2 are off by more than 0.5 % with this limit, and 7 with the wider one. The spread needs the wider one, because healthy
/// nodes beyond this limit belong to it.
const CORE: f64 = 2.0;
/// Distance from the centre (logarithm) that is always normal: few values may be alike by chance.
const ALIKE: f64 = 0.01;
/// Rounds of leaving values out until none is left out any more.
const ROUNDS: usize = 10;
/// Variance of a Hodges–Lehmann centre beside that of a plain mean.
const CENTRE: f64 = 1.05;

/// Norms of approved baselines, by digest of the environment.
pub type Approved = BTreeMap<String, SpeedNorm>;

/// Normal speeds of one stratum.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Nodes that it was learned from.
    pub nodes: usize,
    /// GPUs of these nodes.
    pub gpus: usize,
    /// Nodes that were left out: they did not pass, are far from the others, or may be cold.
    pub excluded: usize,
    /// Normal decode speed.
    pub norm: SpeedNorm,
}

/// Normal decode speed (tokens per second of one request).
#[derive(Clone, Debug, PartialEq)]
pub struct SpeedNorm {
    /// Hodges–Lehmann centre of the GPUs.
    pub centre: f64,
    /// Standard deviation of whole nodes in one pass (percent); `None` if unknown.
    pub node_percent: Option<f64>,
    /// Nodes behind it; `None` if the centre is exact.
    pub nodes: Option<usize>,
}

impl Baseline {
    /// Learns from the newest pass of each node of one stratum, by name. Up to a tenth of the nodes may be slow without being
    /// known: values beyond 2.5 standard deviations are left out until none is. `None` without a usable node.
    pub fn learn(passes: &BTreeMap<String, NodePass>) -> Option<Self> {
        let read = |pass: &&'_ NodePass| NodeSummary::new(pass, Average::Mean).is_some();
        let measured = passes.values().filter(read).count();
        let learned = list_normal(passes);
        let norm = SpeedNorm::learn(&learned)?;
        Some(Self {
            nodes: learned.len(),
            gpus: learned.iter().map(|node| node.gpus.len()).sum(),
            excluded: measured - learned.len(),
            norm,
        })
    }

    /// Returns true below 3 nodes or 20 GPUs.
    pub fn is_provisional(&self) -> bool {
        self.nodes < NODES || self.gpus < GPUS
    }
}

/// Nodes from which a baseline learns, without those far from the others.
fn list_normal(passes: &BTreeMap<String, NodePass>) -> Vec<NodeSummary<'_>> {
    let sound = passes.values().filter(|pass| !pass.is_unsound);
    let sound = sound.filter_map(|pass| Some((pass.is_cold, NodeSummary::new(pass, Average::Mean)?)));
    let sound: Vec<(bool, NodeSummary<'_>)> = sound.collect();
    // The first run after a boot may be slow. In a new fleet there are only such runs.
    let warm = sound.iter().filter(|(is_cold, _)| !is_cold);
    let warm: Vec<usize> = warm.map(|(_, node)| node.gpus.len()).collect();
    let is_enough = warm.len() >= NODES && warm.iter().sum::<usize>() >= GPUS;
    let healthy = sound.into_iter().filter(|(is_cold, _)| !(*is_cold && is_enough));
    let mut nodes: Vec<NodeSummary<'_>> = healthy.map(|(_, node)| node).collect();
    // Among nodes a slow one stands out more than its GPUs do among all GPUs.
    let whole: Vec<f64> = nodes.iter().map(|node| node.whole.mean).collect();
    if let Some(range) = normal_range(&whole, NORMAL) {
        nodes.retain(|node| range.contains(&node.whole.mean));
    }
    nodes
}

impl SpeedNorm {
    /// Norm of normal nodes; `None` without any.
    fn learn(nodes: &[NodeSummary<'_>]) -> Option<Self> {
        let whole: Vec<f64> = nodes.iter().map(|node| node.whole.mean).collect();
        let core = normal_range(&whole, CORE)?;
        let core = nodes.iter().filter(|node| core.contains(&node.whole.mean));
        let gpus = core.flat_map(|node| node.gpus.iter().map(|(_, value)| value.mean));
        let mut gpus: Vec<f64> = gpus.collect();
        let range = normal_range(&gpus, NORMAL)?;
        gpus.retain(|value| range.contains(value));
        Some(Self {
            centre: round(hodges_lehmann(&gpus)?.exp()),
            node_percent: trimmed_deviation(&whole).map(|deviation| round(100.0 * deviation)),
            nodes: Some(whole.len()),
        })
    }

    /// Centre of nodes as a whole (logarithm), and its variance. `spread` is the prior of the product.
    fn node_centre(&self, spread: &PriorSpread) -> (f64, f64) {
        let spread = self.node_percent.map_or_else(
            || spread.node.hypot(spread.pass).hypot(spread.trial),
            |percent| percent / 100.0,
        );
        let variance = self.nodes.map_or(0.0, |nodes| CENTRE * spread.powi(2) / count(nodes));
        (self.centre.ln(), variance)
    }

    /// Returns true if so few nodes are better compared with this norm than with each other. After a common shift they are not.
    pub(crate) fn is_needed(&self, nodes: &[NodeSummary], least: usize, spread: &PriorSpread) -> bool {
        let others = nodes.len().saturating_sub(1);
        (others < least || Scale::is_few(others)) && !self.shift(nodes, spread).is_environment
    }

    /// Deviation of a node as a whole from this norm.
    pub(crate) fn beside(&self, summary: &NodeSummary, spread: &PriorSpread) -> (Deviation, Scale) {
        let (centre, variance) = self.node_centre(spread);
        let variance = node_variance(summary, spread) + variance;
        let deviation = Deviation {
            value: summary.whole.mean - centre,
            variance,
            once: variance,
            past: None,
        };
        (deviation, self.node_scale(summary, spread))
    }

    /// Scale of a node's deviation: the spread of the nodes behind this norm, shrunk to the prior's. A spread of an unknown number
    /// of nodes counts as exact.
    fn node_scale(&self, summary: &NodeSummary, spread: &PriorSpread) -> Scale {
        let Some(percent) = self.node_percent else {
            return Scale::default();
        };
        let ratio = (percent / 100.0).powi(2) / node_variance(summary, spread);
        let Some(nodes) = self.nodes else {
            return Scale {
                variance: ratio,
                ..Scale::default()
            };
        };
        let degrees = count(nodes.saturating_sub(1));
        Squares {
            sum: ratio * degrees,
            degrees,
        }
        .scale()
    }

    /// Common shift of nodes against this norm.
    fn shift(&self, nodes: &[NodeSummary], spread: &PriorSpread) -> CommonShift {
        let (centre, variance) = self.node_centre(spread);
        let residuals: Vec<f64> = nodes.iter().map(|node| node.whole.mean - centre).collect();
        let deviations = nodes
            .iter()
            .map(|node| node_variance(node, spread) * self.node_scale(node, spread).variance);
        let deviation = (deviations.sum::<f64>() / count(nodes.len().max(1))).sqrt();
        shift_against(&residuals, deviation, variance)
    }

    /// Common shift of the nodes of a stratum against this norm.
    pub fn compare(&self, passes: &BTreeMap<String, NodePass>, spread: &PriorSpread) -> CommonShift {
        // A change that makes all nodes miss a gate is a shift too.
        let summaries = passes.values().filter_map(|pass| NodeSummary::new(pass, Average::Mean));
        self.shift(&summaries.collect::<Vec<_>>(), spread)
    }

    /// Common shift of the nodes from which a baseline would learn now.
    pub fn compare_learned(&self, passes: &BTreeMap<String, NodePass>, spread: &PriorSpread) -> CommonShift {
        self.shift(&list_normal(passes), spread)
    }
}

/// Values further from the centre than this many standard deviations are left out until none is left out any more.
fn normal_range(values: &[f64], deviations: f64) -> Option<RangeInclusive<f64>> {
    let mut kept = values.to_vec();
    let mut range = f64::NEG_INFINITY..=f64::INFINITY;
    for _ in 0..ROUNDS {
        let centre = hodges_lehmann(&kept)?;
        let reach = deviations * trimmed_deviation(&kept).unwrap_or_default();
        let reach = reach.max(ALIKE);
        range = centre - reach..=centre + reach;
        let before = kept.len();
        kept.retain(|value| range.contains(value));
        if kept.len() == before {
            break;
        }
    }
    Some(range)
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
