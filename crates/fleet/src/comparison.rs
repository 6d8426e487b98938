//! All comparisons of one metric in one stratum and one pass.

use std::collections::BTreeMap;

use crate::baseline::Norm;
use crate::candidate::{Candidate, NextPasts, Reference};
use crate::metric::{FleetMetric, count, loss};
use crate::past::Past;
use crate::peers::{
    Deviation, Peers, USUAL_SCALE, difference, gpus_and_past, gpus_and_peers, node_and_past, node_variance,
    pass_variance,
};
use crate::prior::Spread;
use crate::reading::{Average, NodePass, Summary, Warmth};
use crate::scale::Scale;
use crate::shift::{CommonShift, GroupEffect, common_shift, slow_groups};

/// One metric of a stratum, compared.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) shift: CommonShift,
    pub(crate) groups: Vec<GroupEffect>,
    pub(crate) screened: BTreeMap<String, Vec<Candidate>>,
    pub(crate) confirmed: BTreeMap<String, Vec<Candidate>>,
    pub(crate) pasts: BTreeMap<String, NextPasts>,
}

/// Nodes of one stratum in one pass, and the fresh passes of those that were measured again.
pub(crate) struct Stratum<'a> {
    pub(crate) nodes: Vec<(&'a str, &'a NodePass)>,
    pub(crate) fresh: BTreeMap<&'a str, &'a NodePass>,
}

impl<'a> Stratum<'a> {
    pub(crate) fn new(
        warmth: Warmth,
        screen: &'a BTreeMap<String, NodePass>,
        fresh: &'a BTreeMap<String, NodePass>,
    ) -> Self {
        let same = |(name, pass): (&'a String, &'a NodePass)| (pass.warmth == warmth).then_some((name.as_str(), pass));
        Self {
            nodes: screen.iter().filter_map(same).collect(),
            fresh: fresh.iter().filter_map(same).collect(),
        }
    }

    /// Compares all nodes in `metric`. `known` is the common shift (logarithm) that was accepted before, and the approved norm.
    pub(crate) fn compare(
        &self,
        metric: FleetMetric,
        spread: &Spread,
        least: (u32, usize),
        known: (f64, Option<&'a Norm>),
    ) -> Compared {
        let read = |(name, pass): &(&'a str, &'a NodePass)| {
            let summary = Summary::new(pass.metrics.get(&metric)?, Average::Mean)?;
            Some((*name, pass.group.as_deref(), summary))
        };
        let read: Vec<(&str, Option<&str>, Summary)> = self.nodes.iter().filter_map(read).collect();
        let level = Level::new(metric, &read, spread, least, known);
        let screened = |(at, (name, group, summary)): (usize, &(&str, Option<&str>, Summary))| {
            let candidates = level.candidates(at, *group, summary, None);
            ((*name).to_owned(), candidates)
        };
        let screened = read.iter().enumerate().map(screened).collect();
        let confirmed = read.iter().enumerate().filter_map(|(at, (name, group, summary))| {
            let fresh = Summary::new(self.fresh.get(name)?.metrics.get(&metric)?, level.average)?;
            // The past is that of the screen's pass: the caller may have stored nothing yet.
            let fresh = with_pasts(fresh, summary);
            Some(((*name).to_owned(), level.candidates(at, *group, &fresh, Some(summary))))
        });
        let confirmed = confirmed.collect();
        let pasts = read
            .iter()
            .map(|(name, _, summary)| ((*name).to_owned(), level.next(summary)));
        let pasts = pasts.collect();
        Compared {
            shift: level.shift,
            groups: level.groups,
            screened,
            confirmed,
            pasts,
        }
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

/// Shift, groups, peers and scales of one metric.
struct Level<'a> {
    metric: FleetMetric,
    spread: &'a Spread,
    /// Fewest passes of an own past.
    runs: u32,
    /// Fewest nodes that are compared with each other.
    nodes: usize,
    /// Approved norm, if there are too few nodes to compare them with each other.
    norm: Option<&'a Norm>,
    shift: CommonShift,
    /// Variance that the estimate of the shift adds.
    shift_variance: f64,
    groups: Vec<GroupEffect>,
    effects: BTreeMap<(Reference, String), f64>,
    peers: Peers,
    /// Deviations of whole nodes from their pasts (standardised), by place.
    node_pasts: Vec<Option<f64>>,
    scales: Scales,
    /// Average of fresh trials.
    average: Average,
}

#[derive(Clone, Copy)]
struct Scales {
    gpu_past: Scale,
    gpu_peers: Scale,
    node_past: Option<Scale>,
    node_peers: Option<Scale>,
}

impl<'a> Level<'a> {
    fn new(
        metric: FleetMetric,
        read: &[(&str, Option<&str>, Summary)],
        spread: &'a Spread,
        (runs, least): (u32, usize),
        (known, norm): (f64, Option<&'a Norm>),
    ) -> Self {
        let pasts: Vec<Option<Deviation>> = read
            .iter()
            .map(|(_, _, node)| node_and_past(node, spread, runs))
            .collect();
        let residuals: Vec<f64> = pasts.iter().flatten().map(|past| past.value).collect();
        let variance = pasts.iter().flatten().map(|past| past.variance).sum::<f64>() / count(residuals.len().max(1));
        let shift = common_shift(&residuals, variance.sqrt(), known);
        let mut groups = Vec::new();
        let mut effects = BTreeMap::new();
        let mut look = |reference: Reference, nodes: &[(Option<&str>, f64)], variance: f64| {
            for found in slow_groups(metric, nodes, variance.sqrt()) {
                effects.insert((reference, found.group.clone()), -loss(-found.percent));
                groups.push(found);
            }
        };
        let of_pasts: Vec<(Option<&str>, f64)> = read
            .iter()
            .zip(&pasts)
            .filter_map(|((_, group, _), past)| Some((*group, past.as_ref()?.value)))
            .collect();
        look(Reference::Past, &of_pasts, variance);
        let of_peers: Vec<(Option<&str>, f64)> =
            read.iter().map(|(_, group, node)| (*group, node.whole.mean)).collect();
        let peers_variance = read.iter().map(|(_, _, node)| node_variance(node, spread)).sum::<f64>();
        look(Reference::Peers, &of_peers, peers_variance / count(read.len().max(1)));
        let nodes: Vec<(&Summary, f64)> = read
            .iter()
            .map(|(_, group, node)| (node, effect(&effects, Reference::Peers, *group)))
            .collect();
        let mut level = Self {
            metric,
            spread,
            runs,
            nodes: least,
            norm: norm.filter(|norm| norm.is_needed(read.iter().map(|(_, _, node)| node), least, spread)),
            shift,
            shift_variance: if shift.nodes > 0 {
                1.57 * variance / count(shift.nodes)
            } else {
                0.0
            },
            groups,
            peers: Peers::new(&nodes, spread),
            effects,
            node_pasts: Vec::new(),
            scales: Scales {
                gpu_past: Scale::default(),
                gpu_peers: Scale::default(),
                node_past: None,
                node_peers: None,
            },
            average: Average::Median,
        };
        level.fit(read);
        level
    }

    fn fit(&mut self, read: &[(&str, Option<&str>, Summary)]) {
        let (mut gpu_past, mut gpu_peers, mut node_peers) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (_, group, summary)) in read.iter().enumerate() {
            let standardised = |gpus: Vec<Option<Deviation>>| gpus.into_iter().flatten().map(|gpu| gpu.standardised());
            gpu_past.extend(standardised(gpus_and_past(summary, self.spread, self.runs)));
            gpu_peers.extend(standardised(gpus_and_peers(summary, self.spread)));
            let past = self.node_past(*group, summary);
            self.node_pasts.push(past.map(|past| past.standardised()));
            node_peers.extend(
                self.peers
                    .compare(at, None, self.spread, 2)
                    .map(|node| node.standardised()),
            );
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

    fn node_past(&self, group: Option<&str>, summary: &Summary) -> Option<Deviation> {
        let past = node_and_past(summary, self.spread, self.runs)?;
        let common = match effect(&self.effects, Reference::Past, group) {
            0.0 => self.shift.value,
            // A group's effect is beside the other groups', whose centre is the common shift.
            group => self.shift.value + group,
        };
        Some(Deviation {
            value: past.value - common,
            variance: past.variance + self.shift_variance,
            once: past.once + self.shift_variance,
            ..past
        })
    }

    /// All comparisons of one node; `screen` is set if `summary` is another measurement.
    fn candidates(
        &self,
        at: usize,
        group: Option<&str>,
        summary: &Summary,
        screen: Option<&Summary>,
    ) -> Vec<Candidate> {
        let mut found = Vec::new();
        let again = screen.map(|screen| difference(screen, summary, self.spread));
        // Few nodes cannot show how noisy they are, only that they are noisier than the prior assumes.
        let known = |many: Option<Scale>, few: Scale| match many {
            None if again.is_some() && few.variance > FEW_AND_NOISY => None,
            many => Some(many.unwrap_or(few)),
        };
        let candidate = |reference, gpu, deviation, scale, choices| Candidate {
            metric: self.metric,
            reference,
            gpu,
            deviation,
            scale,
            choices,
        };
        // The trials of the screen are single ones.
        let is_median = screen.is_some() && summary.whole.is_median;
        let adapt = |reference, scale: Scale| {
            // A slow chip is slow in all trials: only noise is less heavy. That of deployments is not.
            let averages = scale.variance <= USUAL_SCALE;
            if is_median && averages && reference == Reference::Past {
                scale.halve_outliers()
            } else {
                scale
            }
        };
        let mut add = |reference, gpus: Vec<Option<Deviation>>, scale: Scale, node: Option<(Deviation, Scale)>| {
            let tested = count(gpus.iter().flatten().count());
            let levels = if tested > 0.0 && node.is_some() { 2.0 } else { 1.0 };
            for ((uuid, _), deviation) in summary.gpus.iter().zip(gpus) {
                let gpu = Some((*uuid).to_owned());
                found.extend(deviation.map(|gpu_deviation| {
                    candidate(
                        reference,
                        gpu.clone(),
                        gpu_deviation,
                        adapt(reference, scale),
                        levels * tested,
                    )
                }));
            }
            found.extend(
                node.map(|(deviation, scale)| candidate(reference, None, deviation, adapt(reference, scale), levels)),
            );
        };
        let node_past = self.node_past(group, summary).and_then(|deviation| {
            let of_screen = screen.and_then(|screen| self.node_past(group, screen));
            let deviation = Deviation {
                once: of_screen.map_or(deviation.once, |screen| screen.variance),
                ..deviation
            };
            let scale = known(self.scales.node_past, self.few_pasts(at, again))?;
            Some((deviation, scale))
        });
        let gpus = gpus_and_past(summary, self.spread, self.runs);
        add(Reference::Past, gpus, self.scales.gpu_past, node_past);
        let effect = effect(&self.effects, Reference::Peers, group);
        let node_peers = if let Some(norm) = self.norm {
            Some(norm.beside(summary, effect, self.spread))
        } else {
            let fresh = screen.map(|_| (summary, effect));
            let deviation = self.peers.compare(at, fresh, self.spread, self.nodes);
            deviation.and_then(|deviation| {
                let scale = known(self.scales.node_peers, self.peers.scale_without(at, again))?;
                Some((deviation, scale))
            })
        };
        add(
            Reference::Peers,
            gpus_and_peers(summary, self.spread),
            self.scales.gpu_peers,
            node_peers,
        );
        found
    }

    /// Scale of few nodes' pasts: from all but that of the node at `at`. `again` as for the peers.
    fn few_pasts(&self, at: usize, again: Option<f64>) -> Scale {
        let others = self.node_pasts.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.filter_map(|(_, past)| *past).chain(again.map(f64::sqrt));
        let others: Vec<f64> = others.collect();
        Scale::from_few(others.iter().map(|past| past * past).sum(), others.len())
    }

    /// Statistics with this pass; the common shift does not enter.
    fn next(&self, summary: &Summary) -> NextPasts {
        let gpu_scale = self.scales.gpu_past.variance;
        let node_scale = self.scales.node_past.unwrap_or_default().variance;
        let mut next = NextPasts::default();
        let beside = gpus_and_past(summary, self.spread, 1);
        for ((uuid, value), deviation) in summary.gpus.iter().zip(beside) {
            let sd = deviation
                .and_then(|deviation| deviation.past)
                .map(|(_, pass)| (pass * gpu_scale).sqrt());
            let sd = sd.unwrap_or(self.spread.noise);
            let residual = deviation.map_or(0.0, |deviation| deviation.value);
            let past = value.past.update(value.mean - self.shift.value, residual, sd);
            if past.is_drifting(sd) {
                next.drifting.push(Some((*uuid).to_owned()));
            }
            next.gpus.insert((*uuid).to_owned(), past);
        }
        let whole = &summary.whole;
        let sd = (pass_variance(summary, self.spread) * node_scale).sqrt();
        let value = whole.mean - self.shift.value;
        next.whole = whole.past.update(value, value - whole.past.mean, sd);
        if next.whole.is_drifting(sd) {
            next.drifting.push(None);
        }
        next
    }
}

fn effect(effects: &BTreeMap<(Reference, String), f64>, reference: Reference, group: Option<&str>) -> f64 {
    let key = group.map(|group| (reference, group.to_owned()));
    key.and_then(|key| effects.get(&key).copied()).unwrap_or_default()
}
