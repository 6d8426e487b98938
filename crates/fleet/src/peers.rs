//! Deviations of a GPU and of a node from a reference: their own past, or their peers.

use crate::centre::{hodges_lehmann, trimmed_mean};
use crate::numbers::count;
use crate::past::Past;
use crate::prior::PriorSpread;
use crate::reading::{MeanSpeed, NodeSummary};
use crate::scale::{Scale, Squares};

/// Variance of a trimmed mean beside that of a plain one.
const TRIMMED: f64 = 1.1;
/// Scale up to which the prior's parts of the variance are taken to keep their proportion. That of the recorded trials of H200s is
/// 2.2.
pub(crate) const USUAL_SCALE: f64 = 2.5;
/// Number of nodes from which on one more or less does not move their centre.
const MANY_NODES: usize = 40;

/// Difference (logarithm) of one subject from the expected value; below 0 is slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// Measured minus expected.
    pub value: f64,
    /// Variance of it for a healthy subject with the prior's spread.
    pub variance: f64,
    /// The same for the screen, to which scales are fitted. More trials of one deployment do not average what differs between
    /// deployments.
    pub once: f64,
    /// Own past, and the variance of one of its passes with the prior's spread.
    pub past: Option<(Past, f64)>,
}

impl Deviation {
    /// Deviation in standard deviations of the prior.
    pub fn standardised(&self) -> f64 {
        self.value / self.variance.sqrt()
    }

    /// Standard deviation in a stratum with this scale; a GPU that was noisier than others has a larger one. Noise far beyond the
    /// prior's may be that of deployments, as where five starts varied by 7 %.
    pub fn deviation(&self, scale: Scale) -> f64 {
        let excess = self.past.map_or(1.0, |(past, pass)| past.excess(pass * scale.variance));
        let averaged = scale.variance.min(USUAL_SCALE);
        let variance = self.variance * averaged + self.once * (scale.variance - averaged);
        (variance * excess).sqrt()
    }
}

/// Each GPU with its difference from its own past, without the part that the other GPUs of the node share. `None` where a
/// GPU has fewer than `runs` passes, or no other one has.
pub(crate) fn gpus_and_past(summary: &NodeSummary, spread: &PriorSpread, runs: u32) -> Vec<Option<Deviation>> {
    let noise = |value: &MeanSpeed| {
        let runs = f64::from(value.past.count.max(1));
        spread.noise.powi(2) * (1.0 / value.trials + 1.0 / runs)
    };
    let residual = |value: &MeanSpeed| value.residual(runs);
    let found = beside_others(summary, residual, noise);
    let values = summary.gpus.iter().map(|(_, value)| value);
    let others = count(summary.gpus.len().max(2) - 1);
    let pass = spread.noise.powi(2) * (1.0 + TRIMMED / others);
    found
        .into_iter()
        .zip(values)
        .map(|(deviation, value)| {
            deviation.map(|deviation| Deviation {
                past: Some((value.past, pass)),
                ..deviation
            })
        })
        .collect()
}

/// Each GPU beside the trimmed mean of the others of its node. `None` for the only one.
pub(crate) fn gpus_and_peers(summary: &NodeSummary, spread: &PriorSpread) -> Vec<Option<Deviation>> {
    let noise = |value: &MeanSpeed| spread.gpu.powi(2) + spread.noise.powi(2) / value.trials;
    beside_others(summary, |value| Some(value.mean), noise)
}

/// Leave-one-out: a GPU's value minus the trimmed mean of the other ones'.
fn beside_others(
    summary: &NodeSummary,
    value: impl Fn(&MeanSpeed) -> Option<f64>,
    variance: impl Fn(&MeanSpeed) -> f64,
) -> Vec<Option<Deviation>> {
    let gpus: Vec<Option<(f64, f64)>> = summary
        .gpus
        .iter()
        .map(|(_, gpu)| value(gpu).map(|value| (value, variance(gpu))))
        .collect();
    let deviation = |at: usize| {
        let (value, variance) = gpus[at]?;
        let others = gpus.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<(f64, f64)> = others.filter_map(|(_, other)| *other).collect();
        let values: Vec<f64> = others.iter().map(|other| other.0).collect();
        let shared = others.iter().map(|other| other.1).sum::<f64>() / count(others.len()).powi(2);
        let variance = variance + TRIMMED * shared;
        Some(Deviation {
            value: value - trimmed_mean(&values)?,
            variance,
            once: variance,
            past: None,
        })
    };
    (0..gpus.len()).map(deviation).collect()
}

/// A node as a whole and its own past. `None` below `runs` passes.
pub(crate) fn node_and_past(summary: &NodeSummary, spread: &PriorSpread, runs: u32) -> Option<Deviation> {
    let whole = &summary.whole;
    let residual = whole.residual(runs)?;
    let passes = f64::from(whole.past.count);
    let pass = spread.pass.powi(2);
    let trial = pass_variance(summary, spread) - pass;
    let variance = pass * (1.0 + 1.0 / passes) + trial * (1.0 / whole.trials + 1.0 / passes);
    Some(Deviation {
        value: residual,
        variance,
        once: variance,
        past: Some((summary.shared, pass + trial)),
    })
}

/// Variance of a node from one pass with one trial to the next.
pub(crate) fn pass_variance(summary: &NodeSummary, spread: &PriorSpread) -> f64 {
    spread.pass.powi(2) + spread.trial.powi(2) + spread.noise.powi(2) / count(summary.gpus.len().max(1))
}

/// Squares of a node's earlier residuals, in variances of a pass with the prior's spread.
pub(crate) fn learned_squares(summary: &NodeSummary, spread: &PriorSpread) -> Squares {
    let past = summary.shared;
    Squares {
        sum: past.m2 / pass_variance(summary, spread),
        degrees: f64::from(past.count.saturating_sub(1)),
    }
}

/// Square of the difference between two measurements of a node, in variances of it with the prior's spread.
pub(crate) fn difference(screen: &NodeSummary, fresh: &NodeSummary, spread: &PriorSpread) -> f64 {
    let silicon = spread.node.powi(2) + spread.gpu.powi(2) / count(screen.gpus.len().max(1));
    let variance = node_variance(screen, spread) + node_variance(fresh, spread) - 2.0 * silicon;
    (screen.whole.mean - fresh.whole.mean).powi(2) / variance
}

/// Variance of a healthy node's value in one pass.
pub(crate) fn node_variance(summary: &NodeSummary, spread: &PriorSpread) -> f64 {
    let gpus = count(summary.gpus.len().max(1));
    let trials = summary.whole.trials;
    let gpu = (spread.gpu.powi(2) + spread.noise.powi(2) / trials) / gpus;
    spread.node.powi(2) + spread.pass.powi(2) + spread.trial.powi(2) / trials + gpu
}

/// Nodes of a stratum that others are compared with: their values, each with its variance.
pub(crate) struct NodePeers {
    nodes: Vec<(f64, f64)>,
    /// Sum of the variances.
    variance: f64,
    centre: Option<f64>,
}

impl NodePeers {
    /// Peers from summaries.
    pub(crate) fn new(summaries: &[NodeSummary], spread: &PriorSpread) -> Self {
        let value = |summary: &NodeSummary| (summary.whole.mean, node_variance(summary, spread));
        let nodes: Vec<(f64, f64)> = summaries.iter().map(value).collect();
        let values: Vec<f64> = nodes.iter().map(|node| node.0).collect();
        Self {
            centre: (nodes.len() >= MANY_NODES).then(|| hodges_lehmann(&values)).flatten(),
            variance: nodes.iter().map(|node| node.1).sum(),
            nodes,
        }
    }

    /// Squares of few nodes: of all but the one at `at`, so that a slow node does not widen its own limit. `again` is the square
    /// of the difference between two measurements of that one: a slow node is as slow again, and noise is not.
    pub(crate) fn squares_without(&self, at: usize, again: Option<f64>) -> Squares {
        let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<(f64, f64)> = others.map(|(_, node)| *node).collect();
        let centre = others.iter().map(|other| other.0).sum::<f64>() / count(others.len().max(1));
        let squares: f64 = others.iter().map(|other| (other.0 - centre).powi(2) / other.1).sum();
        let degrees = others.len().saturating_sub(1) + usize::from(again.is_some());
        Squares {
            sum: squares + again.unwrap_or_default(),
            degrees: count(degrees),
        }
    }

    /// Deviation of the node at `at` from the centre of all others; `fresh` replaces its value by that of a newer
    /// measurement. `None` with fewer than `least` nodes.
    pub(crate) fn compare(
        &self,
        at: usize,
        fresh: Option<&NodeSummary>,
        spread: &PriorSpread,
        least: usize,
    ) -> Option<Deviation> {
        if self.nodes.len() < least.max(2) {
            return None;
        }
        let (value, variance) = match fresh {
            Some(summary) => (summary.whole.mean, node_variance(summary, spread)),
            None => self.nodes[at],
        };
        let centre = if let Some(centre) = self.centre {
            centre
        } else {
            let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != at);
            hodges_lehmann(&others.map(|(_, node)| node.0).collect::<Vec<f64>>())?
        };
        let shared = (self.variance - self.nodes[at].1) / count(self.nodes.len() - 1).powi(2);
        Some(Deviation {
            value: value - centre,
            variance: variance + TRIMMED * shared,
            // The scale was fitted to the screen.
            once: self.nodes[at].1 + TRIMMED * shared,
            past: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Average, NodePass, Speeds};
    use crate::tail::student;

    const SPREAD: PriorSpread = PriorSpread {
        trial: 0.015,
        pass: 0.01,
        noise: 0.014,
        gpu: 0.01,
        node: 0.01,
    };

    fn node(gpus: &[f64], past: Past) -> NodePass {
        let gpus = gpus.iter().enumerate().map(|(at, speed)| {
            let trials = vec![*speed];
            (format!("GPU-{at}"), Speeds { trials, past })
        });
        NodePass {
            past,
            gpus: gpus.collect(),
            ..NodePass::default()
        }
    }

    /// Probability of so slow a value of a subject that is 2 % slower.
    fn slower(deviation: Deviation) -> f64 {
        let scale = Scale::default();
        student((-deviation.value - 0.02) / deviation.deviation(scale), scale.degrees)
    }

    #[test]
    fn the_slow_gpu_deviates_and_its_peers_do_not() {
        let speeds = node(&[100.0, 100.0, 90.0, 100.0, 100.0], Past::default());
        let found = gpus_and_peers(&NodeSummary::new(&speeds, Average::Mean).expect("speeds"), &SPREAD);
        let values: Vec<f64> = found.iter().flatten().map(|deviation| deviation.value).collect();
        assert!((values[2] + 0.10536).abs() < 1e-4, "{values:?}");
        assert!(values[0].abs() < 1e-9, "{values:?}");
    }

    #[test]
    fn a_change_that_all_gpus_share_is_the_node_s() {
        let past = Past {
            count: 5,
            mean: 100.0_f64.ln(),
            ..Past::default()
        };
        let speeds = node(&[90.0; 8], past);
        let summary = NodeSummary::new(&speeds, Average::Mean).expect("speeds");
        assert!(
            gpus_and_past(&summary, &SPREAD, 5)
                .iter()
                .flatten()
                .all(|gpu| gpu.value.abs() < 1e-9)
        );
        let node = node_and_past(&summary, &SPREAD, 5).expect("a past");
        assert!((node.value + 0.10536).abs() < 1e-4, "{node:?}");
        assert!(slower(node) < 0.01);
        assert!(node_and_past(&summary, &SPREAD, 6).is_none());
    }

    #[test]
    fn three_nodes_are_compared_and_two_are_not() {
        let speeds = [100.0, 101.0, 80.0].map(|speed| node(&[speed; 4], Past::default()));
        let summaries: Vec<NodeSummary> = speeds
            .iter()
            .map(|speeds| NodeSummary::new(speeds, Average::Mean).expect("speeds"))
            .collect();
        let peers = NodePeers::new(&summaries, &SPREAD);
        let slow = peers.compare(2, None, &SPREAD, 3).expect("peers");
        assert!(slower(slow) < 0.001, "{slow:?}");
        let twice = peers.compare(2, Some(&summaries[0]), &SPREAD, 3).expect("peers");
        assert!(twice.value > -0.01);
        assert!(
            NodePeers::new(&summaries[..2], &SPREAD)
                .compare(0, None, &SPREAD, 3)
                .is_none()
        );
    }
}
