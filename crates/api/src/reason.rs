mod help;

pub use help::Help;

/// Declares the reasons with their explanation, so that the enum, its words and its documentation are one list.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Why something is as it is: the `reason` of status, conditions and events. Never reworded once released.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[doc = $doc])+ $name,)+ }

        impl Reason {
            /// Every reason, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word in status, conditions and events.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// The reason that a status recorded; `NotReached` for a word of another operator version.
            pub fn from_word(word: &str) -> Self {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == word).unwrap_or(Self::NotReached)
            }

            /// What it means and what to do, as the documentation prints it.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

reasons! {
    // ── verdict Passed ──
    /// Every enforced gate was met as often as the trial rule asks.
    GatesMet,
    // ── verdict Failed ──
    /// An enforced gate was missed as often as the trial rule asks.
    GatesMissed,
    /// More requests failed than `trials.maxFailedRequestsPercent` allows.
    RequestErrors,
    /// One worker was much slower than its peers, although the deployment as a whole met its gates: check its GPU.
    WorkerStall,
    /// The node has fewer healthy GPUs than `placement.expectGPUs` asks for, although those that it has met the gates: see what
    /// became of the others.
    GPUsMissing,
    /// A worker's container crashed while the run measured: see its previous log and exit code.
    WorkerCrashed,
    // ── verdict Inconclusive ──
    /// Trials passed and missed, or an average lies too near its gate to tell on which side it is, and `trials.max` was reached
    /// before the rule could decide.
    TrialsDisagree,
    /// The load generator could not keep the asked concurrency in flight: give it CPUs or lower `concurrencyPerGPU`.
    GeneratorStarved,
    /// A worker was ended, and not by a crash of its own, while the CPUs of its node were full: see what else uses them.
    NodeCPUPressure,
    /// A worker's pod was removed or replaced while the run measured.
    WorkerRestarted,
    /// A worker held another GPU at the end of a trial than at its start.
    GPUChanged,
    /// A worker served no request during a trial.
    UnevenService,
    // ── verdict Skipped ──
    /// No gates: there is nothing to judge.
    NothingToJudge,
    // ── verdict Error: prerequisites ──
    /// The DynamoGraphDeployment API is not served: install Dynamo's operator, or set `workload.dynamo.onMissing: Skip`.
    DynamoNotInstalled,
    /// The DynamoGraphDeployment API cannot be read, so nothing is known about it.
    DynamoUnreadable,
    /// The operator runs nothing in this namespace (`kube-system` and its own by default): use another one, or change
    /// the operator's `--refused-namespaces`.
    NamespaceRefused,
    /// The namespace is too long for the labels of the deployment (63 characters): use one of at most 51.
    NamespaceTooLong,
    /// The versions of the image and of the installed Dynamo operator do not fit: use images of the operator's minor version.
    VersionSkew,
    /// The router mode is not known to the Dynamo version of the image.
    RouterModeUnsupported,
    /// No AIPerf image: set `benchmark.image` or the operator's `--aiperf-image`.
    AIPerfImageMissing,
    /// `model.cache.volumeClaimTemplate` needs a StorageClass: name one or make one the default.
    StorageClassMissing,
    /// The storage classes cannot be read, so nothing is known about them.
    StorageUnreadable,
    /// The prerequisites are met.
    PrerequisitesMet,
    // ── verdict Error: sizing ──
    /// Waiting for two equal readings of the free GPUs.
    Settling,
    /// GPUs were chosen.
    GPUsChosen,
    /// No eligible node has enough free GPUs: free some, lower `minGPUs`, or raise `timeouts.sizing`.
    Saturated,
    /// A `ResourceQuota` of the namespace has no room for the run: raise it, free some of it, or lower `minGPUs`.
    QuotaExceeded,
    /// A `LimitRange` of the namespace would refuse the run's pods: correct their resources or the `LimitRange`.
    LimitRangeViolated,
    /// No node is eligible: see the reason per node.
    NoCandidateNode,
    /// A driver is still publishing its devices.
    PoolUnsettled,
    /// GPUs of one node are given out by DRA and by a device plugin at once: turn one of them off, or name one in
    /// `placement.allocation`.
    MixedAllocation,
    /// The DeviceClass does not exist: install the GPU driver's DRA resources or correct `deviceClassName`.
    DeviceClassMissing,
    /// A device selector cannot be evaluated, so free GPUs cannot be counted.
    SelectorNotEvaluable,
    /// GPUs cannot be counted because a read failed.
    InventoryUnreadable,
    /// The GPU driver published no devices although the node says it has GPUs: restart its DRA plugin after the driver.
    NoDevicesPublished,
    /// Another run holds the node and does not give it back by itself; the wait counts towards `timeouts.sizing`.
    NodeBusy,
    /// Runs that were asked for earlier come first; the time in the queue does not count towards `timeouts.sizing`.
    InLine,
    /// GPUs that were free at sizing were taken before the workers got them.
    LostRace,
    // ── verdict Error: deploying and starting ──
    /// The API server refused the DynamoGraphDeployment.
    DeploymentRejected,
    /// Whether the API server takes the DynamoGraphDeployment is not known: a webhook does not answer, or the server is in
    /// trouble. It is asked again for two minutes.
    DeploymentUnanswered,
    /// Dynamo's operator reports the deployment as failed, and it did not heal.
    DeploymentFailed,
    /// An object of the same name belongs to another owner.
    NameTaken,
    /// The model cache was not filled in time.
    ModelCacheFailed,
    /// Components are starting.
    Starting,
    /// Every component is ready; whether each worker has a GPU of its own is looked at.
    CheckingGPUs,
    /// Not every component became ready in time.
    WorkloadNotReady,
    /// The API server refuses to create pods: a quota, a policy or a webhook of the namespace.
    PodsRefused,
    /// The node of the run is not Ready, or is gone.
    NodeNotReady,
    /// A volume of a pod is not bound or cannot be mounted.
    VolumeUnavailable,
    /// A pod's image cannot be pulled.
    ImagePullBackOff,
    /// A pod cannot be scheduled.
    Unschedulable,
    /// A claim could not be prepared on the node.
    ClaimPrepareFailed,
    /// The DRA kubelet plugin holds stale device nodes: restart the driver pod, then the DRA plugin pod of the node.
    StaleDRAPlugin,
    /// The DRA kubelet plugin is not registered with the kubelet: start it or restart the kubelet.
    DRAPluginMissing,
    /// The node gave one GPU to two claims.
    DoubleAllocated,
    /// A container keeps crashing.
    CrashLoopBackOff,
    /// A container was killed for its memory use.
    OOMKilled,
    /// The engine finds no GPU in its container: the driver's libraries are not visible there.
    NoGPUInContainer,
    /// Another process uses the memory of a GPU that a worker was given.
    GPUMemoryTaken,
    /// The inference engine died inside its worker.
    EngineDead,
    /// The frontend's discovery panicked: images and Dynamo's operator are of different versions.
    DiscoveryPanic,
    /// There is no model of this name where it is looked for.
    ModelNotFound,
    /// The model is gated, and no token of an account that may read it was given.
    ModelGated,
    /// The model cannot be fetched: its hub is not reached from the pods.
    ModelUnreachable,
    /// The frontend serves models, and `model.name` is not among them.
    ModelNotServed,
    /// The frontend cannot load the model's configuration or tokenizer: check its name, token and network.
    ModelAddFailed,
    /// The frontend finds no worker although all are ready.
    NoInstances,
    /// A container cannot be created from its configuration.
    ContainerConfigError,
    /// The pods are not where or what the plan says: wrong node, shared or missing GPU.
    PlacementBroken,
    /// Probing the endpoint.
    Probing,
    /// A real completion came back.
    CompletionReceived,
    /// No completion came back in time.
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
    /// A gated metric was not reported.
    MetricMissing,
    /// The trial did not end in time.
    BenchmarkTimeout,
    /// The run as a whole took longer than `timeouts.total`; the message says what it waited for.
    DeadlineExceeded,
    /// The Job of a trial was deleted or replaced while the run needed it: see who deletes Jobs in this namespace.
    JobLost,
    // ── the run itself ──
    /// The run is going on.
    Running,
    /// The run is over.
    RunOver,
    /// `spec.suspend` is set.
    Suspended,
    /// What is measured or judged changed; a new run follows.
    SpecChanged,
    /// A rerun was asked for; a new run follows.
    RerunRequested,
    /// The object is being deleted.
    Deleted,
    // ── cleanup ──
    /// Objects, pods and claims are being removed.
    Removing,
    /// Objects, pods and claims are confirmed gone.
    Removed,
    /// The no-cleanup annotation keeps everything.
    NoCleanupRequested,
    /// Something was still there, or could not be read, when `timeouts.cleanup` passed.
    TeardownUnconfirmed,
    // ── not yet known ──
    /// The run has not come this far.
    NotReached,
    /// The operator lacks rights that it needs; the Event and the operator's `/readyz` name them: grant them, and it goes on.
    RightsMissing,
    /// The object cannot be parsed by this operator version; its status is older than the object, except for `Ready`,
    /// `Reconciling` and `Stalled`.
    SpecUnreadable,
}

/// Why something is as it is: a stable word and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Stable word.
    pub reason: Reason,
    /// Text for people.
    pub message: String,
}

impl Why {
    /// A reason with its text.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
