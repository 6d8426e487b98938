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
            Self::SizeAgain => "sizing, at most three times, then Error",
            Self::SizeOnceMore => "sizing, once, then Error",
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
    /// The formats between frontend, workers and Dynamo's operator change with every minor version.
    VersionSkew {
        reason: VersionSkew, response: GiveUp, patience: 0,
        seen: "image tag and Dynamo's operator differ in MAJOR.MINOR",
        remedy: "use images of the minor version of the installed Dynamo operator",
    }
    /// Load-aware routing came with Dynamo 1.1. Older frontends refuse the flag, or do round-robin.
    RouterModeUnsupported {
        reason: RouterModeUnsupported, response: GiveUp, patience: 0,
        seen: "frontend log `invalid choice`, or an image older than 1.1",
        remedy: "use an image of Dynamo 1.1 or later, or routerMode RoundRobin, Random or KV",
    }
    /// Other workloads hold the GPUs, or took them between sizing and scheduling.
    InsufficientGPUs {
        reason: Saturated, response: SizeAgain, patience: 20,
        seen: "pod condition `cannot allocate all claims` or `Insufficient nvidia.com/gpu`",
        remedy: "free GPUs of the node, or lower placement.minGPUs",
    }
    /// The scheduler finds no place for a pod for another reason than GPUs: CPU, memory, taints, affinity, volumes.
    Unschedulable {
        reason: Unschedulable, response: SizeOnceMore, patience: 20,
        seen: "pod condition `PodScheduled=False`",
        remedy: "see the scheduler's words: free CPU and memory, or correct placement.tolerations and nodeSelector",
    }
    /// A queue outside of this operator, such as Kueue, holds a pod or a Job back.
    Queued {
        reason: InLine, response: Wait, patience: 0,
        seen: "`schedulingGates` of a pod, `suspend: true` of a Job",
        remedy: "wait for the queue (kubectl get workloads.kueue.x-k8s.io -n NAMESPACE), give it room, or take these pods and Jobs out of it",
    }
    /// A GPU that was free at sizing was given to another pod, or vanished.
    LostRace {
        reason: LostRace, response: SizeAgain, patience: 20,
        seen: "event `allocatable not found for device`",
        remedy: "keep other workloads off the node while it is validated (taint it)",
    }
    /// The kubelet of the node does not report, or the node was deleted.
    NodeNotReady {
        reason: NodeNotReady, response: GiveUp, patience: 20,
        seen: "node condition `Ready` is not True",
        remedy: "see the node: kubectl describe node, its kubelet, its network, its kernel log; what is left there is removed once it is back",
    }
    /// A policy, Pod Security or a webhook of the namespace refuses the pods.
    PodsRefused {
        reason: PodsRefused, response: GiveUp, patience: 20,
        seen: "event `FailedCreate` on a ReplicaSet, PodClique or Job, again and again",
        remedy: "correct what the words name in the workload, or lift the policy or webhook for this namespace",
    }
    /// A `ResourceQuota` has no room for the pods.
    QuotaExceeded {
        reason: QuotaExceeded, response: GiveUp, patience: 20,
        seen: "sizing, or event `FailedCreate` with `exceeded quota`",
        remedy: "raise the ResourceQuota, free some of it, or lower placement.minGPUs",
    }
    /// A volume claim does not exist or finds no volume, or the node cannot mount it.
    VolumeUnavailable {
        reason: VolumeUnavailable, response: GiveUp, patience: 120,
        seen: "scheduler message `unbound immediate PersistentVolumeClaims`, `available persistent volumes to bind` or `persistentvolumeclaim … not found`; event `FailedMount` or `FailedAttachVolume`",
        remedy: "see the volume claim's events (kubectl describe pvc): its StorageClass, its provisioner, its size and zone; correct model.cache",
    }
    /// Two claims have one GPU: a pod was force-deleted, or a second scheduler allocates devices.
    DoubleAllocated {
        reason: DoubleAllocated, response: SizeAgain, patience: 20,
        seen: "pod event `requested device gpu-1 is already allocated to different claim`",
        remedy: "find the force-deleted pod or second scheduler; never force-delete a pod that holds a claim",
    }
    /// The DRA kubelet plugin cached the device nodes before the driver started.
    StaleDRAPlugin {
        reason: StaleDRAPlugin, response: GiveUp, patience: 0,
        seen: "pod event `FailedPrepareDynamicResources … invalid CDI Spec … empty device edits`",
        remedy: "restart the GPU driver pod of the node, then its DRA kubelet plugin pod, in this order",
    }
    /// The DRA kubelet plugin of the node is down, or did not register again after a restart of the kubelet.
    DRAPluginMissing {
        reason: DRAPluginMissing, response: GiveUp, patience: 180,
        seen: "pod event `DRA driver gpu.nvidia.com is not registered`",
        remedy: "start the DRA kubelet plugin of the node, or restart its kubelet",
    }
    /// The DRA kubelet plugin refuses a claim: a wedged lock, a corrupted checkpoint, a driver in trouble.
    ClaimPrepareFailed {
        reason: ClaimPrepareFailed, response: GiveUp, patience: 180,
        seen: "pod event `FailedPrepareDynamicResources`",
        remedy: "see the DRA kubelet plugin's log on the node",
    }
    /// The image does not exist, its name is wrong, or the registry refuses this namespace.
    ImagePull {
        reason: ImagePullBackOff, response: GiveUp, patience: 20,
        seen: "container waits with `ErrImagePull`, `ImagePullBackOff`, `InvalidImageName` or `ErrImageNeverPull`, without a network error",
        remedy: "correct the image (workload.dynamo.image; benchmark.image of the load generator), or give its pull secret in podTemplate.spec.imagePullSecrets",
    }
    /// The image, or the program in it, is not for the node's architecture. GB200 and GB300 have arm64 hosts.
    OtherArchitecture {
        reason: OtherArchitecture, response: GiveUp, patience: 0,
        seen: "kubelet or log `no match for platform in manifest`, `no matching manifest for` or `exec format error`",
        remedy: "use an image for the node's architecture (kubectl get nodes -L kubernetes.io/arch), or select nodes by kubernetes.io/arch in placement.nodeSelector; if they are equal, correct the command: a script needs a line such as #!/bin/sh",
    }
    /// A Secret or ConfigMap of the container does not exist, or the runtime refuses its settings.
    ContainerConfigError {
        reason: ContainerConfigError, response: GiveUp, patience: 20,
        seen: "container waits with `CreateContainerConfigError`, `CreateContainerError` or `RunContainerError`",
        remedy: "correct what the text names: workload.dynamo.env, tokenSecretRef, volumes",
    }
    /// The process uses more memory than its limit. Loading weights peaks above their size.
    OOMKilled {
        reason: OOMKilled, response: GiveUp, patience: 0,
        seen: "container ended twice with `OOMKilled`",
        remedy: "raise workload.dynamo.worker.resources.limits.memory (benchmark.resources of the load generator)",
    }
    /// The driver's libraries are not visible in the container.
    NoGPUInContainer {
        reason: NoGPUInContainer, response: GiveUp, patience: 0,
        seen: "worker log `Failed to infer device type`",
        remedy: "check that the node's driver and CDI or device plugin inject the GPU: run nvidia-smi in a pod with a claim",
    }
    /// Another process uses the GPU's memory: DRA and a device plugin both allocated the GPU, or the process runs outside Kubernetes.
    GPUMemoryTaken {
        reason: GPUMemoryTaken, response: GiveUp, patience: 0,
        seen: "worker log `Free memory on device … is less than desired GPU memory utilization`",
        remedy: "find the other process with nvidia-smi on the node; let only one of DRA and device plugin give out GPUs",
    }
    /// No model has this name: a typing error, a private model without a token, or a cache with another model.
    ModelNotFound {
        reason: ModelNotFound, response: GiveUp, patience: 0,
        seen: "log `Repository Not Found`, `is not a valid model identifier`, `Repo id must be`, or `Model snapshots for … not found in cache`",
        remedy: "correct model.name; for a private model give model.tokenSecretRef; see what model.cache holds",
    }
    /// The model's owner grants access by account, and the pods have no token of such an account.
    ModelGated {
        reason: ModelGated, response: GiveUp, patience: 0,
        seen: "log `Cannot access gated repo` or `GatedRepoError`",
        remedy: "ask for access on the model's page, and give a token of that account in model.tokenSecretRef",
    }
    /// The pods cannot reach the hub: no network, no proxy, or an offline image.
    ModelUnreachable {
        reason: ModelUnreachable, response: GiveUp, patience: 0,
        seen: "log `couldn't connect to`, `outgoing traffic has been disabled` or `Max retries exceeded with url`",
        remedy: "give the pods a way to the hub (network policy, HTTPS_PROXY or HF_ENDPOINT in workload.dynamo.env), or the weights in model.cache",
    }
    /// The weights are larger than their volume.
    CacheFull {
        reason: ModelCacheFailed, response: GiveUp, patience: 0,
        seen: "log `No space left on device`",
        remedy: "raise model.cache.volumeClaimTemplate.storage above the size of the weights, and delete the old volume claim",
    }
    /// The inference engine died inside its worker.
    EngineDead {
        reason: EngineDead, response: GiveUp, patience: 0,
        seen: "worker log `EngineDeadError` or `AsyncLLM health check failed`",
        remedy: "read the lines before it in the worker's log (kubectl logs --previous); check the GPU for XID errors",
    }
    /// A container keeps crashing. The message quotes the most useful line of its log.
    CrashLoop {
        reason: ContainerFailed, response: GiveUp, patience: 0,
        seen: "`CrashLoopBackOff` after the third crash, or the second if the log explains it",
        remedy: "read the log of the crash: kubectl logs --previous",
    }
    /// Dynamo's operator keeps failing.
    DeploymentFailed {
        reason: DeploymentFailed, response: GiveUp, patience: 120,
        seen: "DynamoGraphDeployment state `failed`",
        remedy: "read the message and the log of Dynamo's operator: a missing right, a refused child object",
    }
    /// The workers serve a model of another name than `model.name`.
    ModelNotServed {
        reason: ModelNotServed, response: GiveUp, patience: 10,
        seen: "the frontend answers 404, and its `/v1/models` lists other names",
        remedy: "write one of the names that the frontend serves into model.name, or correct the workers' arguments",
    }
    /// A frontend of Dynamo 0.9 runs with newer parts, and its discovery task panics.
    DiscoveryPanic {
        reason: DiscoveryPanic, response: GiveUp, patience: 0,
        seen: "frontend log `Unfold must not be polled after it returned`",
        remedy: "use frontend and worker images of the minor version of Dynamo's operator",
    }
    /// The frontend cannot load the model's tokenizer or configuration, so every call is 404.
    ModelAddFailed {
        reason: ModelAddFailed, response: Wait, patience: 0,
        seen: "frontend log `Error adding model from discovery`",
        remedy: "check model.name, its token and the network of the frontend, or give it the weights in model.cache",
    }
    /// The frontend finds no worker: none is ready in the `EndpointSlices`, or they are in another Dynamo namespace.
    NoInstances {
        reason: NoInstances, response: Wait, patience: 0,
        seen: "frontend log `KubeDiscoveryClient::list returning 0 instances`, again and again",
        remedy: "check the workers' readiness, EndpointSlices and DYN_NAMESPACE; see Dynamo's operator for discovery rights",
    }
    /// The frontend answers with an error, with nothing, or too late.
    CompletionsFail {
        reason: EndpointNotReady, response: Wait, patience: 0,
        seen: "the message contains its last answer",
        remedy: "see the logs of frontend and workers for this error; raise timeouts.endpointReady for a model with a long start",
    }
}
