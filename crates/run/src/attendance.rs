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
use perfval_api::{Gap, PerfValidationStatus};

use crate::time;

/// Longest pause between two looks at a run that waits.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Longest time between two looks that counts as attended, before half of it is added for a busy operator.
const HEARTBEAT: Duration = Duration::from_secs(40);
/// Age at which the heartbeat is written alone.
const WRITTEN: Duration = Duration::from_mins(2);
/// After a longer pause a look may be the first one after an outage.
const RECENT: Duration = Duration::from_secs(5);
/// Gaps that a status keeps.
const GAPS: usize = 8;

/// Longest time of a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    /// When its clock began.
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
            heartbeat: HEARTBEAT,
            written: Duration::ZERO,
        }
        .heard_often()
        .written_every(WRITTEN)
    }

    /// The same limit with a heartbeat of this age. A short limit has a faster one, or an outage that is not much longer
    /// than the limit would not be noticed.
    pub(crate) fn with_heartbeat(self, heartbeat: Duration) -> Self {
        Self { heartbeat, ..self }.heard_often()
    }

    /// The same limit whose heartbeat is written less often than looks are made, because the process remembers its looks.
    pub(crate) fn written_every(self, written: Duration) -> Self {
        let written = written.min(self.lasts / 4).max(self.heartbeat);
        Self { written, ..self }
    }

    fn heard_often(self) -> Self {
        let heartbeat = self.heartbeat.min(self.lasts / 4).max(Duration::from_secs(1));
        Self {
            heartbeat,
            written: heartbeat,
            ..self
        }
    }

    /// A heartbeat older than this shows an outage. Half a heartbeat is room for a busy operator.
    fn outage(&self) -> Duration {
        self.heartbeat + self.heartbeat / 2
    }
}

/// A look's statement about a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// There is time left.
    Runs,
    /// It has passed, but this is the first look after a pause: what it saw counts first, and the next one decides.
    LookOnceMore,
    /// It has passed.
    Passed,
}

/// Time from `since` to `now`, without the gaps.
pub(crate) fn attended(status: &PerfValidationStatus, since: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    time::until(now, since).saturating_sub(unattended(status, since))
}

/// When a limit passes, if no look is missed from now on.
pub(crate) fn deadline(status: &PerfValidationStatus, limit: &Limit) -> DateTime<Utc> {
    time::after(limit.since, limit.lasts.saturating_add(unattended(status, limit.since)))
}

/// Clock of a look that began at `looked` and decides at `now`.
pub(crate) fn clock(
    status: &PerfValidationStatus,
    limit: &Limit,
    pause: Option<Duration>,
    now: DateTime<Utc>,
) -> Clock {
    let over = attended(status, limit.since, now).checked_sub(limit.lasts);
    match over {
        None => Clock::Runs,
        // No single pause leads past this: the part of it that is no gap is shorter. So a run that is always looked at
        // too late, or whose heartbeat an older CRD drops, ends nevertheless.
        Some(over) if over >= limit.outage() => Clock::Passed,
        Some(_) if pause.is_some_and(|pause| pause <= RECENT) => Clock::Passed,
        Some(_) => Clock::LookOnceMore,
    }
}

/// When a run was looked at last: its heartbeat, or a later look that wrote nothing and is remembered.
pub(crate) fn last_look(status: &PerfValidationStatus, remembered: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    let heartbeat = status.state.last_looked_at?;
    Some(remembered.map_or(heartbeat, |look| look.max(heartbeat)))
}

/// Records the gap between the last look and the beginning of this one, if there is one. `is_remembered`: the
/// process made no later look; otherwise there may have been some that wrote nothing.
pub(crate) fn notice(
    status: &mut PerfValidationStatus,
    limit: &Limit,
    last: Option<DateTime<Utc>>,
    is_remembered: bool,
    began: DateTime<Utc>,
) {
    let Some(last) = last.filter(|last| time::until(began, *last) > limit.outage()) else {
        return;
    };
    let gaps = &mut status.state.gaps;
    // It counts for a while, so that a run comes to its end under an operator that always looks too late.
    let looks_after = if is_remembered {
        limit.heartbeat / 2
    } else {
        limit.heartbeat
    };
    gaps.push(Gap {
        from: time::after(last, looks_after),
        until: began,
    });
    if gaps.len() > GAPS {
        // The oldest two become one of the same length.
        let first = gaps.remove(0);
        if let Some(second) = gaps.first_mut() {
            second.from -= first.until - first.from;
        }
    }
}

fn unattended(status: &PerfValidationStatus, since: DateTime<Utc>) -> Duration {
    status
        .state
        .gaps
        .iter()
        .map(|gap| time::until(gap.until, gap.from.max(since)))
        .sum()
}
