//! All comparisons of one stratum in one pass.

use std::collections::BTreeMap;

use crate::baseline::Norm;
use crate::candidate::{Candidate, Reference};
use crate::evidence::Evidence;
use crate::numbers::count;
use crate::past::Past;
use crate::peers::{Deviation, Peers, USUAL_SCALE, difference, gpus_and_past, gpus_and_peers, node_and_past};
use crate::prior::Spread;
use crate::reading::{Average, NodePass, Summary};
use crate::scale::Scale;
use crate::shift::{CommonShift, common_shift};

/// A stratum, compared.
pub(crate) struct Compared<'a> {
    pub(crate) shift: CommonShift,
    pub(crate) nodes: Vec<(&'a str, Evidence)>,
}

/// Knowledge about a stratum before its pass.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Prior of the product.
    pub(crate) spread: &'a Spread,
    /// Approved norm. Few nodes are compared with it rather than with each other.
    pub(crate) norm: Option<&'a Norm>,
    /// Fewest runs of an own past.
    pub(crate) runs: u32,
    /// Fewest nodes that are compared with each other.
    pub(crate) nodes: usize,
}

/// Compares all nodes. `screen` is the pass of all nodes, `fresh` has the new deployments of those that were measured again.
pub(crate) fn compare<'a>(
    known: Known<'_>,
    screen: &'a BTreeMap<String, NodePass>,
    fresh: &BTreeMap<String, NodePass>,
) -> Compared<'a> {
    let read = |(name, pass): (&'a String, &'a NodePass)| Some((name.as_str(), Summary::new(pass, Average::Mean)?));
    let (names, read): (Vec<&str>, Vec<Summary>) = screen.iter().filter_map(read).unzip();
    let level = Level::new(known, &read);
    let nodes = names.into_iter().zip(&read).enumerate().map(|(at, (name, summary))| {
        let again = fresh.get(name).and_then(|pass| Summary::new(pass, level.average));
        // The past is that of the screen's pass: the caller may have stored nothing yet.
        let again = again.map(|again| level.candidates(at, &with_pasts(again, summary), Some(summary)));
        let evidence = Evidence {
            screened: level.candidates(at, summary, None),
            confirmed: again.unwrap_or_default(),
            drifting: level.drifting(summary),
        };
        (name, evidence)
    });
    Compared {
        nodes: nodes.collect(),
        shift: level.shift,
    }
}

/// Scale of few nodes from which on a confirmation shows nothing. Of three healthy nodes with the prior's noise one of ninety
/// comparisons reaches it (computed).
const FEW_AND_NOISY: f64 = 1.5;

fn with_pasts<'a>(fresh: Summary<'a>, screen: &Summary<'a>) -> Summary<'a> {
    let mut fresh = fresh;
    fresh.whole.past = screen.whole.past;
    for (uuid, value) in &mut fresh.gpus {
        let known = screen.gpus.iter().find(|(known, _)| known == uuid);
        value.past = known.map_or_else(Past::default, |(_, known)| known.past);
    }
    fresh
}

/// Shift, peers and scales of a stratum.
struct Level<'a> {
    known: Known<'a>,
    /// Approved norm, if there are too few nodes to compare them with each other.
    norm: Option<&'a Norm>,
    shift: CommonShift,
    /// Variance that the estimate of the shift adds.
    shift_variance: f64,
    peers: Peers,
    /// Deviations of whole nodes from their pasts (standardised), by place.
    node_pasts: Vec<Option<f64>>,
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
    fn new(known: Known<'a>, read: &[Summary]) -> Self {
        let pasts = read
            .iter()
            .filter_map(|node| node_and_past(node, known.spread, known.runs));
        let (residuals, variances): (Vec<f64>, Vec<f64>) = pasts.map(|past| (past.value, past.variance)).unzip();
        let variance = variances.iter().sum::<f64>() / count(variances.len().max(1));
        let shift = common_shift(&residuals, variance.sqrt());
        let is_needed = |norm: &&Norm| norm.is_needed(read, known.nodes, known.spread);
        let mut level = Self {
            known,
            norm: known.norm.filter(is_needed),
            shift,
            shift_variance: if shift.nodes > 0 {
                1.57 * variance / count(shift.nodes)
            } else {
                0.0
            },
            peers: Peers::new(read, known.spread),
            node_pasts: Vec::new(),
            scales: Scales::default(),
            average: Average::Median,
        };
        level.fit(read);
        level
    }

    fn fit(&mut self, read: &[Summary]) {
        let spread = self.known.spread;
        let (mut gpu_past, mut gpu_peers, mut node_peers) = (Vec::new(), Vec::new(), Vec::new());
        for (at, summary) in read.iter().enumerate() {
            let standardised = |gpus: Vec<Option<Deviation>>| gpus.into_iter().flatten().map(|gpu| gpu.standardised());
            gpu_past.extend(standardised(gpus_and_past(summary, spread, self.known.runs)));
            gpu_peers.extend(standardised(gpus_and_peers(summary, spread)));
            let past = self.node_past(summary);
            self.node_pasts.push(past.map(|past| past.standardised()));
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

    fn node_past(&self, summary: &Summary) -> Option<Deviation> {
        let past = node_and_past(summary, self.known.spread, self.known.runs)?;
        Some(Deviation {
            value: past.value - self.shift.value,
            variance: past.variance + self.shift_variance,
            once: past.once + self.shift_variance,
            ..past
        })
    }

    /// All comparisons of one node; `screen` is set if `summary` is another measurement.
    fn candidates(&self, at: usize, summary: &Summary, screen: Option<&Summary>) -> Vec<Candidate> {
        let spread = self.known.spread;
        let again = screen.map(|screen| difference(screen, summary, spread));
        // Few nodes cannot show how noisy they are, only that they are noisier than the prior assumes.
        let known = |many: Option<Scale>, few: Scale| match many {
            None if again.is_some() && few.variance > FEW_AND_NOISY => None,
            many => Some(many.unwrap_or(few)),
        };
        let node_past = self.node_past(summary).and_then(|deviation| {
            let of_screen = screen.and_then(|screen| self.node_past(screen));
            let deviation = Deviation {
                once: of_screen.map_or(deviation.once, |screen| screen.variance),
                ..deviation
            };
            let scale = known(self.scales.node_past, self.few_pasts(at, again))?;
            Some((deviation, scale))
        });
        let node_peers = if let Some(norm) = self.norm {
            Some(norm.beside(summary, spread))
        } else {
            let fresh = screen.map(|_| summary);
            let deviation = self.peers.compare(at, fresh, spread, self.known.nodes);
            deviation.and_then(|deviation| {
                let scale = known(self.scales.node_peers, self.peers.scale_without(at, again))?;
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
        let past = Compare {
            gpus: gpus_and_past(summary, spread, self.known.runs),
            scale: adapt(self.scales.gpu_past),
            node: node_past.map(|(deviation, scale)| (deviation, adapt(scale))),
        };
        let peers = Compare {
            gpus: gpus_and_peers(summary, spread),
            scale: self.scales.gpu_peers,
            node: node_peers,
        };
        let mut found = past.list(Reference::Past, summary);
        found.extend(peers.list(Reference::Peers, summary));
        found
    }

    /// Scale of few nodes' pasts: from all but that of the node at `at`. `again` as for the peers.
    fn few_pasts(&self, at: usize, again: Option<f64>) -> Scale {
        let others = self.node_pasts.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.filter_map(|(_, past)| *past).chain(again.map(f64::sqrt));
        let others: Vec<f64> = others.collect();
        Scale::from_few(others.iter().map(|past| past * past).sum(), others.len())
    }

    /// GPUs whose CUSUM alarms with this run.
    fn drifting(&self, summary: &Summary) -> Vec<String> {
        let beside = gpus_and_past(summary, self.known.spread, 1);
        let drifting = summary.gpus.iter().zip(beside).filter(|((_, value), deviation)| {
            let Some((deviation, (_, pass))) = deviation.and_then(|found| Some((found, found.past?))) else {
                return false;
            };
            let sd = (pass * self.scales.gpu_past.variance).sqrt();
            value.past.update(value.mean, deviation.value, sd).is_drifting(sd)
        });
        drifting.map(|((uuid, _), _)| (*uuid).to_owned()).collect()
    }
}

/// Deviations of a node from one reference.
struct Compare {
    gpus: Vec<Option<Deviation>>,
    scale: Scale,
    node: Option<(Deviation, Scale)>,
}

impl Compare {
    fn list(self, reference: Reference, summary: &Summary) -> Vec<Candidate> {
        let tested = count(self.gpus.iter().flatten().count());
        let levels = if tested > 0.0 && self.node.is_some() { 2.0 } else { 1.0 };
        let gpus = summary.gpus.iter().zip(self.gpus).filter_map(|((uuid, _), deviation)| {
            Some(Candidate {
                reference,
                gpu: Some((*uuid).to_owned()),
                deviation: deviation?,
                scale: self.scale,
                choices: levels * tested,
            })
        });
        let node = self.node.map(|(deviation, scale)| Candidate {
            reference,
            gpu: None,
            deviation,
            scale,
            choices: levels,
        });
        gpus.chain(node).collect()
    }
}
