mod allocation;
mod operator_state;
mod phase;
mod results;
mod run;
mod verdict;
mod view;
mod workload;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use allocation::Allocation;
pub use operator_state::{
    Blocked, Comparison, DecodeSpeed, EarlierRun, EndedBy, Gap, GpuCheck, Metrics, OperatorState, PassedRun,
    PhaseSeconds, PlanDetails, RelativeSpeed, RunFailure, SignStatus, SpecDigests, TrialState, WorkerLoad, WorkerLoss,
    WorkerPod,
};
pub use phase::Phase;
pub use results::{Finding, GateResult, GateStatus, ResultsRef, Severity, TrialOutcome, TrialProgress};
pub use run::{Leftovers, QueueStatus, RunStatus, TimelineEntry, Trigger};
pub use verdict::Verdict;
pub use view::{ComparisonStatus, HistoryEntry, MetricsStatus, Speed, TrialStatus, WorkerStatus};
pub use workload::{DeviceStatus, Environment, ExpectedBy, ExpectedGpus, GpuMetrics, PlacementStatus, WorkloadStatus};

/// State and result of the current or last run. Everything that a restarted operator needs is here.
///
/// Numbers are whole numbers in the unit of their name; thresholds and values of gates are quantities, as in the spec.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PerfValidationStatus {
    /// Generation of the spec that this status speaks of; -1 until the operator has looked.
    pub observed_generation: i64,
    /// Where the run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What the run found, for the spec of `run.generation`; absent until known, never changes within a run.
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
    /// Comparison with an earlier run that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonStatus>,
    /// Headline numbers of the deciding trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsStatus>,
    /// Each gate, judged on the deciding trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gates: Vec<GateStatus>,
    /// Workers, the slowest of the last valid trial first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workers: Vec<WorkerStatus>,
    /// Trials of the run; of more than 16 the last ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub trials: Vec<TrialStatus>,
    /// How far the open trial is, as its load generator last said; absent between trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<TrialProgress>,
    /// Findings in addition to the numbers.
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
    /// State of the operator itself, of its version: nothing else may depend on it.
    #[serde(
        rename = "operatorState",
        deserialize_with = "OperatorState::read",
        skip_serializing_if = "OperatorState::is_empty"
    )]
    pub state: Box<OperatorState>,
}

impl PerfValidationStatus {
    /// Whether an operator wrote it. Until one does the API server answers with the CRD's default.
    pub fn is_of_an_operator(&self) -> bool {
        self.observed_generation >= 0 || !self.conditions.is_empty()
    }
}
