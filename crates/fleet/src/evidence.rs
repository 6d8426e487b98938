//! All comparisons of one node, and the surest of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::calibration::Calibration;
use crate::candidate::{Candidate, Reference, Suspicion};
use crate::comparison::Compared;
use crate::metric::{FleetMetric, count, percent};
use crate::tail::student_beyond;

/// Part of a node's error that the own past has where there are peers too: a change is more likely a fault.
const PAST: f64 = 0.8;
/// p-value below which a change is the better explanation, even if the peers are surer.
const CHANGE: f64 = 0.01;
/// Probability of missing a loss that is called detectable.
const MISS: f64 = 0.05;

/// Comparisons of one node in all metrics.
pub(crate) struct Evidence {
    screened: Vec<Candidate>,
    /// Of its fresh trials; empty for a node that was not measured again.
    confirmed: Vec<Candidate>,
}

impl Evidence {
    pub(crate) fn collect(name: &str, compared: &mut BTreeMap<FleetMetric, Compared>) -> Self {
        let mut found = Self {
            screened: Vec::new(),
            confirmed: Vec::new(),
        };
        for metric in compared.values_mut() {
            found
                .screened
                .extend(metric.screened.remove(name).into_iter().flatten());
            found
                .confirmed
                .extend(metric.confirmed.remove(name).into_iter().flatten());
        }
        found
    }

    /// p-value of the screen, with all choices.
    pub(crate) fn screened(&self, effect: f64) -> f64 {
        smallest(&self.screened, effect)
    }

    /// True if the node was measured again.
    pub(crate) fn is_confirmed(&self) -> bool {
        !self.confirmed.is_empty()
    }

    /// True if a comparison of the whole node has no answer in the fresh trials: the nodes are few, and noisier than the prior
    /// assumes.
    pub(crate) fn lacks_an_answer(&self) -> bool {
        let whole = |candidate: &&Candidate| candidate.gpu.is_none();
        let key = |candidate: &Candidate| (candidate.metric, candidate.reference);
        let answered: BTreeSet<_> = self.confirmed.iter().filter(whole).map(key).collect();
        let mut asked = self.screened.iter().filter(whole).map(key);
        self.is_confirmed() && asked.any(|asked| !answered.contains(&asked))
    }

    /// p-value of the fresh trials, with all choices; 1 without them.
    pub(crate) fn confirmed(&self, effect: f64, acts: bool) -> f64 {
        if acts {
            let past = self.confirmed.iter().filter(|candidate| candidate.may_act());
            smallest(&past.cloned().collect::<Vec<_>>(), effect)
        } else {
            smallest(&self.confirmed, effect)
        }
    }

    /// Slowest subject of the fresh trials: a change against itself if there is one, else the one beside its peers.
    pub(crate) fn slowest(&self, effect: f64, acts: bool) -> Option<&Candidate> {
        let least = |is_asked: &dyn Fn(&Candidate) -> bool| {
            let asked = self.confirmed.iter().filter(|candidate| is_asked(candidate));
            asked.min_by(|a, b| a.p(effect).total_cmp(&b.p(effect)))
        };
        let changed = if acts {
            least(&Candidate::may_act)
        } else {
            least(&|candidate| candidate.reference == Reference::Past).filter(|past| past.p(effect) < CHANGE)
        };
        changed.or_else(|| least(&|_| true))
    }

    /// Surest comparison of the screen.
    pub(crate) fn suspicion(&self) -> Option<Suspicion> {
        let shares = Shares::new(&self.screened);
        // Most p-values are 1: of these the slowest counts.
        let key = |candidate: &Candidate| {
            (
                candidate.p(0.0) / shares.share(candidate),
                candidate.deviation.standardised(),
            )
        };
        let surest = self.screened.iter().map(|candidate| (key(candidate), candidate));
        let (_, surest) = surest.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
        Some(Suspicion {
            answer: surest.reference.answer(),
            gpu: surest.gpu.clone(),
            percent: percent(surest.deviation.value),
        })
    }

    /// Speed of the node as a whole as a percentage of the reference.
    pub(crate) fn percent_of(&self, reference: Reference) -> Option<f64> {
        let whole = |candidate: &&Candidate| candidate.reference == reference && candidate.gpu.is_none();
        let found = self.screened.iter().find(whole)?;
        Some(100.0 + percent(found.deviation.value))
    }

    /// Smallest loss of one subject (percent) that would have been found at a p-value of `p` in 95 of 100 cases.
    pub(crate) fn detectable(&self, effect: f64, p: f64, quantiles: &mut Quantiles) -> Option<f64> {
        let candidates = if self.confirmed.is_empty() {
            &self.screened
        } else {
            &self.confirmed
        };
        let shares = Shares::new(candidates);
        let losses = candidates.iter().map(|candidate| {
            let degrees = candidate.scale.degrees;
            let reach = quantiles.beyond(p * shares.share(candidate) / candidate.choices, degrees)
                + quantiles.beyond(MISS, degrees);
            effect + reach * candidate.deviation.deviation(candidate.scale)
        });
        losses.min_by(f64::total_cmp).map(|loss| -percent(-loss))
    }

    /// Adds the p-value of each comparison, without choices. Those that are certainly above the checked levels count as 1.
    fn collect_p(&self, p: &mut BTreeMap<(FleetMetric, Reference, bool), Vec<f64>>) {
        for candidate in &self.screened {
            let key = (candidate.metric, candidate.reference, candidate.gpu.is_some());
            let value = if candidate.is_surely_usual(0.0) {
                1.0
            } else {
                candidate.deviation.slower(0.0, candidate.scale)
            };
            p.entry(key).or_default().push(value);
        }
    }
}

/// Smallest p-value of all comparisons, each over its part of the error; 1 without any.
fn smallest(candidates: &[Candidate], effect: f64) -> f64 {
    let shares = Shares::new(candidates);
    let p = candidates
        .iter()
        .map(|candidate| candidate.p(effect) / shares.share(candidate));
    p.fold(1.0, f64::min)
}

/// Parts of the error of one node (weighted Bonferroni): equal ones for the metrics.
struct Shares {
    questions: BTreeSet<(FleetMetric, Reference)>,
    metrics: usize,
}

impl Shares {
    fn new(candidates: &[Candidate]) -> Self {
        let questions = candidates
            .iter()
            .map(|candidate| (candidate.metric, candidate.reference));
        let metrics: BTreeSet<FleetMetric> = candidates.iter().map(|candidate| candidate.metric).collect();
        Self {
            questions: questions.collect(),
            metrics: metrics.len(),
        }
    }

    fn share(&self, candidate: &Candidate) -> f64 {
        let asked = |reference| self.questions.contains(&(candidate.metric, reference));
        let both = asked(Reference::Past) && asked(Reference::Peers);
        let part = match candidate.reference {
            _ if !both => 1.0,
            Reference::Past => PAST,
            Reference::Peers => 1.0 - PAST,
        };
        part / count(self.metrics)
    }
}

/// Quantiles of Student's t that many nodes share.
#[derive(Default)]
pub(crate) struct Quantiles(BTreeMap<(u64, u64), f64>);

impl Quantiles {
    fn beyond(&mut self, tail: f64, degrees: f64) -> f64 {
        let key = (tail.to_bits(), degrees.to_bits());
        *self.0.entry(key).or_insert_with(|| student_beyond(tail, degrees))
    }
}

/// Comparisons of all nodes that are not found slow, by metric, reference and level: the worst of them counts.
pub(crate) fn calibrate(nodes: &[Evidence], is_slow: impl Fn(usize) -> bool) -> Calibration {
    let mut p = BTreeMap::new();
    for (_, node) in nodes.iter().enumerate().filter(|(at, _)| !is_slow(*at)) {
        node.collect_p(&mut p);
    }
    p.values()
        .map(|p| Calibration::check(p))
        .fold(Calibration::default(), Calibration::worse)
}
