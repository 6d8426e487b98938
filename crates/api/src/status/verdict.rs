use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run found.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Measured, and every enforced gate was met.
    Passed,
    /// Measured, and below a gate.
    Failed,
    /// Measured, but not to be trusted.
    Inconclusive,
    /// Nothing to judge.
    Skipped,
    /// Could not be measured.
    Error,
}

impl Verdict {
    /// The word in status, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::Inconclusive => "Inconclusive",
            Self::Skipped => "Skipped",
            Self::Error => "Error",
        }
    }
}
