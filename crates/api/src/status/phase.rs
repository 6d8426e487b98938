use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a run is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Prerequisites are checked.
    Pending,
    /// Free GPUs are counted and chosen.
    Sizing,
    /// The deployment is being created.
    Deploying,
    /// The deployment is starting.
    WaitingForReady,
    /// AIPerf runs, one Job per trial.
    Benchmarking,
    /// The verdict is saved.
    Evaluating,
    /// Everything is being removed.
    CleaningUp,
    /// The run is over.
    Completed,
    /// `spec.suspend` holds the next run back.
    Suspended,
}

impl Phase {
    /// Every phase, in the order of a run.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Sizing,
        Self::Deploying,
        Self::WaitingForReady,
        Self::Benchmarking,
        Self::Evaluating,
        Self::CleaningUp,
        Self::Completed,
        Self::Suspended,
    ];

    /// The word in status, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Sizing => "Sizing",
            Self::Deploying => "Deploying",
            Self::WaitingForReady => "WaitingForReady",
            Self::Benchmarking => "Benchmarking",
            Self::Evaluating => "Evaluating",
            Self::CleaningUp => "CleaningUp",
            Self::Completed => "Completed",
            Self::Suspended => "Suspended",
        }
    }
}
