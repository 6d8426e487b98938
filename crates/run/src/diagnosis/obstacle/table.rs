//! Every obstacle, in the order in which a run meets them.

use std::time::Duration;

use perfval_api::Reason;

use super::response::Response;

obstacles! {
    /// Frontend, workers and Dynamo's operator speak to each other in formats that change with every minor version.
    VersionSkew {
        reason: VersionSkew, response: GiveUp, patience: 0,
        seen: "the image's tag and the version of Dynamo's operator differ in MAJOR.MINOR",
        remedy: "use images of the minor version of the installed Dynamo operator",
    }
    /// Load-aware routing came with Dynamo 1.1; older frontends do round-robin without a word, or refuse the flag.
    RouterModeUnsupported {
        reason: RouterModeUnsupported, response: GiveUp, patience: 0,
        seen: "frontend log `invalid choice`, or an image older than 1.1",
        remedy: "use an image of Dynamo 1.1 or later, or routerMode RoundRobin, Random or KV",
    }
    /// Other workloads hold the GPUs, or took them between sizing and scheduling.
    InsufficientGPUs {
        reason: Saturated, response: SizeAgain, patience: 20,
        seen: "pod condition `cannot allocate all claims` or `Insufficient nvidia.com/gpu`; a saturated cluster at sizing",
        remedy: "free GPUs of the node, or lower placement.minGPUs",
    }
    /// The scheduler finds no place for a pod for another reason than GPUs: CPU, memory, taints, affinity, volumes.
    Unschedulable {
        reason: Unschedulable, response: SizeOnceMore, patience: 20,
        seen: "pod condition `PodScheduled=False` with the scheduler's words",
        remedy: "see the scheduler's words: free CPU and memory, or correct placement.tolerations and nodeSelector",
    }
    /// A GPU that was free at sizing was given to another pod, or vanished, before a worker got it.
    LostRace {
        reason: LostRace, response: SizeAgain, patience: 20,
        seen: "a worker without its planned GPU; event `allocatable not found for device`",
        remedy: "keep other workloads off the node while it is validated (taint it)",
    }
    /// The kubelet of the node does not report any more, or the node was deleted: it stopped, lost its network, or was rebooted.
    NodeNotReady {
        reason: NodeNotReady, response: GiveUp, patience: 20,
        seen: "condition `Ready` of the node is not True while pods of the run are not ready, or there is no such node",
        remedy: "see the node: kubectl describe node, its kubelet, its network, its kernel log; what is left there is removed once it is back",
    }
    /// The API server takes the deployment, but not its pods: a policy, Pod Security or a webhook of the namespace refuses them.
    PodsRefused {
        reason: PodsRefused, response: GiveUp, patience: 20,
        seen: "event `FailedCreate` on a ReplicaSet, PodClique or Job of the run, again and again, and fewer pods than asked",
        remedy: "correct what the words name in the workload, or lift the policy or webhook for this namespace",
    }
    /// A `ResourceQuota` has no room for the pods that Dynamo's operator makes; one that was full before is found by sizing.
    QuotaExceeded {
        reason: QuotaExceeded, response: GiveUp, patience: 20,
        seen: "sizing names the quota; or event `FailedCreate` with `exceeded quota`, again and again",
        remedy: "raise the ResourceQuota, free some of it, or lower placement.minGPUs",
    }
    /// A volume claim does not exist or finds no volume, or the node cannot mount it.
    VolumeUnavailable {
        reason: VolumeUnavailable, response: GiveUp, patience: 120,
        seen: "the scheduler says `unbound immediate PersistentVolumeClaims`, `available persistent volumes to bind` or `persistentvolumeclaim … not found`; event `FailedMount` or `FailedAttachVolume`",
        remedy: "see the volume claim's events (kubectl describe pvc): its StorageClass, its provisioner, its size and zone; correct model.cache",
    }
    /// Two claims were given one GPU: a pod was force-deleted, or a second scheduler hands out devices.
    DoubleAllocated {
        reason: DoubleAllocated, response: SizeAgain, patience: 20,
        seen: "pod event `requested device gpu-1 is already allocated to different claim`",
        remedy: "find the force-deleted pod or second scheduler; never force-delete a pod that holds a claim",
    }
    /// The DRA kubelet plugin cached the device nodes before the driver came up. Only restarting it heals that.
    StaleDRAPlugin {
        reason: StaleDRAPlugin, response: GiveUp, patience: 0,
        seen: "pod event `FailedPrepareDynamicResources … invalid CDI Spec … empty device edits`",
        remedy: "restart the GPU driver pod of the node, then its DRA kubelet plugin pod, in this order",
    }
    /// The DRA kubelet plugin of the node is down, or the kubelet restarted and the plugin did not register again.
    DRAPluginMissing {
        reason: DRAPluginMissing, response: GiveUp, patience: 180,
        seen: "pod event `DRA driver gpu.nvidia.com is not registered`",
        remedy: "start the DRA kubelet plugin of the node, or restart its kubelet",
    }
    /// The DRA kubelet plugin refuses a claim: a wedged lock, a corrupted checkpoint, a driver in trouble.
    ClaimPrepareFailed {
        reason: ClaimPrepareFailed, response: GiveUp, patience: 180,
        seen: "pod event `FailedPrepareDynamicResources` with other words",
        remedy: "see the DRA kubelet plugin's log on the node",
    }
    /// The image does not exist, its name is wrong, or the registry refuses this namespace.
    ImagePull {
        reason: ImagePullBackOff, response: GiveUp, patience: 20,
        seen: "container waiting with `ErrImagePull`, `ImagePullBackOff`, `InvalidImageName` or `ErrImageNeverPull`; an error of the network is waited for",
        remedy: "correct the image (workload.dynamo.image; benchmark.image of the load generator), or give its pull secret in podTemplate.spec.imagePullSecrets",
    }
    /// The image, or the program in it, is not for the node's architecture. GB200 and GB300 have arm64 hosts, and many images are for amd64 only.
    OtherArchitecture {
        reason: OtherArchitecture, response: GiveUp, patience: 0,
        seen: "kubelet's message `no match for platform in manifest`, `no matching manifest for` or `exec format error`; or the last in a container's log",
        remedy: "use an image for the node's architecture (kubectl get nodes -L kubernetes.io/arch), or select nodes by kubernetes.io/arch in placement.nodeSelector; if they are equal, correct the command: a script needs a line such as #!/bin/sh",
    }
    /// A Secret or ConfigMap that the container names does not exist, or the runtime refuses its settings.
    ContainerConfigError {
        reason: ContainerConfigError, response: GiveUp, patience: 20,
        seen: "container waiting with `CreateContainerConfigError`, `CreateContainerError` or `RunContainerError`",
        remedy: "correct what the text names: workload.dynamo.env, tokenSecretRef, volumes",
    }
    /// The process uses more memory than its limit; loading weights peaks above their size.
    OOMKilled {
        reason: OOMKilled, response: GiveUp, patience: 0,
        seen: "container ended twice with `OOMKilled`; the first restart is reported and the run continues",
        remedy: "raise workload.dynamo.worker.resources.limits.memory (benchmark.resources of the load generator)",
    }
    /// The driver's libraries are not visible in the container, so the engine finds no CUDA device.
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
    /// No model of this name: a typing error, a private model without a token, or a cache that holds another one.
    ModelNotFound {
        reason: ModelNotFound, response: GiveUp, patience: 0,
        seen: "log `Repository Not Found`, `is not a valid model identifier`, `Repo id must be`, or `Model snapshots for … not found in cache`",
        remedy: "correct model.name; for a private model give model.tokenSecretRef; see what model.cache holds",
    }
    /// The model's owner grants access by account, and the pods came without a token of one that has it.
    ModelGated {
        reason: ModelGated, response: GiveUp, patience: 0,
        seen: "log `Cannot access gated repo` or `GatedRepoError`",
        remedy: "ask for access on the model's page, and give a token of that account in model.tokenSecretRef",
    }
    /// The hub that holds the model is not reached from the pods: no network, no proxy, or an image that stays offline.
    ModelUnreachable {
        reason: ModelUnreachable, response: GiveUp, patience: 0,
        seen: "log `couldn't connect to`, `outgoing traffic has been disabled`, `Max retries exceeded with url` or a name that cannot be resolved",
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
    /// A container ends again and again. The message quotes the most useful line of its log.
    CrashLoop {
        reason: ContainerFailed, response: GiveUp, patience: 0,
        seen: "container waiting with `CrashLoopBackOff` after its third crash; after its second where its log says why",
        remedy: "read the log of the crash: kubectl logs --previous",
    }
    /// Every pass of Dynamo's operator fails. One that heals is waited for.
    DeploymentFailed {
        reason: DeploymentFailed, response: GiveUp, patience: 120,
        seen: "state `failed` of the DynamoGraphDeployment; its message is quoted",
        remedy: "read the message and the log of Dynamo's operator: a missing right, a refused child object",
    }
    /// Dynamo's operator asks a scheduler's queue for the pods, and the queue does not exist.
    QueueMissing {
        reason: DeploymentFailed, response: GiveUp, patience: 0,
        seen: "DynamoGraphDeployment message `failed to determine kai-scheduler queue`",
        remedy: "create the queue, or annotate the namespace's deployments with nvidia.com/kai-scheduler-queue",
    }
    /// The workers serve a model of another name: their arguments or `--served-model-name` differ from `model.name`.
    ModelNotServed {
        reason: ModelNotServed, response: GiveUp, patience: 10,
        seen: "the frontend answers 404, and its `/v1/models` lists other names",
        remedy: "write one of the names that the frontend serves into model.name, or correct the workers' arguments",
    }
    /// A frontend of Dynamo 0.9 together with newer parts: its discovery task panics once and sees no worker any more.
    DiscoveryPanic {
        reason: DiscoveryPanic, response: GiveUp, patience: 0,
        seen: "frontend log `Unfold must not be polled after it returned`, and no answer to requests",
        remedy: "use frontend and worker images of the minor version of Dynamo's operator",
    }
    /// The frontend sees the workers but cannot load the model's tokenizer or configuration, so every call is 404.
    ModelAddFailed {
        reason: ModelAddFailed, response: Wait, patience: 0,
        seen: "frontend log `Error adding model from discovery`, and 404 to requests",
        remedy: "check model.name, its token and the network of the frontend, or give it the weights in model.cache",
    }
    /// The frontend finds no worker: none is ready in the `EndpointSlices`, or they are in another Dynamo namespace.
    NoInstances {
        reason: NoInstances, response: Wait, patience: 0,
        seen: "frontend log `KubeDiscoveryClient::list returning 0 instances`, again and again",
        remedy: "check the workers' readiness, EndpointSlices and DYN_NAMESPACE; see Dynamo's operator for discovery rights",
    }
    /// The frontend answers, but with an error, with nothing, or too late.
    CompletionsFail {
        reason: EndpointNotReady, response: Wait, patience: 0,
        seen: "every component is ready; the message has the frontend's last answer",
        remedy: "see the logs of frontend and workers for this error; raise timeouts.endpointReady for a model with a long start",
    }
}
