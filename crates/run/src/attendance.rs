//! Attended time. A limit is for the world, so only time in which the operator looked counts against a run.
//!
//! `status.operatorState.lastLookedAt` is the heartbeat. It is written with every other change, and alone only when it is
//! older than [`Limit::written`] while a limit runs: a look in between decides an equal status, which is not written. A
//! run without a limit has none, except in a shared queue. If a look finds the heartbeat much older, the time
//! between was unattended: it is kept as a gap of the phase, and every clock of the phase leaves it out.
//!
//! The process remembers its own last look at each run, so the heartbeat is written more seldom than looks are made
//! ([`Limit::written`]). Only after a restart the time since the written one is unattended.
//!
//! A look that rests on copies counts. If an API server hangs with its connections open, up to 90 s of it count as attended.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::PerfValidationStatus;

use crate::time;

/// Longest pause between two looks at a run that waits.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Longest time between two looks that counts as attended, before half of it is added for a busy operator.
const HEARTBEAT: Duration = Duration::from_secs(40);
/// Age at which the heartbeat is written alone.
const WRITTEN: Duration = Duration::from_mins(2);

/// Longest time of a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    /// Start of its clock.
    pub(crate) since: DateTime<Utc>,
    /// Attended time that it may take.
    pub(crate) lasts: Duration,
    /// Longest time between two looks.
    pub(crate) heartbeat: Duration,
    /// Age at which the heartbeat is written without any other change.
    pub(crate) written: Duration,
}

impl Limit {
    /// A limit with the usual heartbeat: a write every two minutes.
    pub(crate) fn new(since: DateTime<Utc>, lasts: Duration) -> Self {
        Self {
            since,
            lasts,
            heartbeat: Duration::ZERO,
            written: Duration::ZERO,
        }
        .with_heartbeat(HEARTBEAT)
        .written_every(WRITTEN)
    }

    /// The same limit with a heartbeat of this age. A short limit has a faster one, or an outage that is not much longer
    /// than the limit would not be noticed.
    pub(crate) fn with_heartbeat(self, heartbeat: Duration) -> Self {
        let heartbeat = heartbeat.min(self.lasts / 4).max(Duration::from_secs(1));
        Self {
            heartbeat,
            written: heartbeat,
            ..self
        }
    }

    /// The same limit whose heartbeat is written less often than looks are made, because the process remembers its looks.
    pub(crate) fn written_every(self, written: Duration) -> Self {
        let written = written.min(self.lasts / 4).max(self.heartbeat);
        Self { written, ..self }
    }

    /// A heartbeat older than this shows an outage. Half a heartbeat is room for a busy operator.
    pub(crate) fn outage(&self) -> Duration {
        self.heartbeat + self.heartbeat / 2
    }
}

/// Time from `since` to `now`, without the gaps.
pub(crate) fn attended(status: &PerfValidationStatus, since: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    time::until(now, since).saturating_sub(unattended(status, since))
}

/// Time at which a limit passes, if no look is missed from now on.
pub(crate) fn deadline(status: &PerfValidationStatus, limit: &Limit) -> DateTime<Utc> {
    time::after(limit.since, limit.lasts.saturating_add(unattended(status, limit.since)))
}

fn unattended(status: &PerfValidationStatus, since: DateTime<Utc>) -> Duration {
    status
        .state
        .gaps
        .iter()
        .map(|gap| time::until(gap.until, gap.from.max(since)))
        .sum()
}
