use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LocalObjectReference, PodSecurityContext, SecurityContext};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use strum::IntoStaticStr;

use crate::rules;

/// Settings of every pod of a run: frontend, workers, load generator and the Job that fills `model.cache`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Labels and annotations; the operator's own take precedence. The Jobs get Kueue's queue name and priority class
    /// too.
    #[serde(default)]
    pub metadata: PodMetadata,
    /// Security, priority and images.
    #[serde(default)]
    pub spec: PodSettings,
}

/// Labels and annotations of every pod of a run.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    /// Additional labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = rules::not_ours(), validation = rules::label_values())]
    pub labels: BTreeMap<String, String>,
    /// Additional annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = rules::not_ours())]
    pub annotations: BTreeMap<String, String>,
}

/// Security, priority and images of every pod of a run.
#[skip_serializing_none]
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodSettings {
    /// Security context of the pods. For unset fields, the load generator and the cache's Job follow Pod Security level
    /// `restricted`; frontend and workers have no defaults.
    #[x_kube(validation = rules::baseline(""))]
    pub security_context: Option<PodSecurityContext>,
    /// Security context of the containers, with the same defaults.
    #[x_kube(
        validation = rules::baseline(" && (!has(self.privileged) || !self.privileged) && (!has(self.procMount) || self.procMount == 'Default')"),
        validation = Rule::new("!has(self.capabilities) || !has(self.capabilities.add) || size(self.capabilities.add) == 0")
            .message("leave capabilities.add out: a run needs none"),
    )]
    pub container_security_context: Option<SecurityContext>,
    /// `RuntimeClass`; absent: the cluster's default.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub runtime_class_name: Option<String>,
    /// `PriorityClass`; absent: the cluster's default.
    #[schemars(length(max = 253))]
    #[x_kube(
        validation = rules::object_name(),
        validation = Rule::new("!self.startsWith('system-')")
            .message("a run is no part of the cluster: write a PriorityClass of your own"),
    )]
    pub priority_class_name: Option<String>,
    /// Pull secrets. None: frontend and workers use the namespace's docker secrets for the image's registry, other pods
    /// those of its default service account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = Rule::new("self.all(s, size(s.name) > 0)")
        .message("write the name of a pull secret in this namespace, such as {name: ngc}"))]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Pull policy of the images.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,
}

/// Time at which the kubelet pulls an image.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[allow(missing_docs)] // Kubernetes' own values
pub enum ImagePullPolicy {
    Always,
    #[default]
    IfNotPresent,
    Never,
}
