//! The shape of a DynamoGraphDeployment that Dynamo's operator serves since 1.2: a list of components, each a plain pod template.
//!
//! Only the fields a `PerfValidation` run may send are here, so a strict API server refuses every other one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::GraphStatus;

/// `spec` of `nvidia.com/v1beta1 DynamoGraphDeployment`.
#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "nvidia.com",
    version = "v1beta1",
    kind = "DynamoGraphDeployment",
    plural = "dynamographdeployments",
    shortname = "dgd",
    namespaced,
    status = "GraphStatus"
)]
// `services` is only there to store what was written at v1alpha1, see `crd`.
#[x_kube(validation = Rule::new(
    "!has(self.services) || (oldSelf.hasValue() && has(oldSelf.value().services))"
).optional_old_self(true).message("services is a field of v1alpha1; use components").field_path(".services"))]
#[serde(rename_all = "camelCase")]
pub struct DynamoGraphDeploymentSpec {
    /// Engine of the workers.
    #[schemars(extend("enum" = ["sglang", "vllm", "trtllm"]))]
    pub backend_framework: Option<String>,
    /// Copied to every child.
    pub labels: Option<BTreeMap<String, String>>,
    /// Copied to every child.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Put before the environment of every component.
    pub env: Option<Vec<EnvVar>>,
    /// What runs: one Deployment and one Service each.
    #[schemars(length(max = 25), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub components: Option<Vec<Component>>,
    /// The v1alpha1 shape, kept as it was written.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    pub services: Option<serde_json::Value>,
}

/// One role of the graph.
#[derive(KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[x_kube(validation = Rule::new(
    "has(self.podTemplate) && has(self.podTemplate.spec) && self.podTemplate.spec.containers.exists(c, c.name == 'main' && has(c.image))"
).message("a container named main with an image is required"))]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Unique in the graph.
    #[schemars(length(max = 63), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$"))]
    pub name: String,
    /// Decides on ports, probes, environment and the default command.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["frontend", "worker", "prefill", "decode", "planner", "epp"]))]
    pub kind: Option<String>,
    /// Number of pods.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Size of the tmpfs at /dev/shm: 8Gi when absent, none when "0".
    pub shared_memory_size: Option<Quantity>,
    /// Version of a runtime whose image tag does not name it; Dynamo 1.4 and newer.
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub runtime_version_override: Option<String>,
    /// The pod; its container `main` gets the operator's defaults.
    pub pod_template: Option<PodTemplate>,
}

/// A pod template of which only labels and annotations may be set in addition to the specification.
#[derive(JsonSchema, Clone, Debug, Default, Deserialize, Serialize)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    pub metadata: Option<PodMetadata>,
    /// The pods.
    #[serde(default)]
    #[schemars(schema_with = "pod_spec")]
    pub spec: Option<PodSpec>,
}

/// What a user may say about the metadata of pods, in both versions.
#[derive(JsonSchema, Clone, Debug, Default, Deserialize, Serialize)]
pub struct PodMetadata {
    /// Labels of the pods.
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of the pods.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// Kubernetes' own schema, with a limit on containers: without one the cost of the rule above has no bound and the API server refuses it.
fn pod_spec(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = PodSpec::json_schema(generator);
    if let Some(containers) = schema.pointer_mut("/properties/containers") {
        containers["maxItems"] = 16.into();
    }
    schema
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
