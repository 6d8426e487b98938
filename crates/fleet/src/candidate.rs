//! One comparison of a node's subject with its past or its peers.

use perfval_api::fleet::OutlierReason;

use crate::peers::{Deviation, USUAL_SCALE};
use crate::scale::Scale;
use crate::tail::{student, student_beyond};

/// Standard deviations that every tail exceeds with a probability of more than 0.06.
const SURELY_USUAL: f64 = 1.5;

/// Reference of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reference {
    Past,
    Peers,
}

impl Reference {
    /// Reason of a loss beside it.
    pub(crate) const fn reason(self) -> OutlierReason {
        match self {
            Self::Past => OutlierReason::SlowerThanItself,
            Self::Peers => OutlierReason::SlowerThanPeers,
        }
    }
}

/// Subject of a node beside one reference.
#[derive(Clone, Debug)]
pub(crate) struct SubjectLoss<'a> {
    pub(crate) reference: Reference,
    /// UUID; `None` for the node as a whole.
    pub(crate) gpu: Option<&'a str>,
    /// Measured minus expected (logarithm).
    pub(crate) value: f64,
    /// The same in standard deviations of the prior.
    pub(crate) standardised: f64,
    /// Standard deviation in its stratum.
    sd: f64,
    scale: Scale,
    /// Number of comparisons that stand beside this one on its node with the same reference.
    choices: f64,
}

impl<'a> SubjectLoss<'a> {
    /// Deviation of a subject in a stratum with this scale. It keeps a few numbers of it, because 5,000 nodes have 90,000 subjects.
    pub(crate) fn new(
        (reference, gpu): (Reference, Option<&'a str>),
        deviation: Deviation,
        scale: Scale,
        choices: f64,
    ) -> Self {
        Self {
            reference,
            gpu,
            value: deviation.value,
            standardised: deviation.standardised(),
            sd: deviation.deviation(scale),
            scale,
            choices,
        }
    }

    /// True if the p-value is above 0.06 in any case. So are most subjects of a fleet, and their tail is not worth its
    /// computation.
    pub(crate) fn is_surely_usual(&self, effect: f64) -> bool {
        -self.value - effect < SURELY_USUAL * self.sd
    }

    /// True if a loss may be a reason to act: a change against the own past. Where deployments vary far more than the prior
    /// assumes, whole nodes are left out: 0.2 % of healthy ones were acted on without that (simulated, 7 %, heavy tails).
    pub(crate) fn may_act(&self) -> bool {
        let is_noise = self.gpu.is_none() && self.scale.variance > USUAL_SCALE;
        self.reference == Reference::Past && !is_noise
    }

    /// Loss (logarithm) that has a p-value of `limit` or less in 98.5 of 100 cases.
    pub(crate) fn detectable(&self, limit: f64, effect: f64) -> f64 {
        let beyond = |tail: f64| student_beyond(tail, self.scale.degrees);
        let needed = beyond(limit / self.choices) + beyond(0.015);
        effect + needed * self.sd
    }

    /// p-value for a loss of more than `effect` (logarithm), with all its choices.
    pub(crate) fn p(&self, effect: f64) -> f64 {
        if self.is_surely_usual(effect) {
            return 1.0;
        }
        (self.slower(effect) * self.choices).min(1.0)
    }

    /// Probability of so slow a value if the subject were slower by `effect` (logarithm, 0 or more) and no more.
    pub(crate) fn slower(&self, effect: f64) -> f64 {
        student((-self.value - effect) / self.sd, self.scale.degrees)
    }
}
