//! Every obstacle, in the order in which a run meets them.

use std::time::Duration;

use perfval_api::Reason;

/// Response of a run to an obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Time does not heal it: end the run.
    GiveUp,
    /// The GPUs that sizing saw are gone: size again, a few times.
    SizeAgain,
    /// Sizing may find another node, or a better description of the obstacle: size again, a single time.
    SizeOnceMore,
    /// It may pass: wait until the phase's time limit.
    Wait,
}

impl Response {
    /// The response as the documentation describes it.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::GiveUp => "Error",
            Self::SizeAgain => "sizing again up to three times, then Error",
            Self::SizeOnceMore => "sizing again once, then Error",
            Self::Wait => "Error after the time-out",
        }
    }

    /// Number of times that a run sizes again for it.
    pub fn resizes(self) -> i64 {
        match self {
            // After three lost races a node is too contested to measure on.
            Self::SizeAgain => 3,
            Self::SizeOnceMore => 1,
            Self::GiveUp | Self::Wait => 0,
        }
    }
}

obstacles! {
    /// Parts of Dynamo have different minor versions.
    VersionSkew {
        reason: VersionSkew, response: GiveUp, patience: 0,
        seen: "image tags and Dynamo's operator",
        remedy: "use images of the installed Dynamo operator's minor version",
    }
    /// Load-aware routing needs Dynamo 1.1.
    RouterModeUnsupported {
        reason: RouterModeUnsupported, response: GiveUp, patience: 0,
        seen: "`invalid choice`, or image tag",
        remedy: "use Dynamo 1.1 or later, or routerMode RoundRobin, Random or KV",
    }
    /// Other workloads hold the GPUs.
    InsufficientGPUs {
        reason: Saturated, response: SizeAgain, patience: 20,
        seen: "`cannot allocate all claims` or `Insufficient nvidia.com/gpu`",
        remedy: "free GPUs of the node, or lower placement.minGPUs",
    }
    /// The scheduler finds no place for a pod: CPU, memory, taints, affinity, volumes.
    Unschedulable {
        reason: Unschedulable, response: SizeOnceMore, patience: 20,
        seen: "`PodScheduled=False`",
        remedy: "free CPU and memory, or correct placement.tolerations and nodeSelector",
    }
    /// A queue such as Kueue holds a pod or a Job.
    Queued {
        reason: InLine, response: Wait, patience: 0,
        seen: "`schedulingGates` or `suspend: true`",
        remedy: "wait for the queue (kubectl get workloads.kueue.x-k8s.io -n NAMESPACE), give it room, or take the run out of it",
    }
    /// Another pod took the GPU, or it vanished.
    LostRace {
        reason: LostRace, response: SizeAgain, patience: 20,
        seen: "`allocatable not found for device`",
        remedy: "taint the node, to keep other workloads off",
    }
    /// The node's kubelet does not report, or the node was deleted.
    NodeNotReady {
        reason: NodeNotReady, response: GiveUp, patience: 20,
        seen: "condition `Ready`",
        remedy: "see kubectl describe node, kubelet, network and kernel log; leftovers are removed once the node is back",
    }
    /// A policy, Pod Security or a webhook refuses the pods.
    PodsRefused {
        reason: PodsRefused, response: GiveUp, patience: 20,
        seen: "`FailedCreate`",
        remedy: "correct the workload as the message shows, or lift the policy or webhook",
    }
    /// A `ResourceQuota` has no room for the pods.
    QuotaExceeded {
        reason: QuotaExceeded, response: GiveUp, patience: 20,
        seen: "`exceeded quota`",
        remedy: "raise or free the ResourceQuota, or lower placement.minGPUs",
    }
    /// A volume claim is missing or not bound, or the node cannot mount it.
    VolumeUnavailable {
        reason: VolumeUnavailable, response: GiveUp, patience: 120,
        seen: "`FailedMount` or `FailedAttachVolume`",
        remedy: "see kubectl describe pvc: StorageClass, provisioner, size, zone; correct model.cache",
    }
    /// Two claims have one GPU.
    DoubleAllocated {
        reason: DoubleAllocated, response: SizeAgain, patience: 20,
        seen: "`already allocated to different claim`",
        remedy: "find the second scheduler or force-deleted pod; never force-delete pods with claims",
    }
    /// The DRA kubelet plugin cached the device nodes before the driver started.
    StaleDRAPlugin {
        reason: StaleDRAPlugin, response: GiveUp, patience: 0,
        seen: "`invalid CDI Spec … empty device edits`",
        remedy: "restart the node's GPU driver pod, then its DRA kubelet plugin pod",
    }
    /// The DRA kubelet plugin is down or not registered.
    DRAPluginMissing {
        reason: DRAPluginMissing, response: GiveUp, patience: 180,
        seen: "`DRA driver … is not registered`",
        remedy: "start the DRA kubelet plugin, or restart the kubelet",
    }
    /// The DRA kubelet plugin refuses a claim.
    ClaimPrepareFailed {
        reason: ClaimPrepareFailed, response: GiveUp, patience: 180,
        seen: "`FailedPrepareDynamicResources`",
        remedy: "see the DRA kubelet plugin's log",
    }
    /// The image does not exist, or the registry refuses this namespace.
    ImagePull {
        reason: ImagePullBackOff, response: GiveUp, patience: 20,
        seen: "`ErrImagePull`, `ImagePullBackOff`, `InvalidImageName` or `ErrImageNeverPull`",
        remedy: "correct workload.dynamo.image or benchmark.image, or give podTemplate.spec.imagePullSecrets",
    }
    /// The image, or its program, is not for the node's architecture. GB200 and GB300 have arm64 hosts.
    OtherArchitecture {
        reason: OtherArchitecture, response: GiveUp, patience: 0,
        seen: "`no match for platform in manifest` or `exec format error`",
        remedy: "use an image for the node's architecture, or select nodes by kubernetes.io/arch in placement.nodeSelector (other nodes: WorkloadNode in benchmark.placement or workload.dynamo.frontend.placement); a script must begin with #!/bin/sh",
    }
    /// A Secret or ConfigMap is missing, or the runtime refuses a setting.
    ContainerConfigError {
        reason: ContainerConfigError, response: GiveUp, patience: 20,
        seen: "`CreateContainerConfigError`, `CreateContainerError`, `RunContainerError` or `no runtime for`",
        remedy: "correct workload.dynamo.env, tokenSecretRef, volumes or runtimeClassName (other nodes: WorkloadNode in benchmark.placement or workload.dynamo.frontend.placement)",
    }
    /// The process needs more memory than its limit. Loading weights peaks above their size.
    OOMKilled {
        reason: OOMKilled, response: GiveUp, patience: 0,
        seen: "`OOMKilled` twice",
        remedy: "raise workload.dynamo.worker.resources.limits.memory (or the frontend's)",
    }
    /// The driver's libraries are not visible in the container.
    NoGPUInContainer {
        reason: NoGPUInContainer, response: GiveUp, patience: 0,
        seen: "`Failed to infer device type`",
        remedy: "run nvidia-smi in a pod with a claim; if it shows no GPU, repair driver, CDI or device plugin",
    }
    /// Another process uses the GPU's memory.
    GPUMemoryTaken {
        reason: GPUMemoryTaken, response: GiveUp, patience: 0,
        seen: "`Free memory on device … is less than desired`",
        remedy: "find it with nvidia-smi on the node; let only one of DRA and device plugin allocate GPUs",
    }
    /// The hub or the cache has no such model.
    ModelNotFound {
        reason: ModelNotFound, response: GiveUp, patience: 0,
        seen: "such as `Repository Not Found`",
        remedy: "correct model.name, give model.tokenSecretRef, or check model.cache",
    }
    /// The pods have no token of an account with access.
    ModelGated {
        reason: ModelGated, response: GiveUp, patience: 0,
        seen: "`GatedRepoError`",
        remedy: "ask for access on the model's page; give that account's token in model.tokenSecretRef",
    }
    /// The pods cannot reach the hub.
    ModelUnreachable {
        reason: ModelUnreachable, response: GiveUp, patience: 0,
        seen: "such as `Max retries exceeded with url`",
        remedy: "allow the hub (network policy; HTTPS_PROXY or HF_ENDPOINT in workload.dynamo.env), or give the weights in model.cache",
    }
    /// The weights are larger than their volume.
    CacheFull {
        reason: ModelCacheFailed, response: GiveUp, patience: 0,
        seen: "`No space left on device`",
        remedy: "delete the old volume claim, then raise model.cache.volumeClaimTemplate.storage",
    }
    /// The engine died inside its worker.
    EngineDead {
        reason: EngineDead, response: GiveUp, patience: 0,
        seen: "`EngineDeadError`",
        remedy: "check the GPU for XID errors; run kubectl perfval keep NAME, rerun, read kubectl logs --previous",
    }
    /// A container keeps crashing.
    CrashLoop {
        reason: ContainerFailed, response: GiveUp, patience: 0,
        seen: "third crash, or second if the log explains it",
        remedy: "run kubectl perfval keep NAME, rerun, read kubectl logs --previous",
    }
    /// A sidecar outlives its Job.
    SidecarRuns {
        reason: ContainerFailed, response: GiveUp, patience: 60,
        seen: "`aiperf` or `fill` terminated",
        remedy: "switch its injection off in podTemplate.metadata, or make it a native sidecar",
    }
    /// Dynamo's operator keeps failing.
    DeploymentFailed {
        reason: DeploymentFailed, response: GiveUp, patience: 120,
        seen: "DynamoGraphDeployment state `failed`",
        remedy: "read the log of Dynamo's operator: a missing right, a refused child object",
    }
    /// The workers serve another name than `model.name`.
    ModelNotServed {
        reason: ModelNotServed, response: GiveUp, patience: 10,
        seen: "the frontend's `/v1/models`",
        remedy: "write a served name into model.name, or correct the workers' arguments",
    }
    /// A frontend of Dynamo 0.9 panics with newer parts.
    DiscoveryPanic {
        reason: DiscoveryPanic, response: GiveUp, patience: 0,
        seen: "`Unfold must not be polled after it returned`",
        remedy: "use frontend and worker images of one minor version with Dynamo's operator",
    }
    /// The frontend cannot load the tokenizer or configuration, so every call is 404.
    ModelAddFailed {
        reason: ModelAddFailed, response: Wait, patience: 0,
        seen: "`Error adding model from discovery`",
        remedy: "check model.name, token and network of the frontend, or set model.cache",
    }
    /// The frontend finds no ready worker in its Dynamo namespace.
    NoInstances {
        reason: NoInstances, response: Wait, patience: 0,
        seen: "repeated `returning 0 instances`",
        remedy: "check readiness of the workers, EndpointSlices, DYN_NAMESPACE and discovery rights",
    }
    /// The frontend answers with an error, nothing, or too late.
    CompletionsFail {
        reason: EndpointNotReady, response: Wait, patience: 0,
        seen: "the message contains the answer",
        remedy: "see the logs of frontend and workers; raise timeouts.endpointReady for a long start",
    }
}
