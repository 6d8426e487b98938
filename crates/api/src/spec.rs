use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference, ResourceRequirements, SecretKeySelector, Toleration};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Metric, PerfValidationStatus, Statistic};

/// A performance validation of one node's GPUs: what to serve, how to load it, and what is good enough.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "perfvalidation.dev",
    version = "v1alpha1",
    kind = "PerfValidation",
    plural = "perfvalidations",
    namespaced,
    status = "PerfValidationStatus",
    derive = "PartialEq",
    shortname = "perfval",
    category = "perf"
)]
#[serde(rename_all = "camelCase")]
pub struct PerfValidationSpec {
    /// true: never starts; set while running: stops, frees the GPUs, and the verdict stays unset.
    #[serde(default)]
    pub suspend: bool,
    /// The model to serve.
    pub model: Model,
    /// What serves the model: the DynamoGraphDeployment's images, command and router.
    pub workload: Workload,
    /// Where the model is served, and on how many GPUs.
    #[serde(default)]
    pub placement: PlacementSpec,
    /// The load of one trial.
    #[serde(default)]
    pub benchmark: Benchmark,
    /// How many trials make a verdict.
    #[serde(default)]
    pub trials: TrialsSpec,
    /// What is good enough. None: nothing to judge, the run is Skipped and no GPU is touched.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// Requests that may fail in a trial before it counts as a miss (percent).
    #[serde(default = "default::max_error_percent")]
    pub max_error_percent: i32,
    /// Outcome when the DynamoGraphDeployment API is still not served after `timeouts.prerequisites`.
    #[serde(default)]
    pub on_missing_dynamo: OnMissingDynamo,
    /// Deadline of every wait of a run (Go durations).
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Seconds after the end of the run at which the object deletes itself; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// The model and its weights.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Model id as the engine takes it, for example `Qwen/Qwen3-8B`.
    pub name: String,
    /// Secret key with a Hugging Face token; reaches pods by reference, the operator never reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_secret_ref: Option<SecretKeySelector>,
    /// Volume that holds the weights: exactly one of `claimName` and `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<ModelCache>,
}

/// A volume with the weights, as a Hugging Face cache.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ModelCache {
    /// Existing PersistentVolumeClaim in the object's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_name: Option<String>,
    /// Size of a claim that the operator creates, fills once and keeps between runs (quantity).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// StorageClass of the created claim; absent: the cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// What the DynamoGraphDeployment runs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Image of frontend and workers; they always share one Dynamo version.
    pub image: String,
    /// Image of the frontend, when it differs; must carry the same version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub frontend_image: String,
    /// Pull secrets of both components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// When the kubelet pulls the images.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,
    /// How the frontend picks a worker for a request.
    #[serde(default)]
    pub router_mode: RouterMode,
    /// Worker command; empty: `python3 -m dynamo.vllm --model <model>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Appended to the worker command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Appended to the frontend's own arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frontend_args: Vec<String>,
    /// Environment of both components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Resources of the worker container, beside the GPU.
    #[serde(default)]
    pub resources: ResourceRequirements,
}

/// When an image is pulled.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Kubernetes' own values
pub enum ImagePullPolicy {
    Always,
    #[default]
    IfNotPresent,
    Never,
}

impl ImagePullPolicy {
    /// The value in a pod.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// Routing mode of Dynamo's frontend. `direct` is left out: it needs a worker id in every request.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouterMode {
    /// The worker with the fewest requests in flight (Dynamo 1.1 and later).
    #[default]
    LeastLoaded,
    /// One after the other.
    RoundRobin,
    /// Any.
    Random,
    /// The less loaded of two random ones (Dynamo 1.1 and later).
    PowerOfTwo,
    /// The one with the longest cached prefix, weighed with load.
    #[serde(rename = "KV")]
    Kv,
    /// Weighted by the device's capability (Dynamo 1.1 and later).
    DeviceAwareWeighted,
}

impl RouterMode {
    /// The value of `--router-mode` and `DYN_ROUTER_MODE`.
    pub fn flag(self) -> &'static str {
        match self {
            Self::LeastLoaded => "least-loaded",
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
            Self::PowerOfTwo => "power-of-two",
            Self::Kv => "kv",
            Self::DeviceAwareWeighted => "device-aware-weighted",
        }
    }
}

/// Where the model is served.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Labels a node must carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of the pods; none: the chosen node's own taints, except `node.kubernetes.io/*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How GPUs are asked for.
    #[serde(default)]
    pub allocation: AllocationMode,
    /// DeviceClass of the claims (Dynamic Resource Allocation).
    #[serde(default = "default::device_class_name")]
    pub device_class_name: String,
    /// Extended resource of the device plugin.
    #[serde(default = "default::resource_name")]
    pub resource_name: String,
    /// Where the frontend runs; a second node has to pull its image first.
    #[serde(default = "default::on_workload_node")]
    pub frontend: PodPlacement,
    /// Fewest GPUs that make a run worth while.
    #[serde(default = "default::min_gpus", rename = "minGPUs")]
    pub min_gpus: i32,
    /// Most GPUs to use; absent: all free ones of the node.
    #[serde(default, rename = "maxGPUs", skip_serializing_if = "Option::is_none")]
    pub max_gpus: Option<i32>,
}

/// How GPUs are asked for.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllocationMode {
    /// DRA where the node has usable DRA devices, the device plugin where it has none.
    #[default]
    Auto,
    /// ResourceClaims (Dynamic Resource Allocation).
    #[serde(rename = "DRA")]
    Dra,
    /// Extended resources of a device plugin.
    DevicePlugin,
}

/// Where a pod beside the workers may run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPlacement {
    /// On the node under test.
    WorkloadNode,
    /// Wherever the scheduler likes.
    Anywhere,
}

/// The load of one trial.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Benchmark {
    /// Image that holds `aiperf`; empty: the operator's `--aiperf-image`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Requests in flight per GPU. 128 is below the knee of an H100, which is at 256.
    #[serde(default = "default::concurrency_per_gpu", rename = "concurrencyPerGPU")]
    pub concurrency_per_gpu: i32,
    /// Tokens per prompt.
    #[serde(default = "default::tokens")]
    pub input_tokens: i32,
    /// Tokens asked for per answer.
    #[serde(default = "default::tokens")]
    pub output_tokens: i32,
    /// Requests per slot of concurrency.
    #[serde(default = "default::requests_per_concurrency")]
    pub requests_per_concurrency: i32,
    /// Fewest requests of a trial.
    #[serde(default = "default::min_requests")]
    pub min_requests: i32,
    /// Warm-up requests per slot of concurrency.
    #[serde(default = "default::warmup_per_concurrency")]
    pub warmup_per_concurrency: i32,
    /// Seed of the synthetic prompts.
    #[serde(default = "default::random_seed")]
    pub random_seed: i64,
    /// Distinct prompts; they are used in turn.
    #[serde(default = "default::dataset_entries")]
    pub dataset_entries: i32,
    /// Extra fields of every request. Without `ignore_eos` the output length is only an upper bound.
    #[serde(default = "default::extra_inputs")]
    pub extra_inputs: BTreeMap<String, String>,
    /// Service-level objectives that make a request count as good; needed by a Goodput gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goodput: Vec<Objective>,
    /// Deadline of one request (Go duration); AIPerf's own default is 6 h.
    #[serde(default = "default::request_timeout")]
    pub request_timeout: String,
    /// Tokenizer id; empty: the model's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tokenizer: String,
    /// Appended to AIPerf's command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_args: Vec<String>,
    /// Resources of the load generator.
    #[serde(default)]
    pub resources: ResourceRequirements,
    /// Where the load generator runs.
    #[serde(default = "default::anywhere")]
    pub placement: PodPlacement,
}

/// An upper bound on a latency metric that a good request keeps.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Objective {
    /// Metric of one request.
    pub metric: Metric,
    /// Largest good value (quantity, in the metric's unit).
    pub max: String,
}

/// How trials make a verdict.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TrialsSpec {
    /// Rule that turns trials into a verdict.
    #[serde(default)]
    pub rule: TrialRule,
    /// Bound on wrong passes and on wrong fails (percent; Sequential only).
    #[serde(default = "default::error_percent")]
    pub error_percent: i32,
    /// Most trials of a run; for All the number of passes needed.
    #[serde(default = "default::max_trials")]
    pub max: i32,
}

/// Rule that turns trials into a verdict.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrialRule {
    /// Wald's sequential probability ratio test between a healthy and a degraded deployment.
    #[default]
    Sequential,
    /// `max` passes needed; the first miss fails.
    All,
    /// The one trial decides.
    Single,
}

/// One requirement on one statistic of one metric.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Unique name.
    pub name: String,
    /// What is judged.
    pub metric: Metric,
    /// Which statistic of it; rates have `Avg` only.
    #[serde(default)]
    pub statistic: Statistic,
    /// Side of the threshold that is good.
    pub operator: GateOperator,
    /// Threshold (quantity, in the metric's unit), compared exactly.
    pub threshold: String,
    /// Widens the threshold to the lenient side (percent).
    #[serde(default)]
    pub tolerance_percent: i32,
    /// How the threshold follows the number of GPUs.
    #[serde(default)]
    pub scaling: Scaling,
    /// Whether a miss counts.
    #[serde(default)]
    pub mode: GateMode,
}

/// Side of the threshold that is good; inclusive.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOperator {
    /// Observed ≥ effective threshold.
    #[serde(rename = ">=")]
    AtLeast,
    /// Observed ≤ effective threshold.
    #[serde(rename = "<=")]
    AtMost,
}

impl GateOperator {
    /// The sign, as messages print it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => "≥",
            Self::AtMost => "≤",
        }
    }
}

/// How a threshold follows the number of GPUs in use.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// The threshold is used as written.
    #[default]
    None,
    /// × GPUs in use / GPUs of the node.
    #[serde(rename = "ByGPUShare")]
    ByGpuShare,
    /// × GPUs in use: the threshold is per GPU.
    #[serde(rename = "PerGPU")]
    PerGpu,
}

/// Whether a missed gate counts.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GateMode {
    /// A miss makes the trial a miss.
    #[default]
    Enforce,
    /// A miss is reported only.
    Warn,
}

/// Outcome when Dynamo is not installed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissingDynamo {
    /// Verdict Error.
    #[default]
    Fail,
    /// Verdict Skipped.
    Skip,
}

/// Deadlines, as Go durations (`90s`, `1h5m`).
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// Waiting for the DynamoGraphDeployment API.
    #[serde(default = "default::t5m")]
    pub prerequisites: String,
    /// Waiting for free GPUs; `0s`: fail at once when saturated.
    #[serde(default = "default::t10m")]
    pub sizing: String,
    /// Filling the model cache.
    #[serde(default = "default::t13m")]
    pub model_cache: String,
    /// Every component ready.
    #[serde(default = "default::t10m")]
    pub workload_ready: String,
    /// A real completion came back.
    #[serde(default = "default::t5m")]
    pub endpoint_ready: String,
    /// One probe request; a cold first token took 42 s, and 30 s cancelled it.
    #[serde(default = "default::t120s")]
    pub endpoint_probe: String,
    /// One trial.
    #[serde(default = "default::t15m")]
    pub benchmark: String,
    /// Everything gone, pods and claims included.
    #[serde(default = "default::t5m")]
    pub cleanup: String,
}

impl Default for PlacementSpec {
    fn default() -> Self {
        Self {
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            allocation: AllocationMode::default(),
            device_class_name: default::device_class_name(),
            resource_name: default::resource_name(),
            frontend: default::on_workload_node(),
            min_gpus: default::min_gpus(),
            max_gpus: None,
        }
    }
}

impl Default for Benchmark {
    fn default() -> Self {
        Self {
            image: String::new(),
            concurrency_per_gpu: default::concurrency_per_gpu(),
            input_tokens: default::tokens(),
            output_tokens: default::tokens(),
            requests_per_concurrency: default::requests_per_concurrency(),
            min_requests: default::min_requests(),
            warmup_per_concurrency: default::warmup_per_concurrency(),
            random_seed: default::random_seed(),
            dataset_entries: default::dataset_entries(),
            extra_inputs: default::extra_inputs(),
            goodput: Vec::new(),
            request_timeout: default::request_timeout(),
            tokenizer: String::new(),
            extra_args: Vec::new(),
            resources: ResourceRequirements::default(),
            placement: default::anywhere(),
        }
    }
}

impl Default for TrialsSpec {
    fn default() -> Self {
        Self {
            rule: TrialRule::default(),
            error_percent: default::error_percent(),
            max: default::max_trials(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            prerequisites: default::t5m(),
            sizing: default::t10m(),
            model_cache: default::t13m(),
            workload_ready: default::t10m(),
            endpoint_ready: default::t5m(),
            endpoint_probe: default::t120s(),
            benchmark: default::t15m(),
            cleanup: default::t5m(),
        }
    }
}

/// Defaults of the schema; each number has its reason on the field.
mod default {
    use std::collections::BTreeMap;

    use super::PodPlacement;

    pub fn max_error_percent() -> i32 {
        1
    }
    pub fn device_class_name() -> String {
        "gpu.nvidia.com".into()
    }
    pub fn resource_name() -> String {
        "nvidia.com/gpu".into()
    }
    pub fn on_workload_node() -> PodPlacement {
        PodPlacement::WorkloadNode
    }
    pub fn anywhere() -> PodPlacement {
        PodPlacement::Anywhere
    }
    pub fn min_gpus() -> i32 {
        1
    }
    pub fn concurrency_per_gpu() -> i32 {
        128
    }
    pub fn tokens() -> i32 {
        128
    }
    pub fn requests_per_concurrency() -> i32 {
        8
    }
    pub fn min_requests() -> i32 {
        1000
    }
    pub fn warmup_per_concurrency() -> i32 {
        1
    }
    pub fn random_seed() -> i64 {
        100
    }
    pub fn dataset_entries() -> i32 {
        100
    }
    pub fn extra_inputs() -> BTreeMap<String, String> {
        [("temperature", "0"), ("ignore_eos", "true")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into()
    }
    pub fn request_timeout() -> String {
        "5m".into()
    }
    pub fn error_percent() -> i32 {
        5
    }
    pub fn max_trials() -> i32 {
        8
    }
    pub fn t120s() -> String {
        "120s".into()
    }
    pub fn t5m() -> String {
        "5m".into()
    }
    pub fn t10m() -> String {
        "10m".into()
    }
    pub fn t13m() -> String {
        "13m".into()
    }
    pub fn t15m() -> String {
        "15m".into()
    }
}
