//! What keeps a deployment from being measured: the stable names in status, each with what it looks like, why it
//! happens, what to do, and what the run makes of it.

use perfval_api::{Finding, Reason, Severity};

/// Longest evidence (bytes): it must fit into a condition together with its remedy.
const EVIDENCE: usize = 400;

/// A first completion that takes this long (s) is a cold start.
pub const COLD_SECONDS: u64 = 20;

/// What a run makes of an obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Time does not heal it: end the run.
    GiveUp,
    /// The GPUs that sizing saw are gone: size again, a few times.
    SizeAgain,
    /// It may pass: wait until the phase's time limit.
    Wait,
    /// It is only reported.
    Report,
}

impl Response {
    /// What the documentation says of it.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::GiveUp => "the run ends at once with verdict Error",
            Self::SizeAgain => "the run sizes again, at most three times, then ends with verdict Error",
            Self::Wait => "the run waits until its time limit, then ends with verdict Error",
            Self::Report => "none: it is reported",
        }
    }
}

/// Declares the obstacles with their documentation, so that the enum, its words and the page are one list.
macro_rules! obstacles {
    ($($(#[doc = $why:literal])+ $name:ident {
        reason: $reason:ident, response: $response:ident, seen: $seen:literal, remedy: $remedy:literal $(,)?
    })+) => {
        /// What keeps a deployment from being measured. Never reworded once released.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Obstacle { $($(#[doc = $why])+ $name,)+ }

        impl Obstacle {
            /// Every obstacle, in the order in which a run meets them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word in `status.diagnosis`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// The reason of a run that ends here.
            pub fn reason(self) -> Reason {
                match self { $(Self::$name => Reason::$reason,)+ }
            }

            /// What the run makes of it.
            pub fn response(self) -> Response {
                match self { $(Self::$name => Response::$response,)+ }
            }

            /// What it looks like in the cluster.
            pub fn seen(self) -> &'static str {
                match self { $(Self::$name => $seen,)+ }
            }

            /// Why it happens.
            pub fn why(self) -> &'static str {
                match self { $(Self::$name => concat!($($why,)+).trim_ascii(),)+ }
            }

            /// What to do about it.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

obstacles! {
    /// Frontend, workers and Dynamo's operator speak to each other in formats that change with every minor version.
    VersionSkew {
        reason: VersionSkew, response: GiveUp,
        seen: "the image's tag and the version of Dynamo's operator differ in MAJOR.MINOR",
        remedy: "use images of the minor version of the installed Dynamo operator",
    }
    /// Load-aware routing came with Dynamo 1.1; older frontends do round-robin without a word, or refuse the flag.
    RouterModeUnsupported {
        reason: RouterModeUnsupported, response: GiveUp,
        seen: "frontend log `invalid choice`, or an image older than 1.1",
        remedy: "use an image of Dynamo 1.1 or later, or routerMode RoundRobin, Random or KV",
    }
    /// Other workloads hold the GPUs, or took them between sizing and scheduling.
    InsufficientGPUs {
        reason: Unschedulable, response: SizeAgain,
        seen: "pod condition `cannot allocate all claims` or `Insufficient nvidia.com/gpu`; a saturated cluster at sizing",
        remedy: "free GPUs of the node, or lower placement.minGPUs",
    }
    /// The scheduler finds no place for a pod for another reason than GPUs: CPU, memory, taints, affinity, volumes.
    Unschedulable {
        reason: Unschedulable, response: SizeAgain,
        seen: "pod condition `PodScheduled=False` with the scheduler's words",
        remedy: "see the scheduler's words: free CPU and memory, or correct placement.tolerations and nodeSelector",
    }
    /// A GPU that was free at sizing was given to another pod, or vanished, before a worker got it.
    LostRace {
        reason: LostRace, response: SizeAgain,
        seen: "a worker without its planned GPU; event `allocatable not found for device`",
        remedy: "keep other workloads off the node while it is validated (taint it)",
    }
    /// Two claims were given one GPU: a pod was force-deleted, or a second scheduler hands out devices.
    DoubleAllocated {
        reason: DoubleAllocated, response: SizeAgain,
        seen: "pod event `requested device gpu-1 is already allocated to different claim`",
        remedy: "find the force-deleted pod or second scheduler; never force-delete a pod that holds a claim",
    }
    /// The DRA kubelet plugin cached the device nodes before the driver came up. Only restarting it heals that.
    StaleDRAPlugin {
        reason: StaleDRAPlugin, response: GiveUp,
        seen: "pod event `FailedPrepareDynamicResources … invalid CDI Spec … empty device edits`",
        remedy: "restart the GPU driver pod of the node, then its DRA kubelet plugin pod, in this order",
    }
    /// The DRA kubelet plugin of the node is down, or the kubelet restarted and the plugin did not register again.
    DRAPluginMissing {
        reason: DRAPluginMissing, response: GiveUp,
        seen: "pod event `DRA driver gpu.nvidia.com is not registered`, for three minutes",
        remedy: "start the DRA kubelet plugin of the node, or restart its kubelet",
    }
    /// The DRA kubelet plugin refuses a claim: a wedged lock, a corrupted checkpoint, a driver in trouble.
    ClaimPrepareFailed {
        reason: ClaimPrepareFailed, response: GiveUp,
        seen: "pod event `FailedPrepareDynamicResources` with other words, for three minutes",
        remedy: "see the DRA kubelet plugin's log on the node",
    }
    /// The image does not exist, its name is wrong, or the registry refuses this namespace.
    ImagePull {
        reason: ImagePullBackOff, response: GiveUp,
        seen: "container waiting with `ImagePullBackOff`, `InvalidImageName` or `ErrImageNeverPull`",
        remedy: "correct workload.image, or give its pull secret in workload.imagePullSecrets",
    }
    /// A Secret or ConfigMap that the container names does not exist, or the runtime refuses its settings.
    ContainerConfigError {
        reason: ContainerConfigError, response: GiveUp,
        seen: "container waiting with `CreateContainerConfigError`, `CreateContainerError` or `RunContainerError`",
        remedy: "correct what the text names: workload.env, tokenSecretRef, volumes",
    }
    /// The process uses more memory than its limit; loading weights peaks above their size.
    OOMKilled {
        reason: OOMKilled, response: GiveUp,
        seen: "container ended twice with `OOMKilled`",
        remedy: "raise workload.resources.limits.memory",
    }
    /// The driver's libraries are not visible in the container, so the engine finds no CUDA device.
    NoGPUInContainer {
        reason: NoGPUInContainer, response: GiveUp,
        seen: "worker log `Failed to infer device type`",
        remedy: "check that the node's driver and CDI or device plugin inject the GPU: run nvidia-smi in a pod with a claim",
    }
    /// Another process uses the GPU's memory: DRA and a device plugin both allocated the GPU, or the process runs outside Kubernetes.
    GPUMemoryTaken {
        reason: GPUMemoryTaken, response: GiveUp,
        seen: "worker log `Free memory on device … is less than desired GPU memory utilization`",
        remedy: "find the other process with nvidia-smi on the node; let only one of DRA and device plugin give out GPUs",
    }
    /// The inference engine died inside its worker.
    EngineDead {
        reason: EngineDead, response: GiveUp,
        seen: "worker log `EngineDeadError` or `AsyncLLM health check failed`",
        remedy: "read the lines before it in the worker's log (kubectl logs --previous); check the GPU for XID errors",
    }
    /// A container ends again and again. The message quotes the line of its log that says most.
    CrashLoop {
        reason: CrashLoopBackOff, response: GiveUp,
        seen: "container waiting with `CrashLoopBackOff`",
        remedy: "read the log of the crash: kubectl logs --previous",
    }
    /// Dynamo's operator asks a scheduler's queue for the pods, and the queue does not exist.
    QueueMissing {
        reason: DeploymentFailed, response: GiveUp,
        seen: "DynamoGraphDeployment message `failed to determine kai-scheduler queue`",
        remedy: "create the queue, or annotate the namespace's deployments with nvidia.com/kai-scheduler-queue",
    }
    /// A frontend of Dynamo 0.9 together with newer parts: its discovery task panics once and sees no worker any more.
    DiscoveryPanic {
        reason: DiscoveryPanic, response: GiveUp,
        seen: "frontend log `Unfold must not be polled after it returned`, and no answer to requests",
        remedy: "use frontend and worker images of the minor version of Dynamo's operator",
    }
    /// The frontend sees the workers but cannot load the model's tokenizer or configuration, so every call is 404.
    ModelAddFailed {
        reason: ModelAddFailed, response: Wait,
        seen: "frontend log `Error adding model from discovery`, and 404 to requests",
        remedy: "check model.name, its token and the network of the frontend, or give it the weights in model.cache",
    }
    /// The frontend finds no worker: none is ready in the `EndpointSlices`, or they are in another Dynamo namespace.
    NoInstances {
        reason: NoInstances, response: Wait,
        seen: "frontend log `KubeDiscoveryClient::list returning 0 instances`, again and again",
        remedy: "check the workers' readiness, EndpointSlices and DYN_NAMESPACE; see Dynamo's operator for discovery rights",
    }
    /// The first completion of a fresh deployment loads kernels and caches: 30 to 42 s were measured on real GPUs.
    ColdStart {
        reason: CompletionReceived, response: Report,
        seen: "the first completion took 20 s or longer",
        remedy: "nothing to do: trials are warmed up; status.workload.firstCompletionSeconds says how long it took",
    }
}

impl Obstacle {
    /// The obstacle behind a reason with which a run ends.
    pub fn behind(reason: Reason) -> Option<Self> {
        match reason {
            Reason::Saturated => Some(Self::InsufficientGPUs),
            // A worker is unschedulable for more than one reason, and the deployment fails for more than one.
            Reason::Unschedulable | Reason::DeploymentFailed | Reason::CompletionReceived => None,
            other => Self::ALL.iter().copied().find(|obstacle| obstacle.reason() == other),
        }
    }

    /// The finding that status shows.
    pub fn finding(self, evidence: &str) -> Finding {
        Finding {
            cause: self.as_str().into(),
            severity: match self.response() {
                Response::GiveUp => Severity::Error,
                Response::SizeAgain | Response::Wait => Severity::Warning,
                Response::Report => Severity::Info,
            },
            evidence: perfval_api::text::cut(evidence, EVIDENCE),
            remedy: self.remedy().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COLD_SECONDS, Obstacle};

    #[test]
    fn the_page_says_the_figures_of_the_code() {
        let seen = Obstacle::ColdStart.seen();
        assert!(seen.contains(&format!("{COLD_SECONDS} s")), "{seen}");
    }
}
