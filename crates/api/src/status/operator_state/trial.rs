use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::worker::WorkerLoss;
use crate::{ProgressStatus, TrialOutcome};

/// One trial.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TrialState {
    /// Number, from 1.
    pub number: i64,
    /// Outcome; absent while the trial runs.
    pub outcome: Option<TrialOutcome>,
    /// Output tokens per second.
    pub throughput: Option<String>,
    /// Time to first token, 99th percentile (ms).
    pub ttft_p99_ms: Option<String>,
    /// Requests that failed or came back short.
    pub errors: Option<i64>,
    /// Requests sent.
    pub requests: Option<i64>,
    /// Uid of the trial's Job, once the operator has seen it. Other Jobs of this name do not count.
    pub job_uid: Option<String>,
    /// True while another controller, such as Kueue, has not let the Job start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Seed of the trial's prompts.
    pub seed: Option<i64>,
    /// True for the soak after the deciding trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soak: bool,
    /// Distance of the worst enforced average from its effective threshold (percent of it), negative for a miss. Absent
    /// without such a gate, or if anything else made the trial a miss.
    pub margin_percent: Option<String>,
    /// Distances of the enforced gates on averages if there are several, in the order of `spec.gates`, each as in
    /// `marginPercent`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub margins: Vec<String>,
    /// Time at which the operator requested the trial's Job, or at which a queue let it start.
    pub started_at: DateTime<Utc>,
    /// Time at which the operator read the result.
    pub completed_at: Option<DateTime<Utc>>,
    /// Causes of a miss or of an invalid trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// True for a miss that repetition cannot change: a throughput gate missed by half or more with balanced workers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub far: bool,
    /// UUIDs of the GPUs whose workers decode slower than their peers in the trials so far, or than in earlier runs.
    /// Present only in the last trial that measured.
    #[serde(default, rename = "slowGPUs", skip_serializing_if = "Vec::is_empty")]
    pub slow_gpus: Vec<String>,
    /// Loss of a worker during the trial, or since the previous one. The run cannot be Passed.
    pub worker_loss: Option<WorkerLoss>,
    /// Use of the node's CPUs, if they were full during the trial. Present only in the last finished trial.
    pub cpu_shortage: Option<String>,
}

/// Progress of the open trial.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TrialProgress {
    /// Number of the trial.
    pub trial: i64,
    /// Measured requests that have ended, including failed ones.
    pub requests: i64,
    /// Requests that the trial will send; absent if it has a duration instead.
    pub expected: Option<i64>,
    /// Measured requests that failed.
    pub failed_requests: i64,
    /// Time spent measuring so far (s).
    pub seconds: i64,
    /// Part that `status.progress` shows.
    #[serde(flatten)]
    pub shown: ProgressStatus,
}

/// Headline numbers of one trial (decimal strings; tok/s, ms, percent).
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// Output tokens per second.
    pub output_token_throughput: Option<String>,
    /// Time to first token, median (ms).
    pub ttft_p50_ms: Option<String>,
    /// Time to first token, 90th percentile (ms).
    pub ttft_p90_ms: Option<String>,
    /// Time to first token, 99th percentile (ms).
    pub ttft_p99_ms: Option<String>,
    /// Time to first token, largest (ms).
    pub ttft_max_ms: Option<String>,
    /// Requests that failed or came back short (percent).
    pub request_error_percent: Option<String>,
    /// Requested number of requests in flight.
    pub concurrency: Option<i64>,
    /// Decode speed of the slowest worker (percent of its peers' median, or of the fastest worker's if most are slow).
    /// Present only if the engines report it.
    pub slowest_worker_percent: Option<String>,
    /// Slowdown of one worker against its peers that 95 of 100 runs detect (percent). Absent if the workers differ by
    /// more than that.
    pub detectable_slowdown_percent: Option<String>,
}
