mod allocation;
mod operator_state;
mod phase;
mod results;
mod run;
mod view;
mod workload;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

pub use allocation::Allocation;
pub use operator_state::{
    Blocked, Comparison, DecodeSpeed, DeploymentState, DeviceStatus, EarlierGpuTime, EarlierRun, EndedBy, Environment,
    ExpectedBy, ExpectedGpus, Gap, GpuCheck, GpuMetrics, Leftovers, Metrics, OperatorState, PassedRun, PhaseSeconds,
    PlanDetails, RelativeSpeed, RunFailure, SignStatus, SpecDigests, TimelineEntry, TrialProgress, TrialState,
    WorkerLoad, WorkerLoss, WorkerPod,
};
pub use phase::Phase;
pub use results::{Finding, GateResult, GateStatus, ResultsRef, Severity, TrialOutcome, Verdict};
pub use run::{RunStatus, Trigger};
pub use view::{EnvironmentStatus, HistoryEntry, MetricsStatus, ProgressStatus, Speed, TrialStatus, WorkerStatus};
pub use workload::{PlacementStatus, WorkloadStatus};

use crate::condition;

/// State and result of the current or last run. Numbers are whole, in the unit of their name. Values of gates are
/// quantities.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PerfValidationStatus {
    /// Spec generation of this status; -1: not read yet.
    pub observed_generation: i64,
    /// Phase of the run.
    pub phase: Option<Phase>,
    /// Verdict of the run, for the spec of `run.generation`. Absent until known; never changes within a run.
    pub verdict: Option<Verdict>,
    /// Reason of the state, a stable word.
    pub reason: Option<String>,
    /// Explanation of the state.
    pub message: Option<String>,
    /// Current or last run.
    pub run: Option<RunStatus>,
    /// Node and GPUs of the run.
    pub placement: Option<PlacementStatus>,
    /// Deployment under test.
    pub workload: Option<WorkloadStatus>,
    /// Environment of the run.
    pub environment: Option<EnvironmentStatus>,
    /// Headline numbers of the deciding trial.
    pub metrics: Option<MetricsStatus>,
    /// Gates, judged on the deciding trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gates: Vec<GateStatus>,
    /// Workers, the slowest of the last valid trial first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workers: Vec<WorkerStatus>,
    /// Last 16 trials of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub trials: Vec<TrialStatus>,
    /// Progress of the open trial; absent between trials.
    pub progress: Option<ProgressStatus>,
    /// Findings in addition to the numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnosis: Vec<Finding>,
    /// ConfigMap with the full results.
    pub results_ref: Option<ResultsRef>,
    /// Earlier runs, newest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// Conditions; `Ready`, `Reconciling` and `Stalled` follow kstatus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Internal state: do not read or write it.
    #[serde(
        rename = "operatorState",
        deserialize_with = "OperatorState::read",
        serialize_with = "OperatorState::write",
        skip_serializing_if = "OperatorState::is_empty"
    )]
    pub state: Box<OperatorState>,
}

impl PerfValidationStatus {
    /// Returns true if an operator wrote this status. Before that the API server returns the default of the CRD.
    pub fn is_of_an_operator(&self) -> bool {
        self.observed_generation >= 0 || !self.conditions.is_empty()
    }

    /// Time from which the run had GPUs, and the time at which it had given them back. GPUs that a user keeps after the end are
    /// no GPU time of the run.
    pub fn held_gpus(&self) -> Option<(DateTime<Utc>, Option<DateTime<Utc>>)> {
        let timeline = &self.state.timeline;
        // Before the last one it may have waited for GPUs again.
        let deploying = timeline.iter().rfind(|entry| entry.phase == Phase::Deploying);
        // A run that judges saved trials again shows the placement of an earlier run.
        let measures = self.placement.is_some() && self.state.judged_run.is_none();
        // Before it has GPUs it may show those that the run before left.
        let is_placed = !matches!(self.phase, Some(Phase::Pending | Phase::Sizing));
        let run = self.run.as_ref().filter(|_| measures && is_placed);
        let since = deploying
            .map(|entry| entry.started_at)
            .or(run.map(|run| run.started_at))?;
        let ends = timeline.iter().filter_map(|entry| entry.completed_at);
        let until = ends.max().filter(|_| condition::is_true(self, condition::CLEANED_UP));
        let over = self.run.as_ref().and_then(|run| run.completed_at);
        Some((since, until.map(|until| over.map_or(until, |over| until.min(over)))))
    }

    /// Time at which `timeouts.cleanup` of the last removal has passed. What a removal takes beyond it, such as days on a
    /// dead node, is no GPU time of the run.
    pub fn removal_ends_by(&self, cleanup: TimeDelta) -> Option<DateTime<Utc>> {
        let mut entries = self.state.timeline.iter();
        let removal = entries.rfind(|entry| entry.phase == Phase::CleaningUp)?;
        removal.started_at.checked_add_signed(cleanup)
    }
}
