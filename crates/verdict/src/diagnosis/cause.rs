//! Causes of a trial's outcome, each with its word in the status, its weight and its remedy.

use perfval_api::{Finding, Reason, Severity, Word, WorkerLoss};

/// Longest evidence (bytes): every cause at once must still fit into the status.
pub(crate) const EVIDENCE: usize = 400;

/// A cause with its evidence.
pub type Explained = (Cause, String);

/// Causes that a trial and a status show.
pub const SHOWN: usize = 3;

/// Effect of a cause on a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseEffect {
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

impl CauseEffect {
    /// The effect as the documentation describes it.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid (Error)",
            Self::Untrusted => "Invalid (Inconclusive)",
            Self::FailsTheRun => "the run is Failed",
            Self::FailsWhereExpected => "the run is Failed with `placement.expectGPUs`",
            Self::Miss => "Miss",
            Self::MissDespiteGates => "Miss, even if every gate is met",
            Self::FarMiss => "Miss; two of them fail the run at once",
            Self::Reported => "none",
        }
    }
}

/// Declares the causes with their documentation, so that the enum, its words and the page are one list.
macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $name:ident {
        word: $word:ident, decides: $decides:literal, effect: $effect:ident,
        $(remedy: $remedy:literal,)?
    })+) => {
        /// Causes of a trial's outcome, finer than the words of the status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause { $($(#[doc = $doc])+ $name,)+ }

        impl Cause {
            /// Every cause, the most telling first: causes that point to a part, then causes that only give the
            /// extent.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name,)+];

            /// Word in status. Causes that share a word have remedies of their own.
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
            pub fn effect(self) -> CauseEffect {
                match self { $(Self::$name => CauseEffect::$effect,)+ }
            }

            /// Explanation of the cause.
            pub fn why(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// Remedy: its own, or that of its word, which no other cause has.
            pub fn remedy(self) -> &'static str {
                let own: &[&'static str] = match self { $(Self::$name => &[$($remedy)?],)+ };
                own.first().copied().unwrap_or_else(|| self.word().remedy())
            }
        }
    };
}

causes! {
    /// The node has fewer healthy GPUs than it should have.
    GPUsMissing {
        word: GPUsMissing, decides: true, effect: FailsWhereExpected,
    }
    /// A worker died. It refuses requests at once, so it looks least loaded, and the router of Dynamo 1.1 to 1.4 sends it
    /// most requests.
    DeadWorkerBlackHole {
        word: RequestErrors, decides: true, effect: Miss,
        remedy: "see why the worker died; Dynamo 1.5 and later route around a dead worker",
    }
    /// A worker's container ended by itself and was started again.
    WorkerCrashed {
        word: WorkerCrashed, decides: true, effect: FailsTheRun,
    }
    /// A worker was ended, and not by a crash of its own, on a node without free CPUs.
    NodeCPUPressure {
        word: NodeCPUPressure, decides: true, effect: Untrusted,
    }
    /// One worker is much slower than its peers.
    WorkerStall {
        word: WorkerStall, decides: true, effect: MissDespiteGates,
    }
    /// One worker decodes slower than its peers.
    SlowWorker {
        word: SlowWorker, decides: false, effect: Reported,
    }
    /// A worker's pod was replaced, or a restart of the container runtime removed its container.
    WorkerRestarted {
        word: WorkerRestarted, decides: true, effect: Untrusted,
        remedy: "see who removed the pod (evictions, drains, taints) or rebooted the node, and keep them off it while it is validated",
    }
    /// A worker holds another GPU than at the start of the trial.
    GPUChanged {
        word: WorkerRestarted, decides: true, effect: Untrusted,
        remedy: "something replaced the worker during the trial: look for evictions and device taints",
    }
    /// A worker served nothing.
    UnevenService {
        word: UnevenService, decides: true, effect: Untrusted,
    }
    /// The load generator could not keep up.
    GeneratorStarved {
        word: GeneratorStarved, decides: true, effect: Untrusted,
    }
    /// The load generator's image has no program to run.
    AIPerfMissing {
        word: AIPerfMissing, decides: true, effect: Invalid,
    }
    /// The trial's pod is `Evicted` or has the condition `DisruptionTarget`: its node lacked memory, disk or process ids, was
    /// drained, or a pod of higher priority took the place.
    LoadGeneratorEvicted {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "see the words of the evidence; give the load generator its own memory (benchmark.resources) or another node (benchmark.placement: Anywhere, without model.cache)",
    }
    /// A Job ended without a result: AIPerf could not start, could not load the tokenizer, or was killed.
    BenchmarkFailed {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "see the log of the trial's pod in the results ConfigMap; check image, model and tokenizer",
    }
    /// AIPerf still ran at `timeouts.benchmark`, and no worker stands out.
    BenchmarkTimeout {
        word: DeadlineExceeded, decides: true, effect: Invalid,
        remedy: "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)",
    }
    /// AIPerf was stopped, or gave up after too many failed requests.
    ResultIncomplete {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "see why AIPerf stopped early in its log",
    }
    /// Another client deleted or replaced the trial's Job. Its result is lost.
    JobLost {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "see who deletes Jobs in this namespace (audit log, clean-up tools), then run again",
    }
    /// A gate is `Unmeasured`: AIPerf reports its metric only with certain settings.
    MetricMissing {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "gate a metric that this benchmark reports; Goodput needs benchmark.goodput",
    }
    /// One worker had requests, did not move for 5 s or more, and went on. ITL p99 shows it, TTFT does not.
    TransientStall {
        word: UnsteadySpeed, decides: false, effect: Reported,
        remedy: "see what stopped this worker: kernel log (XID), CPU throttling, neighbours; ITL p99 shows it, TTFT does not",
    }
    /// Connections to the frontend failed or broke (`ClientConnectorError`, `ServerDisconnectedError`): its pod restarted
    /// under load, or the network broke.
    FrontendLost {
        word: RequestErrors, decides: true, effect: Miss,
        remedy: "see whether the frontend's pod restarted and why (probes, CPU, memory); then the network to it",
    }
    /// Frontend or workers refuse or drop requests. The evidence contains the error's code and text.
    RequestErrors {
        word: RequestErrors, decides: true, effect: Miss,
        remedy: "read the errors; see the logs of frontend and workers",
    }
    /// A GPU has an XID error (13, 31, 43 and 45 may come from a program), a double-bit ECC error, or a memory row that was
    /// replaced or could not be.
    GPUErrors {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "look the XID up in NVIDIA's list; reset or replace the GPU that the evidence names",
    }
    /// Heat, the power brake or the hardware held a GPU down in 5 % of its readings under load, and in at least 3. The power
    /// cap is normal.
    GPUThrottled {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "check cooling, air flow and power supply of the GPU that the evidence names (nvidia-smi -q -d PERFORMANCE)",
    }
    /// A GPU worked in 3 readings or more while no worker had requests, or the exporter lists it with a pod that is not of
    /// the run.
    GPUShared {
        word: GPUShared, decides: false, effect: Reported,
        remedy: "end what else runs on the GPU that the evidence names (nvidia-smi; fuser -v /dev/nvidia*)",
    }
    /// A PCIe link has a lower generation or width than its peers', or a trial had 10 PCIe replays or NVLink errors.
    LinkDegraded {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "reseat or replace the GPU that the evidence names; compare nvidia-smi -q -d PCIE and nvidia-smi nvlink -e",
    }
    /// The mean clock of a GPU under load is below 93 % of its peers' median: its power limit or application clocks are
    /// lower, or it is hotter.
    ClocksLow {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "compare power limit and clocks of the GPU that the evidence names with its peers' (nvidia-smi -q -d CLOCK,POWER)",
    }
    /// The frontend cannot keep up.
    FrontendBound {
        word: FrontendBound, decides: false, effect: Reported,
    }
    /// Half of the requests wait for their first token longer than for all others, and the throughput is met: more are in
    /// flight than the engines run at once.
    PastKnee {
        word: LatencyMissed, decides: false, effect: Miss,
        remedy: "lower benchmark.concurrencyPerGPU until few requests wait for an engine",
    }
    /// The throughput is at most half of the gate, and the workers work alike.
    FarBelowGate {
        word: BalancedDegradation, decides: false, effect: FarMiss,
        remedy: "check the gate's threshold against this GPU model, then what all workers share",
    }
    /// No worker stands out, or a rate misses by more than the slowest worker explains.
    BalancedDegradation {
        word: BalancedDegradation, decides: false, effect: Miss,
        remedy: "look for what all workers share: image, flags, power limit, driver, network",
    }
    /// Only tails of latencies (P90 and above) miss, by at most 25 %, and another trial passed. Near the knee tails vary.
    KneeJitter {
        word: LatencyMissed, decides: false, effect: Miss,
        remedy: "nothing, if most trials pass; else lower benchmark.concurrencyPerGPU",
    }
    /// Only tails of latencies miss, and nine of ten requests meet the same gates. Something stood still for a second or two;
    /// no worker is slow.
    TailLatency {
        word: LatencyMissed, decides: false, effect: Reported,
        remedy: "nothing, if most trials pass; else see in the report when the late requests were, and on which worker",
    }
    /// In a trial of five minutes or more both of the last two minutes were 5 % slower than the first (10 % for one worker):
    /// mostly heat, or a power limit.
    ThroughputDecay {
        word: UnsteadySpeed, decides: false, effect: Reported,
        remedy: "compare clocks and temperatures (nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE) at the start and after ten minutes; check fans, air flow, coolant and the power limit",
    }
    /// A ResourceClaim holds a device that no driver publishes, or two claims hold one.
    SuspiciousAllocation {
        word: GPUShared, decides: false, effect: Reported,
        remedy: "look for a force-deleted pod, or a device that vanished from its driver",
    }
    /// A gate on `BaselinePercent` was not judged: no `PerfBaseline` of the environment is approved, they could not be read, or the
    /// operator watches single namespaces.
    BaselineMissing {
        word: NotSampled, decides: false, effect: Reported,
        remedy: "approve a PerfBaseline with the run's status.environment.digest (kubectl perfval approve NAME), or provide an approved one; then run again",
    }
    /// The benchmark pod cannot reach the workers' metrics port 9090.
    WorkersNotSampled {
        word: NotSampled, decides: false, effect: Reported,
        remedy: "let the benchmark pod reach port 9090 of the workers (network policy)",
    }
    /// The workers ran together for less than about ten seconds, or their engines do not count the time between tokens (vLLM
    /// does).
    WorkersNotCompared {
        word: NotSampled, decides: false, effect: Reported,
        remedy: "measure longer (benchmark.duration; 60 s if nothing is written): until then a slow GPU shows only where it makes a gate miss",
    }
    /// No page of the DCGM exporter had the run's GPUs under load: its port 9400 is not reachable, `telemetry.endpoint` is
    /// another node's, or it collects too seldom.
    GPUsNotSampled {
        word: NotSampled, decides: false, effect: Reported,
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
        self.effect() != CauseEffect::Reported || self == Self::TailLatency
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
