use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One gate, judged.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    /// Name of the gate.
    pub name: String,
    /// What was measured; absent if the trial did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// Threshold of the spec.
    pub threshold: String,
    /// Threshold after scaling and tolerance.
    pub effective: String,
    /// Whether it was met.
    pub result: GateResult,
    /// Distance to the effective threshold (percent of it): positive on the good side, negative for a miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_percent: Option<String>,
}

/// Whether a gate was met.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateResult {
    /// Met.
    Met,
    /// Missed, and it counts.
    Missed,
    /// Missed, but only reported (mode Warn).
    Warned,
    /// The trial did not report the metric.
    Unmeasured,
}

/// What one trial showed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// Every enforced gate met.
    Pass,
    /// A gate missed, or too many errors.
    Miss,
    /// Says nothing about the deployment.
    Invalid,
}

/// How far the open trial is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TrialProgress {
    /// Number of the trial.
    pub trial: i64,
    /// Measured requests that are over, failed ones included.
    pub requests: i64,
    /// Requests that it will send; absent where it lasts for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<i64>,
    /// Those that failed.
    pub failed_requests: i64,
    /// How long it has been measuring (s).
    pub seconds: i64,
    /// Part of the trial that is done (percent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<i64>,
    /// Output tokens per second, lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_second: Option<i64>,
    /// Time to first token, lately on average (ms).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_milliseconds: Option<i64>,
    /// Trial and percentage, such as `2: 62%`.
    pub summary: String,
    /// When this was read; at most every fifteen seconds.
    pub updated_at: DateTime<Utc>,
}

/// A finding in addition to the numbers.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable name.
    pub cause: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
}

/// How much a finding matters.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Explains a miss, or may become one.
    Warning,
    /// Decides the verdict.
    Error,
}

/// ConfigMap with the full results.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResultsRef {
    /// Its name.
    pub name: String,
    /// SHA-256 over its content (hex).
    pub sha256: String,
}
