//! Reasons for the states of a run. Each has one of the [words](Word) that users meet, and may have a remedy of its own.

mod word;

pub use word::Word;

/// Declares the reasons with their word, so that the enum and its documentation come from one list.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident => $word:ident $({ remedy: $remedy:literal })?,)+) => {
        /// Reason for a state. Several reasons share a [`Word`] if a user does the same about them; their messages and
        /// remedies differ.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[doc = $doc])+ $name,)+ }

        impl Reason {
            /// Reasons, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Name in the operator's own state.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Word in status, conditions and Events.
            pub fn word(self) -> Word {
                match self { $(Self::$name => Word::$word,)+ }
            }

            /// Meaning, as the documentation prints it.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }

            /// Remedy more precise than the word's; `None` if the word, or an obstacle or cause behind the reason, has it.
            pub fn own_remedy(self) -> Option<&'static str> {
                let own: &[&'static str] = match self { $(Self::$name => &[$($remedy)?],)+ };
                own.first().copied()
            }
        }
    };
}

impl Reason {
    /// Word in status, conditions and Events.
    pub fn as_str(self) -> &'static str {
        self.word().as_str()
    }

    /// Remedy: its own if it has one, otherwise the word's.
    pub fn remedy(self) -> &'static str {
        self.own_remedy().unwrap_or_else(|| self.word().remedy())
    }

    /// Reason with this name, or else the first one with this word; `Running` for that of another operator version.
    pub fn from_word(word: &str) -> Self {
        let general = Self::ALL.iter().find(|reason| reason.name() == word);
        let any = || Self::ALL.iter().find(|reason| reason.as_str() == word);
        general.or_else(any).copied().unwrap_or(Self::Running)
    }
}

reasons! {
    // ── verdict Passed or Failed ──
    /// The trials met every enforced gate as often as the trial rule requires.
    GatesMet => GatesMet,
    /// The trials missed an enforced gate as often as the trial rule requires.
    GatesMissed => GatesMissed,
    /// More requests failed than `trials.maxFailedRequestsPercent` allows.
    RequestErrors => RequestErrors,
    /// One worker was much slower than its peers, although the deployment as a whole met its gates.
    WorkerStall => WorkerStall,
    /// The node has fewer healthy GPUs than `placement.expectGPUs` requires, although the present ones meet the gates.
    GPUsMissing => GPUsMissing,
    /// A worker's container crashed while the run measured.
    WorkerCrashed => WorkerCrashed,
    // ── verdict Inconclusive ──
    /// The trials still disagree at `trials.max`, or an average is too near its gate.
    TrialsDisagree => TrialsDisagree,
    /// The load generator could not keep the requested concurrency in flight.
    GeneratorStarved => GeneratorStarved,
    /// A worker ended without a crash of its own while the CPUs of its node were full.
    NodeCPUPressure => NodeCPUPressure,
    /// A worker's pod was removed or replaced, or it held another GPU at the end of a trial than at its start.
    WorkerRestarted => WorkerRestarted,
    /// A worker served no request during a trial.
    UnevenService => UnevenService,
    // ── verdict Skipped ──
    /// The spec has no gate of mode `Enforce`, so there is nothing to judge.
    NothingToJudge => NothingToJudge,
    // ── verdict Error: prerequisites ──
    /// The API server does not serve the DynamoGraphDeployment API.
    DynamoNotInstalled => DynamoNotInstalled { remedy: "install Dynamo's operator; it is picked up without a restart" },
    /// The operator cannot read something that it needs, or a call fails.
    CallFailed => CallFailed {
        remedy: "give the operator the right in the message (config/rbac), or see why the API server or a webhook does not answer; \
            the run then goes on"
    },
    /// The operator refuses this namespace or AIPerf image, or the namespace's name is too long.
    Refused => Refused {
        remedy: "allow the namespace, use one with at most 51 characters, remove `benchmark.image`, or change the operator's flag in the message"
    },
    /// The versions of the image and of the installed Dynamo operator do not match.
    VersionSkew => VersionSkew,
    /// The Dynamo version of the image does not support the router mode.
    RouterModeUnsupported => VersionSkew,
    /// No AIPerf image is set, or the image of the load generator has no program `aiperf`.
    AIPerfMissing => AIPerfMissing,
    /// `model.cache.volumeClaimTemplate` needs a StorageClass.
    StorageClassMissing => ModelCacheFailed {
        remedy: "create the StorageClass, make one the default, or correct `model.cache.volumeClaimTemplate.storageClassName`"
    },
    // ── verdict Error: sizing ──
    /// No eligible node has enough free GPUs.
    Saturated => Saturated { remedy: "free GPUs, lower placement.minGPUs, or raise timeouts.sizing" },
    /// A `ResourceQuota` of the namespace has no room for the run.
    QuotaExceeded => Refused,
    /// A `LimitRange` would refuse the run's pods.
    LimitRangeViolated => Refused { remedy: "correct workload.dynamo.worker.resources or the LimitRange" },
    /// No node is eligible.
    NoCandidateNode => Unschedulable {
        remedy: "correct nodeSelector, tolerations or minGPUs in placement, or the node in the message"
    },
    /// A driver is still publishing its devices.
    PoolUnsettled => NodeNotReady { remedy: "wait; if it lasts, see the log of the DRA kubelet plugin" },
    /// Both DRA and a device plugin allocate GPUs of one node.
    MixedAllocation => GPUShared { remedy: "turn one of them off on this node, or name one in placement.allocation" },
    /// The DeviceClass does not exist.
    DeviceClassMissing => Unschedulable {
        remedy: "install the GPU driver's DRA resources, or correct placement.deviceClassName"
    },
    /// The operator cannot evaluate a device selector.
    SelectorNotEvaluable => Unschedulable {
        remedy: "use a DeviceClass whose selectors compare attributes and capacities of the device"
    },
    /// The GPU driver published no devices.
    NoDevicesPublished => NodeNotReady { remedy: "restart the DRA kubelet plugin of the node after its driver" },
    /// Another run holds the node and will not release it by itself. The wait counts towards `timeouts.sizing`.
    NodeBusy => Saturated {
        remedy: "remove what that run keeps (`kubectl perfval clean-up NAME -n NAMESPACE`), or see why its removal hangs (reason \
            TeardownUnconfirmed); if the message contains a ResourceQuota, raise it"
    },
    /// Other pods took GPUs that were free at sizing before the workers got them.
    LostRace => LostRace,
    // ── verdict Error: deploying and starting ──
    /// The API server refused the DynamoGraphDeployment.
    DeploymentRejected => Refused { remedy: "correct the object as the message shows, or the namespace's policy" },
    /// The API server neither accepted nor refused the DynamoGraphDeployment for two minutes or longer.
    DeploymentUnanswered => CallFailed {
        remedy: "check pods, Service and certificate of the webhook (kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)"
    },
    /// Dynamo's operator reports the deployment as failed, and the deployment did not recover.
    DeploymentFailed => DeploymentFailed,
    /// An object of the same name is in the way.
    NameTaken => Refused { remedy: "do what the message shows" },
    /// The model cache was not filled in time.
    ModelCacheFailed => ModelCacheFailed {
        remedy: "check model.name, model.tokenSecretRef and the network; raise timeouts.modelCache for a large model"
    },
    /// Not every component became ready in time.
    WorkloadNotReady => WorkloadNotReady {
        remedy: "see the pods' events and logs; raise timeouts.workloadReady for large images or models"
    },
    /// The API server refuses to create pods because of a quota, a policy or a webhook of the namespace.
    PodsRefused => Refused,
    /// The node of the run is not Ready, or is gone.
    NodeNotReady => NodeNotReady,
    /// A volume of a pod is not bound or cannot be mounted.
    VolumeUnavailable => ModelCacheFailed,
    /// The node cannot pull a pod's image.
    ImagePullBackOff => ContainerFailed,
    /// An image is not for the architecture of the node.
    OtherArchitecture => ContainerFailed,
    /// The scheduler cannot place a pod.
    Unschedulable => Unschedulable,
    /// The node could not prepare a claim.
    ClaimPrepareFailed => NodeNotReady,
    /// The DRA kubelet plugin holds stale device nodes.
    StaleDRAPlugin => NodeNotReady,
    /// The DRA kubelet plugin is not registered with the kubelet.
    DRAPluginMissing => NodeNotReady,
    /// The node gave one GPU to two claims.
    DoubleAllocated => GPUShared,
    /// A container keeps crashing.
    ContainerFailed => ContainerFailed,
    /// A container was killed because of its memory use.
    OOMKilled => ContainerFailed,
    /// The engine finds no GPU in its container, because the driver's libraries are not visible there.
    NoGPUInContainer => NodeNotReady,
    /// Another process uses the memory of a worker's GPU.
    GPUMemoryTaken => GPUShared,
    /// The inference engine died inside its worker.
    EngineDead => ContainerFailed,
    /// The frontend's discovery panicked because the images and Dynamo's operator have different versions.
    DiscoveryPanic => VersionSkew,
    /// The model hub or cache has no model of this name.
    ModelNotFound => ModelUnavailable,
    /// The model is gated, and the run has no token of an account that may read it.
    ModelGated => ModelUnavailable,
    /// The pods cannot fetch the model because they cannot reach its hub.
    ModelUnreachable => ModelUnavailable,
    /// The frontend serves models, but `model.name` is not among them.
    ModelNotServed => ModelUnavailable,
    /// The frontend cannot load the model's configuration or tokenizer.
    ModelAddFailed => ModelUnavailable,
    /// The frontend finds no worker although all workers are ready.
    NoInstances => WorkloadNotReady,
    /// The node cannot create a container from its configuration.
    ContainerConfigError => ContainerFailed,
    /// The pods do not match the plan: wrong node, shared GPU or missing GPU.
    PlacementBroken => LostRace {
        remedy: "see who changes pods or claims of this namespace (webhooks, a second scheduler)"
    },
    /// The endpoint returned no completion before the time-out.
    EndpointNotReady => WorkloadNotReady,
    // ── verdict Error: measuring ──
    /// A trial left no usable result.
    BenchmarkFailed => BenchmarkFailed,
    /// The trial did not end before the time-out.
    BenchmarkTimeout => DeadlineExceeded {
        remedy: "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)"
    },
    /// The run took longer than `timeouts.total`.
    DeadlineExceeded => DeadlineExceeded {
        remedy: "mend what the run waited for, or raise the time-out in the message"
    },
    // ── the run itself ──
    /// The run is in progress.
    Running => Running,
    /// Earlier runs come first.
    InLine => InLine { remedy: "nothing: the wait does not count towards `timeouts.sizing`" },
    /// The run is over, and its objects, pods and claims are gone.
    RunOver => RunOver,
    /// `spec.suspend` is set.
    Suspended => Suspended,
    /// The spec changed, a user requested a rerun, a pod of higher priority needs the node, or the object is being
    /// deleted. Except after a deletion, a new run follows.
    Interrupted => Interrupted,
    // ── cleanup ──
    /// The no-cleanup annotation keeps all objects.
    NoCleanupRequested => NoCleanupRequested,
    /// After `timeouts.cleanup` some objects still exist, or cannot be read.
    TeardownUnconfirmed => TeardownUnconfirmed {
        remedy: "list what is left (`kubectl get dynamographdeployments,jobs,pods,resourceclaims -n NAMESPACE -l perfvalidation.dev/name=NAME`); \
            see its finalizers (`kubectl get KIND OBJECT -n NAMESPACE -o jsonpath='{.metadata.deletionTimestamp} {.metadata.finalizers}'`), \
            the node (`kubectl describe node NODE`) and its DRA plugin (`kubectl get pods -A --field-selector spec.nodeName=NODE`)"
    },
    // ── no run ──
    /// The operator cannot parse the object, or has no room for it. Only `Ready`, `Reconciling` and `Stalled` are current.
    SpecUnreadable => SpecUnreadable,
}

/// Reason for a state: a stable word and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Stable word.
    pub reason: Reason,
    /// Text for people.
    pub message: String,
}

impl Why {
    /// Creates a reason with its text.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn reasons_keep_their_word_through_the_status_and_their_name_through_the_state() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_word(reason.as_str()).word(), reason.word());
            assert_eq!(Reason::from_word(reason.name()), *reason);
        }
        assert_eq!(Reason::from_word("OfALaterVersion"), Reason::Running);
    }
}
