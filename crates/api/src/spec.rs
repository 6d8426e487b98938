mod benchmark;
mod gates;
mod model;
mod placement;
mod pods;
mod telemetry;
mod timeouts;
mod trials;
mod workload;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::defaults::number;
use crate::{PerfValidationStatus, rules};

pub use benchmark::{Benchmark, Objective};
pub use gates::{Gate, GateMode, Scaling};
pub use model::{AccessMode, ClaimTemplate, ExistingClaim, Model, ModelCache};
pub use placement::{AllocationMode, PlacementSpec, PodPlacement};
pub use pods::{ImagePullPolicy, PodMetadata, PodSettings, PodTemplate};
pub use telemetry::{GpuTelemetry, Telemetry};
pub use timeouts::Timeouts;
pub use trials::{TrialRule, TrialsSpec};
use workload::WorkloadMembers;
pub use workload::{Dynamo, DynamoFrontend, DynamoWorker, OnMissing, RouterMode, Workload};

/// Model, load and gates. For the effect of a change see docs/verdict.md.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "perfvalidation.dev",
    version = "v1alpha1",
    kind = "PerfValidation",
    plural = "perfvalidations",
    namespaced,
    status = "PerfValidationStatus",
    derive = "PartialEq",
    doc = "A performance validation of one node's GPUs: it deploys Dynamo, measures it with AIPerf, gives a verdict and cleans up.",
    shortname = "perfval",
    category = "perf",
    selectable = ".status.phase",
    selectable = ".status.verdict",
    selectable = ".status.operatorState.settled",
    printcolumn(name = "PHASE", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "VERDICT", type_ = "string", json_path = ".status.verdict"),
    printcolumn(name = "NODE", type_ = "string", json_path = ".status.placement.node"),
    printcolumn(
        name = "TOK/S",
        type_ = "integer",
        json_path = ".status.metrics.outputTokensPerSecond",
        description = "Output tokens per second of the whole deployment, in the deciding trial"
    ),
    printcolumn(
        name = "TTFT-P99",
        type_ = "integer",
        json_path = ".status.metrics.ttftP99Milliseconds",
        description = "Time to first token, 99th percentile, in the deciding trial (ms)"
    ),
    printcolumn(
        name = "PROGRESS",
        type_ = "string",
        json_path = ".status.progress.summary",
        description = "The trial that is running, and how much of it is done"
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "GPUS", type_ = "integer", json_path = ".status.placement.gpus", priority = 1),
    printcolumn(
        name = "TRIALS",
        type_ = "integer",
        json_path = ".status.trials[-1:].number",
        description = "Number of the run's latest trial",
        priority = 1
    ),
    printcolumn(name = "MODEL", type_ = "string", json_path = ".spec.model.name", priority = 1),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.reason", priority = 1),
    printcolumn(name = "MESSAGE", type_ = "string", json_path = ".status.message", priority = 1),
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: write at most 63 characters, because it is the value of a label of a run's objects")
)]
#[x_kube(
    validation = Rule::new("!self.gates.exists(g, g.metric == 'Goodput') || (has(self.benchmark.goodput) && size(self.benchmark.goodput) > 0)")
        .message("a gate on Goodput needs objectives: write benchmark.goodput, such as [{metric: TimeToFirstToken, max: \"500\"}]"),
    validation = Rule::new("duration(self.benchmark.requestTimeout) <= duration(self.timeouts.benchmark)")
        .message("benchmark.requestTimeout outlives the trial: write one of at most timeouts.benchmark"),
    validation = Rule::new("has(self.benchmark.requestsPerConcurrency) || has(self.benchmark.minRequests) || [duration(has(self.benchmark.duration) ? self.benchmark.duration : '60s') + duration(self.benchmark.requestTimeout)].exists(all, all + duration('45s') <= duration(self.timeouts.benchmark) || all + all <= duration(self.timeouts.benchmark))")
        .message("the trial outlives its limit: write timeouts.benchmark of at least benchmark.duration (60s by default) + benchmark.requestTimeout + 45s, and a few minutes more for the start and the warm-up"),
    validation = rules::slowest_worker_needs_two(),
    validation = rules::baseline_gate_is_not_alone(),
    validation = Rule::new("!has(self.workload.dynamo) || !has(self.placement.maxGPUs) || (self.placement.minGPUs + self.workload.dynamo.worker.gpus - 1) / self.workload.dynamo.worker.gpus * self.workload.dynamo.worker.gpus <= self.placement.maxGPUs")
        .message("a run uses whole workers, and no number of them fits: write placement.maxGPUs of at least workload.dynamo.worker.gpus, and of at least the next multiple of it from minGPUs"),
    validation = Rule::new("!has(self.workload.dynamo) || !has(self.workload.dynamo.worker.resources.limits) || !(self.placement.resourceName in self.workload.dynamo.worker.resources.limits)")
        .message("leave the GPU out of workload.dynamo.worker.resources.limits: write workload.dynamo.worker.gpus for the GPUs of one worker, placement.minGPUs and maxGPUs for all"),
    validation = Rule::new("!has(self.workload.dynamo) || !has(self.workload.dynamo.worker.resources.requests) || !(self.placement.resourceName in self.workload.dynamo.worker.resources.requests)")
        .message("leave the GPU out of workload.dynamo.worker.resources.requests: write workload.dynamo.worker.gpus for the GPUs of one worker, placement.minGPUs and maxGPUs for all"),
    validation = Rule::new("!has(self.model.tokenSecretRef) || !has(self.workload.dynamo) || !has(self.workload.dynamo.env) || !self.workload.dynamo.env.exists(e, e.name == 'HF_TOKEN')")
        .message("the token is given twice: write either model.tokenSecretRef or HF_TOKEN in workload.dynamo.env"),
    validation = Rule::new("!has(self.model.revision) || has(self.model.cache)")
        .message("without a cache Dynamo loads the newest revision: write model.cache as well, or leave model.revision out"),
    validation = Rule::new("!has(self.model.revision) || !has(self.workload.dynamo) || !has(self.workload.dynamo.worker.args) || !self.workload.dynamo.worker.args.exists(a, a.matches('^--(revision|tokenizer[-_]revision)(=.*)?$'))")
        .message("the revision is given twice: write either model.revision or --revision in workload.dynamo.worker.args"),
    validation = rules::own_command_sets_the_revision(),
    validation = rules::anywhere_needs_shared_weights("benchmark.placement"),
    validation = rules::anywhere_needs_shared_weights("workload.dynamo.frontend.placement"),
    validation = Rule::new("!has(self.model.cache) || !has(self.workload.dynamo) || !has(self.workload.dynamo.env) || !self.workload.dynamo.env.exists(e, e.name in ['HF_HOME', 'HF_HUB_OFFLINE'])")
        .message("model.cache sets HF_HOME and HF_HUB_OFFLINE: leave them out of workload.dynamo.env, or leave model.cache out"),
)]
#[serde(rename_all = "camelCase")]
pub struct PerfValidationSpec {
    /// `true` starts no run, and ends an active one without a verdict.
    #[serde(default)]
    pub suspend: bool,
    /// Model to serve.
    pub model: Model,
    /// Deployment that serves the model: exactly one member.
    #[schemars(with = "WorkloadMembers")]
    pub workload: Workload,
    /// Settings of every pod of a run.
    #[serde(default)]
    pub pod_template: PodTemplate,
    /// Eligible nodes and number of GPUs.
    #[serde(default)]
    pub placement: PlacementSpec,
    /// Load of one trial.
    #[serde(default)]
    pub benchmark: Benchmark,
    /// Readings of the node during a trial.
    #[serde(default)]
    pub telemetry: Telemetry,
    /// Number of trials and rule for the verdict.
    #[serde(default)]
    pub trials: TrialsSpec,
    /// Requirements on the results; names are unique.
    #[serde(default)]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gates: Vec<Gate>,
    /// Time-outs of a run (Go durations up to 24h; only `sizing` may be 0s).
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Seconds from the end of the run until the object deletes itself (0 to one year). Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Seconds from the end of a run for which the annotation `perfvalidation.dev/no-cleanup` keeps its objects (0 to
    /// one year). Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub kept_seconds_after_finished: Option<i64>,
    /// Number of runs before the last whose results ConfigMap is kept (0–100).
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 0, max = 100))]
    pub results_history_limit: i32,
}

impl PerfValidationSpec {
    /// Returns the Dynamo deployment, the only workload today.
    pub fn dynamo(&self) -> &Dynamo {
        let Workload::Dynamo(dynamo) = &self.workload;
        dynamo
    }

    /// Returns the Dynamo deployment for changes.
    pub fn dynamo_mut(&mut self) -> &mut Dynamo {
        let Workload::Dynamo(dynamo) = &mut self.workload;
        dynamo
    }

    /// GPUs of each worker.
    pub fn gpus_per_worker(&self) -> i64 {
        i64::from(self.dynamo().worker.gpus.max(1))
    }

    /// Workers that have room on this many GPUs.
    pub fn workers(&self, gpus: i64) -> i64 {
        gpus / self.gpus_per_worker()
    }

    /// Fewest workers of a run: those that use `placement.minGPUs`, and at least one.
    pub fn min_workers(&self) -> i64 {
        let (min, each) = (i64::from(self.placement.min_gpus.max(1)), self.gpus_per_worker());
        (min + each - 1) / each
    }

    /// Fewest GPUs of a run, in whole workers.
    pub fn min_gpus(&self) -> i64 {
        self.min_workers() * self.gpus_per_worker()
    }
}
