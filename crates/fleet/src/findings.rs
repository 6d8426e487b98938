//! Findings about the nodes of a stratum.
//!
//! All nodes are screened by one pass. Suspicious ones are measured again in a new deployment, and those that are slow again in
//! another one with more trials. Only these decide. So selection is not corrected, and noise of one pass blames no node. A deciding run
//! that leaves a loss open is repeated once, so it has a second chance to be wrong: see `REPEATED`.

use std::collections::BTreeMap;

use perfval_api::fleet::{ComparisonRules, OutlierConfidence, OutlierReason};

use crate::baseline::SpeedNorm;
use crate::calibration::Calibration;
use crate::candidate::SubjectLoss;
use crate::centre::median;
use crate::comparison::{KnownStratum, compare};
use crate::detectable::DetectableLoss;
use crate::discovery::adjust;
use crate::evidence::{DetectionLimits, NodeEvidence, calibrate};
use crate::numbers::{count, loss, percent};
use crate::prior::PriorSpread;
use crate::reading::NodePass;
use crate::shift::CommonShift;

/// p-value of the screen at or below which a node counts as slow before its confirmation, so that a bad rack is found.
const ODD: f64 = 0.01;
/// Tests that count for each node where the noise is assumed.
const ASSUMED: usize = 2;
/// Number of new deployments that measure a suspicious node again. The last one decides. If it leaves a loss open, one
/// more decides instead.
const DECISIVE: u32 = 2;
/// Largest minimum effect of a report (percent) with which drifts of 3 % are followed.
const LARGEST: i32 = 2;
/// p-value of a screened node below which it is measured again.
const SCREEN: f64 = 0.03;
/// Share of the nodes (0 to 1) that is measured again at least, the most suspicious first. With heavy tails the p-value of a
/// slow node is large: without it 12 of 40 GPUs that lost 10 % were missed. With 0.065 and a looser [`crate::evidence`] rule for
/// the confirmation after it, 7 of 400 slow nodes were missed, and 3 with 0.085 and the present one (simulated, heavy tails, 1.15 trials a
/// node).
const SCREEN_SHARE: f64 = 0.085;
/// p-value up to which that share counts. With recorded noise p-values are larger: up to 0.3 the share was 0.07 (simulated).
const SCREEN_MOST: f64 = 0.6;
/// Share of the nodes (0 to 1), or two nodes, above which the cause of slow nodes is likely shared, and none is acted on.
const MOST_SLOW: f64 = 0.05;

/// Fewest nodes that show, by runs since then, that a loss of a whole node is not one of all nodes: a policy with small budgets
/// measures the first slow nodes three times before it measures another one.
const WITNESSES: usize = 3;

/// Loss of a node, or of one GPU of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeLoss {
    /// Slower than itself or than its peers.
    pub reason: OutlierReason,
    /// `Confirmed` is worth a look. `Actionable` is a reason to act on the node. A loss that all nodes may share is `Suspected`.
    pub confidence: OutlierConfidence,
    /// UUID of the slow GPU; `None` for the node as a whole.
    pub gpu: Option<String>,
    /// Difference from the reference (percent). Below 0, unless the loss is only suspected.
    pub percent: f64,
}

impl NodeLoss {
    fn new(subject: &SubjectLoss, confidence: OutlierConfidence) -> Self {
        Self {
            reason: subject.reference.reason(),
            confidence,
            gpu: subject.gpu.map(str::to_owned),
            percent: percent(subject.value),
        }
    }
}

/// One node, assessed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeAssessment {
    /// True if it is to be measured again, in a new deployment.
    pub is_unconfirmed: bool,
    /// True if that run needs enough trials to decide.
    pub is_decisive: bool,
    /// Loss that was found, or that is suspected.
    pub loss: Option<NodeLoss>,
}

/// One stratum, assessed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// By name of the node.
    pub nodes: BTreeMap<String, NodeAssessment>,
    /// Losses that nine of ten passes report.
    pub detectable: DetectableLoss,
    /// Check of the p-values. While it is poor, no loss is `Actionable`.
    pub calibration: Calibration,
    /// Number of slow nodes, if they are too many at once; then none is acted on.
    pub too_many: Option<usize>,
    /// Change that all nodes share. While there is one, only the GPUs of each node are compared.
    pub shift: Option<CommonShift>,
}

/// Assesses the nodes of one stratum by name. `spread` is the prior of the product ([`crate::prior::prior`]), `norm` the approved
/// one. `screen` is the pass of all nodes, `fresh` has the newest deployment of each suspicious one. The policy measures the nodes that
/// `is_selected` accepts. Equal arguments give equal results.
pub fn assess(
    rules: &ComparisonRules,
    spread: &PriorSpread,
    norm: Option<&SpeedNorm>,
    screen: &BTreeMap<String, NodePass>,
    fresh: &BTreeMap<String, NodePass>,
    is_selected: impl Fn(&str) -> bool,
) -> Assessment {
    let known = KnownStratum {
        spread,
        norm,
        nodes: usize::try_from(rules.peers.min_nodes).unwrap_or(usize::MAX),
    };
    let compared = compare(known, screen, fresh);
    let (names, nodes): (Vec<&str>, Vec<NodeEvidence>) = compared.nodes.into_iter().unzip();
    let is_noise_assumed = compared.is_noise_assumed;
    let minimum = rules.report.minimum_effect_percent;
    let [effect, act_effect] = [minimum, rules.act.minimum_effect_percent].map(|percent| loss(percent.into()));
    let rate = rules.report.false_discovery_percent;
    let [rate, act_rate] = [rate, rules.act.false_discovery_percent].map(|percent| f64::from(percent) / 100.0);
    let [report, act] = [(effect, false), (act_effect, true)].map(|(effect, acts)| {
        let decided = nodes
            .iter()
            .map(|node| is_decided(node).then(|| node.confirmed(effect, acts)));
        adjusted(&decided.collect::<Vec<_>>(), is_noise_assumed)
    });
    let is_slow = |at: usize| report[at] <= rate;
    let calibration = calibrate(&nodes, is_slow);
    let limit = screen_limit(&nodes);
    // With a larger limit most confirmed drifts would neither be refuted nor reported.
    let follows_drifts = minimum <= LARGEST;
    let drifts = |at: usize| follows_drifts && !nodes[at].drifting.is_empty();
    let drift = |at: usize| nodes[at].drift(effect).filter(|_| is_decided(&nodes[at]) && drifts(at));
    let tests = if is_noise_assumed {
        ASSUMED * nodes.len()
    } else {
        nodes.iter().filter(|node| is_decided(node)).count() + 1
    };
    let q = |node: &NodeEvidence| node.confirmed(effect, false) * count(tests);
    let is_unconfirmed = |at: usize| match nodes[at].confirmations {
        0 => drifts(at) || nodes[at].screened() <= limit,
        1 if is_noise_assumed => drifts(at) || q(&nodes[at]) <= rate,
        1 => drifts(at) || nodes[at].is_odd_again(),
        DECISIVE if is_noise_assumed => false,
        DECISIVE => !is_slow(at) && drift(at).is_none() && nodes[at].is_undecided(effect),
        _ => false,
    };
    // Those that no confirmation has refuted count too.
    let is_odd = |at: usize| nodes[at].screened() <= ODD && !nodes[at].is_refuted();
    let found = (0..nodes.len()).filter(|at| is_slow(*at)).count();
    let odd = (0..nodes.len()).filter(|at| !is_slow(*at) && is_odd(*at)).count();
    let is_chance = count(found + odd) <= 2.0 + 4.0 * ODD * count(nodes.len());
    let slow = if is_chance { found } else { found + odd };
    let too_many = Some(slow).filter(|slow| count(*slow) > (MOST_SLOW * count(nodes.len())).max(2.0));
    let may_act = !calibration.is_poor && too_many.is_none();
    let node = |(at, name): (usize, &&str)| {
        let evidence = &nodes[at];
        let found = if is_slow(at) {
            let acts = may_act && act[at] <= act_rate;
            evidence.slowest(effect, acts).map(|slowest| {
                let confidence = if may_be_shared((&names, &nodes), at, slowest, &is_selected) {
                    OutlierConfidence::Suspected
                } else if acts {
                    OutlierConfidence::Actionable
                } else {
                    OutlierConfidence::Confirmed
                };
                NodeLoss::new(slowest, confidence)
            })
        } else {
            drift(at).map(|drift| NodeLoss::new(drift, OutlierConfidence::Confirmed))
        };
        // Neither healthy nor slow: another confirmation would not show more.
        let is_open = || evidence.confirmations > 0 && evidence.screened() <= limit && evidence.lacks_an_answer(effect);
        let suspicion = || Some(NodeLoss::new(evidence.surest()?, OutlierConfidence::Suspected));
        let suspects = found.is_none() && (is_unconfirmed(at) || is_open());
        let assessed = NodeAssessment {
            is_unconfirmed: is_unconfirmed(at),
            is_decisive: is_noise_assumed || evidence.confirmations + 1 >= DECISIVE,
            loss: if suspects { suspicion() } else { found },
        };
        ((*name).to_owned(), assessed)
    };
    let limits = DetectionLimits {
        screened: limit,
        // Of one slow node more. The rule for the rate of false discoveries divides by the number of tests.
        confirmed: rate / count(tests),
        effect,
    };
    Assessment {
        nodes: names.iter().enumerate().map(node).collect(),
        detectable: DetectableLoss::new(&compared.samples, limits),
        calibration,
        too_many,
        shift: Some(compared.shift).filter(|shift| shift.is_environment),
    }
}

/// p-values of the fresh trials, adjusted for their number. They are not those that chose their nodes, so only these nodes count
/// as tests. Both share the past: its error is part of the variance, and the simulation shows the rest. If the noise is assumed, it
/// chose the nodes too, so both confirmations of all nodes count.
fn adjusted(fresh: &[Option<f64>], is_noise_assumed: bool) -> Vec<f64> {
    let asked: Vec<usize> = (0..fresh.len()).filter(|at| fresh[*at].is_some()).collect();
    let mut p: Vec<f64> = asked.iter().filter_map(|at| fresh[*at]).collect();
    if is_noise_assumed {
        p.resize(ASSUMED * fresh.len(), 1.0);
    }
    let mut adjusted = vec![1.0; fresh.len()];
    for (at, q) in asked.iter().zip(adjust(&p)) {
        adjusted[*at] = q;
    }
    adjusted
}

/// Returns true if all nodes may have a loss: too few others were measured since it began, or half of these lost half as much. A
/// GPU is compared with the other ones of its node, which would share it.
fn may_be_shared(
    (names, nodes): (&[&str], &[NodeEvidence<'_>]),
    at: usize,
    loss: &SubjectLoss,
    is_selected: impl Fn(&str) -> bool,
) -> bool {
    if loss.gpu.is_some() {
        return false;
    }
    let began_at = nodes[at].times.began_at;
    let others = names.iter().zip(nodes).enumerate().filter(|(other, _)| *other != at);
    let known = others.filter_map(|(_, (name, node))| Some((*name, node.times.ended_at, node.node_and_past()?)));
    // Nodes that are not selected may never be measured again.
    let needed = known
        .clone()
        .filter(|(name, ..)| is_selected(name))
        .take(WITNESSES)
        .count();
    let since = known.filter(|(_, ended_at, _)| *ended_at >= began_at);
    let since: Vec<f64> = since.map(|(.., value)| value).collect();
    since.len() < needed || median(&since).is_some_and(|value| value < loss.value / 2.0)
}

/// Returns true if the run that decides has measured a node. The first new deployment only chooses the nodes for it: with one
/// confirmation 41 of 100 machines that were cold in two runs were reported (simulated).
fn is_decided(node: &NodeEvidence) -> bool {
    node.confirmations >= DECISIVE
}

/// Largest p-value of a node that is measured again.
fn screen_limit(nodes: &[NodeEvidence<'_>]) -> f64 {
    let mut p: Vec<f64> = nodes.iter().map(NodeEvidence::screened).collect();
    p.sort_by(f64::total_cmp);
    let share = SCREEN_SHARE * count(nodes.len());
    let last = p.iter().enumerate().take_while(|(at, _)| count(at + 1) <= share).last();
    last.map_or(SCREEN, |(_, p)| p.clamp(SCREEN, SCREEN_MOST))
}
