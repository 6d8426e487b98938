mod allocation;
mod phase;
mod results;
mod run;
mod verdict;
mod workload;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use allocation::Allocation;
pub use phase::Phase;
pub use results::{
    Finding, GateResult, GateStatus, Metrics, ResultsRef, Severity, SpeedInRun, TrialOutcome, TrialProgress,
    TrialStatus, WorkerLoad, WorkerLoss,
};
pub use run::{
    Comparison, DecodeSpeed, Gap, HistoryEntry, Leftovers, PassedRun, PhaseSeconds, QueueStatus, RunFailure, RunStatus,
    SignStatus, SpecDigests, TimelineEntry, Trigger,
};
pub use verdict::Verdict;
pub use workload::{
    DeviceStatus, EndedBy, Environment, ExpectedBy, ExpectedGpus, GpuCheck, GpuMetrics, PlacementStatus, WorkerStatus,
    WorkloadStatus,
};

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
    /// How the run compares with an earlier one that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Headline numbers of the deciding trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Each gate, judged on the deciding trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gates: Vec<GateStatus>,
    /// What each worker did in the last trial that was valid, the slowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workers: Vec<WorkerLoad>,
    /// Every trial of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub trials: Vec<TrialStatus>,
    /// How far the open trial is, as its load generator last said; absent between trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<TrialProgress>,
    /// Findings in addition to the numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnosis: Vec<Finding>,
    /// Smallest change against what this run measured (percent) that at least 95 of 100 such runs would have failed: what a
    /// pass rules out. Lower for a throughput, higher for a latency. Only of a run that passed, by two trials or more and
    /// an enforced gate on an average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable_loss_percent: Option<String>,
    /// When each phase of the run began and ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// ConfigMap with the full AIPerf export and worker samples of each trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results_ref: Option<ResultsRef>,
    /// Earlier runs, newest first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// The last earlier run that passed without a cause, and what it ran on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_passed: Option<PassedRun>,
    /// Conditions; `Ready`, `Reconciling` and `Stalled` follow kstatus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Fields that only a newer version knows: kept until the next run, so that a downgrade loses nothing.
    #[serde(flatten)]
    #[schemars(skip)]
    pub newer: BTreeMap<String, serde_json::Value>,
}

impl PerfValidationStatus {
    /// Whether an operator wrote it. Until one does the API server answers with the CRD's default.
    pub fn is_of_an_operator(&self) -> bool {
        self.observed_generation >= 0 || !self.conditions.is_empty()
    }
}
