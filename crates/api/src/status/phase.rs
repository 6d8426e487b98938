use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Phase of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The operator checks the prerequisites.
    Pending,
    /// The operator counts the free GPUs and chooses some.
    Sizing,
    /// The operator creates the deployment.
    Deploying,
    /// The deployment is starting.
    WaitingForReady,
    /// AIPerf runs, one Job per trial.
    Benchmarking,
    /// The operator saves the verdict.
    Evaluating,
    /// The operator removes everything that the run created.
    CleaningUp,
    /// The run is over.
    Completed,
    /// `spec.suspend` holds the next run back.
    Suspended,
}

impl Phase {
    /// Phases, in the order of a run.
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

    /// Word in status, events and metrics.
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
