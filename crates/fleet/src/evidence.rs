//! All comparisons of one node, and the surest of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::calibration::Calibration;
use crate::candidate::{Reference, SubjectLoss};
use crate::reading::RunTimes;

/// Part of a node's error that the own past has where there are peers too: a change is more likely a fault.
const PAST: f64 = 0.8;
/// Largest p-value of a confirmation that is slow.
const AGAIN: f64 = 0.5;
/// Largest product of the p-values of the newest run and the first confirmation of a node that is measured once more.
const BOTH: f64 = 0.006;
/// Largest p-value of a deciding run that is repeated once, if it reports nothing. If the two runs were independent, this part would
/// be added to the wrong names; they share the past, and the simulation shows the rest. Of 100 nodes that lost 10 % with recorded
/// noise, 12 were missed without a repeat and 8 with it (simulated, with the screen and the limits of that time).
const REPEATED: f64 = 0.15;
/// p-value below which a change is the better explanation, even if the peers are surer.
const CHANGE: f64 = 0.01;

/// p-values that a loss has to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetectionLimits {
    /// In the screen, so that the node is measured again.
    pub(crate) screened: f64,
    /// In the confirmation.
    pub(crate) confirmed: f64,
    /// Loss (logarithm) below which nothing is reported.
    pub(crate) effect: f64,
}

/// Comparisons of one node.
#[derive(Default)]
pub(crate) struct NodeEvidence<'a> {
    pub(crate) times: RunTimes,
    pub(crate) screened: Vec<SubjectLoss<'a>>,
    /// Of its fresh trials. Empty for a node that was not measured again, and for one of few that are noisier than the prior assumes.
    pub(crate) confirmed: Vec<SubjectLoss<'a>>,
    /// Number of new deployments that measured it again.
    pub(crate) confirmations: u32,
    /// Smallest difference (logarithm) of the whole node from a reference in the last of them, however uncertain.
    pub(crate) node_again: Option<f64>,
    /// Subjects whose CUSUM alarmed: UUIDs of GPUs, and `None` for the node as a whole.
    pub(crate) drifting: Vec<Option<&'a str>>,
}

impl<'a> NodeEvidence<'a> {
    /// Difference (logarithm) of the whole node from its own past in the newest run.
    pub(crate) fn node_and_past(&self) -> Option<f64> {
        let is_asked = |candidate: &&SubjectLoss| candidate.gpu.is_none() && candidate.reference == Reference::Past;
        let newest = self.confirmed.iter().chain(&self.screened).find(is_asked);
        newest.map(|candidate| candidate.value)
    }

    /// p-value of the screen, with all choices.
    pub(crate) fn screened(&self) -> f64 {
        smallest(self.screened.iter(), 0.0)
    }

    /// True if a comparison of the whole node has no answer in the fresh trials, and they are slower by `effect` (logarithm) or more:
    /// the nodes are few, and noisier than the prior assumes.
    pub(crate) fn lacks_an_answer(&self, effect: f64) -> bool {
        if self.node_again.is_some_and(|value| value > -effect) {
            return false;
        }
        let whole = |candidate: &&SubjectLoss| candidate.gpu.is_none();
        let confirmed = self.confirmed.iter().filter(whole);
        let answered: BTreeSet<Reference> = confirmed.map(|candidate| candidate.reference).collect();
        let mut asked = self.screened.iter().filter(whole);
        asked.any(|asked| !answered.contains(&asked.reference))
    }

    /// True if the newest confirmation is not slow at all.
    pub(crate) fn is_refuted(&self) -> bool {
        self.confirmations > 0 && self.confirmed(0.0, false) > AGAIN
    }

    /// True if the newest run and the first confirmation are slow together.
    pub(crate) fn is_odd_again(&self) -> bool {
        !self.is_refuted() && self.screened() * self.confirmed(0.0, false) <= BOTH
    }

    /// True if the run that decides leaves a loss of more than `effect` (logarithm) open.
    pub(crate) fn is_undecided(&self, effect: f64) -> bool {
        self.confirmed(effect, false) <= REPEATED
    }

    /// p-value of the fresh trials, with all choices; 1 without them.
    pub(crate) fn confirmed(&self, effect: f64, acts: bool) -> f64 {
        let asked = self.confirmed.iter().filter(|candidate| !acts || candidate.may_act());
        smallest(asked, effect)
    }

    /// Slowest subject of the fresh trials: a change against itself if there is one, else the one beside its peers.
    pub(crate) fn slowest(&self, effect: f64, acts: bool) -> Option<&SubjectLoss<'a>> {
        let least = |is_asked: &dyn Fn(&SubjectLoss) -> bool| {
            let asked = self.confirmed.iter().filter(|candidate| is_asked(candidate));
            asked.min_by(|a, b| a.p(effect).total_cmp(&b.p(effect)))
        };
        let changed = if acts {
            least(&|candidate| candidate.may_act())
        } else {
            least(&|candidate| candidate.reference == Reference::Past).filter(|past| past.p(effect) < CHANGE)
        };
        changed.or_else(|| least(&|_| true))
    }

    /// Subject that drifts, and whose fresh trials show a loss of `effect` (logarithm) or more.
    pub(crate) fn drift(&self, effect: f64) -> Option<&SubjectLoss<'a>> {
        let drifts = self.confirmed.iter().filter(|candidate| {
            let is_drifting = self.drifting.contains(&candidate.gpu);
            is_drifting && candidate.reference == Reference::Past && candidate.value <= -effect
        });
        drifts.min_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// Surest comparison of the screen.
    pub(crate) fn surest(&self) -> Option<&SubjectLoss<'a>> {
        let asks_both = asks_both(self.screened.iter());
        // Most p-values are 1: of these the slowest counts.
        let key = |candidate: &SubjectLoss| (candidate.p(0.0) / share(candidate, asks_both), candidate.standardised);
        let surest = self.screened.iter().map(|candidate| (key(candidate), candidate));
        let surest = surest.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        surest.map(|(_, candidate)| candidate)
    }

    /// Loss (logarithm) of a GPU, or of the whole node, that one reference would show in both measurements. `None` without one.
    pub(crate) fn detectable(&self, is_gpu: bool, limits: DetectionLimits) -> Option<f64> {
        let loss = |candidates: &[SubjectLoss], reference: Reference, limit: f64, effect: f64| {
            let asks_both = asks_both(candidates.iter());
            let mut asked = candidates.iter().filter(|candidate| candidate.gpu.is_some() == is_gpu);
            let candidate = asked.find(|candidate| candidate.reference == reference)?;
            Some(candidate.detectable(limit * share(candidate, asks_both), effect))
        };
        let both = [Reference::Past, Reference::Peers].into_iter().filter_map(|reference| {
            let screened = loss(&self.screened, reference, limits.screened, 0.0)?;
            let confirmed = loss(&self.confirmed, reference, limits.confirmed, limits.effect)?;
            Some(screened.max(confirmed))
        });
        both.min_by(f64::total_cmp)
    }

    /// Adds the p-value of each comparison, without choices. Those that are certainly above the checked levels count as 1.
    fn collect_p(&self, p: &mut BTreeMap<(Reference, bool), Vec<f64>>) {
        for candidate in &self.screened {
            let value = if candidate.is_surely_usual(0.0) {
                1.0
            } else {
                candidate.slower(0.0)
            };
            let key = (candidate.reference, candidate.gpu.is_some());
            p.entry(key).or_default().push(value);
        }
    }
}

/// Smallest p-value of all comparisons, each over its part of the error (weighted Bonferroni); 1 without any.
fn smallest<'a>(candidates: impl Iterator<Item = &'a SubjectLoss<'a>> + Clone, effect: f64) -> f64 {
    let asks_both = asks_both(candidates.clone());
    let p = candidates.map(|candidate| candidate.p(effect) / share(candidate, asks_both));
    p.fold(1.0, f64::min)
}

fn asks_both<'a>(candidates: impl Iterator<Item = &'a SubjectLoss<'a>>) -> bool {
    let references: BTreeSet<Reference> = candidates.map(|candidate| candidate.reference).collect();
    references.len() > 1
}

/// Part of the error of one node that a comparison has.
fn share(candidate: &SubjectLoss, asks_both: bool) -> f64 {
    match candidate.reference {
        _ if !asks_both => 1.0,
        Reference::Past => PAST,
        Reference::Peers => 1.0 - PAST,
    }
}

/// Comparisons of all nodes that are not found slow, by reference and level: the worst of them counts.
pub(crate) fn calibrate(nodes: &[NodeEvidence<'_>], is_slow: impl Fn(usize) -> bool) -> Calibration {
    let mut p = BTreeMap::new();
    for (_, node) in nodes.iter().enumerate().filter(|(at, _)| !is_slow(*at)) {
        node.collect_p(&mut p);
    }
    p.values()
        .map(|p| Calibration::check(p))
        .fold(Calibration::default(), Calibration::worse)
}
