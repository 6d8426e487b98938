use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Phase;

/// Objects of a finished run that remain in the cluster.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Leftovers {
    /// All objects, because the user asked to keep them.
    Kept,
    /// Objects that the operator could not remove within `timeouts.cleanup`; it keeps trying.
    Overdue,
}

/// Start and end of a phase.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
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

/// GPU time of earlier runs of the object, for the budgets of its policy.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct EarlierGpuTime {
    /// Time at which the last of them gave its GPUs back.
    pub until: DateTime<Utc>,
    /// GPU seconds on the day of `until` (UTC).
    pub seconds: i64,
}
