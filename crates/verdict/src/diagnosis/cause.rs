//! What explains a trial: the stable names of status, each with its weight, its remedy and its page.

use perfval_api::{Finding, Reason, Severity, WorkerLoss};

/// Longest evidence (bytes): every cause at once must still fit into the status.
const EVIDENCE: usize = 400;

/// A cause with what was seen of it.
pub type Explained = (Cause, String);

/// Causes that a trial and a status show.
pub const SHOWN: usize = 3;

/// What a trial becomes for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was not measured.
    Invalid,
    /// It was measured, and the numbers are not to be trusted.
    Untrusted,
    /// The deployment is broken, whatever other trials show.
    FailsTheRun,
    /// The run does not pass where the spec says how many GPUs there are.
    FailsWhereExpected,
    /// A miss.
    Miss,
    /// A miss that no gate needs to show.
    MissDespiteGates,
    /// A miss that no repetition changes.
    FarMiss,
    /// It stays what the gates make of it.
    Reported,
}

impl Effect {
    /// What the documentation says of it.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Invalid => "the trial is Invalid; two in a row end the run with Error",
            Self::Untrusted => "the trial is Invalid; two in a row end the run with Inconclusive",
            Self::FailsTheRun => "the run ends with Failed, even if its other trials pass",
            Self::FailsWhereExpected => {
                "with `placement.expectGPUs` the run is Failed where its gates are met; without it is reported"
            }
            Self::Miss => "the trial is a Miss",
            Self::MissDespiteGates => "the trial is a Miss, even if every gate is met",
            Self::FarMiss => "the trial is a Miss; two of them fail the run at once",
            Self::Reported => "none: it is reported",
        }
    }
}

/// Declares the causes with their documentation, so that the enum, its words and the page are one list.
macro_rules! causes {
    (@reason -) => { None };
    (@reason $reason:ident) => { Some(Reason::$reason) };
    ($($(#[doc = $doc:literal])+ $name:ident {
        reason: $reason:tt, severity: $severity:ident, effect: $effect:ident,
        seen: $seen:literal, why: $why:literal, remedy: $remedy:literal $(,)?
    })+) => {
        /// What explains a trial's outcome. Never reworded once released.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause { $($(#[doc = $doc])+ $name,)+ }

        impl Cause {
            /// Every cause, the most telling first: what names a thing to look at goes before what only says how bad it is.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name,)+];

            /// The word in status.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// The reason of a run that ends for this cause alone.
            pub fn reason(self) -> Option<Reason> {
                match self { $(Self::$name => causes!(@reason $reason),)+ }
            }

            fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// What the trial becomes.
            pub fn effect(self) -> Effect {
                match self { $(Self::$name => Effect::$effect,)+ }
            }

            /// What it looks like.
            pub fn seen(self) -> &'static str {
                match self { $(Self::$name => $seen,)+ }
            }

            /// Why it happens.
            pub fn why(self) -> &'static str {
                match self { $(Self::$name => $why,)+ }
            }

            /// What to do about it.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

causes! {
    /// The node has fewer healthy GPUs than it should have.
    GPUsMissing {
        reason: GPUsMissing, severity: Warning, effect: FailsWhereExpected,
        seen: "`status.placement.expected`: the node has fewer healthy GPUs than `placement.expectGPUs` asks for, or than the node itself, its label `nvidia.com/gpu.count` or most nodes like it say",
        why: "a GPU fell off the bus, is unhealthy or tainted, or its driver does not publish it",
        remedy: "look for the GPUs on the node (nvidia-smi, kernel log, XID errors) and repair it; if it never had more, say so in placement.expectGPUs",
    }
    /// A worker died, and the router fed it: it refuses at once, so it always looks idle (Dynamo 1.1–1.4).
    DeadWorkerBlackHole {
        reason: RequestErrors, severity: Warning, effect: Miss,
        seen: "most requests failed within seconds, and one worker is gone",
        why: "a dead worker refuses at once, so it always looks least loaded, and the router feeds it everything (Dynamo 1.1 to 1.4)",
        remedy: "see why the worker died; Dynamo 1.5 and later route around a dead worker",
    }
    /// A worker's container ended by itself and was started again.
    WorkerCrashed {
        reason: WorkerCrashed, severity: Error, effect: FailsTheRun,
        seen: "a worker's restart count rose during a trial or between two, or its process began anew, in the same pod",
        why: "the engine crashed under load, ran out of memory, or failed its liveness probe",
        remedy: "see the worker's previous log (kubectl logs --previous) and its exit code; check the GPU for XID errors",
    }
    /// A worker was ended, and not by a crash of its own, on a node without free CPUs.
    NodeCPUPressure {
        reason: NodeCPUPressure, severity: Warning, effect: Untrusted,
        seen: "the node's CPUs were 90 % busy or more in the measured phase, and threads waited for one in half of the time or more (`/proc/stat` and `/proc/pressure/cpu` of the node under test); and a worker's liveness or startup probe ended it, or it ended with exit code 0 or 143, or with 137 and no event shows who killed it",
        why: "the worker got no CPU, so that it answered neither its probe nor its requests in time; that shows nothing of its GPU",
        remedy: "keep off the node what uses its CPUs (kubectl top pods -A), or let the workers request the CPU that they need (workload.dynamo.worker.resources)",
    }
    /// One worker is much slower than its peers.
    WorkerStall {
        reason: WorkerStall, severity: Warning, effect: MissDespiteGates,
        seen: "a request takes one worker several times as long as its peers, or the worker neither moves nor answers to the end",
        why: "its GPU is slow (clocks, temperature, a neighbour, XID errors), or its engine hangs",
        remedy: "check the GPU of this worker: clocks, temperature, XID errors, neighbours",
    }
    /// One worker decodes slower than its peers.
    SlowWorker {
        reason: -, severity: Warning, effect: Reported,
        seen: "the engine of one worker takes longer from token to token than its peers' at the same batch: on average over the trials of the run it loses more against their median than one of as many healthy GPUs loses in 1 of 100 runs (about 7 %, more where the trials are short), or against the fastest worker than in 1 of 1,000 (about 12 %). Or its speed with its interval lies below 96 % of that of at least 3 earlier runs that passed on the same GPU under the same settings",
        why: "its GPU is slow (clocks, temperature, a foreign process, failing memory), or its CPUs are far or busy",
        remedy: "check the GPU that the evidence names (nvidia-smi -q -d PERFORMANCE, other processes, XID errors) and the CPUs of its worker; then run again to see whether it is the same GPU",
    }
    /// A worker's pod was removed or replaced, or its node was rebooted.
    WorkerRestarted {
        reason: WorkerRestarted, severity: Warning, effect: Untrusted,
        seen: "a worker's pod was replaced during a trial or between two, or its container was gone when the container runtime began anew",
        why: "the pod was deleted or evicted, or the node was rebooted",
        remedy: "see who removed the pod (evictions, drains, taints) or rebooted the node, and keep them off it while it is validated",
    }
    /// A worker holds another GPU than at the start.
    GPUChanged {
        reason: GPUChanged, severity: Warning, effect: Untrusted,
        seen: "a worker holds another GPU at the end of the trial than at its start",
        why: "its pod or claim was replaced",
        remedy: "something replaced the worker during the trial: look for evictions and device taints",
    }
    /// A worker served nothing.
    UnevenService {
        reason: UnevenService, severity: Warning, effect: Untrusted,
        seen: "a worker that served no request while others did",
        why: "it is not registered with the frontend, or the router never chose it",
        remedy: "see whether the worker is registered with the frontend; raise warmupPerConcurrency",
    }
    /// The load generator could not keep up.
    GeneratorStarved {
        reason: GeneratorStarved, severity: Warning, effect: Untrusted,
        seen: "40 % of a request's mean time or more, and at least 100 ms, passed outside of the frontend: AIPerf measured it, and the frontend's own histogram does not contain it. Or requests waited inside AIPerf, and fewer were in flight than asked, or its cgroup was throttled or pressed for CPU",
        why: "the load generator has too little CPU, so it measured itself; or the network between it and the frontend is slow",
        remedy: "see what else uses the CPUs of its node; leave cpu out of benchmark.resources, so that it asks for one CPU per 100 requests in flight; or lower concurrencyPerGPU",
    }
    /// The load generator's image has no program to run.
    AIPerfMissing {
        reason: AIPerfMissing, severity: Error, effect: Invalid,
        seen: "the runner cannot start `aiperf`: no such file, or not executable",
        why: "`benchmark.image`, or the operator's `PERFVAL_AIPERF_IMAGE`, is not an image with AIPerf on its PATH",
        remedy: "name an image with AIPerf in benchmark.image (deploy/images has its Dockerfile)",
    }
    /// The load generator's pod was removed by the kubelet, a drain or a pod of higher priority.
    LoadGeneratorEvicted {
        reason: LoadGeneratorEvicted, severity: Error, effect: Invalid,
        seen: "the trial's pod is Failed with reason `Evicted`, or has the condition `DisruptionTarget`",
        why: "its node ran out of memory, disk or process ids, was drained, or a pod of higher priority took the place",
        remedy: "see the words of the evidence; give the load generator its own memory (benchmark.resources) or another node (benchmark.placement: Anywhere, without model.cache)",
    }
    /// AIPerf left nothing to judge.
    BenchmarkFailed {
        reason: BenchmarkFailed, severity: Error, effect: Invalid,
        seen: "a Job that ended without a result",
        why: "AIPerf could not start, could not load the tokenizer, or was killed",
        remedy: "see the log of the trial's pod in the results ConfigMap; check image, model and tokenizer",
    }
    /// The trial did not end in time.
    BenchmarkTimeout {
        reason: BenchmarkTimeout, severity: Error, effect: Invalid,
        seen: "AIPerf still running at the trial's time limit, while no worker stands out (one that stalled is a `WorkerStall`)",
        why: "the deployment is so slow, or the load so large, that a trial does not fit into `timeouts.benchmark`",
        remedy: "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)",
    }
    /// AIPerf's result was cut short.
    ResultIncomplete {
        reason: ResultIncomplete, severity: Error, effect: Invalid,
        seen: "a result that AIPerf itself marks as cancelled or cut short",
        why: "AIPerf was stopped, or gave up after too many failed requests",
        remedy: "see why AIPerf stopped early in its log",
    }
    /// The trial's Job was deleted or replaced by another client.
    JobLost {
        reason: JobLost, severity: Error, effect: Invalid,
        seen: "the Job of a trial is gone, or another Job has its name",
        why: "another client deleted it: its result, if any, went with it, and what another Job says is not read",
        remedy: "see who deletes Jobs in this namespace (audit log, clean-up tools), then run again",
    }
    /// A gated metric was not reported.
    MetricMissing {
        reason: MetricMissing, severity: Error, effect: Invalid,
        seen: "a gate with result `Unmeasured`",
        why: "AIPerf reports this metric only under certain settings",
        remedy: "gate a metric that this benchmark reports; Goodput needs benchmark.goodput",
    }
    /// One worker stood still for a while and went on.
    TransientStall {
        reason: -, severity: Warning, effect: Reported,
        seen: "one worker had requests and did not move for 5 s or more, then went on",
        why: "its process or GPU was stopped for a while; a TTFT gate does not show it, ITL p99 does",
        remedy: "see what stopped this worker: kernel log (XID), CPU throttling, neighbours; ITL p99 shows it, TTFT does not",
    }
    /// The load generator could not connect to the frontend, or the frontend cut it off.
    FrontendLost {
        reason: RequestErrors, severity: Warning, effect: Miss,
        seen: "failed requests above `trials.maxFailedRequestsPercent`, among them connections that failed or broke (`ClientConnectorError`, `ServerDisconnectedError`)",
        why: "the load generator connects to the frontend only: its pod restarted under load, or the network to it broke",
        remedy: "see whether the frontend's pod restarted and why (probes, CPU, memory); then the network to it",
    }
    /// More requests failed or came back short than allowed.
    RequestErrors {
        reason: RequestErrors, severity: Warning, effect: Miss,
        seen: "failed requests, or streams shorter than asked, above `trials.maxFailedRequestsPercent`",
        why: "frontend or workers refuse or drop requests; the error's code and text are in the evidence",
        remedy: "read the errors; see the logs of frontend and workers",
    }
    /// A GPU of the run had an error of its hardware or its memory.
    GPUErrors {
        reason: -, severity: Warning, effect: Reported,
        seen: "the GPU of a worker, by its UUID, with an XID error, a double-bit ECC error, a row of its memory that was replaced during the trial or could not be replaced",
        why: "its hardware, memory or firmware fails, or a program made it fail (XID 13, 31, 43, 45)",
        remedy: "look the XID up in NVIDIA's list; reset or replace the GPU that the evidence names",
    }
    /// The hardware or the driver held the clocks of a GPU down.
    GPUThrottled {
        reason: -, severity: Warning, effect: Reported,
        seen: "the GPU of a worker, by its UUID, held down by heat, the power brake or its hardware in 5 % of its readings under load or more, and in 3 at least; the power cap alone is normal and not counted",
        why: "cooling, power supply or board of this GPU limit it",
        remedy: "check cooling, air flow and power supply of the GPU that the evidence names (nvidia-smi -q -d PERFORMANCE)",
    }
    /// Something else worked on a GPU of the run.
    GPUShared {
        reason: -, severity: Warning, effect: Reported,
        seen: "the GPU of a worker, by its UUID, at work in 3 readings or more while no worker had requests, or listed with a pod that is not of the run",
        why: "a forgotten process, a pod outside of the scheduler's sight, or time slicing shares the GPU",
        remedy: "end what else runs on the GPU that the evidence names (nvidia-smi; fuser -v /dev/nvidia*)",
    }
    /// A link of a GPU is slower than those of its peers, or makes errors.
    LinkDegraded {
        reason: -, severity: Warning, effect: Reported,
        seen: "the GPU of a worker, by its UUID, with a PCIe link of a lower generation or width than its peers', or 10 PCIe replays or NVLink errors or more in a trial",
        why: "a bad slot, riser, cable or NVLink, or a link that was trained at a lower speed",
        remedy: "reseat or replace the GPU that the evidence names; compare nvidia-smi -q -d PCIE and nvidia-smi nvlink -e",
    }
    /// The clock of a GPU under load is below that of its peers.
    ClocksLow {
        reason: -, severity: Warning, effect: Reported,
        seen: "the GPU of a worker, by its UUID, with a mean clock under load below 93 % of its peers' median",
        why: "its power limit or application clocks are set lower, it is hotter, or something else works on it",
        remedy: "compare power limit and clocks of the GPU that the evidence names with its peers' (nvidia-smi -q -d CLOCK,POWER)",
    }
    /// The frontend cannot keep up.
    FrontendBound {
        reason: -, severity: Warning, effect: Reported,
        seen: "requests spend more than 20 % of their time in the frontend, and over 0.2 s, outside of the workers; or its event loop wakes 5 ms late on average, by its own metrics",
        why: "the frontend cannot feed the workers as fast as they could work: it lacks CPU (its limit throttles it, or others on its node take it), or too many requests are in flight",
        remedy: "lower benchmark.concurrencyPerGPU, or free CPUs of its node; the frontend asks for 0.1 CPU and has no limit unless a LimitRange of the namespace sets one (`kubectl get limitranges -n NAMESPACE`): raise or remove that one; without model.cache, `workload.dynamo.frontend.placement: Anywhere` moves it to another node",
    }
    /// More requests are in flight than the engines run at once.
    PastKnee {
        reason: -, severity: Warning, effect: Miss,
        seen: "half of the requests wait for their first token longer than for all others; the throughput is met",
        why: "more requests are in flight than the engines run at once",
        remedy: "lower benchmark.concurrencyPerGPU until few requests wait for an engine",
    }
    /// At most half of the throughput asked for, with balanced workers: no repetition changes that.
    FarBelowGate {
        reason: -, severity: Warning, effect: FarMiss,
        seen: "at most half of the throughput asked for, with workers that work alike",
        why: "the threshold is for another GPU or model, or everything is slow",
        remedy: "check the gate's threshold against this GPU model, then what all workers share",
    }
    /// All workers are equally slow.
    BalancedDegradation {
        reason: -, severity: Warning, effect: Miss,
        seen: "gates are missed, and no worker stands out (the evidence shows how much slower a GPU would have been named), or a rate is missed by more than the slowest worker explains",
        why: "what they share is slow: image, flags, power limit, driver, network",
        remedy: "look for what all workers share: image, flags, power limit, driver, network",
    }
    /// Throughput is met and a latency just missed: jitter of an operating point near the knee.
    KneeJitter {
        reason: -, severity: Warning, effect: Miss,
        seen: "only tails of latencies (P90 and above) are missed, by at most 25 %, and another trial of the run passed",
        why: "near the knee a tail latency varies from trial to trial; the trial rule absorbs it",
        remedy: "nothing, if most trials pass; else lower benchmark.concurrencyPerGPU",
    }
    /// A few requests were late, and all others in time.
    TailLatency {
        reason: -, severity: Warning, effect: Reported,
        seen: "only tails of latencies are missed (P95, P99, Max), and the same gates hold for nine of ten requests",
        why: "something stood still for a second or two: a worker that compiled or captured a graph, the load generator, the network; no worker is slow",
        remedy: "nothing, if most trials pass; else see in the report when the late requests were, and on which worker",
    }
    /// A long trial ended slower than it began.
    ThroughputDecay {
        reason: -, severity: Warning, effect: Reported,
        seen: "a trial of five minutes or more, such as `benchmark.soak`: the tokens per second of both of its last two minutes are 5 % or more below those of its first, or 10 % or more for one worker",
        why: "mostly heat: GPUs lower their clocks once they are warm; also a power limit, or an engine that slows down with time",
        remedy: "compare clocks and temperatures (nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE) at the start and after ten minutes; check fans, air flow, coolant and the power limit",
    }
    /// A claim holds a device that no driver publishes, or two claims hold one.
    SuspiciousAllocation {
        reason: -, severity: Info, effect: Reported,
        seen: "a ResourceClaim that holds a device that no driver publishes, or two claims that hold one",
        why: "a pod was force-deleted, or a device vanished from its driver",
        remedy: "look for a force-deleted pod, or a device that vanished from its driver",
    }
    /// The workers' metrics could not be read, so nothing is known of their balance.
    WorkersNotSampled {
        reason: -, severity: Info, effect: Reported,
        seen: "no samples of the workers in the results",
        why: "the benchmark pod cannot reach the workers' metrics port 9090",
        remedy: "let the benchmark pod reach port 9090 of the workers (network policy)",
    }
    /// Several workers could not be compared with each other, so a slow GPU among them goes unseen unless a gate is missed.
    WorkersNotCompared {
        reason: -, severity: Info, effect: Reported,
        seen: "several workers that served, and too little of them to say how fast each is next to the others",
        why: "the trial loaded them for less than some ten seconds, they were seldom at work together, or their engines do not count the time between tokens (vLLM does)",
        remedy: "measure longer (benchmark.duration; 60 s if nothing is written): until then a slow GPU shows only where it makes a gate miss",
    }
    /// The metrics of the GPUs could not be read, so nothing is known of their clocks and errors.
    GPUsNotSampled {
        reason: -, severity: Info, effect: Reported,
        seen: "a DCGM exporter was found or named, and no page of it said anything of the run's GPUs under load",
        why: "the benchmark pod cannot reach the exporter's port 9400, `telemetry.endpoint` is of another node, or the exporter collects too seldom",
        remedy: "let the benchmark pod reach the exporter (network policy), correct telemetry.endpoint, set DCGM_EXPORTER_INTERVAL to 1000, or write telemetry.gpus: None",
    }
}

impl Cause {
    /// The cause that a status recorded.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == word)
    }

    /// How telling it is, smallest first; a word of another version goes last.
    pub fn rank(word: &str) -> usize {
        Self::ALL
            .iter()
            .position(|cause| cause.as_str() == word)
            .unwrap_or(Self::ALL.len())
    }

    /// What it says of a worker.
    pub fn worker_loss(self) -> Option<WorkerLoss> {
        match self {
            Self::WorkerCrashed => Some(WorkerLoss::Crashed),
            Self::NodeCPUPressure => Some(WorkerLoss::Starved),
            Self::WorkerRestarted => Some(WorkerLoss::Removed),
            _ => None,
        }
    }

    /// Whether it explains the outcome of a trial, and shows nothing of a run whose other trials passed.
    pub fn explains_an_outcome(self) -> bool {
        self.effect() != Effect::Reported || self == Self::TailLatency
    }

    /// Whether its evidence is nothing but the numbers of the missed gates, which stand next to it anyway.
    pub fn repeats_gates(self) -> bool {
        matches!(self, Self::FarBelowGate | Self::KneeJitter)
    }

    /// The finding that status shows.
    pub fn finding(self, evidence: impl Into<String>) -> Finding {
        Finding {
            cause: self.as_str().into(),
            severity: self.severity(),
            evidence: perfval_api::text::cut(&evidence.into(), EVIDENCE),
            remedy: self.remedy().into(),
        }
    }
}
