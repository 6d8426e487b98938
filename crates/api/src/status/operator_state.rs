//! State of the operator itself: nothing else may depend on it.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::workload::{Environment, is_zero};
use crate::{Phase, TrialOutcome, Verdict};

/// State that only the operator needs, of this version: do not read or write it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorState {
    /// The spec that it began with, by what a change of it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digests: Option<SpecDigests>,
    /// How often a lost race for a GPU sent it back to Sizing.
    #[serde(skip_serializing_if = "is_zero")]
    pub resizes: i64,
    /// Whether an earlier deployment of this object may still hold GPUs: it is removed before the run joins the queue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clears_first: bool,
    /// When it last was in the queue behind earlier runs; `timeouts.sizing` counts from then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_in_line: Option<DateTime<Utc>>,
    /// When the operator last looked, written at least every minute while a time limit runs. No limit counts time in which
    /// it did not look: an outage of the operator fails no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_looked_at: Option<DateTime<Utc>>,
    /// Outages of the operator during the current phase: no time limit counts them. Of more than eight the oldest are one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Seconds of outages during earlier phases; `timeouts.total` does not count them either.
    #[serde(skip_serializing_if = "is_zero")]
    pub unattended_seconds: i64,
    /// Signs of trouble in the current phase that may pass by themselves, one for each cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<SignStatus>,
    /// When the API server accepted the deployment in a dry run: from then on the model cache is filled, where the spec
    /// asks for one, and the deployment is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<DateTime<Utc>>,
    /// Uid of the Job that fills the model cache, once that was seen: no other Job of this name counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_job_uid: Option<String>,
    /// What ended the measuring before the trial rule could decide; the trials so far are saved before it is the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<RunFailure>,
    /// When the current plan was first read; a second equal reading confirms it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_at: Option<DateTime<Utc>>,
    /// Part of the plan that nobody else needs.
    #[serde(skip_serializing_if = "PlanDetails::is_empty")]
    pub plan: PlanDetails,
    /// `runtimeVersionOverride` of the deployment's components: `workload.dynamo.runtimeVersion`, where their API has the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// Since when Dynamo's operator reports the deployment as failed; it often heals itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<DateTime<Utc>>,
    /// There while it is not certain that each worker has a GPU of its own: every look finds out who has which GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_check: Option<GpuCheck>,
    /// The workers as they were when the current trial began, or the last one ended; a change voids the trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worker_pods: Vec<WorkerPod>,
    /// Obstacle that keeps the operator from acting on the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// Time from which every component of the deployment has been ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_since: Option<DateTime<Utc>>,
    /// Answer of the frontend instead of the first completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<RunFailure>,
    /// Every trial of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialState>,
    /// Numbers of the deciding trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Smallest loss that 95 of 100 such runs would have failed (percent), as in `status.metrics`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable_loss_percent: Option<String>,
    /// Work of each worker in the last trial that was valid, the slowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerLoad>,
    /// Comparison with an earlier run that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Earlier runs, newest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<EarlierRun>,
    /// The last earlier run that passed without a cause, and its environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_passed: Option<PassedRun>,
}

/// Obstacle that keeps the operator from acting: the API server refuses, or the object reaches a bug of the operator.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// Stable word.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// Time from which it has blocked the object.
    pub since: DateTime<Utc>,
    /// Whether the operator does not try again by itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub for_good: bool,
}

/// Details of a plan beside the placement.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanDetails {
    /// Only where both claims and a device plugin give out the node's GPUs: the pods that had some from the device plugin, those of
    /// other namespaces by a number instead of their name.
    /// While the run measures, no other pod may get one the other way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Vec<String>>,
    /// CEL expressions that the workers' claims add to those of their class: what the scheduler must not give them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<String>,
    /// Tolerations the pods carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<k8s_openapi::api::core::v1::Toleration>,
}

impl PlanDetails {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Any object: the API server checks nothing in it.
impl JsonSchema for OperatorState {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OperatorState".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl OperatorState {
    /// Reads a state that a person may have damaged: one that cannot be read is empty.
    pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Self>, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(serde_json::from_value(value).unwrap_or_default())
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What ended the measuring early.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunFailure {
    /// Stable word.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

/// Digests of a spec (12 hex digits each), by what a change of the part asks for.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SpecDigests {
    /// What a run measures: a change asks for new trials.
    pub measured: String,
    /// What judges the trials: a change judges the saved ones again.
    pub judged: String,
    /// How long a run waits: a change counts at once, and asks for a new run only where nothing could be measured.
    pub limits: String,
}

/// Time in which no operator looked at the run.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// When it began, at the earliest.
    pub from: DateTime<Utc>,
    /// When the operator looked again.
    pub until: DateTime<Utc>,
}

/// A sign of trouble that may pass by itself. It ends a run only if the operator keeps seeing it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SignStatus {
    /// Name of the cause, as in `status.diagnosis`.
    pub cause: String,
    /// Pod, node, Job or controller that shows it.
    pub subject: String,
    /// Time from which the operator has seen it in every look, by the clock of the API server.
    pub since: DateTime<Utc>,
    /// Time of the newest event at `since`, by the clock of the controller that wrote it; only where events show the sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_at: Option<DateTime<Utc>>,
    /// Whether that event came after the first look. Events from before may belong to a trouble that is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// What is known while it is found out whether each worker has a GPU of its own.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GpuCheck {
    /// What the last look found wrong; a second look that finds the same ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
}

/// One worker.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct WorkerPod {
    /// Pod name.
    pub pod: String,
    /// Pod uid.
    pub uid: String,
    /// Restarts of its containers.
    pub restarts: i64,
    /// How its container ended before it was started again, such as `exit code 137 (OOMKilled)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<String>,
    /// Whether nobody saw how it ended, as after a reboot of the node; then there is no `lastExit`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_unseen: bool,
    /// Who ended its container before it was started again, where it did not crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// IP address; its metrics are sampled there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// GPU that its claim holds, as `pool/device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// The end of a container that is no crash of its process.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndedBy {
    /// The kubelet ended it, because its liveness or startup probe failed.
    Probe,
    /// It ended as one does that is asked to: exit code 0, or 143 after SIGTERM.
    Request,
    /// It was killed (exit code 137, not for its memory use), and the events that show by whom could not be read.
    Signal,
}

/// One trial.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TrialState {
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

/// How a run lost a worker, the less serious first.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerLoss {
    /// Its pod was removed or replaced.
    Removed,
    /// It was ended while its node had no CPU left for it, and not by a crash of its own.
    Starved,
    /// Its container ended by itself.
    Crashed,
}

/// Headline numbers of one trial (decimal strings; tok/s, ms, percent).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
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

/// What one worker did in the measured phase of a trial.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
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
    pub percent_of_peers: Option<RelativeSpeed>,
    /// The same on average over the trials of the run so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_run: Option<RelativeSpeed>,
    /// Its decode speed against that of earlier runs on its GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent_of_earlier_runs: Option<RelativeSpeed>,
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

/// Decode speed of a worker against others or itself.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RelativeSpeed {
    /// Speed (percent of the other).
    pub percent: String,
    /// Half of the 95 % interval (percentage points).
    pub within: String,
    /// Number of trials or runs of which it is the mean.
    pub of: i64,
}

impl fmt::Display for RelativeSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ± {}", self.percent, self.within)
    }
}

/// An earlier run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRun {
    /// Its number.
    pub run: i64,
    /// What it found; absent if it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why.
    pub reason: String,
    /// Node under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Output tokens per second, mean of the trials that measured; a soak does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<String>,
    /// Time to first token, 99th percentile (ms), mean of the same trials.
    #[serde(default, rename = "ttftP99Ms", skip_serializing_if = "Option::is_none")]
    pub ttft_p99_ms: Option<String>,
    /// Number of these trials; absent in entries of earlier versions, which have the last trial's numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<i64>,
    /// Digest of its environment: runs of equal digests may be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Causes that it named; a run with causes is no reference for another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// Decode speeds of its workers; empty where it named a cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<DecodeSpeed>,
    /// UUIDs of the GPUs whose workers decoded slower than their peers, or than in earlier runs.
    #[serde(default, rename = "slowGPUs", skip_serializing_if = "Vec::is_empty")]
    pub slow_gpus: Vec<String>,
    /// How long each of its phases took (s), in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSeconds>,
    /// When it was over.
    pub completed_at: DateTime<Utc>,
}

/// Decode speed of one worker of a run. Stored as a list: ten runs of eight workers are many.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(from = "(String, String, Option<String>)", into = "(String, String, Option<String>)")]
pub struct DecodeSpeed {
    /// Time from one token of a request to the next, by its engine (ms).
    pub token_ms: String,
    /// Requests that its engine decoded together, on average.
    pub batch: String,
    /// UUID of its GPU, where the driver publishes one.
    pub gpu: Option<String>,
}

impl From<(String, String, Option<String>)> for DecodeSpeed {
    fn from((token_ms, batch, gpu): (String, String, Option<String>)) -> Self {
        Self { token_ms, batch, gpu }
    }
}

impl From<DecodeSpeed> for (String, String, Option<String>) {
    fn from(speed: DecodeSpeed) -> Self {
        (speed.token_ms, speed.batch, speed.gpu)
    }
}

/// Time that a run spent in a phase. Stored as a list, as the decode speeds are.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(from = "(Phase, i64)", into = "(Phase, i64)")]
pub struct PhaseSeconds {
    /// The phase.
    pub phase: Phase,
    /// Seconds in it, all its times together.
    pub seconds: i64,
}

impl From<(Phase, i64)> for PhaseSeconds {
    fn from((phase, seconds): (Phase, i64)) -> Self {
        Self { phase, seconds }
    }
}

impl From<PhaseSeconds> for (Phase, i64) {
    fn from(PhaseSeconds { phase, seconds }: PhaseSeconds) -> Self {
        (phase, seconds)
    }
}

/// The last run that passed without a cause.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PassedRun {
    /// Its number.
    pub run: i64,
    /// Output tokens per second, mean of the trials that measured; a soak does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<String>,
    /// Time to first token, 99th percentile (ms), mean of the same trials.
    #[serde(default, rename = "ttftP99Ms", skip_serializing_if = "Option::is_none")]
    pub ttft_p99_ms: Option<String>,
    /// Number of these trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<i64>,
    /// What it ran on.
    pub environment: Environment,
}

/// How the run compares with an earlier one that passed: by how much, or why not.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Number of the earlier run: the last one that passed without a cause in the same environment; without one, the last that
    /// passed without a cause.
    pub run: i64,
    /// Change of the mean output tokens per second (percent, such as `-4.2`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_percent: Option<String>,
    /// Half of the interval in which two equal runs differ in 95 of 100 cases (percentage points).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_within: Option<String>,
    /// Change of the time to first token, 99th percentile (percent).
    #[serde(default, rename = "ttftP99Percent", skip_serializing_if = "Option::is_none")]
    pub ttft_p99_percent: Option<String>,
    /// The same interval of it (percentage points).
    #[serde(default, rename = "ttftP99Within", skip_serializing_if = "Option::is_none")]
    pub ttft_p99_within: Option<String>,
    /// What keeps the two from being compared: the fields of the environment that differ or are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !*value
}
