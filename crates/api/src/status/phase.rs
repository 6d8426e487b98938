use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Phase of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
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
        self.stage() == RunStage::None
    }

    /// Returns true if a run can be interrupted: it may hold or soon create objects, and its verdict is not known.
    pub fn is_active(self) -> bool {
        !matches!(self.stage(), RunStage::CleanUp | RunStage::None)
    }

    /// Returns true from the creation of the run's deployment to the last trial.
    pub fn serves(self) -> bool {
        matches!(self.stage(), RunStage::Start | RunStage::Measurement)
    }

    /// Returns true from the first look at the created deployment to the last trial.
    pub fn is_measured(self) -> bool {
        self.stage() == RunStage::Measurement
    }

    fn stage(self) -> RunStage {
        match self {
            Self::Pending | Self::Sizing | Self::Evaluating => RunStage::Decision,
            Self::Deploying => RunStage::Start,
            Self::WaitingForReady | Self::Benchmarking => RunStage::Measurement,
            Self::CleaningUp => RunStage::CleanUp,
            Self::Completed | Self::Suspended => RunStage::None,
        }
    }
}

/// Part of a run that one or more phases make.
#[derive(PartialEq)]
enum RunStage {
    Decision,
    Start,
    Measurement,
    CleanUp,
    None,
}
