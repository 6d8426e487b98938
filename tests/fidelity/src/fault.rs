//! The faults that are injected, and what names each.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Fault of a run of the lab.
#[derive(Serialize, Deserialize, ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Nothing.
    Healthy,
    /// One of the workers runs at a tenth of its speed.
    SlowWorker,
    /// One of the workers is a little slower: the conditions say by which factor.
    SlowerWorker,
    /// Another process computes on the GPU of one worker for a share of the time.
    SlowGpu,
    /// Two workers run on one GPU.
    TwoOnOneGpu,
    /// All of them run at a third.
    AllSlow,
    /// One of them is stopped for ten seconds under load.
    FrozenTenSeconds,
    /// One of them is stopped under load and never goes on.
    FrozenForGood,
    /// One of them is killed under load.
    Dead,
    /// One of the pods is deleted under load.
    Restart,
    /// The load generator has half a CPU.
    StarvedGenerator,
    /// The frontend has a fraction of the CPU that the load needs.
    FrontendBound,
    /// The frontend shares one CPU with processes that never rest.
    CrowdedFrontend,
    /// Requests that the frontend refuses.
    RequestErrors,
    /// Workers that take long to start.
    ColdStart,
    /// The DRA plugin forgot its devices.
    StaleDraPlugin,
    /// An image that does not exist.
    ImagePull,
    /// A worker program that exits at once.
    CrashLoop,
    /// Less memory than a worker needs.
    OutOfMemory,
    /// An image of another minor version than Dynamo's operator.
    VersionSkew,
    /// The node is cordoned between sizing and binding.
    Unschedulable,
}

/// Right verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The deployment is good: failing it is wrong.
    Healthy,
    /// It is not: passing it is wrong.
    Degraded,
    /// It was good but for a moment or a part, or it was not what was measured: neither verdict is wrong, silence is.
    Open,
    /// It cannot be measured: neither passing nor failing it is right.
    Broken,
}

impl Fault {
    /// Words in a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Healthy => "none",
            Self::SlowWorker => "one worker 10 × slower",
            Self::SlowerWorker => "one worker slower",
            Self::SlowGpu => "foreign load on one GPU",
            Self::TwoOnOneGpu => "two workers on one GPU",
            Self::AllSlow => "all workers 3 × slower",
            Self::FrozenTenSeconds => "one worker frozen for 10 s",
            Self::FrozenForGood => "one worker frozen for good",
            Self::Dead => "one worker killed",
            Self::Restart => "one worker pod deleted mid-trial",
            Self::StarvedGenerator => "load generator with half a CPU",
            Self::FrontendBound => "frontend throttled under load",
            Self::CrowdedFrontend => "frontend on a shared CPU",
            Self::RequestErrors => "requests refused (HTTP 400)",
            Self::ColdStart => "slow start",
            Self::StaleDraPlugin => "stale DRA plugin",
            Self::ImagePull => "image cannot be pulled",
            Self::CrashLoop => "worker crash loops",
            Self::OutOfMemory => "worker out of memory",
            Self::VersionSkew => "version skew",
            Self::Unschedulable => "node cordoned after sizing",
        }
    }

    /// Right verdict.
    pub fn truth(self) -> Truth {
        match self {
            Self::Healthy | Self::ColdStart => Truth::Healthy,
            Self::SlowWorker
            | Self::AllSlow
            | Self::FrozenForGood
            | Self::Dead
            | Self::FrontendBound
            | Self::RequestErrors => Truth::Degraded,
            Self::SlowerWorker
            | Self::SlowGpu
            | Self::TwoOnOneGpu
            | Self::CrowdedFrontend
            | Self::FrozenTenSeconds
            | Self::Restart
            | Self::StarvedGenerator => Truth::Open,
            Self::StaleDraPlugin
            | Self::ImagePull
            | Self::CrashLoop
            | Self::OutOfMemory
            | Self::VersionSkew
            | Self::Unschedulable => Truth::Broken,
        }
    }

    /// Names of causes, and reasons of recorded runs, that each name this fault. Runs recorded before the words were merged have finer
    /// reasons.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Healthy => &[],
            Self::SlowWorker | Self::SlowerWorker => &["SlowWorker", "WorkerStall"],
            Self::SlowGpu => &["SlowWorker", "WorkerStall", "GPUShared"],
            Self::TwoOnOneGpu => &["GPUShared", "SlowWorker", "WorkerStall", "SuspiciousAllocation"],
            Self::AllSlow => &["BalancedDegradation", "FarBelowGate"],
            // Until Dynamo 1.5 the kubelet restarts such a worker; then the restart is its name.
            Self::FrozenTenSeconds => &["TransientStall", "WorkerStall", "WorkerCrashed", "WorkerRestarted"],
            Self::FrozenForGood => &["WorkerStall", "WorkerCrashed", "WorkerRestarted", "DeadWorkerBlackHole"],
            Self::Dead | Self::Restart => &["WorkerCrashed", "WorkerRestarted", "DeadWorkerBlackHole"],
            Self::StarvedGenerator => &["GeneratorStarved"],
            // Starved of CPU it fails its liveness probe, and the kubelet restarts it.
            Self::FrontendBound => &["FrontendBound", "FrontendLost"],
            Self::CrowdedFrontend => &["FrontendBound"],
            Self::RequestErrors => &["RequestErrors"],
            Self::ColdStart => &["ColdStart"],
            Self::StaleDraPlugin => &["StaleDRAPlugin", "NodeNotReady"],
            Self::ImagePull => &["ImagePullBackOff", "ContainerFailed"],
            Self::CrashLoop => &["CrashLoopBackOff", "ContainerFailed"],
            Self::OutOfMemory => &["OOMKilled", "ContainerFailed"],
            Self::VersionSkew => &["VersionSkew"],
            Self::Unschedulable => &["Unschedulable", "LostRace"],
        }
    }

    /// True if it strikes while a trial is under load.
    pub fn strikes_under_load(self) -> bool {
        matches!(
            self,
            Self::FrozenTenSeconds | Self::FrozenForGood | Self::Dead | Self::Restart | Self::FrontendBound
        )
    }

    /// True if it ends a run before any trial.
    pub fn before_any_trial(self) -> bool {
        self.truth() == Truth::Broken
    }
}
