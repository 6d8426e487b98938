use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Verdict of a run.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr,
)]
pub enum Verdict {
    /// The run measured, and the trials met every enforced gate as often as the trial rule requires.
    Passed,
    /// The run measured, and the deployment did not meet the requirements.
    Failed,
    /// The run measured, but the result is not reliable.
    Inconclusive,
    /// No gate is enforced, or Dynamo is missing and the spec allows that.
    Skipped,
    /// The run could not measure.
    Error,
}

impl Verdict {
    /// Word in status, events and metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
