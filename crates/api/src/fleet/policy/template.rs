use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{PerfValidationSpec, rules};

/// Validation that the operator creates for a node.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.spec.placement.nodeSelector) || size(self.spec.placement.nodeSelector) == 0")
        .message("the operator adds the node: leave validationTemplate.spec.placement.nodeSelector out, and write spec.nodeSelector of the policy"),
    validation = Rule::new("!self.spec.suspend")
        .message("a suspended validation never ends: leave validationTemplate.spec.suspend out, and write spec.suspend of the policy"),
    validation = Rule::new("!has(self.spec.ttlSecondsAfterFinished)")
        .message("the policy deletes finished validations: leave validationTemplate.spec.ttlSecondsAfterFinished out, and write spec.validationHistory"),
    validation = Rule::new("self.spec.timeouts.sizing == '10m'")
        .message("a policy waits ten minutes for free GPUs and then tries another node: leave validationTemplate.spec.timeouts.sizing out"),
    validation = Rule::new("self.spec.gates.exists(g, g.mode == 'Enforce')")
        .message("a validation without an enforced gate has no verdict: write at least one gate of mode Enforce in validationTemplate.spec.gates"),
    validation = Rule::new("self.spec.gates.all(g, g.metric != 'OwnPastPercent')")
        .message("each validation of a policy is a new object without a past: leave gates on OwnPastPercent out, and read SlowerThanItself in status.outliers"),
)]
pub struct ValidationTemplate {
    /// Metadata.
    pub metadata: TemplateMetadata,
    /// Spec, without a node.
    pub spec: PerfValidationSpec,
}

/// Metadata of the validations of a policy.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Existing namespace of the validations.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("write the name of a namespace: lower-case letters, digits and '-'"))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("the namespace of a policy's validations does not change: create another policy"))]
    pub namespace: String,
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
