//! The answer of `judge`.

use std::fmt;

use perfval_api::{Finding, GateStatus, Metrics, PerfValidationSpec, TrialOutcome, Verdict};
use perfval_verdict::judge::Judgement;
use serde::Serialize;

use crate::draw::gate_result;
use crate::table::{Table, dash};

/// The answer of `judge`, as `-o json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgeReport<'a> {
    verdict: Verdict,
    reason: &'static str,
    message: &'a str,
    /// True if the trial rule had decided.
    decided: bool,
    trials: Vec<JudgedFile<'a>>,
    /// Files that came after the decision.
    not_judged: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JudgedFile<'a> {
    number: i64,
    from: &'a str,
    outcome: TrialOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<i64>,
    metrics: &'a Metrics,
    gates: Vec<GateReport<'a>>,
    findings: Vec<&'a Finding>,
}

/// A gate and its threshold as written.
#[derive(Serialize)]
struct GateReport<'a> {
    #[serde(flatten)]
    gate: &'a GateStatus,
    threshold: &'a str,
}

impl<'a> JudgeReport<'a> {
    /// Lays out the judgement. `from`: origin of each trial, in order.
    pub fn new(spec: &'a PerfValidationSpec, judgement: &'a Judgement, from: &'a [String]) -> Self {
        let with_threshold = |gate: &'a GateStatus| GateReport {
            gate,
            threshold: (spec.gates.iter())
                .find(|of_spec| of_spec.name == gate.name)
                .map_or("-", |of_spec| of_spec.threshold.as_str()),
        };
        let numbers = judgement.status.state.trials.iter().map(|trial| trial.number);
        let judged = judgement.trials.iter().zip(from).zip(numbers);
        Self {
            verdict: judgement.verdict,
            reason: judgement.reason.as_str(),
            message: &judgement.message,
            decided: judgement.decided,
            trials: judged
                .map(|((verdict, from), number)| JudgedFile {
                    number,
                    from,
                    outcome: verdict.outcome,
                    requests: verdict.requests.map(|(_, all)| all),
                    errors: verdict.requests.map(|(errors, _)| errors),
                    metrics: &verdict.metrics,
                    gates: verdict.gates.iter().map(with_threshold).collect(),
                    findings: verdict.findings.iter().map(|(_, finding)| finding).collect(),
                })
                .collect(),
            not_judged: from.iter().skip(judgement.trials.len()).map(String::as_str).collect(),
        }
    }
}

impl fmt::Display for JudgeReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["TRIAL", "OUTCOME", "TOK/S", "TTFT P99 MS", "REQUESTS", "ERRORS", "FROM"]);
        for trial in &self.trials {
            table.row([
                trial.number.to_string(),
                format!("{:?}", trial.outcome),
                dash(trial.metrics.output_token_throughput.as_ref()),
                dash(trial.metrics.ttft_p99_ms.as_ref()),
                dash(trial.requests),
                dash(trial.errors),
                trial.from.to_owned(),
            ]);
        }
        for from in &self.not_judged {
            let dashes = std::iter::repeat_n("-".to_owned(), 6);
            table.row(dashes.chain([format!("{from} (not judged: the rule had decided)")]));
        }
        f.write_str(&table.on(None))?;
        if self.trials.iter().any(|trial| !trial.gates.is_empty()) {
            let mut table = Table::new(["TRIAL", "GATE", "OBSERVED", "THRESHOLD", "EFFECTIVE", "RESULT"]);
            for trial in &self.trials {
                for GateReport { gate, threshold } in &trial.gates {
                    table.row([
                        trial.number.to_string(),
                        gate.name.clone(),
                        dash(gate.observed.as_ref()),
                        (*threshold).to_owned(),
                        gate.effective.clone(),
                        gate_result(gate.result).to_owned(),
                    ]);
                }
            }
            write!(f, "\n{}", table.on(None))?;
        }
        for trial in &self.trials {
            for finding in &trial.findings {
                write!(
                    f,
                    "\ntrial {}: {} ({:?}): {}\n  → {}\n",
                    trial.number, finding.cause, finding.severity, finding.evidence, finding.remedy
                )?;
            }
        }
        let (reason, message) = (self.reason, self.message);
        let repeated = message.strip_prefix(reason).and_then(|rest| rest.strip_prefix(": "));
        let message = repeated.unwrap_or(message);
        writeln!(f, "\n{} {reason}: {message}", self.verdict.as_str())
    }
}
