//! Findings about the nodes of a stratum: three separate answers, at two levels of certainty.
//!
//! All nodes are screened by one pass. Suspicious ones are measured again in a new deployment, and only these fresh trials
//! decide. So selection is not corrected, and noise of one pass blames no node.

use std::collections::{BTreeMap, BTreeSet};

use crate::baseline::Norm;
use crate::calibration::Calibration;
pub use crate::candidate::{Answer, NextPasts, Suspicion};
use crate::candidate::{Candidate, Reference};
use crate::comparison::{Compared, Stratum};
use crate::discovery::adjust;
use crate::evidence::{Evidence, Quantiles, calibrate};
use crate::metric::{FleetMetric, count, loss, percent};
use crate::prior::Spread;
use crate::reading::{NodePass, Warmth};
use crate::shift::{CommonShift, GroupEffect};

/// Level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Worth a look; not alone a reason to take the node out of service.
    Report,
    /// A reason to act on the node.
    Act,
}

/// Limits of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelRule {
    /// Loss below which nothing is called slow, however sure (percent).
    pub minimum_effect_percent: f64,
    /// Expected share of wrong names (0 to 1).
    pub false_discovery_rate: f64,
}

/// Rules of comparison; the default ones are the policy's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetRules {
    /// Limits for a report.
    pub report: LevelRule,
    /// Limits for an action.
    pub act: LevelRule,
    /// p-value of a screened node below which it is measured again.
    pub screen: f64,
    /// Fewest passes of an own past.
    pub least_runs: u32,
    /// Fewest nodes of a stratum that are compared with each other.
    pub least_nodes: usize,
    /// Loss below which a cold machine is never blamed (percent).
    pub cold_effect_percent: f64,
    /// Share of the nodes (0 to 1), or two nodes, above which the cause of slow nodes is likely shared, and none is acted on.
    pub most_slow: f64,
}

impl Default for FleetRules {
    fn default() -> Self {
        let level = |minimum_effect_percent, false_discovery_rate| LevelRule {
            minimum_effect_percent,
            false_discovery_rate,
        };
        Self {
            report: level(2.0, 0.05),
            act: level(4.0, 0.01),
            screen: 0.03,
            least_runs: 5,
            least_nodes: 3,
            cold_effect_percent: 15.0,
            most_slow: 0.05,
        }
    }
}

/// Finding about a node, or about one GPU of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetFinding {
    /// Question that it answers.
    pub answer: Answer,
    /// Level that it reached.
    pub certainty: Certainty,
    /// Metric; `None` for a gate.
    pub metric: Option<FleetMetric>,
    /// UUID of the slow GPU; `None` for the node as a whole.
    pub gpu: Option<String>,
    /// Difference from the reference (percent, below 0); `None` for a gate.
    pub percent: Option<f64>,
    /// Expected share of wrong names among all findings as sure as this one; `None` for a gate.
    pub q: Option<f64>,
}

/// Next step for a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do.
    #[default]
    Rest,
    /// Measure it again, in a new deployment.
    Confirm,
}

/// One node, assessed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeAssessment {
    /// Next step.
    pub step: Step,
    /// Reason of [`Step::Confirm`].
    pub suspicion: Option<Suspicion>,
    /// Findings, at most one for each answer.
    pub findings: Vec<FleetFinding>,
    /// Speed of the node as a percentage of its own past, in the first metric that has one.
    pub percent_of_itself: Option<f64>,
    /// Speed of the node as a percentage of its peers', in the first metric that has them.
    pub percent_of_peers: Option<f64>,
    /// Loss of one subject (percent) that would have been reported in 95 of 100 cases.
    pub detectable_percent: Option<f64>,
    /// Subjects whose CUSUM alarmed: a GPU's UUID, or `None` for the node as a whole. Once in 10,000 healthy passes of a subject.
    pub drifting: Vec<(FleetMetric, Option<String>)>,
    /// Statistics to store, by metric. Empty for a node that is not learned from: slow, cold, or below a gate.
    pub pasts: BTreeMap<FleetMetric, NextPasts>,
}

/// One stratum, assessed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// By name of the node.
    pub nodes: BTreeMap<String, NodeAssessment>,
    /// Common shift of the warm nodes, by metric. If one is the environment's, no node is blamed.
    pub shifts: BTreeMap<FleetMetric, CommonShift>,
    /// Slow groups, each once; their nodes are compared without the group's effect.
    pub groups: Vec<GroupEffect>,
    /// Check of the p-values. While it is poor, no finding reaches [`Certainty::Act`].
    pub calibration: Calibration,
    /// Number of slow nodes, if they are more than [`FleetRules::most_slow`] allows; then none is acted on.
    pub too_many: Option<usize>,
}

/// Knowledge about a stratum before its pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Prior of the product ([`crate::prior::prior`]).
    pub spread: Spread,
    /// Common shifts (logarithms) that were accepted before, by metric.
    pub shifts: BTreeMap<FleetMetric, f64>,
    /// Approved norms, by metric. Few nodes are compared with them rather than with each other.
    pub norms: BTreeMap<FleetMetric, Norm>,
}

impl Known {
    /// Knowledge of a product alone.
    pub fn new(spread: Spread) -> Self {
        Self {
            spread,
            shifts: BTreeMap::new(),
            norms: BTreeMap::new(),
        }
    }
}

/// Assesses the nodes of one stratum by name. `screen` is the pass of all nodes, `fresh` the new deployments of suspicious
/// ones. Equal arguments give equal results.
pub fn assess(
    rules: &FleetRules,
    known: &Known,
    screen: &BTreeMap<String, NodePass>,
    fresh: &BTreeMap<String, NodePass>,
) -> Assessment {
    let mut found = Assessment::default();
    for warmth in [Warmth::Cold, Warmth::Warm] {
        let stratum = Stratum::new(warmth, screen, fresh);
        let metrics: BTreeSet<FleetMetric> = stratum
            .nodes
            .iter()
            .flat_map(|(_, pass)| pass.metrics.keys().copied())
            .collect();
        // A cold machine is never compared with its warm past.
        let runs = if warmth == Warmth::Cold {
            u32::MAX
        } else {
            rules.least_runs
        };
        let least = (runs, rules.least_nodes);
        let compare = |metric: FleetMetric| {
            // The baseline is one of warm machines.
            let norm = known.norms.get(&metric).filter(|_| warmth == Warmth::Warm);
            let shift = known.shifts.get(&metric).copied().unwrap_or_default();
            (metric, stratum.compare(metric, &known.spread, least, (shift, norm)))
        };
        let compared: BTreeMap<FleetMetric, Compared> = metrics.into_iter().map(compare).collect();
        judge(rules, warmth, &stratum, compared, &mut found);
    }
    found
}

fn judge(
    rules: &FleetRules,
    warmth: Warmth,
    stratum: &Stratum,
    mut compared: BTreeMap<FleetMetric, Compared>,
    found: &mut Assessment,
) {
    let cold = warmth == Warmth::Cold;
    let effect = |level: LevelRule| {
        let least = if cold { rules.cold_effect_percent } else { 0.0 };
        loss(level.minimum_effect_percent.max(least))
    };
    let nodes: Vec<Evidence> = stratum
        .nodes
        .iter()
        .map(|(name, _)| Evidence::collect(name, &mut compared))
        .collect();
    // Fresh trials are not those that chose their nodes, so only these nodes count as tests. Both share the past: its error is
    // part of the variance, and the simulation shows the rest.
    let fresh: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].is_confirmed()).collect();
    let adjusted = |effect: f64, acts: bool| -> Vec<f64> {
        let p: Vec<f64> = fresh.iter().map(|at| nodes[*at].confirmed(effect, acts)).collect();
        let mut adjusted = vec![1.0; nodes.len()];
        for (at, q) in fresh.iter().zip(adjust(&p)) {
            adjusted[*at] = q;
        }
        adjusted
    };
    let report = adjusted(effect(rules.report), false);
    let act = adjusted(effect(rules.act), true);
    let environment = compared.values().any(|metric| metric.shift.is_environment);
    let is_slow = |at: usize| !environment && report[at] <= rules.report.false_discovery_rate;

    let calibration = calibrate(&nodes, is_slow);
    let mut quantiles = Quantiles::default();
    let is_sure = |at: usize| is_slow(at) && act[at] <= rules.act.false_discovery_rate;
    let slow = (0..nodes.len()).filter(|at| is_slow(*at)).count();
    let too_many = Some(slow).filter(|slow| count(*slow) > (rules.most_slow * count(nodes.len())).max(2.0));
    let may_act = !calibration.is_poor && too_many.is_none();
    for (at, ((name, pass), evidence)) in stratum.nodes.iter().zip(&nodes).enumerate() {
        let mut node = NodeAssessment::default();
        if pass.missed_gate {
            node.findings.push(FleetFinding {
                answer: Answer::BelowGate,
                certainty: if environment || cold {
                    Certainty::Report
                } else {
                    Certainty::Act
                },
                metric: None,
                gpu: None,
                percent: None,
                q: None,
            });
        }
        let pasts = compared
            .iter_mut()
            .filter_map(|(metric, metric_compared)| Some((*metric, metric_compared.pasts.remove(*name)?)));
        let mut pasts: BTreeMap<FleetMetric, NextPasts> = pasts.collect();
        if is_slow(at) {
            let acts = may_act && is_sure(at);
            let (certainty, q) = if acts {
                (Certainty::Act, act[at])
            } else {
                (Certainty::Report, report[at])
            };
            let slowest = evidence.slowest(effect(rules.report), acts);
            node.findings
                .extend(slowest.map(|slowest| name_subject(slowest, certainty, Some(q))));
        }
        node.percent_of_itself = evidence.percent_of(Reference::Past);
        node.percent_of_peers = evidence.percent_of(Reference::Peers);
        let single = rules.report.false_discovery_rate / count(nodes.len());
        node.detectable_percent = evidence.detectable(effect(rules.report), single, &mut quantiles);
        let drifting = |(metric, next): (&FleetMetric, &NextPasts)| {
            let metric = *metric;
            next.drifting.clone().into_iter().map(move |subject| (metric, subject))
        };
        node.drifting = pasts.iter().flat_map(drifting).collect();
        let odd = evidence.screened(if cold { effect(rules.report) } else { 0.0 }) < rules.screen;
        if stratum.fresh.contains_key(name) {
            pasts.values_mut().for_each(settle);
            if odd && node.findings.is_empty() && evidence.lacks_an_answer() {
                // Neither healthy nor slow: it stays a suspicion, and is not learned as normal.
                node.suspicion = evidence.suspicion();
                pasts.clear();
            }
        } else if odd || !node.drifting.is_empty() {
            node.step = Step::Confirm;
            node.suspicion = evidence.suspicion();
        }
        if !cold && node.findings.is_empty() {
            node.pasts = pasts;
        }
        found.nodes.insert((*name).to_owned(), node);
    }
    found.calibration = found.calibration.worse(calibration);
    found.too_many = found.too_many.max(too_many);
    for (metric, metric_compared) in compared {
        if !cold {
            found.shifts.insert(metric, metric_compared.shift);
        }
        for group in metric_compared.groups {
            match found.groups.iter_mut().find(|known| known.group == group.group) {
                Some(known) if known.q <= group.q => {}
                Some(known) => *known = group,
                None => found.groups.push(group),
            }
        }
    }
}

fn name_subject(slowest: &Candidate, certainty: Certainty, q: Option<f64>) -> FleetFinding {
    FleetFinding {
        answer: slowest.reference.answer(),
        certainty,
        metric: Some(slowest.metric),
        gpu: slowest.gpu.clone(),
        percent: Some(percent(slowest.deviation.value)),
        q,
    }
}

/// Fresh trials settle a suspected drift, one way or the other. Other subjects of the node keep their CUSUM.
fn settle(next: &mut NextPasts) {
    for subject in std::mem::take(&mut next.drifting) {
        let past = match &subject {
            Some(gpu) => next.gpus.get_mut(gpu),
            None => Some(&mut next.whole),
        };
        if let Some(past) = past {
            *past = past.settle();
        }
    }
}
