//! Symptom and remedy of each reason, if no obstacle or cause is more specific.

use super::Reason;

/// Help that the documentation and the status show for a reason besides its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Help specific to the reason.
    Own {
        /// Symptom that a user sees.
        seen: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// Help of the obstacles or causes behind the reason.
    Behind,
}

impl Reason {
    /// Remedy: its own if it has one, otherwise that of its word.
    pub fn remedy(self) -> &'static str {
        match self.help() {
            Help::Own { remedy, .. } => remedy,
            Help::Behind => self.word().remedy(),
        }
    }

    /// Returns symptom and remedy. A new reason without a row here does not compile.
    pub fn help(self) -> Help {
        let own = |seen, remedy| Help::Own { seen, remedy };
        match self {
            Self::DeadlineExceeded => own(
                "`Error`; the message contains the open wait and the time-out that passed",
                "mend what the run waited for, or raise the time-out in the message",
            ),
            Self::GatesMet => own("`Passed`", "nothing: the deployment may be used"),
            Self::GatesMissed => own(
                "`Failed`; the message has the gates with what was measured",
                "read `status.diagnosis`; if no GPU or worker is named, compare the threshold with other runs of this hardware",
            ),
            Self::TrialsDisagree => own(
                "`Inconclusive`; some trials passed and others missed",
                "raise trials.max, or choose a gate farther from what this hardware does",
            ),
            Self::NothingToJudge => own(
                "`Skipped`; `spec.gates` has no gate of mode `Enforce`",
                "write at least one gate of mode `Enforce`",
            ),
            Self::DynamoNotInstalled => own(
                "`Pending`, then `Error` or `Skipped` after `timeouts.prerequisites`",
                "install Dynamo's operator; it is picked up without a restart",
            ),
            Self::CallFailed => own(
                "a run that waits, or an Event; the message has the answer of the API server",
                "give the operator the right in the message (config/rbac), or see why the API server, a webhook or Dynamo's operator \
                 does not answer; the run then goes on by itself",
            ),
            Self::Refused => own(
                "`Error` at once; the message has the namespace",
                "create the object in another namespace of at most 51 characters, or change the operator's `--refused-namespaces`",
            ),
            Self::BenchmarkTimeout => own(
                "`Error`; a trial was still running when `timeouts.benchmark` passed",
                "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)",
            ),
            Self::StorageClassMissing => own(
                "`Error` at once; the message names the class",
                "create the StorageClass, make one the default, or correct `model.cache.volumeClaimTemplate.storageClassName`",
            ),
            Self::Running => own("a run that is going on", "nothing: the run goes on by itself"),
            Self::Saturated => own(
                "`Sizing`; the message has the reason of each node",
                "free GPUs, lower placement.minGPUs, or raise timeouts.sizing",
            ),
            Self::LimitRangeViolated => own(
                "`Sizing`, then `Error`; the message names the LimitRange",
                "correct workload.dynamo.worker.resources or the LimitRange of the namespace",
            ),
            Self::NoCandidateNode => own(
                "`Sizing`; the message has the reason of each node",
                "correct placement.nodeSelector and placement.tolerations, or the node that the message names",
            ),
            Self::PoolUnsettled => own(
                "`Sizing`; a driver has announced more ResourceSlices than there are",
                "wait for the GPU driver; if it lasts, see the log of its DRA kubelet plugin",
            ),
            Self::MixedAllocation => own(
                "`Error`; DRA and a device plugin both give out GPUs of the node",
                "turn one of them off on this node, or name one in placement.allocation",
            ),
            Self::DeviceClassMissing => own(
                "`Sizing`, then `Error`; the message names the class",
                "install the GPU driver's DRA resources, or correct placement.deviceClassName",
            ),
            Self::SelectorNotEvaluable => own(
                "`Sizing`, then `Error`; the message quotes the selector",
                "use a DeviceClass whose selectors compare attributes and capacities of the device",
            ),
            Self::NoDevicesPublished => own(
                "`Sizing`; the node says it has GPUs, and there is no ResourceSlice of it",
                "restart the DRA kubelet plugin of the node after its driver",
            ),
            Self::NodeBusy => own(
                "`Sizing`, then `Error` after `timeouts.sizing`; the message contains the run that holds the node",
                "free the node, because that run does not give it back by itself and this wait counts towards `timeouts.sizing`: remove \
                 what it keeps (`kubectl perfval clean-up NAME -n NAMESPACE`), or see why its removal hangs (reason TeardownUnconfirmed)",
            ),
            Self::InLine => own(
                "`Sizing`; the message contains the runs that come first",
                "nothing: it is this run's turn after them, and the wait does not count towards `timeouts.sizing`",
            ),
            Self::DeploymentRejected => own(
                "`Error`; the message has the words of the schema, policy or webhook that refuses",
                "correct what the words name in the object, or the policy of the namespace",
            ),
            Self::DeploymentUnanswered => own(
                "`Deploying`, after two minutes `Error`; the message has the answer of the API server, with the name of a webhook that does not answer",
                "see why the webhook does not answer: its pods, its Service and its certificate (kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)",
            ),
            Self::NameTaken => own(
                "`Error`, or the reason of the condition `Reconciling`; the message names the object",
                "remove or rename that object, then run again",
            ),
            Self::ModelCacheFailed => own(
                "`Error`; the Job `…-cache` failed or was not over in time; the message has the last words of its log",
                "check model.name, model.tokenSecretRef and the network; raise timeouts.modelCache for a large model",
            ),
            Self::WorkloadNotReady => own(
                "`WaitingForReady`, then `Error`; the message says how many workers were ready",
                "see the pods' events and logs; raise timeouts.workloadReady for large images or models",
            ),
            Self::PlacementBroken => own(
                "`Error`; the message names the worker, its node and its GPU",
                "see who changes pods or claims of this namespace (webhooks, a second scheduler), then run again",
            ),
            Self::RunOver => own("a run that is over", "nothing: read the verdict"),
            Self::Suspended => own("`Suspended`", "set spec.suspend to false to run"),
            Self::Interrupted => own("`CleaningUp` without a verdict", "nothing: this is what was asked for"),
            Self::NoCleanupRequested => own(
                "conditions `CleanedUp` and `Ready` are False after the end; GPUs are held",
                "remove the annotation perfvalidation.dev/no-cleanup once you have seen enough",
            ),
            Self::TeardownUnconfirmed => own(
                "conditions `CleanedUp` and `Ready` are False, `Stalled` is True; the message contains what is left",
                "list what is left with `kubectl get dynamographdeployments,jobs,pods,resourceclaims -n NAMESPACE -l perfvalidation.dev/name=NAME`; \
                 see its finalizers with `kubectl get KIND OBJECT -n NAMESPACE -o jsonpath='{.metadata.deletionTimestamp} {.metadata.finalizers}'`; \
                 see the node with `kubectl describe node NODE` and its DRA plugin with `kubectl get pods -A --field-selector spec.nodeName=NODE`. \
                 The operator keeps trying, and the condition becomes True once all is gone",
            ),
            Self::SpecUnreadable => own(
                "no progress; the condition `Stalled` is True with the words of the parser, all else in the status is old; a Warning event",
                "use the operator version that this object was written for, or correct the object",
            ),
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
