use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Phase of a run.
#[derive(
    Serialize,
    Deserialize,
    JsonSchema,
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash
)]
#[derive(IntoStaticStr, VariantArray)]
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
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns true if no run is active in this phase.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Suspended)
    }
}
