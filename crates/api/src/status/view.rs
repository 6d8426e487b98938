//! Results as people and other programs read them: whole numbers, computed from the state of the operator.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TrialOutcome, Verdict};

/// Headline numbers of the deciding trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MetricsStatus {
    /// Output tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_second: Option<i64>,
    /// Time to first token, median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p50_milliseconds: Option<i64>,
    /// Time to first token, 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p90_milliseconds: Option<i64>,
    /// Time to first token, 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_milliseconds: Option<i64>,
    /// Time to first token, largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_max_milliseconds: Option<i64>,
    /// Requested number of requests in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<i64>,
    /// Decode speed of the slowest worker (percent of its peers' median, or of the fastest worker's if most are slow).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_worker_percent: Option<i64>,
    /// Smallest slowdown of one worker that 95 of 100 runs detect (percent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable_slowdown_percent: Option<i64>,
    /// Smallest loss against this run that would fail at least 95 of 100 such runs (percent). Present only if the run passed
    /// with at least two trials and an enforced gate on an average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable_loss_percent: Option<i64>,
}

/// One trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TrialStatus {
    /// Number, from 1.
    pub number: i64,
    /// Result; absent while the trial runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TrialOutcome>,
    /// True for the soak after the deciding trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soak: bool,
    /// Output tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_second: Option<i64>,
    /// Time to first token, 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_milliseconds: Option<i64>,
    /// Requests sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<i64>,
    /// Requests that failed or came back short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_requests: Option<i64>,
    /// Causes of the trial's outcome, the strongest first; `status.diagnosis` explains them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// Time at which the operator requested the trial's Job.
    pub started_at: DateTime<Utc>,
    /// Time at which the operator read the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}

/// Worker with its numbers of the last valid trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// Pod of the worker, or its address if the pod is unknown.
    pub name: String,
    /// UUIDs of the worker's GPUs, or their pools and devices if they have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// Restarts of the worker's containers before or during the last trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<i64>,
    /// End of the worker's container before the last restart, such as `exit code 137 (OOMKilled)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<String>,
    /// Requests that the worker finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<i64>,
    /// Output tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_second: Option<i64>,
    /// Time from one token of a request to the next, by the worker's engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_microseconds: Option<i64>,
    /// Longest time in which the worker had requests and finished none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_seconds: Option<i64>,
    /// Decode speed against the peers' median, mean over the trials of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_of_peers: Option<Speed>,
    /// Decode speed against earlier runs on the same GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_of_own_past: Option<Speed>,
}

/// Speed against the peers or earlier runs, with its 95 % interval.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Speed {
    /// Speed (percent of the reference).
    pub percent: i64,
    /// Half of the 95 % interval (percentage points).
    pub plus_minus: i64,
    /// Number of trials or earlier runs in this mean.
    pub mean_of: i64,
}

/// Comparison with the last earlier run that passed without a cause: the changes, or the differences that prevent a
/// comparison.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonStatus {
    /// Number of the earlier run.
    pub run: i64,
    /// Change of the output tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_percent: Option<i64>,
    /// Half of the interval in which two equal runs differ in 95 of 100 cases (percentage points).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_plus_minus: Option<i64>,
    /// Change of the time to first token, 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_percent: Option<i64>,
    /// Half of the same interval for this time (percentage points).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_plus_minus: Option<i64>,
    /// Fields of the environment that differ or are unknown, so that the runs cannot be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// Earlier run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Number of the run.
    pub run: i64,
    /// Verdict; absent if the run was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Reason of the verdict or the interruption.
    pub reason: String,
    /// Node under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Output tokens per second, mean of the trials that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_second: Option<i64>,
    /// Time to first token, 99th percentile, mean of the same trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_milliseconds: Option<i64>,
    /// Time at which the run ended.
    pub completed_at: DateTime<Utc>,
}
