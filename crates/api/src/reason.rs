mod help;

pub use help::Help;

/// Declares the reasons with their explanation, so that the enum, its words and its documentation come from one list.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Reason for a state, in the `reason` of status, conditions and events. A released word never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[doc = $doc])+ $name,)+ }

        impl Reason {
            /// Reasons, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Word in status, conditions and events.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Reason that a status contains; `NotReached` for a word of another operator version.
            pub fn from_word(word: &str) -> Self {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == word).unwrap_or(Self::NotReached)
            }

            /// Meaning and remedy, as the documentation prints them.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

reasons! {
    // ── verdict Passed ──
    /// The trials met every enforced gate as often as the trial rule requires.
    GatesMet,
    /// The trials missed an enforced gate as often as the trial rule requires.
    GatesMissed,
    /// More requests failed than `trials.maxFailedRequestsPercent` allows.
    RequestErrors,
    /// One worker was much slower than its peers, although the deployment as a whole met its gates. Check its GPU.
    WorkerStall,
    /// The node has fewer healthy GPUs than `placement.expectGPUs` requires, although the present ones meet the gates.
    /// Find out why the others are missing.
    GPUsMissing,
    /// A worker's container crashed while the run measured. See its previous log and exit code.
    WorkerCrashed,
    // ── verdict Inconclusive ──
    /// The trials reached `trials.max` before the rule could decide. Either some passed and others missed, or an
    /// average is too near its gate.
    TrialsDisagree,
    /// The load generator could not keep the requested concurrency in flight. Give it more CPUs or lower
    /// `concurrencyPerGPU`.
    GeneratorStarved,
    /// A worker ended without a crash of its own while the CPUs of its node were full. Check which other pods use them.
    NodeCPUPressure,
    /// A worker's pod was removed or replaced while the run measured.
    WorkerRestarted,
    /// A worker held another GPU at the end of a trial than at its start.
    GPUChanged,
    /// A worker served no request during a trial.
    UnevenService,
    // ── verdict Skipped ──
    /// The spec has no gate of mode `Enforce`, so there is nothing to judge.
    NothingToJudge,
    // ── verdict Error: prerequisites ──
    /// The API server does not serve the DynamoGraphDeployment API. Install Dynamo's operator, or set
    /// `workload.dynamo.onMissing: Skip`.
    DynamoNotInstalled,
    /// The operator cannot read the DynamoGraphDeployment API, so its state is unknown.
    DynamoUnreadable,
    /// The operator starts no runs in this namespace (by default `kube-system` and the operator's own). Use another
    /// namespace, or change the operator's `--refused-namespaces`.
    NamespaceRefused,
    /// The namespace is too long for the labels of the deployment (63 characters). Use a namespace of at most 51
    /// characters.
    NamespaceTooLong,
    /// The versions of the image and of the installed Dynamo operator do not match. Use images of the operator's minor
    /// version.
    VersionSkew,
    /// The Dynamo version of the image does not support the router mode.
    RouterModeUnsupported,
    /// No AIPerf image is set. Set `benchmark.image` or the operator's `--aiperf-image`.
    AIPerfImageMissing,
    /// `model.cache.volumeClaimTemplate` needs a StorageClass. Set one in the template, or mark one as the cluster's
    /// default.
    StorageClassMissing,
    /// The operator cannot read the storage classes, so their state is unknown.
    StorageUnreadable,
    /// The prerequisites are met.
    PrerequisitesMet,
    // ── verdict Error: sizing ──
    /// The operator waits for two equal readings of the free GPUs.
    Settling,
    /// The operator has chosen GPUs.
    GPUsChosen,
    /// No eligible node has enough free GPUs. Free some, lower `minGPUs`, or raise `timeouts.sizing`.
    Saturated,
    /// A `ResourceQuota` of the namespace has no room for the run. Raise it, free some of it, or lower `minGPUs`.
    QuotaExceeded,
    /// A `LimitRange` of the namespace would refuse the run's pods. Correct their resources or the `LimitRange`.
    LimitRangeViolated,
    /// No node is eligible. See the reason for each node.
    NoCandidateNode,
    /// A driver is still publishing its devices.
    PoolUnsettled,
    /// Both DRA and a device plugin allocate GPUs of one node. Turn one of them off, or select one in
    /// `placement.allocation`.
    MixedAllocation,
    /// The DeviceClass does not exist. Install the GPU driver's DRA resources or correct `deviceClassName`.
    DeviceClassMissing,
    /// The operator cannot evaluate a device selector, so it cannot count free GPUs.
    SelectorNotEvaluable,
    /// The operator cannot count GPUs because a read failed.
    InventoryUnreadable,
    /// The GPU driver published no devices although the node reports GPUs. Restart the driver's DRA plugin after the
    /// driver.
    NoDevicesPublished,
    /// Another run holds the node and will not release it by itself. The wait counts towards `timeouts.sizing`.
    NodeBusy,
    /// Earlier runs come first. The time in the queue does not count towards `timeouts.sizing`.
    InLine,
    /// Other pods took GPUs that were free at sizing before the workers got them.
    LostRace,
    // ── verdict Error: deploying and starting ──
    /// The API server refused the DynamoGraphDeployment.
    DeploymentRejected,
    /// The API server did not clearly accept or refuse the DynamoGraphDeployment, because a webhook does not answer or
    /// the server is in trouble. The operator retries for two minutes.
    DeploymentUnanswered,
    /// Dynamo's operator reports the deployment as failed, and the deployment did not recover.
    DeploymentFailed,
    /// An object of the same name belongs to another owner.
    NameTaken,
    /// The model cache was not filled before the time-out.
    ModelCacheFailed,
    /// Components are starting.
    Starting,
    /// Every component is ready. The operator checks that each worker has a GPU of its own.
    CheckingGPUs,
    /// Not every component became ready before the time-out.
    WorkloadNotReady,
    /// The API server refuses to create pods because of a quota, a policy or a webhook of the namespace.
    PodsRefused,
    /// The node of the run is not Ready, or is gone.
    NodeNotReady,
    /// A volume of a pod is not bound or cannot be mounted.
    VolumeUnavailable,
    /// The node cannot pull a pod's image.
    ImagePullBackOff,
    /// The scheduler cannot place a pod.
    Unschedulable,
    /// The node could not prepare a claim.
    ClaimPrepareFailed,
    /// The DRA kubelet plugin holds stale device nodes. Restart the driver pod, then the DRA plugin pod of the node.
    StaleDRAPlugin,
    /// The DRA kubelet plugin is not registered with the kubelet. Start it or restart the kubelet.
    DRAPluginMissing,
    /// The node gave one GPU to two claims.
    DoubleAllocated,
    /// A container keeps crashing.
    CrashLoopBackOff,
    /// A container was killed because of its memory use.
    OOMKilled,
    /// The engine finds no GPU in its container, because the driver's libraries are not visible there.
    NoGPUInContainer,
    /// Another process uses the memory of a worker's GPU.
    GPUMemoryTaken,
    /// The inference engine died inside its worker.
    EngineDead,
    /// The frontend's discovery panicked because the images and Dynamo's operator have different versions.
    DiscoveryPanic,
    /// The model hub or cache has no model of this name.
    ModelNotFound,
    /// The model is gated, and the run has no token of an account that may read it.
    ModelGated,
    /// The pods cannot fetch the model because they cannot reach its hub.
    ModelUnreachable,
    /// The frontend serves models, but `model.name` is not among them.
    ModelNotServed,
    /// The frontend cannot load the model's configuration or tokenizer. Check the model's name, token and network.
    ModelAddFailed,
    /// The frontend finds no worker although all workers are ready.
    NoInstances,
    /// The node cannot create a container from its configuration.
    ContainerConfigError,
    /// The pods do not match the plan: wrong node, shared GPU or missing GPU.
    PlacementBroken,
    /// The operator probes the endpoint.
    Probing,
    /// The endpoint returned a real completion.
    CompletionReceived,
    /// The endpoint returned no completion before the time-out.
    EndpointNotReady,
    // ── verdict Error: measuring ──
    /// AIPerf left no usable result.
    BenchmarkFailed,
    /// The image of the load generator has no program `aiperf`.
    AIPerfMissing,
    /// The pod of the load generator was evicted, preempted or drained away.
    LoadGeneratorEvicted,
    /// AIPerf's result was incomplete.
    ResultIncomplete,
    /// AIPerf did not report a metric that a gate needs.
    MetricMissing,
    /// The trial did not end before the time-out.
    BenchmarkTimeout,
    /// The run as a whole took longer than `timeouts.total`. The message shows the wait that was open.
    DeadlineExceeded,
    /// The Job of a trial was deleted or replaced while the run needed it. Find out which client deletes Jobs in this
    /// namespace.
    JobLost,
    // ── the run itself ──
    /// The run is in progress.
    Running,
    /// The run is over.
    RunOver,
    /// `spec.suspend` is set.
    Suspended,
    /// The measured or judged settings changed. A new run follows.
    SpecChanged,
    /// A user requested a rerun. A new run follows.
    RerunRequested,
    /// The object is being deleted.
    Deleted,
    // ── cleanup ──
    /// The operator removes objects, pods and claims.
    Removing,
    /// The operator has confirmed that objects, pods and claims are gone.
    Removed,
    /// The no-cleanup annotation keeps all objects.
    NoCleanupRequested,
    /// Some objects still existed, or could not be read, when `timeouts.cleanup` passed.
    TeardownUnconfirmed,
    // ── not yet known ──
    /// The run has not reached this point.
    NotReached,
    /// The operator lacks rights that it needs. The Event and the operator's `/readyz` list them. Grant them, and the
    /// run continues.
    RightsMissing,
    /// This operator version cannot parse the object. The status is older than the object, except for `Ready`,
    /// `Reconciling` and `Stalled`.
    SpecUnreadable,
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
