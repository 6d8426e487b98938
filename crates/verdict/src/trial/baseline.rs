//! Gates on the approved baseline of the run's environment.

use perfval_api::{Gate, GateMode, GateResult, Metric, PerfValidationSpec, TrialOutcome};

use super::evidence::Evidence;
use super::reported::ReportedTrial;
use crate::diagnosis::cause::{Cause, Explained};
use crate::diagnosis::peers::Worker;
use crate::gate::{self, JudgedGate};

/// Returns true if an enforced gate has a baseline, and only the speeds of the workers are missing.
pub(super) fn lacks_speeds(gate: &Gate, evidence: Evidence<'_>, judged: &JudgedGate) -> bool {
    gate.metric == Metric::BaselinePercent
        && gate.mode == GateMode::Enforce
        && evidence.norm.is_some()
        && judged.status.result == GateResult::Unmeasured
}

/// Reports a gate that was not judged, because no approved baseline was read.
pub(super) fn missing(evidence: Evidence<'_>, spec: &PerfValidationSpec) -> Option<Explained> {
    let gate = spec.gates.iter().find(|gate| gate.metric == Metric::BaselinePercent)?;
    evidence.norm.is_none().then(|| {
        let text = format!(
            "gate {} was not judged: no approved PerfBaseline was read for this run's environment (an operator of single \
             namespaces reads none; with an unknown GPU product or driver none applies)",
            gate.name
        );
        (Cause::BaselineMissing, text)
    })
}

impl ReportedTrial<'_> {
    /// Workers by which a gate on a baseline was missed, in a trial that the gates decided.
    pub(super) fn below_baseline(self, outcome: TrialOutcome) -> Option<String> {
        if !self.is_judged_by_gates(outcome) {
            return None;
        }
        let mut gates = self.spec.gates.iter().zip(self.judged);
        let (gate, _) = gates.find(|(gate, judged)| gate.metric == Metric::BaselinePercent && judged.is_missed())?;
        let is_missed = |percent| gate::judge(gate, Some(percent), self.evidence.share).is_missed();
        let gpu = |worker: &Worker<'_>| self.evidence.gpu_of(worker);
        self.evidence.norm?.explain(&gate.name, self.workers, is_missed, gpu)
    }
}
