//! Causes of a trial's outcome, each with its word in the status, its weight and its remedy.

use perfval_api::{Finding, Reason, Severity, Word, WorkerLoss};

/// Longest evidence (bytes): every cause at once must still fit into the status.
const EVIDENCE: usize = 400;

/// A cause with its evidence.
pub type Explained = (Cause, String);

/// Causes that a trial and a status show.
pub const SHOWN: usize = 3;

/// Effect of a cause on a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was not measured.
    Invalid,
    /// It was measured, and the numbers are not to be trusted.
    Untrusted,
    /// The deployment is broken, even if other trials pass.
    FailsTheRun,
    /// The run does not pass if the spec gives the number of GPUs.
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
    /// The effect as the documentation describes it.
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
    ($($(#[doc = $doc:literal])+ $name:ident {
        word: $word:ident, decides: $decides:literal, effect: $effect:ident,
        seen: $seen:literal, why: $why:literal, remedy: $remedy:literal $(,)?
    })+) => {
        /// Causes of a trial's outcome, finer than the words of the status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause { $($(#[doc = $doc])+ $name,)+ }

        impl Cause {
            /// Every cause, the most telling first: causes that point to a part, then causes that only give the
            /// extent.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name,)+];

            /// Word in status. Causes with one word have remedies of their own.
            pub fn word(self) -> Word {
                match self { $(Self::$name => Word::$word,)+ }
            }

            fn decides(self) -> bool {
                match self { $(Self::$name => $decides,)+ }
            }

            /// Name in evidence and tests; a status has the word.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Effect on the trial.
            pub fn effect(self) -> Effect {
                match self { $(Self::$name => Effect::$effect,)+ }
            }

            /// Signs of the cause.
            pub fn seen(self) -> &'static str {
                match self { $(Self::$name => $seen,)+ }
            }

            /// Explanation of the cause.
            pub fn why(self) -> &'static str {
                match self { $(Self::$name => $why,)+ }
            }

            /// Remedy.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

causes! {
    /// The node has fewer healthy GPUs than it should have.
    GPUsMissing {
        word: GPUsMissing, decides: true, effect: FailsWhereExpected,
        seen: "`status.placement.expectedGPUs`: the node has fewer healthy GPUs than `placement.expectGPUs` asks for, or than the node itself, its label `nvidia.com/gpu.count` or most nodes like it say",
        why: "a GPU fell off the bus, is unhealthy or tainted, or its driver does not publish it",
        remedy: "look for the GPUs on the node (nvidia-smi, kernel log, XID errors) and repair it; if it never had more, say so in placement.expectGPUs",
    }
    /// A worker died, and the router fed it: it refuses at once, so it always looks idle (Dynamo 1.1–1.4).
    DeadWorkerBlackHole {
        word: RequestErrors, decides: true, effect: Miss,
        seen: "most requests failed within seconds, and one worker is gone",
        why: "a dead worker refuses at once, so it always looks least loaded, and the router feeds it everything (Dynamo 1.1 to 1.4)",
        remedy: "see why the worker died; Dynamo 1.5 and later route around a dead worker",
    }
    /// A worker's container ended by itself and was started again.
    WorkerCrashed {
        word: WorkerCrashed, decides: true, effect: FailsTheRun,
        seen: "a worker's restart count rose during a trial or between two, or its process restarted in the same pod",
        why: "the engine crashed under load, ran out of memory, or failed its liveness probe",
        remedy: "see the worker's previous log (kubectl logs --previous) and its exit code; check the GPU for XID errors",
    }
    /// A worker was ended, and not by a crash of its own, on a node without free CPUs.
    NodeCPUPressure {
        word: NodeCPUPressure, decides: true, effect: Untrusted,
        seen: "the node's CPUs were 90 % busy or more in the measured phase, and threads waited for one in half of the time or more (`/proc/stat` and `/proc/pressure/cpu` of the node under test); and a worker's liveness or startup probe ended it, or it ended with exit code 0 or 143, or with 137 and no event shows who killed it",
        why: "the worker got no CPU, so that it answered neither its probe nor its requests in time; that shows nothing of its GPU",
        remedy: "keep off the node what uses its CPUs (kubectl top pods -A), or let the workers request the CPU that they need (workload.dynamo.worker.resources)",
    }
    /// One worker is much slower than its peers.
    WorkerStall {
        word: WorkerStall, decides: true, effect: MissDespiteGates,
        seen: "a request takes one worker several times as long as its peers, or the worker neither moves nor answers to the end",
        why: "its GPU is slow (clocks, temperature, a neighbour, XID errors), or its engine hangs",
        remedy: "check the GPU of this worker: clocks, temperature, XID errors, neighbours",
    }
    /// One worker decodes slower than its peers.
    SlowWorker {
        word: SlowWorker, decides: false, effect: Reported,
        seen: "the engine of one worker takes longer from token to token than its peers' at the same batch: on average over the trials of the run it loses more against their median than one of as many healthy GPUs loses in 1 of 100 runs (about 7 %, more where the trials are short), or against the fastest worker than in 1 of 1,000 (about 12 %). Or its speed with its interval lies below 96 % of that of at least 3 earlier runs that passed on the same GPU under the same settings",
        why: "its GPU is slow (clocks, temperature, a foreign process, failing memory), or its CPUs are far or busy",
        remedy: "check the GPU that the evidence names (nvidia-smi -q -d PERFORMANCE, other processes, XID errors) and the CPUs of its worker; then run again to see whether it is the same GPU",
    }
    /// A worker's pod was removed or replaced, or its node was rebooted.
    WorkerRestarted {
        word: WorkerRestarted, decides: true, effect: Untrusted,
        seen: "a worker's pod was replaced during a trial or between two, or a restart of the container runtime removed its container",
        why: "the pod was deleted or evicted, or the node was rebooted",
        remedy: "see who removed the pod (evictions, drains, taints) or rebooted the node, and keep them off it while it is validated",
    }
    /// A worker holds another GPU than at the start.
    GPUChanged {
        word: WorkerRestarted, decides: true, effect: Untrusted,
        seen: "a worker holds another GPU at the end of the trial than at its start",
        why: "its pod or claim was replaced",
        remedy: "something replaced the worker during the trial: look for evictions and device taints",
    }
    /// A worker served nothing.
    UnevenService {
        word: UnevenService, decides: true, effect: Untrusted,
        seen: "a worker that served no request while others did",
        why: "it is not registered with the frontend, or the router never chose it",
        remedy: "see whether the worker is registered with the frontend; raise warmupPerConcurrency",
    }
    /// The load generator could not keep up.
    GeneratorStarved {
        word: GeneratorStarved, decides: true, effect: Untrusted,
        seen: "40 % of a request's mean time or more, and at least 100 ms, passed outside of the frontend: AIPerf measured it, and the frontend's own histogram does not contain it. Or requests waited inside AIPerf, and fewer were in flight than asked, or its cgroup was throttled or pressed for CPU",
        why: "the load generator has too little CPU, so it measured itself; or the network between it and the frontend is slow",
        remedy: "see what else uses the CPUs of its node; leave cpu out of benchmark.resources, so that it asks for one CPU per 100 requests in flight; or lower concurrencyPerGPU",
    }
    /// The load generator's image has no program to run.
    AIPerfMissing {
        word: AIPerfMissing, decides: true, effect: Invalid,
        seen: "the runner cannot start `aiperf`: no such file, or not executable",
        why: "`benchmark.image`, or the operator's `PERFVAL_AIPERF_IMAGE`, is not an image with AIPerf on its PATH",
        remedy: "name an image with AIPerf in benchmark.image (deploy/images has its Dockerfile)",
    }
    /// The load generator's pod was removed by the kubelet, a drain or a pod of higher priority.
    LoadGeneratorEvicted {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        seen: "the trial's pod is Failed with reason `Evicted`, or has the condition `DisruptionTarget`",
        why: "its node ran out of memory, disk or process ids, was drained, or a pod of higher priority took the place",
        remedy: "see the words of the evidence; give the load generator its own memory (benchmark.resources) or another node (benchmark.placement: Anywhere, without model.cache)",
    }
    /// AIPerf left nothing to judge.
    BenchmarkFailed {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        seen: "a Job that ended without a result",
        why: "AIPerf could not start, could not load the tokenizer, or was killed",
        remedy: "see the log of the trial's pod in the results ConfigMap; check image, model and tokenizer",
    }
    /// The trial did not end in time.
    BenchmarkTimeout {
        word: DeadlineExceeded, decides: true, effect: Invalid,
        seen: "AIPerf still running at the trial's time limit, while no worker stands out (one that stalled is a `WorkerStall`)",
        why: "the deployment is so slow, or the load so large, that a trial does not fit into `timeouts.benchmark`",
        remedy: "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)",
    }
    /// AIPerf's result was cut short.
    ResultIncomplete {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        seen: "a result that AIPerf itself marks as cancelled or cut short",
        why: "AIPerf was stopped, or gave up after too many failed requests",
        remedy: "see why AIPerf stopped early in its log",
    }
    /// The trial's Job was deleted or replaced by another client.
    JobLost {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        seen: "the Job of a trial is gone, or another Job has its name",
        why: "another client deleted it: its result, if any, went with it, and what another Job says is not read",
        remedy: "see who deletes Jobs in this namespace (audit log, clean-up tools), then run again",
    }
    /// A gated metric was not reported.
    MetricMissing {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        seen: "a gate with result `Unmeasured`",
        why: "AIPerf reports this metric only under certain settings",
        remedy: "gate a metric that this benchmark reports; Goodput needs benchmark.goodput",
    }
    /// One worker stood still for a while and went on.
    TransientStall {
        word: UnsteadySpeed, decides: false, effect: Reported,
        seen: "one worker had requests and did not move for 5 s or more, then went on",
        why: "its process or GPU was stopped for a while; a TTFT gate does not show it, ITL p99 does",
        remedy: "see what stopped this worker: kernel log (XID), CPU throttling, neighbours; ITL p99 shows it, TTFT does not",
    }
    /// The load generator could not connect to the frontend, or the frontend cut it off.
    FrontendLost {
        word: RequestErrors, decides: true, effect: Miss,
        seen: "failed requests above `trials.maxFailedRequestsPercent`, among them connections that failed or broke (`ClientConnectorError`, `ServerDisconnectedError`)",
        why: "the load generator connects to the frontend only: its pod restarted under load, or the network to it broke",
        remedy: "see whether the frontend's pod restarted and why (probes, CPU, memory); then the network to it",
    }
    /// More requests failed or came back short than allowed.
    RequestErrors {
        word: RequestErrors, decides: true, effect: Miss,
        seen: "failed requests, or streams shorter than asked, above `trials.maxFailedRequestsPercent`",
        why: "frontend or workers refuse or drop requests; the error's code and text are in the evidence",
        remedy: "read the errors; see the logs of frontend and workers",
    }
    /// A GPU of the run had an error of its hardware or its memory.
    GPUErrors {
        word: GPUDegraded, decides: false, effect: Reported,
        seen: "the GPU of a worker, by its UUID, with an XID error, a double-bit ECC error, a row of its memory that was replaced during the trial or could not be replaced",
        why: "its hardware, memory or firmware fails, or a program made it fail (XID 13, 31, 43, 45)",
        remedy: "look the XID up in NVIDIA's list; reset or replace the GPU that the evidence names",
    }
    /// The hardware or the driver held the clocks of a GPU down.
    GPUThrottled {
        word: GPUDegraded, decides: false, effect: Reported,
        seen: "the GPU of a worker, by its UUID, held down by heat, the power brake or its hardware in 5 % of its readings under load or more, and in 3 at least; the power cap alone is normal and not counted",
        why: "cooling, power supply or board of this GPU limit it",
        remedy: "check cooling, air flow and power supply of the GPU that the evidence names (nvidia-smi -q -d PERFORMANCE)",
    }
    /// Something else worked on a GPU of the run.
    GPUShared {
        word: GPUShared, decides: false, effect: Reported,
        seen: "the GPU of a worker, by its UUID, at work in 3 readings or more while no worker had requests, or listed with a pod that is not of the run",
        why: "a forgotten process, a pod outside of the scheduler's sight, or time slicing shares the GPU",
        remedy: "end what else runs on the GPU that the evidence names (nvidia-smi; fuser -v /dev/nvidia*)",
    }
    /// A link of a GPU is slower than those of its peers, or makes errors.
    LinkDegraded {
        word: GPUDegraded, decides: false, effect: Reported,
        seen: "the GPU of a worker, by its UUID, with a PCIe link of a lower generation or width than its peers', or 10 PCIe replays or NVLink errors or more in a trial",
        why: "a bad slot, riser, cable or NVLink, or a link that was trained at a lower speed",
        remedy: "reseat or replace the GPU that the evidence names; compare nvidia-smi -q -d PCIE and nvidia-smi nvlink -e",
    }
    /// The clock of a GPU under load is below that of its peers.
    ClocksLow {
        word: GPUDegraded, decides: false, effect: Reported,
        seen: "the GPU of a worker, by its UUID, with a mean clock under load below 93 % of its peers' median",
        why: "its power limit or application clocks are set lower, it is hotter, or something else works on it",
        remedy: "compare power limit and clocks of the GPU that the evidence names with its peers' (nvidia-smi -q -d CLOCK,POWER)",
    }
    /// The frontend cannot keep up.
    FrontendBound {
        word: FrontendBound, decides: false, effect: Reported,
        seen: "requests spend more than 20 % of their time in the frontend, and over 0.2 s, outside of the workers; or its event loop wakes 5 ms late on average, by its own metrics",
        why: "the frontend cannot feed the workers as fast as they could work: it lacks CPU (its limit throttles it, or others on its node take it), or too many requests are in flight",
        remedy: "lower benchmark.concurrencyPerGPU, or free CPUs of its node; the frontend asks for 0.1 CPU and has no limit unless a LimitRange of the namespace sets one (`kubectl get limitranges -n NAMESPACE`): raise or remove that one; without model.cache, `workload.dynamo.frontend.placement: Anywhere` moves it to another node",
    }
    /// More requests are in flight than the engines run at once.
    PastKnee {
        word: LatencyMissed, decides: false, effect: Miss,
        seen: "half of the requests wait for their first token longer than for all others; the throughput is met",
        why: "more requests are in flight than the engines run at once",
        remedy: "lower benchmark.concurrencyPerGPU until few requests wait for an engine",
    }
    /// At most half of the throughput asked for, with balanced workers: no repetition changes that.
    FarBelowGate {
        word: BalancedDegradation, decides: false, effect: FarMiss,
        seen: "at most half of the throughput asked for, with workers that work alike",
        why: "the threshold is for another GPU or model, or everything is slow",
        remedy: "check the gate's threshold against this GPU model, then what all workers share",
    }
    /// All workers are equally slow.
    BalancedDegradation {
        word: BalancedDegradation, decides: false, effect: Miss,
        seen: "gates are missed, and no worker stands out (the evidence shows how much slower a GPU would have been named), or a rate is missed by more than the slowest worker explains",
        why: "what they share is slow: image, flags, power limit, driver, network",
        remedy: "look for what all workers share: image, flags, power limit, driver, network",
    }
    /// Throughput is met and a latency just missed: jitter of an operating point near the knee.
    KneeJitter {
        word: LatencyMissed, decides: false, effect: Miss,
        seen: "only tails of latencies (P90 and above) are missed, by at most 25 %, and another trial of the run passed",
        why: "near the knee a tail latency varies from trial to trial; the trial rule absorbs it",
        remedy: "nothing, if most trials pass; else lower benchmark.concurrencyPerGPU",
    }
    /// A few requests were late, and all others in time.
    TailLatency {
        word: LatencyMissed, decides: false, effect: Reported,
        seen: "only tails of latencies are missed (P95, P99, Max), and the same gates hold for nine of ten requests",
        why: "something stood still for a second or two: a worker that compiled or captured a graph, the load generator, the network; no worker is slow",
        remedy: "nothing, if most trials pass; else see in the report when the late requests were, and on which worker",
    }
    /// A long trial ended slower than it began.
    ThroughputDecay {
        word: UnsteadySpeed, decides: false, effect: Reported,
        seen: "a trial of five minutes or more, such as `benchmark.soak`: the tokens per second of both of its last two minutes are 5 % or more below those of its first, or 10 % or more for one worker",
        why: "mostly heat: GPUs lower their clocks once they are warm; also a power limit, or an engine that slows down with time",
        remedy: "compare clocks and temperatures (nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE) at the start and after ten minutes; check fans, air flow, coolant and the power limit",
    }
    /// A claim holds a device that no driver publishes, or two claims hold one.
    SuspiciousAllocation {
        word: GPUShared, decides: false, effect: Reported,
        seen: "a ResourceClaim that holds a device that no driver publishes, or two claims that hold one",
        why: "a pod was force-deleted, or a device vanished from its driver",
        remedy: "look for a force-deleted pod, or a device that vanished from its driver",
    }
    /// The workers' metrics could not be read, so nothing is known of their balance.
    WorkersNotSampled {
        word: NotSampled, decides: false, effect: Reported,
        seen: "no samples of the workers in the results",
        why: "the benchmark pod cannot reach the workers' metrics port 9090",
        remedy: "let the benchmark pod reach port 9090 of the workers (network policy)",
    }
    /// Several workers could not be compared with each other, so a slow GPU among them goes unseen unless a gate is missed.
    WorkersNotCompared {
        word: NotSampled, decides: false, effect: Reported,
        seen: "several workers that served, and too little of them to say how fast each is next to the others",
        why: "the trial loaded them for less than some ten seconds, they were seldom at work together, or their engines do not count the time between tokens (vLLM does)",
        remedy: "measure longer (benchmark.duration; 60 s if nothing is written): until then a slow GPU shows only where it makes a gate miss",
    }
    /// The metrics of the GPUs could not be read, so nothing is known of their clocks and errors.
    GPUsNotSampled {
        word: NotSampled, decides: false, effect: Reported,
        seen: "a DCGM exporter was found or named, and no page of it said anything of the run's GPUs under load",
        why: "the benchmark pod cannot reach the exporter's port 9400, `telemetry.endpoint` is of another node, or the exporter collects too seldom",
        remedy: "let the benchmark pod reach the exporter (network policy), correct telemetry.endpoint, set DCGM_EXPORTER_INTERVAL to 1000, or write telemetry.gpus: None",
    }
}

impl Cause {
    /// Word in status.
    pub fn as_str(self) -> &'static str {
        self.word().as_str()
    }

    /// Reason of a run that ends for this cause alone.
    pub fn reason(self) -> Option<Reason> {
        let reason = match self {
            Self::BenchmarkTimeout => Reason::BenchmarkTimeout,
            _ => Reason::from_word(self.as_str()),
        };
        self.decides().then_some(reason)
    }

    /// Most general cause with a word that a status recorded.
    pub fn from_word(word: &str) -> Option<Self> {
        let general = Self::ALL.into_iter().find(|cause| cause.name() == word);
        general.or_else(|| Self::ALL.into_iter().find(|cause| cause.as_str() == word))
    }

    /// Cause of a finding: its word, and of several causes with this word the one with its remedy.
    pub fn from_finding(finding: &Finding) -> Option<Self> {
        let is_meant = |cause: &Self| cause.as_str() == finding.cause && cause.remedy() == finding.remedy;
        let exact = Self::ALL.into_iter().find(is_meant);
        exact.or_else(|| Self::from_word(&finding.cause))
    }

    /// Position of a finding by explanatory power, smallest first; a word of another version goes last.
    pub fn rank(finding: &Finding) -> usize {
        let position = |cause: Self| Self::ALL.iter().position(|known| *known == cause);
        Self::from_finding(finding)
            .and_then(position)
            .unwrap_or(Self::ALL.len())
    }

    fn severity(self) -> Severity {
        match self {
            // The allocation may be somebody else's and is no fault of the run.
            Self::SuspiciousAllocation => Severity::Info,
            _ => self.word().severity(),
        }
    }

    /// Loss of a worker that the cause reports.
    pub fn worker_loss(self) -> Option<WorkerLoss> {
        match self {
            Self::WorkerCrashed => Some(WorkerLoss::Crashed),
            Self::NodeCPUPressure => Some(WorkerLoss::Starved),
            Self::WorkerRestarted => Some(WorkerLoss::Removed),
            _ => None,
        }
    }

    /// Returns true if it explains the outcome of a trial, and shows nothing of a run whose other trials passed.
    pub fn explains_an_outcome(self) -> bool {
        self.effect() != Effect::Reported || self == Self::TailLatency
    }

    /// Returns true if its evidence is only the numbers of the missed gates, which the status shows next to it
    /// anyway.
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
