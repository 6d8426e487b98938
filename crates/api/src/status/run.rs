use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Phase;

/// Objects of a finished run that remain in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// All objects, because the user asked to keep them.
    Kept,
    /// Objects that the operator could not remove within `timeouts.cleanup`; it keeps trying.
    Overdue,
}

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
}

/// Current or last run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// Number, from 1.
    pub number: i64,
    /// Id of the run: 8 hex digits, from the object's uid and the number. The name of every child contains it.
    pub id: String,
    /// Trigger of the run.
    pub trigger: Trigger,
    /// Newest spec generation to which this result applies.
    pub generation: i64,
    /// Number of the run whose saved trials this run judges again; absent in a run that measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_run: Option<i64>,
    /// Rerun token in force at the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_token: Option<String>,
    /// Time at which the run began.
    pub started_at: DateTime<Utc>,
    /// Time at which the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    /// Place in the queue while the run waits for earlier runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// Objects that remain in the cluster after the run is over, or after its time for removal has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<Leftovers>,
}

/// Place of a run in the queue. The operator writes it at most once a minute. Far from the head it writes only changes
/// of a tenth or more, so that a thousand waiting runs do not overload the API server.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Earlier runs that hold a node or wait for one.
    pub ahead: i64,
    /// Estimated time at which the run gets its GPUs: the time that recent runs held their node, times the runs ahead.
    /// Absent until a run has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_at: Option<DateTime<Utc>>,
    /// Time of the last update.
    pub updated_at: DateTime<Utc>,
}

/// Start and end of a phase.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// Phase.
    pub phase: Phase,
    /// Time at which the phase began.
    pub started_at: DateTime<Utc>,
    /// Time at which the phase ended; absent for the current phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}
