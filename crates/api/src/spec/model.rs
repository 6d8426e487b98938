use k8s_openapi::api::core::v1::SecretKeySelector;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use strum::IntoStaticStr;

use crate::rules;

/// Model and its weights.
#[skip_serializing_none]
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Model id as the engine takes it, such as `Qwen/Qwen3-8B`.
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9][A-Za-z0-9._/-]*$')")
        .message("write a model id of letters, digits, '.', '_', '-' and '/', such as Qwen/Qwen3-8B"))]
    pub name: String,
    /// Secret key with a Hugging Face token, which the operator never reads.
    #[x_kube(validation = Rule::new("size(self.name) > 0 && size(self.key) > 0")
        .message("write the name and the key of a Secret in this namespace, such as {name: hf-token, key: token}"))]
    pub token_secret_ref: Option<SecretKeySelector>,
    /// Commit of the weights (40 hex digits), with `cache` only. An existing claim must contain it, also as `main`.
    /// Absent: the newest commit when the cache is filled.
    #[schemars(length(max = 40))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-f]{40}$')")
        .message("write the whole commit, 40 hexadecimal digits, such as b968826d9c46dd6066d109eabc6255188de91218"))]
    pub revision: Option<String>,
    /// Volume with the weights as a Hugging Face cache: exactly one member. Absent: each worker downloads them.
    #[schemars(with = "Option<ModelCacheMembers>")]
    pub cache: Option<ModelCache>,
}

/// Volume with the weights. The API writes it as a union, an object with exactly one member.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum ModelCache {
    /// Existing claim that contains the weights.
    PersistentVolumeClaim(ExistingClaim),
    /// Claim that the operator creates, fills and keeps between runs.
    VolumeClaimTemplate(ClaimTemplate),
}

/// Schema of [`ModelCache`]. An enum's own schema is a `oneOf`, whose refusals do not show what to write.
#[skip_serializing_none]
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.persistentVolumeClaim) != has(self.volumeClaimTemplate)")
    .message("write exactly one member: persistentVolumeClaim (an existing claim) or volumeClaimTemplate (a claim to create)"))]
pub(super) struct ModelCacheMembers {
    /// Existing claim that contains the weights.
    persistent_volume_claim: Option<ExistingClaim>,
    /// Claim that the operator creates, fills and keeps between runs.
    volume_claim_template: Option<ClaimTemplate>,
}

/// Reference to a PersistentVolumeClaim.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ExistingClaim {
    /// Existing PersistentVolumeClaim with the weights, in the object's namespace.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub claim_name: String,
}

/// PersistentVolumeClaim to create.
#[skip_serializing_none]
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplate {
    /// Size (quantity, bytes).
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::volume_size())]
    pub storage: String,
    /// StorageClass; absent: the cluster's default.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub storage_class_name: Option<String>,
    /// Access modes. Only `ReadWriteMany` permits pods on other nodes than the node under test.
    #[serde(default = "default_access_modes")]
    #[schemars(length(min = 1, max = 2))]
    pub access_modes: Vec<AccessMode>,
}

/// Access mode of a volume that a run can fill and all its pods can read.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum AccessMode {
    /// Access by pods of one node.
    ReadWriteOnce,
    /// Access by pods of all nodes.
    ReadWriteMany,
}

impl ModelCache {
    /// Returns the claim to create, if any.
    pub fn template(&self) -> Option<&ClaimTemplate> {
        match self {
            Self::VolumeClaimTemplate(template) => Some(template),
            Self::PersistentVolumeClaim(_) => None,
        }
    }

    /// Returns true if all readers of the cache must be on one node. The spec does not contain the access modes of an
    /// existing claim.
    pub fn is_on_one_node(&self) -> bool {
        self.template()
            .is_none_or(|template| !template.access_modes.contains(&AccessMode::ReadWriteMany))
    }
}

fn default_access_modes() -> Vec<AccessMode> {
    vec![AccessMode::ReadWriteOnce]
}
