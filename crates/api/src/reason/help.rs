//! Remedy of each reason, if no obstacle or cause is more specific.

use super::Reason;

/// Help that the documentation and the status show for a reason besides its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Remedy specific to the reason.
    Own(&'static str),
    /// Help of the obstacles or causes behind the reason.
    Behind,
}

impl Reason {
    /// Remedy: its own if it has one, otherwise that of its word.
    pub fn remedy(self) -> &'static str {
        match self.help() {
            Help::Own(remedy) => remedy,
            Help::Behind => self.word().remedy(),
        }
    }

    /// Returns the remedy. A new reason without a row here does not compile.
    pub fn help(self) -> Help {
        match self {
            Self::DeadlineExceeded => Help::Own("mend what the run waited for, or raise the time-out in the message"),
            Self::GatesMet => Help::Own("nothing: the deployment may be used"),
            Self::GatesMissed => Help::Own(
                "read `status.diagnosis`; if no GPU or worker is named, compare the threshold with other runs of this hardware",
            ),
            Self::TrialsDisagree => {
                Help::Own("raise trials.max, or choose a gate farther from what this hardware does")
            }
            Self::NothingToJudge => Help::Own("write at least one gate of mode `Enforce`"),
            Self::DynamoNotInstalled => Help::Own("install Dynamo's operator; it is picked up without a restart"),
            Self::CallFailed => Help::Own(
                "give the operator the right in the message (config/rbac), or see why the API server, a webhook or Dynamo's operator \
                 does not answer; the run then goes on by itself",
            ),
            Self::Refused => Help::Own(
                "allow the namespace, use another of at most 51 characters, remove `benchmark.image`, or change the operator's flag in the message",
            ),
            Self::BenchmarkTimeout => Help::Own(
                "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)",
            ),
            Self::StorageClassMissing => Help::Own(
                "create the StorageClass, make one the default, or correct `model.cache.volumeClaimTemplate.storageClassName`",
            ),
            Self::Running => Help::Own("nothing: the run goes on by itself"),
            Self::Saturated => Help::Own("free GPUs, lower placement.minGPUs, or raise timeouts.sizing"),
            Self::LimitRangeViolated => {
                Help::Own("correct workload.dynamo.worker.resources or the LimitRange of the namespace")
            }
            Self::NoCandidateNode => Help::Own(
                "correct placement.nodeSelector, placement.tolerations or placement.minGPUs, or the node that the message names",
            ),
            Self::PoolUnsettled => {
                Help::Own("wait for the GPU driver; if it lasts, see the log of its DRA kubelet plugin")
            }
            Self::MixedAllocation => {
                Help::Own("turn one of them off on this node, or name one in placement.allocation")
            }
            Self::DeviceClassMissing => {
                Help::Own("install the GPU driver's DRA resources, or correct placement.deviceClassName")
            }
            Self::SelectorNotEvaluable => {
                Help::Own("use a DeviceClass whose selectors compare attributes and capacities of the device")
            }
            Self::NoDevicesPublished => Help::Own("restart the DRA kubelet plugin of the node after its driver"),
            Self::NodeBusy => Help::Own(
                "free the node, because this wait counts towards `timeouts.sizing`: remove what that run keeps \
                 (`kubectl perfval clean-up NAME -n NAMESPACE`), or see why its removal hangs (reason TeardownUnconfirmed); if the \
                 message contains a ResourceQuota, raise it",
            ),
            Self::InLine => Help::Own(
                "nothing: it is this run's turn after them, and the wait does not count towards `timeouts.sizing`",
            ),
            Self::DeploymentRejected => {
                Help::Own("correct what the words name in the object, or the policy of the namespace")
            }
            Self::DeploymentUnanswered => Help::Own(
                "see why the webhook does not answer: its pods, its Service and its certificate (kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)",
            ),
            Self::NameTaken => Help::Own("remove or rename that object, then run again"),
            Self::ModelCacheFailed => Help::Own(
                "check model.name, model.tokenSecretRef and the network; raise timeouts.modelCache for a large model",
            ),
            Self::WorkloadNotReady => {
                Help::Own("see the pods' events and logs; raise timeouts.workloadReady for large images or models")
            }
            Self::PlacementBroken => Help::Own(
                "see who changes pods or claims of this namespace (webhooks, a second scheduler), then run again",
            ),
            Self::RunOver => Help::Own("nothing: read the verdict"),
            Self::Suspended => Help::Own("set spec.suspend to false to run"),
            Self::Interrupted => {
                Help::Own("nothing: a new run follows; after a preemption it waits for GPUs up to timeouts.sizing")
            }
            Self::NoCleanupRequested => {
                Help::Own("remove the annotation perfvalidation.dev/no-cleanup once you have seen enough")
            }
            Self::TeardownUnconfirmed => Help::Own(
                "list what is left with `kubectl get dynamographdeployments,jobs,pods,resourceclaims -n NAMESPACE -l perfvalidation.dev/name=NAME`; \
                 see its finalizers with `kubectl get KIND OBJECT -n NAMESPACE -o jsonpath='{.metadata.deletionTimestamp} {.metadata.finalizers}'`; \
                 see the node with `kubectl describe node NODE` and its DRA plugin with `kubectl get pods -A --field-selector spec.nodeName=NODE`. \
                 The operator keeps trying, and the condition becomes True once all is gone",
            ),
            Self::SpecUnreadable => {
                Help::Own("use the operator version that this object was written for, or correct the object")
            }
            Self::RequestErrors
            | Self::WorkerStall
            | Self::GPUsMissing
            | Self::WorkerCrashed
            | Self::GeneratorStarved
            | Self::NodeCPUPressure
            | Self::WorkerRestarted
            | Self::UnevenService
            | Self::VersionSkew
            | Self::RouterModeUnsupported
            | Self::QuotaExceeded
            | Self::LostRace
            | Self::DeploymentFailed
            | Self::PodsRefused
            | Self::NodeNotReady
            | Self::VolumeUnavailable
            | Self::ImagePullBackOff
            | Self::OtherArchitecture
            | Self::Unschedulable
            | Self::ClaimPrepareFailed
            | Self::StaleDRAPlugin
            | Self::DRAPluginMissing
            | Self::DoubleAllocated
            | Self::ContainerFailed
            | Self::OOMKilled
            | Self::NoGPUInContainer
            | Self::GPUMemoryTaken
            | Self::EngineDead
            | Self::DiscoveryPanic
            | Self::ModelNotFound
            | Self::ModelGated
            | Self::ModelUnreachable
            | Self::ModelNotServed
            | Self::ModelAddFailed
            | Self::NoInstances
            | Self::ContainerConfigError
            | Self::EndpointNotReady
            | Self::BenchmarkFailed
            | Self::AIPerfMissing => Help::Behind,
        }
    }
}
