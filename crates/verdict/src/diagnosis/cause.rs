//! What explains a trial: the stable names of status, each with its weight and its remedy.

use perfval_api::{Finding, Reason, Severity};

/// Longest evidence (bytes): every cause at once must still fit into the status.
const EVIDENCE: usize = 400;

/// Causes that a trial and a status show.
pub const SHOWN: usize = 3;

/// What explains a trial's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The node has fewer healthy GPUs than it should have.
    GPUsMissing,
    /// AIPerf left nothing to judge.
    BenchmarkFailed,
    /// AIPerf's result was cut short.
    ResultIncomplete,
    /// The trial did not end in time.
    BenchmarkTimeout,
    /// Somebody deleted or replaced the trial's Job.
    JobLost,
    /// A gated metric was not reported.
    MetricMissing,
    /// More requests failed or came back short than allowed.
    RequestErrors,
    /// The load generator could not connect to the frontend, or the frontend cut it off.
    FrontendLost,
    /// A worker died, and the router fed it: it refuses at once, so it always looks idle (Dynamo 1.1–1.4).
    DeadWorkerBlackHole,
    /// A worker restarted or was replaced.
    WorkerRestarted,
    /// A worker holds another GPU than at the start.
    GPUChanged,
    /// A worker served nothing.
    UnevenService,
    /// The load generator could not keep up.
    GeneratorStarved,
    /// One worker is much slower than its peers.
    WorkerStall,
    /// One worker stood still for a while and went on.
    TransientStall,
    /// Requests spend their time on the way to the workers.
    FrontendBound,
    /// More requests are in flight than the engines run at once.
    PastKnee,
    /// Throughput is met and a latency just missed: jitter of an operating point near the knee.
    KneeJitter,
    /// All workers are equally slow.
    BalancedDegradation,
    /// At most half of the throughput asked for, with balanced workers: no repetition changes that.
    FarBelowGate,
    /// The workers' metrics could not be read, so nothing is known of their balance.
    WorkersNotSampled,
    /// A claim holds a device that nobody publishes, or two claims hold one.
    SuspiciousAllocation,
}

impl Cause {
    /// Every cause, the most telling first: what names a thing to look at goes before what only says how bad it is.
    pub const ALL: [Self; 22] = [
        Self::GPUsMissing,
        Self::DeadWorkerBlackHole,
        Self::WorkerStall,
        Self::WorkerRestarted,
        Self::GPUChanged,
        Self::UnevenService,
        Self::GeneratorStarved,
        Self::BenchmarkFailed,
        Self::BenchmarkTimeout,
        Self::JobLost,
        Self::ResultIncomplete,
        Self::MetricMissing,
        Self::FrontendLost,
        Self::RequestErrors,
        Self::FrontendBound,
        Self::PastKnee,
        Self::FarBelowGate,
        Self::BalancedDegradation,
        Self::KneeJitter,
        Self::TransientStall,
        Self::SuspiciousAllocation,
        Self::WorkersNotSampled,
    ];

    /// The word in status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GPUsMissing => "GPUsMissing",
            Self::BenchmarkFailed => "BenchmarkFailed",
            Self::ResultIncomplete => "ResultIncomplete",
            Self::BenchmarkTimeout => "BenchmarkTimeout",
            Self::JobLost => "JobLost",
            Self::MetricMissing => "MetricMissing",
            Self::RequestErrors => "RequestErrors",
            Self::FrontendLost => "FrontendLost",
            Self::DeadWorkerBlackHole => "DeadWorkerBlackHole",
            Self::WorkerRestarted => "WorkerRestarted",
            Self::GPUChanged => "GPUChanged",
            Self::UnevenService => "UnevenService",
            Self::GeneratorStarved => "GeneratorStarved",
            Self::WorkerStall => "WorkerStall",
            Self::TransientStall => "TransientStall",
            Self::FrontendBound => "FrontendBound",
            Self::PastKnee => "PastKnee",
            Self::KneeJitter => "KneeJitter",
            Self::BalancedDegradation => "BalancedDegradation",
            Self::FarBelowGate => "FarBelowGate",
            Self::WorkersNotSampled => "WorkersNotSampled",
            Self::SuspiciousAllocation => "SuspiciousAllocation",
        }
    }

    /// The reason of a run that ends for this cause alone.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::GPUsMissing => Some(Reason::GPUsMissing),
            Self::BenchmarkFailed => Some(Reason::BenchmarkFailed),
            Self::ResultIncomplete => Some(Reason::ResultIncomplete),
            Self::BenchmarkTimeout => Some(Reason::BenchmarkTimeout),
            Self::JobLost => Some(Reason::JobLost),
            Self::MetricMissing => Some(Reason::MetricMissing),
            Self::RequestErrors | Self::FrontendLost | Self::DeadWorkerBlackHole => Some(Reason::RequestErrors),
            Self::WorkerRestarted => Some(Reason::WorkerRestarted),
            Self::GPUChanged => Some(Reason::GPUChanged),
            Self::UnevenService => Some(Reason::UnevenService),
            Self::GeneratorStarved => Some(Reason::GeneratorStarved),
            Self::WorkerStall => Some(Reason::WorkerStall),
            Self::TransientStall
            | Self::FrontendBound
            | Self::PastKnee
            | Self::KneeJitter
            | Self::BalancedDegradation
            | Self::FarBelowGate
            | Self::WorkersNotSampled
            | Self::SuspiciousAllocation => None,
        }
    }

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

    fn severity(self) -> Severity {
        match self {
            Self::WorkersNotSampled | Self::SuspiciousAllocation => Severity::Info,
            Self::BenchmarkFailed
            | Self::ResultIncomplete
            | Self::BenchmarkTimeout
            | Self::JobLost
            | Self::MetricMissing => Severity::Error,
            _ => Severity::Warning,
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::GPUsMissing => {
                "look for the GPUs on the node (nvidia-smi, kernel log, XID errors) and repair it; if it never had more, say so in placement.expectGPUs"
            }
            Self::BenchmarkFailed => {
                "see the log of the trial's pod in the results ConfigMap; check image, model and tokenizer"
            }
            Self::ResultIncomplete => "see why AIPerf stopped early in its log",
            Self::BenchmarkTimeout => {
                "raise timeouts.benchmark, ask for fewer requests, or give the load generator more CPU (benchmark.resources)"
            }
            Self::JobLost => "see who deletes Jobs in this namespace (audit log, clean-up tools), then run again",
            Self::MetricMissing => "gate a metric that this benchmark reports; Goodput needs benchmark.goodput",
            Self::RequestErrors => "read the errors; see the logs of frontend and workers",
            Self::FrontendLost => {
                "see whether the frontend's pod restarted and why (probes, CPU, memory); then the network to it"
            }
            Self::DeadWorkerBlackHole => "see why the worker died; Dynamo 1.5 and later route around a dead worker",
            Self::WorkerRestarted => "see the worker's previous log (kubectl logs --previous)",
            Self::GPUChanged => "something replaced the worker during the trial: look for evictions and device taints",
            Self::UnevenService => "see whether the worker is registered with the frontend; raise warmupPerConcurrency",
            Self::GeneratorStarved => "give the load generator CPUs (benchmark.resources) or lower concurrencyPerGPU",
            Self::WorkerStall => "check the GPU of this worker: clocks, temperature, XID errors, neighbours",
            Self::TransientStall => {
                "see what stopped this worker: kernel log (XID), CPU throttling, neighbours; ITL p99 shows it, TTFT does not"
            }
            Self::FrontendBound => "lower benchmark.concurrencyPerGPU, or give the frontend CPUs",
            Self::PastKnee => "lower benchmark.concurrencyPerGPU until few requests wait for an engine",
            Self::KneeJitter => "nothing, if most trials pass; else lower benchmark.concurrencyPerGPU",
            Self::BalancedDegradation => "look for what all workers share: image, flags, power limit, driver, network",
            Self::FarBelowGate => "check the gate's threshold against this GPU model, then what all workers share",
            Self::SuspiciousAllocation => "look for a force-deleted pod, or a device that vanished from its driver",
            Self::WorkersNotSampled => "let the benchmark pod reach port 9090 of the workers (network policy)",
        }
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
