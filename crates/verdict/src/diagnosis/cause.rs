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
    /// A worker died and refuses requests at once. Dynamo 1.1 to 1.4 sends it most of them.
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
    /// A worker's pod was replaced, or the container runtime restarted.
    WorkerRestarted {
        word: WorkerRestarted, decides: true, effect: Untrusted,
        remedy: "see who removed the pod (evictions, drains, taints) or rebooted the node, and keep them off it",
    }
    /// A worker has another GPU than at the start of the trial.
    GPUChanged {
        word: WorkerRestarted, decides: true, effect: Untrusted,
        remedy: "look for evictions and device taints",
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
    /// The trial's pod was evicted (`DisruptionTarget`).
    LoadGeneratorEvicted {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "give the load generator memory (benchmark.resources) or another node (benchmark.placement: Anywhere, without model.cache)",
    }
    /// AIPerf could not start, could not load the tokenizer, or was killed.
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
        remedy: "see AIPerf's log",
    }
    /// Another client deleted or replaced the trial's Job.
    JobLost {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "see who deletes Jobs in this namespace (audit log, clean-up tools)",
    }
    /// An enforced gate is `Unmeasured`: its metric was not reported.
    MetricMissing {
        word: BenchmarkFailed, decides: true, effect: Invalid,
        remedy: "correct what the evidence shows, or gate another metric",
    }
    /// One worker with requests stood still, and went on.
    TransientStall {
        word: UnsteadySpeed, decides: false, effect: Reported,
        remedy: "check kernel log (XID), CPU throttling and neighbours; ITL p99 shows it, TTFT does not",
    }
    /// Connections to the frontend broke.
    FrontendLost {
        word: RequestErrors, decides: true, effect: Miss,
        remedy: "see whether the frontend's pod restarted (probes, CPU, memory); then the network",
    }
    /// Frontend or workers refuse or drop requests.
    RequestErrors {
        word: RequestErrors, decides: true, effect: Miss,
        remedy: "see the error in the evidence, and the logs of frontend and workers",
    }
    /// A GPU has an XID error (13, 31, 43 and 45 may come from a program), a double-bit ECC error, or a replaced or
    /// failed memory row.
    GPUErrors {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "look the XID up in NVIDIA's list; reset or replace the GPU",
    }
    /// Heat, power brake or hardware throttled a GPU in 5 % of its readings under load, and in at least 3. The power
    /// cap is normal.
    GPUThrottled {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "check cooling, air flow and power supply (nvidia-smi -q -d PERFORMANCE)",
    }
    /// A GPU worked in 3 readings or more without requests of the run, or the exporter lists it with another pod.
    GPUShared {
        word: GPUShared, decides: false, effect: Reported,
        remedy: "end what else runs on the GPU (nvidia-smi; fuser -v /dev/nvidia*)",
    }
    /// A PCIe link has a lower generation or width than its peers', or a trial had 10 PCIe replays or NVLink errors.
    LinkDegraded {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "reseat or replace the GPU; compare nvidia-smi -q -d PCIE and nvidia-smi nvlink -e",
    }
    /// The mean clock of a GPU under load is below 93 % of its peers' median: power limit, application clocks, or heat.
    ClocksLow {
        word: GPUDegraded, decides: false, effect: Reported,
        remedy: "compare power limit and clocks with the peers' (nvidia-smi -q -d CLOCK,POWER)",
    }
    /// The frontend cannot keep up.
    FrontendBound {
        word: FrontendBound, decides: false, effect: Reported,
    }
    /// The throughput is met, but half of the requests wait longer for their first token than for all others.
    PastKnee {
        word: LatencyMissed, decides: false, effect: Miss,
        remedy: "lower benchmark.concurrencyPerGPU until few requests wait for an engine",
    }
    /// The throughput is at most half of the gate, and the workers work alike.
    FarBelowGate {
        word: BalancedDegradation, decides: false, effect: FarMiss,
        remedy: "check the threshold against this GPU model, then what all workers share",
    }
    /// No worker stands out, or a rate misses by more than the slowest worker explains.
    BalancedDegradation {
        word: BalancedDegradation, decides: false, effect: Miss,
        remedy: "look for what all workers share: image, flags, power limit, driver, network",
    }
    /// Only tails (P90 and above) miss, and another trial passed.
    KneeJitter {
        word: LatencyMissed, decides: false, effect: Miss,
        remedy: "nothing, if most trials pass; else lower benchmark.concurrencyPerGPU",
    }
    /// Only tails miss, and nine of ten requests meet the same gates. No worker is slow.
    TailLatency {
        word: LatencyMissed, decides: false, effect: Reported,
        remedy: "nothing, if most trials pass; else see the late requests in the report",
    }
    /// A trial of five minutes or more became slower: mostly heat, or a power limit.
    ThroughputDecay {
        word: UnsteadySpeed, decides: false, effect: Reported,
        remedy: "compare clocks and temperatures over ten minutes (nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE); check cooling and power limit",
    }
    /// A ResourceClaim holds a device that no driver publishes, or two claims hold one.
    SuspiciousAllocation {
        word: GPUShared, decides: false, effect: Reported,
        remedy: "look for a force-deleted pod, or a vanished device",
    }
    /// A gate on `BaselinePercent` was not judged: no `PerfBaseline` of the environment is approved or readable, or the
    /// operator watches single namespaces.
    BaselineMissing {
        word: NotSampled, decides: false, effect: Reported,
        remedy: "approve a PerfBaseline with the run's status.environment.digest (kubectl perfval approve NAME), then run again",
    }
    /// The benchmark pod cannot reach the workers' metrics.
    WorkersNotSampled {
        word: NotSampled, decides: false, effect: Reported,
        remedy: "open port 9090 of the workers to the benchmark pod (network policy)",
    }
    /// The workers ran together for less than about ten seconds, or their engines do not count the time between tokens.
    WorkersNotCompared {
        word: NotSampled, decides: false, effect: Reported,
        remedy: "measure longer (benchmark.duration); only vLLM is compared",
    }
    /// The DCGM exporter did not show the run's GPUs under load.
    GPUsNotSampled {
        word: NotSampled, decides: false, effect: Reported,
        remedy: "open port 9400 of the exporter to the benchmark pod (network policy), correct telemetry.endpoint, set DCGM_EXPORTER_INTERVAL to 1000, or write telemetry.gpus: None",
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
