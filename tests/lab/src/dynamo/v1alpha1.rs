//! The shape of a DynamoGraphDeployment that Dynamo's operator 1.0 and 1.1 serve: a map of services, each a pod spec with one `mainContainer`.
//!
//! Only the fields a `PerfValidation` run may send are here, so a strict API server refuses every other one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, Probe, ResourceClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::GraphStatus;
use super::v1beta1::PodMetadata;

/// `spec` of `nvidia.com/v1alpha1 DynamoGraphDeployment`.
#[derive(CustomResource, JsonSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "nvidia.com",
    version = "v1alpha1",
    kind = "DynamoGraphDeployment",
    plural = "dynamographdeployments",
    shortname = "dgd",
    namespaced,
    status = "GraphStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct DynamoGraphDeploymentSpec {
    /// Engine of the workers.
    #[schemars(extend("enum" = ["sglang", "vllm", "trtllm"]))]
    pub backend_framework: Option<String>,
    /// Copied to every child.
    pub labels: Option<BTreeMap<String, String>>,
    /// Copied to every child.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Put before the environment of every service.
    pub envs: Option<Vec<EnvVar>>,
    /// Claims that services may mount; the stand-in expects them to exist.
    pub pvcs: Option<Vec<ExistingClaim>>,
    /// What runs, by name: one Deployment and one Service each.
    #[schemars(extend("maxProperties" = 25))]
    pub services: Option<BTreeMap<String, Service>>,
}

/// One role of the graph.
#[derive(JsonSchema, Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Decides on ports, probes, environment and the default command; any string is accepted here.
    pub component_type: Option<String>,
    /// Accepted and without effect, as in the real one.
    pub dynamo_namespace: Option<String>,
    /// Number of pods.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// The tmpfs at /dev/shm.
    pub shared_memory: Option<SharedMemory>,
    /// Resources of the main container, in Dynamo's own words.
    pub resources: Option<Resources>,
    /// Environment of the main container.
    pub envs: Option<Vec<EnvVar>>,
    /// A Secret whose keys become environment variables of the main container.
    pub env_from_secret: Option<String>,
    /// Mounts of the claims named in `pvcs`.
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// Instead of the default one.
    pub liveness_probe: Option<Probe>,
    /// Instead of the default one.
    pub readiness_probe: Option<Probe>,
    /// Labels and annotations of the pods.
    pub extra_pod_metadata: Option<PodMetadata>,
    /// The pod.
    #[serde(default)]
    #[schemars(schema_with = "extra_pod_spec")]
    pub extra_pod_spec: Option<ExtraPodSpec>,
}

/// A pod spec with its main container in addition to the list of containers.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtraPodSpec {
    /// Gets the operator's defaults; named `main` whatever it says.
    pub main_container: Option<Container>,
    /// Everything else of the pod.
    #[serde(flatten)]
    pub pod: PodSpec,
}

/// A `PersistentVolumeClaim` of the namespace. The real operator can also create one; a run never asks for it.
#[derive(JsonSchema, Clone, Debug, Deserialize, Serialize)]
pub struct ExistingClaim {
    /// Must be false.
    #[schemars(extend("enum" = [false]))]
    pub create: Option<bool>,
    /// Name of the claim and of its volume.
    pub name: String,
}

/// A mount of one of the graph's `pvcs`.
#[derive(JsonSchema, Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMount {
    /// Name in `pvcs`.
    pub name: String,
    /// Absolute path in the main container.
    pub mount_point: String,
}

/// The tmpfs at /dev/shm.
#[derive(JsonSchema, Clone, Debug, Deserialize, Serialize)]
pub struct SharedMemory {
    /// No tmpfs at all.
    pub disabled: Option<bool>,
    /// 8Gi when absent.
    pub size: Option<Quantity>,
}

/// Requests, limits and claims of the main container.
#[derive(JsonSchema, Clone, Debug, Default, Deserialize, Serialize)]
pub struct Resources {
    /// Minimum.
    pub requests: Option<ResourceItem>,
    /// Maximum.
    pub limits: Option<ResourceItem>,
    /// Claims of the pod that the container uses.
    pub claims: Option<Vec<ResourceClaim>>,
}

/// Amounts, as strings.
#[derive(JsonSchema, Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceItem {
    /// CPUs.
    pub cpu: Option<String>,
    /// Bytes, with a unit.
    pub memory: Option<String>,
    /// Number of GPUs from a device plugin.
    pub gpu: Option<String>,
    /// Resource name of those GPUs, `nvidia.com/gpu` when absent.
    pub gpu_type: Option<String>,
    /// Any other resource.
    pub custom: Option<BTreeMap<String, String>>,
}

/// Kubernetes' own schema of a pod, plus `mainContainer`; neither a list of containers nor a container name is asked for here.
fn extra_pod_spec(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut main = Container::json_schema(generator);
    main.remove("required");
    let mut schema = PodSpec::json_schema(generator);
    schema.remove("required");
    if let Some(properties) = schema.pointer_mut("/properties") {
        properties["mainContainer"] = main.into();
    }
    schema
}
