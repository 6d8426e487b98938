use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workload::{Environment, is_zero};
use crate::{Phase, Verdict};

/// What a finished run still has in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// Everything: the user asked to keep it.
    Kept,
    /// Something that could not be removed within `timeouts.cleanup`; the operator keeps trying.
    Overdue,
}

/// What ended the measuring early.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunFailure {
    /// Stable word.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

/// Why a run began.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// The object is new.
    #[default]
    Created,
    /// The spec changed.
    SpecChanged,
    /// The rerun annotation carries a new token.
    Rerun,
    /// `spec.suspend` was taken back.
    Resumed,
    /// What judges the trials changed: the saved ones of an earlier run are judged again, and nothing is measured.
    GatesChanged,
}

/// Digests of a spec (12 hex digits each), by what a change of the part asks for.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SpecDigests {
    /// What a run measures: a change asks for new trials.
    pub measured: String,
    /// What judges the trials: a change judges the saved ones again.
    pub judged: String,
    /// How long a run waits: a change counts at once, and asks for a new run only where nothing could be measured.
    pub limits: String,
}

/// The current or last run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// Counts from 1.
    pub number: i64,
    /// 8 hex digits, from the object's uid and the number; part of every child's name.
    pub id: String,
    /// Why it began.
    pub trigger: Trigger,
    /// Generation of the spec that it is true of: the newest that asks for nothing that it did not measure and judge.
    pub generation: i64,
    /// The spec that it began with, by what a change of it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digests: Option<SpecDigests>,
    /// Number of the run whose saved trials it judges again; absent in a run that measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_run: Option<i64>,
    /// The rerun token in force when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_token: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    /// How often a lost race for a GPU sent it back to Sizing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resizes: i64,
    /// Whether an earlier deployment of this object may still hold GPUs: it is removed before the run joins the queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clears_first: bool,
    /// Its place in the queue, while it waits for earlier runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// When it last was in the queue behind earlier runs; `timeouts.sizing` counts from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_in_line: Option<DateTime<Utc>>,
    /// When the operator last looked, written at least every minute while a time limit runs. No limit counts time in which
    /// it did not look: an outage of the operator fails no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_looked_at: Option<DateTime<Utc>>,
    /// Outages of the operator during the current phase: no time limit counts them. Of more than eight the oldest are one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Seconds of outages during earlier phases; `timeouts.total` does not count them either.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unattended_seconds: i64,
    /// Signs of trouble in the current phase that may pass by themselves, one for each cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<SignStatus>,
    /// When the API server accepted the deployment in a dry run: from then on the model cache is filled, where the spec
    /// asks for one, and the deployment is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<DateTime<Utc>>,
    /// Uid of the Job that fills the model cache, once that was seen: no other Job of this name counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_job_uid: Option<String>,
    /// What ended the measuring before the trial rule could decide; the trials so far are saved before it is the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RunFailure>,
    /// What it still has in the cluster although it is over, or its time for removal has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<Leftovers>,
}

/// The place of a run in the queue. It is written at most once a minute, and far from the head only when it changed by a
/// tenth: a thousand waiting runs must not keep the API server busy.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Earlier runs that hold a node or wait for one.
    pub ahead: i64,
    /// When the GPUs may be this run's (an estimate: how long recent runs held their node, times the runs ahead); absent
    /// where no run has finished yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_at: Option<DateTime<Utc>>,
    /// When this was written.
    pub updated_at: DateTime<Utc>,
}

/// Time in which no operator looked at the run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// When it began, at the earliest.
    pub from: DateTime<Utc>,
    /// When the operator looked again.
    pub until: DateTime<Utc>,
}

/// A sign of trouble that may pass by itself. It ends a run only if the operator keeps seeing it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
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

/// When a phase began and ended.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// The phase.
    pub phase: Phase,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended; absent for the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}

/// An earlier run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
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
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["phase"]))]
    pub phases: Vec<PhaseSeconds>,
    /// When it was over.
    pub completed_at: DateTime<Utc>,
}

/// Decode speed of one worker of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DecodeSpeed {
    /// Time from one token of a request to the next, by its engine (ms).
    pub token_ms: String,
    /// Requests that its engine decoded together, on average.
    pub batch: String,
    /// UUID of its GPU, where the driver publishes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
}

/// How long a run was in a phase.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PhaseSeconds {
    /// The phase.
    pub phase: Phase,
    /// Seconds in it, all its times together.
    pub seconds: i64,
}

/// The last run that passed without a cause.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
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
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
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
