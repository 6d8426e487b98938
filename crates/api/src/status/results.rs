use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Verdict of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, Hash)]
#[derive(IntoStaticStr, VariantArray)]
pub enum Verdict {
    /// The run measured, and the trials met every enforced gate as often as the trial rule requires.
    Passed,
    /// The run measured, and the deployment did not meet the requirements.
    Failed,
    /// The run measured, but the result is not reliable.
    Inconclusive,
    /// No gate is enforced, or Dynamo is missing and the spec allows that.
    Skipped,
    /// The run could not measure.
    Error,
}

impl Verdict {
    /// Verdicts, in the order of the documentation.
    pub const ALL: &[Self] = Self::VARIANTS;
}

/// Result of one gate.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    /// Name.
    pub name: String,
    /// Measured value; absent if the trial did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// Threshold after scaling and tolerance.
    pub effective: String,
    /// Result.
    pub result: GateResult,
    /// Distance to the effective threshold (percent of it), negative for a miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_percent: Option<String>,
}

/// Result of a gate.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateResult {
    /// Met.
    Met,
    /// Missed; the miss counts.
    Missed,
    /// Missed, but only reported (mode `Warn`).
    Warned,
    /// The trial did not report the metric.
    Unmeasured,
}

/// Outcome of one trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(IntoStaticStr)]
pub enum TrialOutcome {
    /// The trial met every enforced gate.
    Pass,
    /// The trial missed a gate or had too many errors, or one worker stalled.
    Miss,
    /// The trial is no evidence about the deployment.
    #[default]
    Invalid,
}

/// Finding in addition to the numbers.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable word.
    pub cause: String,
    /// Severity.
    pub severity: Severity,
    /// Evidence.
    pub evidence: String,
    /// Remedy.
    pub remedy: String,
}

/// Severity of a finding.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Information without effect on the verdict.
    Info,
    /// Explains a verdict, or decides that it is Failed or Inconclusive.
    Warning,
    /// Decides that the verdict is Error or Failed.
    Error,
}

/// ConfigMap with the full results.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResultsRef {
    /// ConfigMap with the AIPerf export and worker samples of each trial.
    pub name: String,
    /// SHA-256 over its content (hex).
    pub sha256: String,
}
