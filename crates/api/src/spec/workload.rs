use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::defaults::number;
use crate::{PodPlacement, rules};

/// Deployment under test. The API writes it as a union, an object with exactly one member.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum Workload {
    /// NVIDIA Dynamo. The operator deploys and removes it.
    Dynamo(Dynamo),
}

/// Schema of [`Workload`]. An enum's own schema is a `oneOf`, whose refusals do not show what to write.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.dynamo)")
    .message("write exactly one member: workload.dynamo"))]
pub(super) struct WorkloadMembers {
    /// NVIDIA Dynamo. The operator deploys and removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dynamo: Option<Dynamo>,
}

/// DynamoGraphDeployment with one frontend, and as many workers as the GPUs in use allow.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.env) || !self.env.exists(e, e.name == 'DYN_ROUTER_MODE')")
        .message("write workload.dynamo.routerMode instead of the variable DYN_ROUTER_MODE"),
)]
pub struct Dynamo {
    /// Image of frontend and workers.
    #[schemars(length(max = 1024))]
    #[x_kube(validation = rules::image())]
    pub image: String,
    /// Version of Dynamo in the images (MAJOR.MINOR.PATCH). Dynamo 1.4 and later needs it if the tag is a digest,
    /// `latest` or a build id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}$')")
        .message("write Dynamo's version as MAJOR.MINOR.PATCH, such as 1.6.1, or leave the field out"))]
    pub runtime_version: Option<String>,
    /// Choice of a worker: `RoundRobin`, `Random`, `KV`, or from Dynamo 1.1 `LeastLoaded`, `PowerOfTwo`,
    /// `DeviceAwareWeighted`.
    #[serde(default)]
    pub router_mode: RouterMode,
    /// Verdict if Dynamo's API is not served after `timeouts.prerequisites`: `Fail` gives Error, `Skip` Skipped.
    #[serde(default)]
    pub on_missing: OnMissing,
    /// Workers. Each has `gpus` GPUs.
    #[serde(default)]
    pub worker: DynamoWorker,
    /// Frontend that receives the requests.
    #[serde(default)]
    pub frontend: DynamoFrontend,
    /// Environment of frontend, workers and cache Job. AIPerf gets at most `HTTPS_PROXY`, `NO_PROXY` and `HF_ENDPOINT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = Rule::new("self.all(e, e.name.matches('^[A-Za-z_.-][A-Za-z0-9_.-]*$'))")
        .message("write environment names of letters, digits, '_', '.' and '-' that do not begin with a digit, such as VLLM_USE_V1"))]
    pub env: Vec<EnvVar>,
}

/// Program of the workers, and the GPUs of each.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    // vLLM reads '_' in the name of a flag as '-'.
    validation = Rule::new("(has(self.command) && size(self.command) > 0) || !has(self.args) || !self.args.exists(a, a.matches('^(--tensor[-_]parallel[-_]size|-tp)(=.*)?$'))")
        .message("the default command sets the tensor parallelism: write worker.gpus instead of --tensor-parallel-size in args, or write your own command"),
    validation = Rule::new("(has(self.command) && size(self.command) > 0) || !has(self.args) || !self.args.exists(a, a.matches('^--(model|model[-_]path|served[-_]model[-_]name)(=.*)?$'))")
        .message("the default command sets the model: write model.name instead of --model, --model-path or --served-model-name in args, or write your own command"),
)]
pub struct DynamoWorker {
    /// GPUs of each worker, in one pod (1–8). Your own command must split the model over them.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 8))]
    pub gpus: i32,
    /// Worker command, without a shell. Empty: `python3 -m dynamo.vllm --model <model>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("size(self) == 0 || size(self[0]) > 0")
        .message("write the program first, one word per element, or leave command out for dynamo.vllm"))]
    pub command: Vec<String>,
    /// Additional arguments, one word per element.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub args: Vec<String>,
    /// Resources of a worker, without its GPUs. Request CPU on a shared node.
    #[serde(default)]
    #[x_kube(validation = Rule::new("!has(self.claims) || size(self.claims) == 0")
        .message("leave claims out: the claim of a worker's GPUs is made for it; write placement.deviceClassName"))]
    pub resources: ResourceRequirements,
}

/// Program and place of the frontend.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DynamoFrontend {
    /// Image of the frontend, with the same Dynamo version. Empty: the image of the workers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = rules::image_or_empty())]
    pub image: String,
    /// Additional arguments, one word per element.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    #[x_kube(validation = Rule::new("!self.exists(a, a.matches('^--router-mode(=.*)?$'))")
        .message("write workload.dynamo.routerMode instead of --router-mode"))]
    pub args: Vec<String>,
    /// Resources of the frontend. Without `cpu` it requests 2m per request in flight: 100m to 4 CPUs.
    #[serde(default)]
    #[x_kube(validation = Rule::new("!has(self.claims) || size(self.claims) == 0")
        .message("leave claims out: the frontend needs CPU and memory only"))]
    pub resources: ResourceRequirements,
    /// Place of the frontend: `WorkloadNode` (the node under test) or `Anywhere`.
    #[serde(default)]
    pub placement: PodPlacement,
}

/// Verdict if Dynamo is not installed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// Verdict Error.
    #[default]
    Fail,
    /// Verdict Skipped.
    Skip,
}

/// Routing mode of Dynamo's frontend. `direct` is not available, because it needs a worker id in every request.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum RouterMode {
    /// Worker with the fewest requests in flight (Dynamo 1.1 and later).
    #[default]
    LeastLoaded,
    /// Each worker in turn.
    RoundRobin,
    /// Random worker.
    Random,
    /// Less loaded of two random workers (Dynamo 1.1 and later).
    PowerOfTwo,
    /// Worker with the longest cached prefix, weighed with load.
    #[serde(rename = "KV")]
    Kv,
    /// Worker weighted by its device's capability (Dynamo 1.1 and later).
    DeviceAwareWeighted,
}

impl RouterMode {
    /// Value of `--router-mode` and `DYN_ROUTER_MODE`.
    pub fn flag(self) -> &'static str {
        self.into()
    }
}
