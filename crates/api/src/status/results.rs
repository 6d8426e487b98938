use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Headline numbers of one trial (decimal strings; tok/s, ms, percent).
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// Output tokens per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_token_throughput: Option<String>,
    /// Time to first token, median (ms).
    #[serde(rename = "ttftP50Ms", skip_serializing_if = "Option::is_none")]
    pub ttft_p50_ms: Option<String>,
    /// Time to first token, 90th percentile (ms).
    #[serde(rename = "ttftP90Ms", skip_serializing_if = "Option::is_none")]
    pub ttft_p90_ms: Option<String>,
    /// Time to first token, 99th percentile (ms).
    #[serde(rename = "ttftP99Ms", skip_serializing_if = "Option::is_none")]
    pub ttft_p99_ms: Option<String>,
    /// Time to first token, largest (ms).
    #[serde(rename = "ttftMaxMs", skip_serializing_if = "Option::is_none")]
    pub ttft_max_ms: Option<String>,
    /// Requests that failed or came back short (percent).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_error_percent: Option<String>,
    /// Requests in flight that were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<i64>,
}

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

/// One trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TrialStatus {
    /// Counts from 1.
    pub number: i64,
    /// Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TrialOutcome>,
    /// Output tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<String>,
    /// Time to first token, 99th percentile (ms).
    #[serde(default, rename = "ttftP99Ms", skip_serializing_if = "Option::is_none")]
    pub ttft_p99_ms: Option<String>,
    /// Requests that failed or came back short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<i64>,
    /// Requests sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<i64>,
    /// When its Job was asked for.
    pub started_at: DateTime<Utc>,
    /// When its result was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    /// What explains a miss or an invalid trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

/// Something that was found beside the numbers.
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
