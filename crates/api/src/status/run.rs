use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Phase;

/// What a finished run still has in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// Everything: the user asked to keep it.
    Kept,
    /// Something that could not be removed within `timeouts.cleanup`; the operator keeps trying.
    Overdue,
}

/// Why a run began.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// The object is new.
    #[default]
    Created,
    /// The spec changed.
    SpecChanged,
    /// The rerun annotation carries a new token.
    Rerun,
    /// `spec.suspend` was taken back.
    Resumed,
    /// `status.operatorState` was damaged during the run before.
    StateLost,
    /// What judges the trials changed: the saved ones of an earlier run are judged again, and nothing is measured.
    GatesChanged,
}

/// The current or last run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// Counts from 1.
    pub number: i64,
    /// 8 hex digits, from the object's uid and the number; part of every child's name.
    pub id: String,
    /// Why it began.
    pub trigger: Trigger,
    /// Generation of the spec that it is true of: the newest that asks for nothing that it did not measure and judge.
    pub generation: i64,
    /// Number of the run whose saved trials it judges again; absent in a run that measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_run: Option<i64>,
    /// The rerun token in force when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_token: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    /// Its place in the queue, while it waits for earlier runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueStatus>,
    /// What it still has in the cluster although it is over, or its time for removal has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<Leftovers>,
}

/// The place of a run in the queue. It is written at most once a minute, and far from the head only when it changed by a
/// tenth: a thousand waiting runs must not keep the API server busy.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Earlier runs that hold a node or wait for one.
    pub ahead: i64,
    /// When the GPUs may be this run's (an estimate: how long recent runs held their node, times the runs ahead); absent
    /// where no run has finished yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_at: Option<DateTime<Utc>>,
    /// When this was written.
    pub updated_at: DateTime<Utc>,
}

/// When a phase began and ended.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// The phase.
    pub phase: Phase,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended; absent for the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}
