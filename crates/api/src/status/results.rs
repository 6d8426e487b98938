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
    /// Decode speed of the slowest worker (percent of its peers' median, or of the fastest worker's where most are slow), where
    /// the engines report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_worker_percent: Option<String>,
    /// Loss of speed against its peers with which a worker is named in 95 of 100 runs (percent); absent where the workers
    /// differ by more than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable_slowdown_percent: Option<String>,
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

/// How a run lost a worker, the less serious first.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerLoss {
    /// Its pod was removed or replaced.
    Removed,
    /// It was ended while its node had no CPU left for it, and not by a crash of its own.
    Starved,
    /// Its container ended by itself.
    Crashed,
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
    /// Uid of its Job, once that was seen: no other Job of this name counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_uid: Option<String>,
    /// Seed of its prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Whether it is the soak after the trials that decide.
    #[serde(default, skip_serializing_if = "is_false")]
    pub soak: bool,
    /// Distance of the worst enforced average from its effective threshold (percent of it), negative for a miss; absent
    /// without such a gate, and where anything else made the trial a miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_percent: Option<String>,
    /// With two to six enforced gates on averages: their distances in the order of `spec.gates`, each as in `marginPercent`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6))]
    pub margins: Vec<String>,
    /// When its Job was asked for.
    pub started_at: DateTime<Utc>,
    /// When its result was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    /// What explains a miss or an invalid trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// A miss that no repetition can change: an enforced gate missed by half or more with balanced workers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub far: bool,
    /// UUIDs of the GPUs whose workers decode slower than their peers by the trials so far, or than in earlier runs; only of the
    /// last trial that measured.
    #[serde(default, rename = "slowGPUs", skip_serializing_if = "Vec::is_empty")]
    pub slow_gpus: Vec<String>,
    /// What happened to a worker during the trial, or since the one before: the run cannot be Passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_loss: Option<WorkerLoss>,
    /// Use of the node's CPUs, where they were full during the trial; only of the last finished one.
    #[serde(default, rename = "cpuShortage", skip_serializing_if = "Option::is_none")]
    pub cpu_shortage: Option<String>,
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
    pub errors: i64,
    /// How long it has been measuring (s).
    pub seconds: i64,
    /// Part of the trial that is done (percent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<i64>,
    /// Output tokens per second, lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<i64>,
    /// Time to first token, lately on average (ms).
    #[serde(default, rename = "ttftMs", skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<i64>,
    /// Trial and percentage, such as `2: 62%`.
    pub summary: String,
    /// When this was read; at most every fifteen seconds.
    pub updated_at: DateTime<Utc>,
}

/// What one worker did in the measured phase of a trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerLoad {
    /// Its pod, or its address if the pod is not known.
    pub name: String,
    /// Requests it finished; absent, like the next three, if it could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<i64>,
    /// Requests it finished per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<String>,
    /// Requests in flight, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_in_flight: Option<String>,
    /// Requests in flight, most in any sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_in_flight: Option<i64>,
    /// Time that a request spent in it, on average (s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_per_request: Option<String>,
    /// Tokens it generated per second, where its engine counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<String>,
    /// Time from one token of a request to the next, by its engine (ms).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ms: Option<String>,
    /// Requests that its engine decoded together, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Its decode speed with the 95 % interval (percent of its peers' median, at the same batch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent_of_peers: Option<String>,
    /// The same on average over the trials of the run so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_run: Option<SpeedInRun>,
    /// Its decode speed with the 95 % interval, as a percentage of that of earlier runs on its GPU, and the number of these
    /// runs, such as `98.2 ± 6.1 of 4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent_of_earlier_runs: Option<String>,
    /// Part of its prompts that the prefix cache held (percent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_percent: Option<String>,
    /// Longest span in which it had requests and did not move (s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_seconds: Option<i64>,
    /// Samples that it did not answer in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<i64>,
    /// Requests waiting for its engine, most in any sample, where that is exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_waiting: Option<i64>,
    /// Use of its KV cache (percent), highest in any sample, where that is exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_kv_percent: Option<i64>,
}

/// Decode speed of a worker over the trials of a run: the run names a slow GPU by this.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpeedInRun {
    /// Number of trials.
    pub trials: i64,
    /// Mean speed (percent of its peers' median, at the same batch).
    pub percent_of_peers: String,
    /// Half of the 95 % interval (percentage points).
    pub within: String,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !*value
}
