//! Internal state of the operator. Other software must not depend on it.

mod deployment;
mod earlier;
mod environment;
mod life;
mod packed;
mod plan;
mod trial;
mod worker;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_with::skip_serializing_none;

pub use self::deployment::{DeploymentState, GpuMetrics};
pub use self::earlier::{Comparison, DecodeSpeed, EarlierRun, PassedRun, PhaseSeconds};
pub use self::environment::Environment;
pub use self::life::{EarlierGpuTime, Leftovers, TimelineEntry};
pub use self::plan::{DeviceStatus, ExpectedBy, ExpectedGpus, PlanDetails};
pub use self::trial::{Metrics, TrialProgress, TrialState};
pub use self::worker::{EndedBy, RelativeSpeed, WorkerLoad, WorkerLoss, WorkerPod};
use super::workload::is_zero;

/// Internal state of this operator version. Do not read or write it.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorState {
    /// Number of the run whose saved trials this run judges again; absent in a run that measures.
    pub judged_run: Option<i64>,
    /// Start and end of each phase of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// True if the run is over and has given its node back. Lists of the runs that hold or want a node leave the object out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Objects that remain in the cluster after the run is over, or after its time for removal has passed.
    pub leftovers: Option<Leftovers>,
    /// Time at which the place in the queue was last written. The operator writes it at most once a minute. Far from the
    /// head it writes only changes of a tenth or more, so that a thousand waiting runs do not overload the API server.
    pub place_written_at: Option<DateTime<Utc>>,
    /// Digests of the spec with which the run began, grouped by the effect of a change.
    pub digests: Option<SpecDigests>,
    /// Number of times that the run returned to Sizing because another pod took a GPU first.
    #[serde(skip_serializing_if = "is_zero")]
    pub resizes: i64,
    /// True if an earlier deployment of this object may still hold GPUs. The operator removes it before the run joins
    /// the queue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clears_first: bool,
    /// True if the run stops because the scheduler removed one of its workers for a pod of higher priority.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gives_way: bool,
    /// Start of the first run of those that gave way one after the other, for `timeouts.total`.
    pub first_started_at: Option<DateTime<Utc>>,
    /// GPU time of the runs before this one.
    pub earlier_gpu_time: Option<EarlierGpuTime>,
    /// Time at which the run was last in the queue behind earlier runs, or finished the removal before Sizing. `timeouts.sizing`
    /// counts from this time.
    pub last_in_line: Option<DateTime<Utc>>,
    /// Time at which the operator last looked at the run, written every few minutes while a time-out runs.
    /// Time-outs do not count time in which the operator did not look, so an outage of the operator fails no run.
    pub last_looked_at: Option<DateTime<Utc>>,
    /// Outages of the operator during the current phase. Time-outs do not count them. At most eight gaps are kept;
    /// older ones are merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Outages during earlier phases (s). `timeouts.total` does not count them either.
    #[serde(skip_serializing_if = "is_zero")]
    pub unattended_seconds: i64,
    /// Signs of trouble in the current phase that may pass by themselves, one for each cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<SignStatus>,
    /// Time at which the API server accepted the deployment in a dry run. After it the operator fills the model cache,
    /// if the spec requests one, and creates the deployment.
    pub accepted_at: Option<DateTime<Utc>>,
    /// Uid of the Job that fills the model cache, once the operator has seen it. Other Jobs of this name do not count.
    pub cache_job_uid: Option<String>,
    /// Failure that ended the measurement before the trial rule could decide. The operator saves the trials before it
    /// sets the verdict.
    pub failure: Option<RunFailure>,
    /// Time at which the operator first read the current plan. A second equal reading confirms the plan.
    pub chosen_at: Option<DateTime<Utc>>,
    /// Internal part of the plan.
    #[serde(skip_serializing_if = "PlanDetails::is_empty")]
    pub plan: PlanDetails,
    /// Details of the deployment under test.
    pub deployment: Option<DeploymentState>,
    /// Environment of the run.
    pub environment: Option<Environment>,
    /// Progress of the open trial.
    pub progress: Option<TrialProgress>,
    /// `runtimeVersionOverride` of the deployment's components, from `workload.dynamo.runtimeVersion`. Absent
    /// before Dynamo 1.4, whose API lacks the field.
    pub runtime_version: Option<String>,
    /// Time since which Dynamo's operator has reported the deployment as failed. The deployment often heals itself.
    pub failed_since: Option<DateTime<Utc>>,
    /// Check that each worker has a GPU of its own; present until this is certain. The operator repeats it on every
    /// look.
    pub gpu_check: Option<GpuCheck>,
    /// Workers at the start of the current trial or at the end of the last one. A change makes the trial invalid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worker_pods: Vec<WorkerPod>,
    /// Obstacle that keeps the operator from acting on the object.
    pub blocked: Option<Blocked>,
    /// Time since which every component of the deployment has been ready.
    pub ready_since: Option<DateTime<Utc>>,
    /// Answer of the frontend instead of the first completion.
    pub unanswered: Option<RunFailure>,
    /// Trials of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialState>,
    /// Threshold of each gate as written in the spec with which `status.gates` were judged.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub thresholds: BTreeMap<String, String>,
    /// Numbers of the deciding trial.
    pub metrics: Option<Metrics>,
    /// Smallest loss that would have failed 95 of 100 such runs (percent), as in `status.metrics`.
    pub detectable_loss_percent: Option<String>,
    /// Work of each worker in the last valid trial, the slowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerLoad>,
    /// Comparison with an earlier run that passed.
    pub comparison: Option<Comparison>,
    /// Earlier runs, newest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<EarlierRun>,
    /// Last earlier run that passed without a cause, and its environment.
    pub last_passed: Option<PassedRun>,
}

/// Obstacle that keeps the operator from acting: a refusal by the API server, or a bug of the operator that the object
/// triggers.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// Stable word.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// Time since which it has blocked the object.
    pub since: DateTime<Utc>,
    /// True if the operator does not retry by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_good: bool,
}

/// Any object. The API server validates only what lists select by.
impl JsonSchema for OperatorState {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OperatorState".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"settled": {"type": "boolean", "description": "Selects lists of the operator."}},
        })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl OperatorState {
    /// Reads a state that a person may have damaged. An unreadable state counts as empty.
    pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Self>, D::Error> {
        let Value::Object(mut fields) = Value::deserialize(deserializer)? else {
            return Ok(Box::default());
        };
        let state = packed::unpack(&mut fields).and_then(|()| serde_json::from_value(Value::Object(fields)));
        Ok(state.unwrap_or_default())
    }

    /// Writes a state with its large tables as one text.
    pub(super) fn write<S: Serializer>(state: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(state).map_err(S::Error::custom)?;
        value
            .as_object_mut()
            .map_or(Ok(()), packed::pack)
            .map_err(S::Error::custom)?;
        value.serialize(serializer)
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Failure that ended the measurement early.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunFailure {
    /// Reason by the operator's own, finer name.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

/// Digests of a spec (12 hex digits each), grouped by the effect of a change.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SpecDigests {
    /// Digest of the measured settings. A change requires new trials.
    pub measured: String,
    /// Digest of the settings that judge the trials. After a change the operator judges the saved trials again.
    pub judged: String,
    /// Digest of `timeouts` and `workload.dynamo.onMissing`. A change takes effect at once. It starts a new run
    /// only if the last run could not measure.
    pub limits: String,
}

/// Time in which the operator did not look at the run.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// Earliest possible start of the gap.
    pub from: DateTime<Utc>,
    /// Time at which the operator looked again.
    pub until: DateTime<Utc>,
}

/// A sign of trouble that may pass by itself. It ends a run only if the operator keeps seeing it.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SignStatus {
    /// Name of the cause, as in `status.diagnosis`.
    pub cause: String,
    /// Pod, node, Job or controller that shows the sign.
    pub subject: String,
    /// Time since which the operator has seen the sign in every look, by the clock of the API server.
    pub since: DateTime<Utc>,
    /// Time of the newest event at `since`, by the clock of the controller that wrote it. Present only if events show
    /// the sign.
    pub event_at: Option<DateTime<Utc>>,
    /// True if that event came after the first look. Earlier events may belong to a trouble that is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// State of the check that each worker has a GPU of its own.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GpuCheck {
    /// Fault that the last look found. The run ends if a second look finds the same fault.
    pub wrong: Option<String>,
}
