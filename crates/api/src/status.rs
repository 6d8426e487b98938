use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the operator answers. Everything a restarted operator needs to go on is here.
///
/// Numbers are decimal strings: the Kubernetes API knows no exact fractions.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PerfValidationStatus {
    /// Generation of the spec that this status speaks of; -1 until the operator has looked.
    pub observed_generation: i64,
    /// Where the run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What the run found; absent until known, never changes within a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why, as a stable word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The current or last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunStatus>,
    /// The node and GPUs of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementStatus>,
    /// The deployment under test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadStatus>,
    /// What must match before two runs may be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Headline numbers of the deciding trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Each gate, judged on the deciding trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gates: Vec<GateStatus>,
    /// Every trial of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub trials: Vec<TrialStatus>,
    /// What was found beside the numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnosis: Vec<Finding>,
    /// When each phase of the run began and ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// ConfigMap with the full AIPerf export and worker samples of each trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results_ref: Option<ResultsRef>,
    /// Earlier runs, newest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// Conditions; `Ready`, `Reconciling` and `Stalled` follow kstatus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Where a run is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Prerequisites are checked.
    Pending,
    /// Free GPUs are counted and chosen.
    Sizing,
    /// The deployment is being created.
    Deploying,
    /// The deployment is starting.
    WaitingForReady,
    /// AIPerf runs, one Job per trial.
    Benchmarking,
    /// The verdict is saved.
    Evaluating,
    /// Everything is being removed.
    CleaningUp,
    /// The run is over.
    Completed,
    /// `spec.suspend` holds the next run back.
    Suspended,
}

impl Phase {
    /// Every phase, in the order of a run.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Sizing,
        Self::Deploying,
        Self::WaitingForReady,
        Self::Benchmarking,
        Self::Evaluating,
        Self::CleaningUp,
        Self::Completed,
        Self::Suspended,
    ];

    /// The word in status, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Sizing => "Sizing",
            Self::Deploying => "Deploying",
            Self::WaitingForReady => "WaitingForReady",
            Self::Benchmarking => "Benchmarking",
            Self::Evaluating => "Evaluating",
            Self::CleaningUp => "CleaningUp",
            Self::Completed => "Completed",
            Self::Suspended => "Suspended",
        }
    }
}

/// What a run found.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Measured, and every enforced gate was met.
    Passed,
    /// Measured, and below a gate.
    Failed,
    /// Measured, but not to be trusted.
    Inconclusive,
    /// Nothing to judge.
    Skipped,
    /// Could not be measured.
    Error,
}

impl Verdict {
    /// The word in status, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::Inconclusive => "Inconclusive",
            Self::Skipped => "Skipped",
            Self::Error => "Error",
        }
    }
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
    /// Generation of the spec it judges.
    pub generation: i64,
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
}

/// The node and GPUs of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// Node under test.
    pub node: String,
    /// How GPUs are asked for: `DRA` or `DevicePlugin`.
    pub allocation: String,
    /// GPUs in use, one worker each.
    pub gpus: i64,
    /// GPUs of the node, free or not.
    #[serde(rename = "nodeGPUs")]
    pub node_gpus: i64,
    /// Product name of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Driver version of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Devices that were free at sizing; replaced by those in use once the workers hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceStatus>,
    /// When this plan was first read; a second equal reading confirms it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_at: Option<DateTime<Utc>>,
    /// Tolerations the pods carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<k8s_openapi::api::core::v1::Toleration>,
}

/// One GPU.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct DeviceStatus {
    /// Pool of the driver.
    pub pool: String,
    /// Name in the ResourceSlice.
    pub name: String,
    /// UUID, where the driver publishes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

/// The deployment under test.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Name of the DynamoGraphDeployment.
    pub name: String,
    /// Its apiVersion.
    pub api_version: String,
    /// Version of the installed Dynamo operator, where it can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamo_version: Option<String>,
    /// Router mode in force.
    pub router_mode: String,
    /// Workers ready.
    pub workers_ready: i64,
    /// Where requests go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Since when Dynamo's operator reports the deployment as failed; it often heals itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<DateTime<Utc>>,
    /// The workers as they were when the current trial began; a change voids the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerStatus>,
}

/// One worker.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// Pod name.
    pub pod: String,
    /// Pod uid.
    pub uid: String,
    /// Restarts of its containers.
    pub restarts: i64,
    /// GPU that its claim holds, as `pool/device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// What must match before two runs may be compared.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    /// Model id.
    pub model: String,
    /// Workload image.
    pub image: String,
    /// Digest of the workload image, as the node resolved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    /// AIPerf version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aiperf: Option<String>,
    /// Version of the installed Dynamo operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamo: Option<String>,
    /// Kubernetes version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    /// GPU driver version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_driver: Option<String>,
}

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

/// ConfigMap with the full results.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResultsRef {
    /// Its name.
    pub name: String,
    /// SHA-256 over its content (hex).
    pub sha256: String,
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
    /// Output tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<String>,
    /// Time to first token, 99th percentile (ms).
    #[serde(default, rename = "ttftP99Ms", skip_serializing_if = "Option::is_none")]
    pub ttft_p99_ms: Option<String>,
    /// When it was over.
    pub completed_at: DateTime<Utc>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &i64) -> bool {
    *n == 0
}
