use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Trigger of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// The object is new.
    #[default]
    Created,
    /// The spec changed.
    SpecChanged,
    /// The rerun annotation carries a new token.
    Rerun,
    /// `spec.suspend` was removed or set to false.
    Resumed,
    /// `status.operatorState` was damaged during the previous run.
    StateLost,
    /// The settings that judge trials changed. The operator judges the saved trials of an earlier run again and
    /// measures nothing.
    GatesChanged,
    /// The previous run gave way: the scheduler removed one of its workers for a pod of higher priority.
    Preempted,
}

/// Current or last run.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// Number, from 1.
    pub number: i64,
    /// Trigger.
    pub trigger: Trigger,
    /// Newest spec generation to which this result applies.
    pub generation: i64,
    /// Rerun token at the start.
    pub rerun_token: Option<String>,
    /// Start of the run.
    pub started_at: DateTime<Utc>,
    /// End of the run.
    pub completed_at: Option<DateTime<Utc>>,
    /// Earlier runs for which the run waits.
    pub queue_ahead: Option<i64>,
    /// Estimated time at which a waiting run gets GPUs. Absent until a run has finished.
    pub expected_at: Option<DateTime<Utc>>,
}
