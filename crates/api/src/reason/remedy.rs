//! Remedy of each reason, if no obstacle or cause is more specific.

use super::Reason;

impl Reason {
    /// Remedy: its own if it has one, otherwise that of its word.
    pub fn remedy(self) -> &'static str {
        self.own_remedy().unwrap_or_else(|| self.word().remedy())
    }

    /// Remedy more precise than that of the word; `None` if the word, or an obstacle or cause behind the reason, has it.
    pub fn own_remedy(self) -> Option<&'static str> {
        let remedy = match self {
            Self::DeadlineExceeded => "mend what the run waited for, or raise the time-out in the message",
            Self::DynamoNotInstalled => "install Dynamo's operator; it is picked up without a restart",
            Self::CallFailed => {
                "give the operator the right in the message (config/rbac), or see why the API server or a webhook does not answer; \
                 the run then goes on"
            }
            Self::Refused => {
                "allow the namespace, use one of at most 51 characters, remove `benchmark.image`, or change the operator's flag in the message"
            }
            Self::BenchmarkTimeout => {
                "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)"
            }
            Self::StorageClassMissing => {
                "create the StorageClass, make one the default, or correct `model.cache.volumeClaimTemplate.storageClassName`"
            }
            Self::Saturated => "free GPUs, lower placement.minGPUs, or raise timeouts.sizing",
            Self::LimitRangeViolated => "correct workload.dynamo.worker.resources or the LimitRange",
            Self::NoCandidateNode => {
                "correct nodeSelector, tolerations or minGPUs in placement, or the node in the message"
            }
            Self::PoolUnsettled => "wait; if it lasts, see the log of the DRA kubelet plugin",
            Self::MixedAllocation => "turn one of them off on this node, or name one in placement.allocation",
            Self::DeviceClassMissing => "install the GPU driver's DRA resources, or correct placement.deviceClassName",
            Self::SelectorNotEvaluable => {
                "use a DeviceClass whose selectors compare attributes and capacities of the device"
            }
            Self::NoDevicesPublished => "restart the DRA kubelet plugin of the node after its driver",
            Self::NodeBusy => {
                "remove what that run keeps (`kubectl perfval clean-up NAME -n NAMESPACE`), or see why its removal hangs (reason \
                 TeardownUnconfirmed); if the message contains a ResourceQuota, raise it"
            }
            Self::InLine => "nothing: the wait does not count towards `timeouts.sizing`",
            Self::DeploymentRejected => "correct the object as the message shows, or the namespace's policy",
            Self::DeploymentUnanswered => {
                "check pods, Service and certificate of the webhook (kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)"
            }
            Self::NameTaken => "do what the message shows",
            Self::ModelCacheFailed => {
                "check model.name, model.tokenSecretRef and the network; raise timeouts.modelCache for a large model"
            }
            Self::WorkloadNotReady => {
                "see the pods' events and logs; raise timeouts.workloadReady for large images or models"
            }
            Self::PlacementBroken => "see who changes pods or claims of this namespace (webhooks, a second scheduler)",
            Self::TeardownUnconfirmed => {
                "list what is left (`kubectl get dynamographdeployments,jobs,pods,resourceclaims -n NAMESPACE -l perfvalidation.dev/name=NAME`); \
                 see its finalizers (`kubectl get KIND OBJECT -n NAMESPACE -o jsonpath='{.metadata.deletionTimestamp} {.metadata.finalizers}'`), \
                 the node (`kubectl describe node NODE`) and its DRA plugin (`kubectl get pods -A --field-selector spec.nodeName=NODE`)"
            }
            _ => return None,
        };
        Some(remedy)
    }
}
