use k8s_openapi::api::core::v1::SecretKeySelector;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// The model and its weights.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Model id as the engine takes it, for example `Qwen/Qwen3-8B`.
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9][A-Za-z0-9._/-]*$')")
        .message("write a model id of letters, digits, '.', '_', '-' and '/', such as Qwen/Qwen3-8B"))]
    pub name: String,
    /// Secret key with a Hugging Face token; reaches pods by reference, the operator never reads it. Absent: no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("size(self.name) > 0 && size(self.key) > 0")
        .message("write the name and the key of a Secret in this namespace, such as {name: hf-token, key: token}"))]
    pub token_secret_ref: Option<SecretKeySelector>,
    /// Volume that holds the weights: exactly one of `claimName` and `size`. Absent: each worker loads the weights itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<ModelCache>,
}

/// A volume with the weights, as a Hugging Face cache.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.claimName) != has(self.size)")
        .message("write exactly one of claimName (an existing claim) and size (a claim to create)"),
    validation = Rule::new("!has(self.storageClassName) || has(self.size)")
        .message("storageClassName is for a claim to create: write size as well, or leave it out"),
)]
pub struct ModelCache {
    /// Existing PersistentVolumeClaim in the object's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub claim_name: Option<String>,
    /// Size of a claim that the operator creates, fills once and keeps between runs (quantity, bytes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::volume_size())]
    pub size: Option<String>,
    /// StorageClass of the created claim; absent: the cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub storage_class_name: Option<String>,
}
