//! From finished trials to a verdict, and to the one line that explains it.

mod headline;

use perfval_api::{
    ExpectedBy, Finding, GateResult, PerfValidationSpec, PerfValidationStatus, Reason, RunFailure, TrialOutcome,
    TrialState, Verdict, Why, WorkerLoss, text,
};

pub use self::headline::asked;
use self::headline::message;
use crate::diagnosis::cause::Cause;
use crate::trials::{self, Ruling};

/// The verdict of the trials in a status; `None` if the rule needs more of them.
pub fn conclude(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Option<(Verdict, Why)> {
    let ruling = trials::ruling(spec, &status.state.trials);
    let (verdict, reason, cause) = match (ruling, worst_loss(status)) {
        (Ruling::Continue, _) => return None,
        (Ruling::Fail, _) => (Verdict::Failed, why_failed(status), None),
        // Engines that crash under this load are broken, however fast the others are.
        (_, Some(WorkerLoss::Crashed)) => (Verdict::Failed, Reason::WorkerCrashed, Some(Cause::WorkerCrashed)),
        (Ruling::Pass, Some(WorkerLoss::Starved)) => (
            Verdict::Inconclusive,
            Reason::NodeCPUPressure,
            Some(Cause::NodeCPUPressure),
        ),
        (Ruling::Pass, Some(WorkerLoss::Removed)) => (
            Verdict::Inconclusive,
            Reason::WorkerRestarted,
            Some(Cause::WorkerRestarted),
        ),
        // A node with fewer GPUs than the spec expects is measured, but it does not pass. A number from elsewhere is a guess.
        (Ruling::Pass, None) if status.state.plan.expected_by == Some(ExpectedBy::Spec) => {
            (Verdict::Failed, Reason::GPUsMissing, None)
        }
        (Ruling::Pass, None) => (Verdict::Passed, Reason::GatesMet, None),
        (Ruling::Undecided, _) => (Verdict::Inconclusive, Reason::TrialsDisagree, None),
        (Ruling::Unmeasurable, _) => {
            let (verdict, reason) = unmeasurable(&status.state.trials);
            (verdict, reason, None)
        }
    };
    let findings = if let Some(cause) = cause {
        Vec::from_iter(finding_of(status, cause.as_str()))
    } else {
        // The mean over the trials may fail a run in a trial that passes.
        let decides = if ruling == Ruling::Fail {
            last_miss(status)
        } else {
            status.state.trials.last()
        };
        deciding_findings(status, decides, reason)
    };
    Some((
        verdict,
        Why::new(reason, message(spec, status, verdict, reason, &findings)),
    ))
}

/// The verdict of a run that ended before its trials decided. Engines that crashed under the load are broken, also if the run ended
/// because they did not come back.
pub fn conclude_early(status: &PerfValidationStatus, failure: &RunFailure) -> (Verdict, Why) {
    let crash = worst_loss(status) == Some(WorkerLoss::Crashed);
    match finding_of(status, Cause::WorkerCrashed.as_str()).filter(|_| crash) {
        Some(crash) => {
            let message = format!("{}: {}; then {}", crash.cause, crash.evidence, failure.message);
            (
                Verdict::Failed,
                Why::new(Reason::WorkerCrashed, text::bounded(&message)),
            )
        }
        None => (
            Verdict::Error,
            Why::new(Reason::from_word(&failure.reason), failure.message.clone()),
        ),
    }
}

/// Errors outrank gates: numbers of the successes alone prove little.
fn why_failed(status: &PerfValidationStatus) -> Reason {
    let reasons: Vec<Reason> = last_miss(status).into_iter().flat_map(reasons).collect();
    let gates_met = status.gates.iter().all(|gate| gate.result != GateResult::Missed);
    if reasons.contains(&Reason::RequestErrors) {
        Reason::RequestErrors
    } else if gates_met && reasons.contains(&Reason::WorkerStall) {
        Reason::WorkerStall
    } else {
        Reason::GatesMissed
    }
}

fn last_miss(status: &PerfValidationStatus) -> Option<&TrialState> {
    let mut trials = status.state.trials.iter();
    trials.rfind(|trial| trial.outcome == Some(TrialOutcome::Miss))
}

/// Two invalid trials in a row: could not be measured, or was measured and is not to be trusted.
pub(crate) fn unmeasurable(trials: &[TrialState]) -> (Verdict, Reason) {
    match trials.last().and_then(|last| reasons(last).next()) {
        Some(
            untrusted @ (Reason::GeneratorStarved
            | Reason::NodeCPUPressure
            | Reason::WorkerRestarted
            | Reason::UnevenService),
        ) => (Verdict::Inconclusive, untrusted),
        Some(Reason::WorkerCrashed) => (Verdict::Failed, Reason::WorkerCrashed),
        unmeasured => (Verdict::Error, unmeasured.unwrap_or(Reason::BenchmarkFailed)),
    }
}

fn reasons(trial: &TrialState) -> impl Iterator<Item = Reason> {
    trial
        .causes
        .iter()
        .filter_map(|cause| Cause::from_word(cause)?.reason())
}

/// The findings that explain a trial: the first that matches the reason, else the first of all. The worker that crashed or
/// stalled stands behind the requests that it failed.
fn deciding_findings<'a>(
    status: &'a PerfValidationStatus,
    trial: Option<&TrialState>,
    reason: Reason,
) -> Vec<&'a Finding> {
    let Some(TrialState { causes, .. }) = trial else {
        return Vec::new();
    };
    let reason_of = |cause: &str| Cause::from_word(cause).and_then(Cause::reason);
    let (first, matching) = (
        causes.first(),
        causes.iter().find(|cause| reason_of(cause) == Some(reason)),
    );
    let source =
        first.filter(|first| reason == Reason::RequestErrors && reason_of(first).is_some_and(|own| own != reason));
    let deciding = matching.or(first).into_iter().chain(source);
    deciding.filter_map(|cause| finding_of(status, cause)).collect()
}

/// The most serious loss of a worker in the trials.
pub(crate) fn worst_loss(status: &PerfValidationStatus) -> Option<WorkerLoss> {
    status.state.trials.iter().filter_map(|trial| trial.worker_loss).max()
}

pub(crate) fn finding_of<'a>(status: &'a PerfValidationStatus, cause: &str) -> Option<&'a Finding> {
    status.diagnosis.iter().find(|finding| finding.cause == cause)
}

#[cfg(test)]
mod tests {
    use perfval_api::text::HEADLINE;
    use perfval_api::{Comparison, GateOperator, GateStatus, Metric, OperatorState, PlacementStatus, Scaling};
    use serde_json::json;

    use super::*;

    fn spec() -> PerfValidationSpec {
        serde_json::from_value(json!({
            "model": {"name": "m"}, "workload": {"dynamo": {"image": "vllm-runtime:1.4.2"}},
            "trials": {"rule": "Sequential", "max": 8},
            "gates": [
                {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000"},
                {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000"},
            ],
        }))
        .expect("well-formed")
    }

    fn gate(name: &str, observed: &str, effective: &str, result: GateResult) -> GateStatus {
        serde_json::from_value(json!({
            "name": name, "observed": observed, "effective": effective, "result": result,
        }))
        .expect("well-formed")
    }

    /// `P` pass, `M` miss, `I` invalid; the last one with these causes.
    fn status(letters: &str, causes: &[(Cause, &str)], throughput: &str, result: GateResult) -> PerfValidationStatus {
        let trial = |letter| TrialState {
            outcome: Some(match letter {
                'P' => TrialOutcome::Pass,
                'I' => TrialOutcome::Invalid,
                _ => TrialOutcome::Miss,
            }),
            ..TrialState::default()
        };
        let mut status = PerfValidationStatus {
            placement: Some(PlacementStatus {
                node: "gpu-node-1".into(),
                gpus: 8,
                node_gpus: 8,
                ..PlacementStatus::default()
            }),
            state: Box::new(OperatorState {
                trials: letters.chars().map(trial).collect(),
                ..OperatorState::default()
            }),
            gates: vec![
                gate("throughput", throughput, "1000", result),
                gate("ttft-p99", "910", "2000", GateResult::Met),
            ],
            diagnosis: causes.iter().map(|(cause, text)| cause.finding(*text)).collect(),
            ..PerfValidationStatus::default()
        };
        if let Some(last) = status.state.trials.last_mut() {
            last.causes = causes.iter().map(|(cause, _)| cause.as_str().into()).collect();
        }
        status
    }

    fn concluded(status: &PerfValidationStatus) -> (Verdict, Reason, String) {
        let (verdict, why) = conclude(&spec(), status).expect("a verdict");
        (verdict, why.reason, why.message)
    }

    #[test]
    fn a_failed_run_names_the_gate_how_near_and_the_first_cause_in_one_line() {
        let stall = "worker 10.0.0.3 served 0.5 requests/s, its peers 5 (median)";
        let causes = [(Cause::WorkerStall, stall)];
        let (verdict, reason, message) = concluded(&status("MMMM", &causes, "900", GateResult::Missed));
        assert_eq!((verdict, reason), (Verdict::Failed, Reason::GatesMissed));
        assert_eq!(
            message,
            format!(
                "throughput 900 tok/s, 10 % below 1000; WorkerStall: {stall}; trials: 4 missed; 8/8 GPUs on gpu-node-1"
            )
        );

        // Evidence of any length leaves the gate, the numbers and the cause's name in the line.
        let long = "ö".repeat(300);
        let causes = [(Cause::WorkerStall, long.as_str())];
        let (_, _, message) = concluded(&status("MMMM", &causes, "999.9", GateResult::Missed));
        assert!(message.len() <= HEADLINE, "{} bytes: {message}", message.len());
        assert!(
            message.starts_with("throughput 999.9 tok/s, just below 1000; WorkerStall: ö"),
            "{message}"
        );

        // 999.9998 is shown as 1000.
        let (_, _, message) = concluded(&status("MMMM", &causes, "1000", GateResult::Missed));
        assert!(
            message.starts_with("throughput 1000 tok/s, just below 1000; "),
            "{message}"
        );
    }

    #[test]
    fn errors_lead_where_the_gates_were_met() {
        let text = "94 % of 1500 requests failed or came back short (allowed: 1 %): 1404 × HTTP 500";
        let causes = [(Cause::DeadWorkerBlackHole, text)];
        let (verdict, reason, message) = concluded(&status("MMMM", &causes, "5934", GateResult::Met));
        assert_eq!((verdict, reason), (Verdict::Failed, Reason::RequestErrors));
        assert!(message.starts_with("RequestErrors: 94 % of 1500"), "{message}");
    }

    #[test]
    fn a_cause_that_failed_the_run_goes_before_a_warning() {
        let slow = "worker 10.0.0.3 decodes at 57 % of its peers' speed";
        let errors = "35 % of 511 requests failed or came back short (allowed: 1 %): 167 × HTTP 503";
        let causes = [(Cause::SlowWorker, slow), (Cause::RequestErrors, errors)];
        let (_, reason, message) = concluded(&status("MMMM", &causes, "5934", GateResult::Met));
        assert_eq!(reason, Reason::RequestErrors);
        assert!(message.starts_with("RequestErrors: 35 % of 511"), "{message}");
    }

    #[test]
    fn a_crash_is_named_behind_the_requests_that_it_failed() {
        let crash = "worker pv-e1993e18-worker-f7b7b98dd-r4xkg restarted: its container ended with exit code 1 (Error)";
        let errors = "3.2 % of 7964 requests failed or came back short (allowed: 1 %): 21 × HTTP 500";
        let causes = [(Cause::WorkerCrashed, crash), (Cause::RequestErrors, errors)];
        let (_, reason, message) = concluded(&status("MMMM", &causes, "90", GateResult::Missed));
        assert_eq!(reason, Reason::RequestErrors);
        let both = "throughput 90 tok/s, 91 % below 1000; RequestErrors: 3.2 % of 7964 requests failed or came back short; \
                    WorkerCrashed: worker pv-e1993e18-worker-f7b7b98dd-r4xkg restarted";
        assert!(message.starts_with(both), "{message}");
    }

    #[test]
    fn the_headline_of_a_pass_has_node_numbers_and_change() {
        let mut passed = status("PP", &[], "1042", GateResult::Met);
        passed.state.comparison = Some(Comparison {
            run: 3,
            throughput_percent: Some("+4.2".into()),
            throughput_within: Some("22".into()),
            ttft_p99_percent: Some("-1".into()),
            ..Comparison::default()
        });
        let (verdict, reason, message) = concluded(&passed);
        assert_eq!((verdict, reason), (Verdict::Passed, Reason::GatesMet));
        assert_eq!(
            message,
            "8/8 GPUs on gpu-node-1: throughput 1042 tok/s (≥ 1000), ttft-p99 910 ms (≤ 2000); trials: 2 passed; \
             against run 3: tok/s +4.2 % ± 22 %, TTFT p99 -1 %"
        );
    }

    #[test]
    fn a_draw_shows_how_near_it_was() {
        let mut draw = status("PMPMPMPM", &[], "1000", GateResult::Met);
        for trial in &mut draw.state.trials {
            let above = trial.outcome == Some(TrialOutcome::Pass);
            trial.margin_percent = Some(if above { "0.5" } else { "-0.9" }.into());
        }
        let (verdict, reason, message) = concluded(&draw);
        assert_eq!((verdict, reason), (Verdict::Inconclusive, Reason::TrialsDisagree));
        assert!(
            message.starts_with("the trials' mean is 0.2 % worse than the gate, too near to decide"),
            "{message}"
        );

        // A latency is worse above its gate.
        let mut latency = spec();
        latency.gates[0].metric = Metric::InterTokenLatency;
        latency.gates[0].operator = GateOperator::AtMost;
        let (_, why) = conclude(&latency, &draw).expect("a verdict");
        assert_eq!(why.message, message);
    }

    #[test]
    fn a_draw_of_soaks_shows_how_near_the_soaks_were() {
        let mut spec = spec();
        spec.benchmark.soak = Some("10m".into());
        let mut draw = status("PPMMM", &[], "999", GateResult::Missed);
        for (trial, margin) in draw.state.trials.iter_mut().zip(["9", "9", "-1", "-2", "-1"]) {
            trial.soak = trial.outcome == Some(TrialOutcome::Miss);
            trial.margin_percent = Some(margin.into());
        }
        let (verdict, why) = conclude(&spec, &draw).expect("a verdict");
        assert_eq!((verdict, why.reason), (Verdict::Inconclusive, Reason::TrialsDisagree));
        assert!(
            why.message
                .starts_with("the soaks' mean is 1.3 % worse than the gate, too near to decide"),
            "{}",
            why.message
        );
    }

    #[test]
    fn a_run_that_the_mean_fails_in_a_trial_that_passes_states_the_mean_and_the_last_miss() {
        let alike = Cause::BalancedDegradation;
        let mut failed = status("MMMP", &[], "1005", GateResult::Met);
        failed.diagnosis = vec![alike.finding("no worker stands out")];
        for (trial, margin) in failed.state.trials.iter_mut().zip(["-9", "-9", "-9", "0.5"]) {
            trial.margin_percent = Some(margin.into());
        }
        failed.state.trials[2].causes = vec![alike.as_str().into()];
        let (verdict, reason, message) = concluded(&failed);
        assert_eq!((verdict, reason), (Verdict::Failed, Reason::GatesMissed));
        assert_eq!(
            message,
            "the trials' mean is 6.6 % worse than the gate; BalancedDegradation: no worker stands out; trials: 1 passed, 3 missed; \
             8/8 GPUs on gpu-node-1"
        );
    }

    #[test]
    fn a_lost_worker_keeps_a_run_from_passing() {
        let crash = (Cause::WorkerCrashed, "worker w0 restarted: exit code 139");
        let removed = (Cause::WorkerRestarted, "worker w0 is gone");
        let starved = (Cause::NodeCPUPressure, "worker w0 restarted: its probe ended it");
        let with = |letters: &str, (cause, text): (Cause, &str)| {
            let mut lost = status(letters, &[], "1042", GateResult::Met);
            lost.diagnosis.push(cause.finding(text));
            lost.state.trials[1].worker_loss = cause.worker_loss();
            lost
        };
        for (loss, verdict, reason, word) in [
            (crash, Verdict::Failed, Reason::WorkerCrashed, "WorkerCrashed"),
            (
                removed,
                Verdict::Inconclusive,
                Reason::WorkerRestarted,
                "WorkerRestarted",
            ),
            // The node's CPUs were full: nothing is proved, and the rest of the trials cannot prove it either.
            (
                starved,
                Verdict::Inconclusive,
                Reason::NodeCPUPressure,
                "NodeCPUPressure",
            ),
        ] {
            let (found, why, message) = concluded(&with("PIP", loss));
            assert_eq!((found, why), (verdict, reason));
            assert!(message.starts_with(&format!("{word}: {}", loss.1)), "{message}");
        }
        let twice = status("PII", &[starved], "900", GateResult::Met);
        let (verdict, reason, _) = concluded(&twice);
        assert_eq!((verdict, reason), (Verdict::Inconclusive, Reason::NodeCPUPressure));
        // A crash is strong evidence, so no trial needs to be missed. A removed pod is no evidence.
        let verdicts = |letters: &str| [crash, removed].map(|loss| concluded(&with(letters, loss)).0);
        assert_eq!(verdicts("PII"), [Verdict::Failed, Verdict::Error]);
        assert_eq!(verdicts("MMMM"), [Verdict::Failed, Verdict::Failed]);
        assert_eq!(verdicts("PMMMMMMI"), [Verdict::Failed, Verdict::Inconclusive]);
    }

    #[test]
    fn the_headline_of_an_unmeasured_run_has_no_gate() {
        let causes = [(Cause::BenchmarkFailed, "AIPerf exited with an error: Traceback")];
        let (verdict, _, message) = concluded(&status("MII", &causes, "900", GateResult::Missed));
        assert_eq!(verdict, Verdict::Error);
        assert!(message.starts_with("BenchmarkFailed: AIPerf exited"), "{message}");
    }

    /// "gates: ≥ 200 tok/s" next to a verdict of "(≥ 600)" puzzled every reader of both.
    #[test]
    fn gate_summary_states_per_gpu_thresholds() {
        let mut spec = spec();
        let (none, scaled): (Vec<_>, Vec<_>) = [Scaling::None, Scaling::PerGpu, Scaling::ByGpuShare]
            .into_iter()
            .map(|scaling| {
                spec.gates[0].scaling = scaling;
                let asked = asked(&spec);
                (asked.contains("≥ 1000 tok/s,"), asked)
            })
            .unzip();
        assert_eq!(none, [true, false, false], "{scaled:?}");
        assert!(
            scaled[1].contains("≥ 1000 tok/s per GPU, ttft-p99 ≤ 2000 ms"),
            "{}",
            scaled[1]
        );
        assert!(
            scaled[2].contains("≥ 1000 tok/s by all GPUs of a node,"),
            "{}",
            scaled[2]
        );
    }
}
