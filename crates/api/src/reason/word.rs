//! Words that users meet. A word exists if a person or a program does something different because of it.

use crate::Severity;

/// Declares the words, so that the enum, the status and the documentation come from one list.
macro_rules! words {
    ($($name:ident {
        severity: $severity:ident,
        meaning: $meaning:literal,
        remedy: $remedy:literal,
    })+) => {
        /// Word of a status, a condition, an Event or a finding. A released word never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Word { $(#[doc = $meaning] $name,)+ }

        impl Word {
            /// Words, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Word in status, conditions and Events.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Word with this text.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }

            /// Severity of a finding with this word.
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// Meaning.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }

            /// Remedy.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

words! {
    // ── how a run ended ──
    GatesMet {
        severity: Info,
        meaning: "The trials met every enforced gate as often as the trial rule requires.",
        remedy: "nothing: the deployment may be used",
    }
    GatesMissed {
        severity: Error,
        meaning: "The trials missed an enforced gate as often as the trial rule requires.",
        remedy: "read `status.diagnosis`; if it contains no GPU and no worker, compare the threshold with other runs",
    }
    TrialsDisagree {
        severity: Warning,
        meaning: "The trials still disagree at `trials.max`, or an average is too near its gate.",
        remedy: "raise trials.max, or move the gate away from the usual speed",
    }
    NothingToJudge {
        severity: Info,
        meaning: "The spec has no gate of mode `Enforce`.",
        remedy: "write at least one gate of mode `Enforce`",
    }
    DeadlineExceeded {
        severity: Error,
        meaning: "A trial or the run took too long.",
        remedy: "mend what the run waited for, ask for fewer requests, or raise the time-out in the message",
    }
    Interrupted {
        severity: Warning,
        meaning: "The spec changed, a user requested a rerun or deletion, or a pod of higher priority needs the node.",
        remedy: "nothing: a new run follows, except after a deletion",
    }
    // ── a run in progress, or at rest ──
    Running {
        severity: Info,
        meaning: "The run is in progress.",
        remedy: "nothing: the run goes on by itself",
    }
    InLine {
        severity: Info,
        meaning: "The run waits in a queue.",
        remedy: "wait for the runs in the message, or delete or suspend one of them; give the queue room",
    }
    RunOver {
        severity: Info,
        meaning: "The run is over, and its objects, pods and claims are gone.",
        remedy: "nothing: read the verdict",
    }
    Suspended {
        severity: Info,
        meaning: "`spec.suspend` is set.",
        remedy: "set spec.suspend to false to run",
    }
    NoCleanupRequested {
        severity: Warning,
        meaning: "An annotation keeps all objects of the run, and its GPUs.",
        remedy: "remove the annotation perfvalidation.dev/no-cleanup once you have seen enough",
    }
    TeardownUnconfirmed {
        severity: Warning,
        meaning: "Objects of a run are still in the cluster. The operator keeps trying, except for objects whose owner is gone.",
        remedy: "see the node, and the finalizers of each object in the message (`kubectl get KIND OBJECT -n NAMESPACE -o jsonpath='{.metadata.finalizers}'`)",
    }
    SpecUnreadable {
        severity: Error,
        meaning: "The operator cannot parse the object, or has no room for it. Only `Ready`, `Reconciling` and `Stalled` are current.",
        remedy: "install the operator version that wrote the object, correct the object, or delete finished PerfValidations",
    }
    CallFailed {
        severity: Error,
        meaning: "A call to the API server failed.",
        remedy: "grant the right in the message (config/rbac), or mend the webhook, policy or CRD that refuses; the run then goes on by itself",
    }
    OperatorBug {
        severity: Error,
        meaning: "This object triggers a bug of the operator. Other objects go on.",
        remedy: "report the bug with `kubectl perfval bundle`; edit the spec, request a rerun, or install another version of the operator",
    }
    // ── before the deployment ──
    DynamoNotInstalled {
        severity: Error,
        meaning: "The API server does not serve the DynamoGraphDeployment API.",
        remedy: "install Dynamo's operator, or set workload.dynamo.onMissing to Skip",
    }
    Refused {
        severity: Error,
        meaning: "The cluster refuses the run, or an object of it.",
        remedy: "correct what the message contains: raise the quota, correct the resources or the policy, remove the other object, or use another namespace",
    }
    VersionSkew {
        severity: Error,
        meaning: "Dynamo versions do not match, or do not support the router mode.",
        remedy: "use images of the minor version of the installed Dynamo operator; load-aware router modes need Dynamo 1.1",
    }
    AIPerfMissing {
        severity: Error,
        meaning: "No AIPerf image is set, or it has no program `aiperf`.",
        remedy: "set `PERFVAL_AIPERF_IMAGE`, or a permitted `benchmark.image`, to an image with AIPerf (deploy/images)",
    }
    Saturated {
        severity: Error,
        meaning: "Too few GPUs are free.",
        remedy: "free GPUs (`kubectl perfval clean-up` for a kept run), lower placement.minGPUs, or raise timeouts.sizing",
    }
    Unschedulable {
        severity: Error,
        meaning: "No node fits.",
        remedy: "correct nodeSelector, tolerations or deviceClassName in placement, free CPU and memory, or mend the node in the message",
    }
    GPUShared {
        severity: Warning,
        meaning: "Something else allocates or uses a GPU of the run.",
        remedy: "end what else runs on the GPU (nvidia-smi), let only one of DRA and device plugin allocate GPUs (placement.allocation), and never force-delete a pod with a claim",
    }
    LostRace {
        severity: Error,
        meaning: "A worker does not have its planned GPU.",
        remedy: "keep other workloads off the node (taint it); see which webhook or scheduler changes pods or claims of this namespace",
    }
    // ── deploying and starting ──
    DeploymentFailed {
        severity: Error,
        meaning: "Dynamo's operator cannot create the deployment, or the deployment was deleted.",
        remedy: "read the log of Dynamo's operator: a missing right, a refused child object",
    }
    ModelCacheFailed {
        severity: Error,
        meaning: "The model cache cannot be used.",
        remedy: "see the volume claim's events (kubectl describe pvc) and model.cache: StorageClass, size, zone; raise timeouts.modelCache for a large model",
    }
    NodeNotReady {
        severity: Error,
        meaning: "The node or its GPU driver is not ready.",
        remedy: "see the node (kubectl describe node) and the log of its DRA kubelet plugin; restart the GPU driver pod of the node, then the DRA kubelet plugin pod, in this order",
    }
    ContainerFailed {
        severity: Error,
        meaning: "A container cannot start, or keeps crashing.",
        remedy: "image: correct it, use one for the node's architecture, or add its pull secret to podTemplate.spec.imagePullSecrets; memory (OOMKilled): raise resources.limits.memory; configuration: correct env or Secret; crash: kubectl perfval keep NAME, rerun, read kubectl logs --previous",
    }
    ModelUnavailable {
        severity: Error,
        meaning: "The pods cannot load the model, or serve one of another name.",
        remedy: "correct model.name; for a private or gated model set model.tokenSecretRef; let the pods reach the hub (HTTPS_PROXY or HF_ENDPOINT in workload.dynamo.env), or set model.cache",
    }
    WorkloadNotReady {
        severity: Error,
        meaning: "The components or the endpoint did not become ready in time.",
        remedy: "see events and logs of frontend and workers, and their EndpointSlices; raise timeouts.workloadReady or timeouts.endpointReady for large images or models",
    }
    // ── measuring ──
    BenchmarkFailed {
        severity: Error,
        meaning: "A trial left no usable result.",
        remedy: "see the log of the trial in the results ConfigMap; a removed pod or Job: find the client that deletes it, or raise benchmark.resources; a missing metric: correct what the evidence shows, or gate another one",
    }
    RequestErrors {
        severity: Warning,
        meaning: "More requests failed, or came back short, than `trials.maxFailedRequestsPercent` allows.",
        remedy: "read the errors in the evidence and the logs of frontend and workers; see why a worker died or the frontend restarted",
    }
    WorkerCrashed {
        severity: Error,
        meaning: "A worker's container ended by itself while the run measured.",
        remedy: "see the worker's log in the results ConfigMap; check the GPU for XID errors",
    }
    WorkerRestarted {
        severity: Warning,
        meaning: "A worker was replaced while the run measured.",
        remedy: "find out what removed the pod (evictions, drains, taints) or rebooted the node, and keep it off while the node is validated",
    }
    WorkerStall {
        severity: Warning,
        meaning: "One worker takes several times as long for a request as its peers, or hangs.",
        remedy: "check the GPU of this worker: clocks, temperature, XID errors, neighbours",
    }
    UnevenService {
        severity: Warning,
        meaning: "A worker served no request while others did.",
        remedy: "check the worker's registration with the frontend; raise benchmark.warmupPerConcurrency",
    }
    GeneratorStarved {
        severity: Warning,
        meaning: "The load generator could not keep the requests in flight, or 40 % of their time and at least 100 ms passed outside of the frontend.",
        remedy: "free CPUs of its node; leave cpu out of benchmark.resources, so that it requests one CPU per 100 requests in flight; or lower benchmark.concurrencyPerGPU",
    }
    NodeCPUPressure {
        severity: Warning,
        meaning: "A worker ended without a crash of its own on a node with CPUs 90 % busy or more.",
        remedy: "keep other pods off the node (kubectl top pods -A), or request CPU in workload.dynamo.worker.resources",
    }
    GPUsMissing {
        severity: Warning,
        meaning: "The node has fewer healthy GPUs than `placement.expectGPUs`, its own report, its label or most similar nodes.",
        remedy: "repair the node (nvidia-smi, kernel log, XID errors); if it never had more, correct placement.expectGPUs",
    }
    // ── findings that decide nothing by themselves ──
    SlowWorker {
        severity: Warning,
        meaning: "One worker decodes about 7 % or more slower than its peers at the same batch, or its interval is below 96 % of at least three earlier runs on the same GPU.",
        remedy: "check the GPU in the evidence (nvidia-smi -q -d PERFORMANCE, other processes, XID errors) and the CPUs of its worker; then run again",
    }
    GPUDegraded {
        severity: Warning,
        meaning: "A GPU has errors, throttling, low clocks or a bad link.",
        remedy: "see the evidence: look the XID up in NVIDIA's list; check cooling and power; compare clocks and links with its peers (nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,PCIE; nvidia-smi nvlink -e); reset or replace the GPU",
    }
    FrontendBound {
        severity: Warning,
        meaning: "Requests spend more than 20 % of their time, and over 0.2 s, in the frontend, or its event loop wakes 5 ms late on average.",
        remedy: "lower benchmark.concurrencyPerGPU, raise workload.dynamo.frontend.resources, free CPUs of the frontend's node, or remove its CPU limit (`kubectl get limitranges -n NAMESPACE`); without model.cache, workload.dynamo.frontend.placement Anywhere moves it",
    }
    LatencyMissed {
        severity: Warning,
        meaning: "Only latencies are missed: too many requests in flight, a tail by at most 25 %, or a few late requests.",
        remedy: "nothing, if most trials pass; else lower benchmark.concurrencyPerGPU until few requests wait for an engine",
    }
    BalancedDegradation {
        severity: Warning,
        meaning: "Gates are missed, and no worker explains it.",
        remedy: "check the threshold against this GPU model; then look for what all workers share: image, flags, power limit, driver, network",
    }
    UnsteadySpeed {
        severity: Warning,
        meaning: "One worker stood still for 5 s or more, or both of the last two minutes of a trial were 5 % slower than the first (10 % for one worker).",
        remedy: "see what stopped or slowed the worker: kernel log (XID), CPU throttling, neighbours; compare clocks and temperatures at the start and after ten minutes (nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE)",
    }
    NotSampled {
        severity: Info,
        meaning: "Metrics or an approved baseline are missing. A slow GPU then shows only if it misses a gate.",
        remedy: "let the benchmark pod reach port 9090 of the workers and port 9400 of the DCGM exporter (network policy); correct telemetry.endpoint; measure longer (benchmark.duration)",
    }
}
