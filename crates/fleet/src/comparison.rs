//! All comparisons of one stratum in one pass.

use std::collections::{BTreeMap, BTreeSet};

use crate::baseline::SpeedNorm;
use crate::candidate::{Reference, SubjectLoss};
use crate::evidence::NodeEvidence;
use crate::measurement::CONFIRMATION_TRIALS;
use crate::numbers::count;
use crate::past::{GPU_IN_CONTROL, KNOWN, NODE_IN_CONTROL, Past, SETTLED};
use crate::peers::{
    Deviation, NodePeers, USUAL_SCALE, difference, gpus_and_past, gpus_and_peers, learned_squares, node_and_past,
    pass_variance,
};
use crate::prior::{DEGREES, PriorSpread};
use crate::reading::{Average, NodePass, NodeSummary};
use crate::scale::{Scale, Squares};
use crate::shift::{CommonShift, common_shift};

/// A stratum, compared.
pub(crate) struct ComparedStratum<'a> {
    pub(crate) shift: CommonShift,
    pub(crate) nodes: Vec<(&'a str, NodeEvidence<'a>)>,
    /// True if the nodes share a noise that is hardly known: they are few, and have no past or approved norm.
    pub(crate) is_noise_assumed: bool,
    /// Some of the nodes, each as if it had a confirmation as fast as its newest run.
    pub(crate) samples: Vec<NodeEvidence<'a>>,
}

/// Knowledge about a stratum before its pass.
#[derive(Clone, Copy)]
pub(crate) struct KnownStratum<'a> {
    /// Prior of the product.
    pub(crate) spread: &'a PriorSpread,
    /// Approved norm. Few nodes are compared with it rather than with each other.
    pub(crate) norm: Option<&'a SpeedNorm>,
    /// Fewest nodes that are compared with each other.
    pub(crate) nodes: usize,
}

/// Compares all nodes. `screen` is the pass of all nodes, `fresh` has the new deployments of those that were measured again.
pub(crate) fn compare<'a>(
    known: KnownStratum<'_>,
    screen: &'a BTreeMap<String, NodePass>,
    fresh: &'a BTreeMap<String, NodePass>,
) -> ComparedStratum<'a> {
    let read = |(name, pass): (&'a String, &'a NodePass)| Some((name.as_str(), NodeSummary::new(pass, Average::Mean)?));
    let (names, read): (Vec<&str>, Vec<NodeSummary>) = screen.iter().filter_map(read).unzip();
    let level = Level::new(known, &read);
    let drifting = level.drifting_nodes(&read);
    let nodes = names.into_iter().zip(&read).enumerate().map(|(at, (name, summary))| {
        let pass = fresh.get(name);
        let again = pass.and_then(|pass| NodeSummary::new(pass, level.average));
        // The past is the one before the screen.
        let again = again.map(|again| with_pasts(again, summary));
        let confirmed = again.as_ref().map(|again| level.candidates(at, again, Some(summary)));
        let evidence = NodeEvidence {
            times: summary.times,
            screened: level.candidates(at, summary, None),
            confirmed: confirmed.unwrap_or_default(),
            node_again: again.as_ref().and_then(|again| level.smallest_difference(at, again)),
            confirmations: pass.map_or(0, |pass| pass.confirmations),
            drifting: level
                .drifting(summary)
                .chain(drifting.contains(&at).then_some(None))
                .collect(),
        };
        (name, evidence)
    });
    ComparedStratum {
        samples: level.samples(&read),
        is_noise_assumed: Scale::is_few(read.len()) && level.norm.is_none() && level.learned.degrees < DEGREES,
        nodes: nodes.collect(),
        shift: level.shift,
    }
}

/// Scale of few nodes without a past from which on a confirmation shows nothing. Of three healthy nodes with the prior's noise one
/// of ninety comparisons reaches it (computed).
const FEW_AND_NOISY: f64 = 1.5;

/// Most nodes for which detectable losses are computed: they differ little from node to node.
const SAMPLES: usize = 20;

fn with_pasts<'a>(fresh: NodeSummary<'a>, screen: &NodeSummary<'a>) -> NodeSummary<'a> {
    let mut fresh = fresh;
    fresh.whole.past = screen.whole.past;
    fresh.shared = screen.shared;
    for (uuid, value) in &mut fresh.gpus {
        let known = screen.gpus.iter().find(|(known, _)| known == uuid);
        value.past = known.map_or_else(Past::default, |(_, known)| known.past);
    }
    fresh
}

/// Shift, peers and scales of a stratum.
struct Level<'a> {
    known: KnownStratum<'a>,
    /// Approved norm, if there are too few nodes to compare them with each other.
    norm: Option<&'a SpeedNorm>,
    shift: CommonShift,
    /// Variance that the estimate of the shift adds.
    shift_variance: f64,
    peers: NodePeers,
    /// Deviations of whole nodes from their pasts (standardised), by place.
    node_pasts: Vec<Option<f64>>,
    /// Squares of the residuals of their earlier runs.
    learned: Squares,
    scales: Scales,
    /// Average of fresh trials.
    average: Average,
}

#[derive(Clone, Copy, Default)]
struct Scales {
    gpu_past: Scale,
    gpu_peers: Scale,
    node_past: Option<Scale>,
    node_peers: Option<Scale>,
}

impl<'a> Level<'a> {
    fn new(known: KnownStratum<'a>, read: &[NodeSummary]) -> Self {
        let pasts = read.iter().filter_map(|node| node_and_past(node, known.spread, KNOWN));
        let (residuals, variances): (Vec<f64>, Vec<f64>) = pasts.map(|past| (past.value, past.variance)).unzip();
        let variance = variances.iter().sum::<f64>() / count(variances.len().max(1));
        let shift = common_shift(&residuals, variance.sqrt());
        let is_needed = |norm: &&SpeedNorm| norm.is_needed(read, known.nodes, known.spread);
        let mut level = Self {
            known,
            norm: known.norm.filter(is_needed),
            shift,
            shift_variance: if shift.nodes > 0 {
                1.57 * variance / count(shift.nodes)
            } else {
                0.0
            },
            peers: NodePeers::new(read, known.spread),
            node_pasts: Vec::new(),
            learned: Squares::default(),
            scales: Scales::default(),
            average: Average::Median,
        };
        level.fit(read);
        level
    }

    fn fit(&mut self, read: &[NodeSummary]) {
        let spread = self.known.spread;
        let (mut gpu_past, mut gpu_peers, mut node_peers) = (Vec::new(), Vec::new(), Vec::new());
        for (at, summary) in read.iter().enumerate() {
            let standardised = |gpus: Vec<Option<Deviation>>| gpus.into_iter().flatten().map(|gpu| gpu.standardised());
            gpu_past.extend(standardised(gpus_and_past(summary, spread, KNOWN)));
            gpu_peers.extend(standardised(gpus_and_peers(summary, spread)));
            let past = self.node_past(summary);
            self.node_pasts.push(past.map(|past| past.standardised()));
            self.learned = self.learned.plus(learned_squares(summary, spread));
            let peers = self.peers.compare(at, None, spread, 2);
            node_peers.extend(peers.map(|node| node.standardised()));
        }
        let node_past: Vec<f64> = self.node_pasts.iter().flatten().copied().collect();
        let (gpu_past, gpu_peers) = (Scale::fit(&gpu_past), Scale::fit(&gpu_peers));
        // A node's tail is guessed from that of its GPUs, which are more.
        let many = |gpu: Scale, nodes: &[f64]| (!Scale::is_few(nodes.len())).then(|| gpu.refit(nodes));
        self.scales = Scales {
            gpu_past,
            gpu_peers,
            node_past: many(gpu_past, &node_past),
            node_peers: many(gpu_peers, &node_peers),
        };
        let fitted = [
            Some(gpu_past),
            Some(gpu_peers),
            self.scales.node_past,
            self.scales.node_peers,
        ];
        let fitted = fitted.into_iter().flatten().filter(|scale| *scale != Scale::default());
        if fitted.clone().count() > 0 && !fitted.clone().any(Scale::is_heavy) {
            self.average = Average::Mean;
        }
    }

    fn node_past(&self, summary: &NodeSummary) -> Option<Deviation> {
        let past = node_and_past(summary, self.known.spread, KNOWN)?;
        Some(Deviation {
            value: past.value - self.shift.value,
            variance: past.variance + self.shift_variance,
            once: past.once + self.shift_variance,
            ..past
        })
    }

    /// All comparisons of one node, or those of its GPUs alone while all nodes change; `screen` is set if `summary` is another
    /// measurement.
    fn candidates<'b>(
        &self,
        at: usize,
        summary: &NodeSummary<'b>,
        screen: Option<&NodeSummary>,
    ) -> Vec<SubjectLoss<'b>> {
        let spread = self.known.spread;
        let again = screen.map(|screen| difference(screen, summary, spread));
        // Few nodes without a past cannot show how noisy they are, only that they are noisier than the prior assumes.
        let most = if self.learned.degrees >= DEGREES {
            USUAL_SCALE
        } else {
            FEW_AND_NOISY
        };
        let known = |many: Option<Scale>, few: &dyn Fn() -> Squares| match many {
            Some(many) => Some(many),
            None => Some(few().scale()).filter(|few| again.is_none() || few.variance <= most),
        };
        let node_past = self.node_past(summary).and_then(|deviation| {
            let of_screen = screen.and_then(|screen| self.node_past(screen));
            let deviation = Deviation {
                once: of_screen.map_or(deviation.once, |screen| screen.variance),
                ..deviation
            };
            let scale = known(self.scales.node_past, &|| self.few_pasts(at, again))?;
            Some((deviation, scale))
        });
        let node_peers = if let Some(norm) = self.norm {
            Some(norm.beside(summary, spread))
        } else {
            let fresh = screen.map(|_| summary);
            let deviation = self.peers.compare(at, fresh, spread, self.known.nodes);
            deviation.and_then(|deviation| {
                let few = || self.learned.widening().plus(self.peers.squares_without(at, again));
                let scale = known(self.scales.node_peers, &few)?;
                Some((deviation, scale))
            })
        };
        // The trials of the screen are single ones.
        let is_median = screen.is_some() && summary.whole.is_median;
        let adapt = |scale: Scale| {
            // A slow chip is slow in all trials: only noise is less heavy. That of deployments is not.
            let averages = scale.variance <= USUAL_SCALE;
            if is_median && averages {
                scale.halve_outliers()
            } else {
                scale
            }
        };
        // A common change is no node's. While it reaches one node after the other, it makes them differ from their pasts and from each
        // other. A GPU is compared with those of its node, which share it.
        let compares_nodes = !self.shift.is_environment;
        let past = ReferenceDeviations {
            gpus: gpus_and_past(summary, spread, KNOWN),
            scale: adapt(self.scales.gpu_past),
            node: node_past
                .map(|(deviation, scale)| (deviation, adapt(scale)))
                .filter(|_| compares_nodes),
        };
        let peers = ReferenceDeviations {
            gpus: gpus_and_peers(summary, spread),
            scale: self.scales.gpu_peers,
            node: node_peers.filter(|_| compares_nodes),
        };
        // A vector that grows would have room for twice as many: 9 MB for 5,000 nodes (computed).
        let mut found = Vec::with_capacity(2 * (summary.gpus.len() + 1));
        found.extend(past.list(Reference::Past, summary));
        found.extend(peers.list(Reference::Peers, summary));
        found
    }

    /// Smallest difference (logarithm) of a whole node from a reference in fresh trials.
    fn smallest_difference(&self, at: usize, fresh: &NodeSummary) -> Option<f64> {
        let spread = self.known.spread;
        let peers = match self.norm {
            Some(norm) => Some(norm.beside(fresh, spread).0),
            None => self.peers.compare(at, Some(fresh), spread, self.known.nodes),
        };
        let found = self.node_past(fresh).into_iter().chain(peers);
        found.map(|deviation| deviation.value).min_by(f64::total_cmp)
    }

    /// Squares of few nodes: of all earlier runs, and of the newest ones of all but the node at `at`. `again` as for the peers.
    fn few_pasts(&self, at: usize, again: Option<f64>) -> Squares {
        let others = self.node_pasts.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.filter_map(|(_, past)| *past).chain(again.map(f64::sqrt));
        let others: Vec<f64> = others.collect();
        let squares = Squares {
            sum: others.iter().map(|past| past * past).sum(),
            degrees: count(others.len()),
        };
        self.learned.plus(squares)
    }

    /// At most [`SAMPLES`] nodes, evenly by name.
    fn samples<'b>(&self, read: &[NodeSummary<'b>]) -> Vec<NodeEvidence<'b>> {
        let step = read.len().div_ceil(SAMPLES).max(1);
        let sample = |(at, summary): (usize, &NodeSummary<'b>)| {
            let again = summary.clone().with_trials(CONFIRMATION_TRIALS.into(), self.average);
            NodeEvidence {
                screened: self.candidates(at, summary, None),
                confirmed: self.candidates(at, &again, Some(summary)),
                ..NodeEvidence::default()
            }
        };
        read.iter().enumerate().step_by(step).map(sample).collect()
    }

    /// GPUs whose CUSUM alarms with this run. With a past of six runs 12 of 32,000 healthy GPUs were named (simulated), so the past has
    /// to be settled.
    fn drifting<'b>(&self, summary: &NodeSummary<'b>) -> impl Iterator<Item = Option<&'b str>> {
        let beside = gpus_and_past(summary, self.known.spread, 1);
        let gpu_past = self.scales.gpu_past;
        let drifting = summary.gpus.iter().zip(beside).filter(move |((_, value), deviation)| {
            let Some((deviation, (_, pass))) = deviation.and_then(|found| Some((found, found.past?))) else {
                return false;
            };
            let sd = (pass * gpu_past.variance).sqrt();
            value.past.count >= SETTLED
                && value
                    .past
                    .accumulate(deviation.value, sd)
                    .is_drifting(sd, GPU_IN_CONTROL)
        });
        drifting.map(|((uuid, _), _)| Some(*uuid))
    }

    /// Nodes, by place, whose CUSUM alarms with this run. Among few nodes a drift of all of them would look like that of one node, and
    /// where deployments vary far more than the prior assumes, there is no answer. After a common change no node drifts either.
    fn drifting_nodes(&self, read: &[NodeSummary]) -> BTreeSet<usize> {
        let is_known = self.scales.node_past.is_some_and(|scale| scale.variance <= USUAL_SCALE);
        if !is_known || self.shift.is_environment {
            return BTreeSet::new();
        }
        let is_drifting = |summary: &NodeSummary| {
            let past = summary.shared;
            let residual = summary.whole.residual(SETTLED).filter(|_| past.count >= SETTLED);
            residual.is_some_and(|residual| {
                let sd = past.deviation(pass_variance(summary, self.known.spread));
                past.accumulate(residual - self.shift.value, sd)
                    .is_drifting(sd, NODE_IN_CONTROL)
            })
        };
        (0..read.len()).filter(|at| is_drifting(&read[*at])).collect()
    }
}

/// Deviations of a node from one reference.
struct ReferenceDeviations {
    gpus: Vec<Option<Deviation>>,
    scale: Scale,
    node: Option<(Deviation, Scale)>,
}

impl ReferenceDeviations {
    fn list<'b>(self, reference: Reference, summary: &NodeSummary<'b>) -> impl Iterator<Item = SubjectLoss<'b>> {
        let tested = count(self.gpus.iter().flatten().count());
        let levels = if tested > 0.0 && self.node.is_some() { 2.0 } else { 1.0 };
        let gpus = summary
            .gpus
            .iter()
            .zip(self.gpus)
            .filter_map(move |((uuid, _), deviation)| {
                let subject = (reference, Some(*uuid));
                Some(SubjectLoss::new(subject, deviation?, self.scale, levels * tested))
            });
        let node = self.node;
        let node = node.map(|(deviation, scale)| SubjectLoss::new((reference, None), deviation, scale, levels));
        gpus.chain(node)
    }
}
