//! Results as people and other programs read them: whole numbers, computed from the state of the operator.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{TrialOutcome, Verdict};

/// Versions of the run's environment. The digest covers its hardware, model and settings too.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentStatus {
    /// Digest (12 hex digits), set once the run is judged. Only runs with equal digests can be compared.
    pub digest: Option<String>,
    /// AIPerf version.
    pub aiperf: Option<String>,
    /// Version of the installed Dynamo operator.
    pub dynamo: Option<String>,
    /// Digest of the workload image.
    pub image_digest: Option<String>,
    /// Commit of the model; absent if unknown.
    pub revision: Option<String>,
}

/// Headline numbers of the deciding trial.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MetricsStatus {
    /// Output tokens per second.
    pub output_tokens_per_second: Option<i64>,
    /// Time to first token, median.
    pub ttft_p50_milliseconds: Option<i64>,
    /// Time to first token, 99th percentile.
    pub ttft_p99_milliseconds: Option<i64>,
    /// Decode speed of the slowest worker (percent of its peers' median, or of the fastest if most are slow).
    pub slowest_worker_percent: Option<i64>,
    /// Smallest slowdown of one worker that 95 of 100 runs detect (percent).
    pub detectable_slowdown_percent: Option<i64>,
    /// Smallest loss against this run that would fail 95 of 100 such runs (percent). Absent without a pass, two trials
    /// and an enforced gate on an average.
    pub detectable_loss_percent: Option<i64>,
}

/// One trial.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TrialStatus {
    /// Number, from 1.
    pub number: i64,
    /// Result; absent while the trial runs.
    pub outcome: Option<TrialOutcome>,
    /// True for the soak.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soak: bool,
    /// Output tokens per second.
    pub output_tokens_per_second: Option<i64>,
    /// Time to first token, 99th percentile.
    pub ttft_p99_milliseconds: Option<i64>,
    /// Failed or short requests.
    pub failed_requests: Option<i64>,
    /// Causes of the outcome, the strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

/// Progress of the open trial.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ProgressStatus {
    /// Completed part (percent).
    pub percent: Option<i64>,
    /// Recent output tokens per second.
    pub output_tokens_per_second: Option<i64>,
    /// Trial and percentage, such as `2: 62%`.
    pub summary: String,
    /// Time of this reading, updated at most once a minute.
    pub updated_at: DateTime<Utc>,
}

/// Worker with its numbers of the last valid trial.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// Pod, or address if the pod is unknown.
    pub name: String,
    /// UUIDs of its GPUs, or pools and devices if they have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// Restarts of its containers until the last trial's end.
    pub restarts: Option<i64>,
    /// Output tokens per second.
    pub output_tokens_per_second: Option<i64>,
    /// Decode speed against the peers' median over all trials.
    pub speed_of_peers: Option<Speed>,
    /// Decode speed against earlier runs on the same GPU.
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
}

/// Earlier run.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Number of the run.
    pub run: i64,
    /// Verdict; absent if the run was interrupted.
    pub verdict: Option<Verdict>,
    /// Reason of the verdict or interruption.
    pub reason: String,
    /// Node under test.
    pub node: Option<String>,
    /// Mean of the measured trials.
    pub output_tokens_per_second: Option<i64>,
    /// Time to first token, 99th percentile, mean of the measured trials.
    pub ttft_p99_milliseconds: Option<i64>,
    /// End of the run.
    pub completed_at: DateTime<Utc>,
}
