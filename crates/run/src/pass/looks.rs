//! Looks of the operator: the limits that count them, when the next one comes, and when one is written.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{Gap, PerfValidationStatus, Phase};

use super::Pass;
use crate::attendance::{self, LONGEST_PAUSE, Limit};
use crate::{job, progress, queue, status, time};

/// Pause between two looks at a sign of trouble, and shortest one without any.
const LOOK_SOON: Duration = Duration::from_secs(5);
const LOOK_SELDOM: Duration = Duration::from_secs(20);
/// Gaps that a status keeps.
const GAPS: usize = 8;
/// After a longer pause a look may be the first one after an outage.
const RECENT: Duration = Duration::from_secs(5);
/// The look that decides whether a limit has passed comes this long after the first one.
const ONCE_MORE: Duration = Duration::from_secs(1);

impl Pass<'_> {
    /// Records the gap between the last look and the beginning of this one, if there is one: the limit of the current wait stood
    /// still meanwhile.
    pub(crate) fn notice_gap(&mut self, limit: &Limit) {
        let began = self.began();
        let is_outage = |last: &DateTime<Utc>| time::until(began, *last) > limit.outage();
        let Some(last) = self.last_look.filter(is_outage) else {
            return;
        };
        // It counts for a while, so that a run comes to its end under an operator that always looks too late. A process that
        // remembers its last look made no later one. Without that memory, later looks may have written nothing.
        let looks_after = if self.seen.looked_before.is_some() {
            limit.heartbeat / 2
        } else {
            limit.heartbeat
        };
        let gaps = &mut self.status.state.gaps;
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

    fn began(&self) -> DateTime<Utc> {
        self.seen.began.unwrap_or(self.now)
    }

    /// Returns true if a limit of attended time has passed. After a pause the first look does not decide: what it saw counts
    /// first, and the next one decides.
    pub(crate) fn has_passed(&mut self, limit: &Limit) -> bool {
        let Some(over) = self.attended_since(limit.since).checked_sub(limit.lasts) else {
            return false;
        };
        let pause = self.last_look.map(|last| time::until(self.began(), last));
        // No single pause leads past an outage: the part of it that is no gap is shorter. So a run that is always
        // looked at too late, or whose heartbeat an older CRD drops, ends nevertheless.
        if over >= limit.outage() || pause.is_some_and(|pause| pause <= RECENT) {
            return true;
        }
        self.looks_once_more = true;
        self.look_again_in(ONCE_MORE);
        false
    }

    /// Attended time since then.
    pub(crate) fn attended_since(&self, since: DateTime<Utc>) -> Duration {
        attendance::attended(&self.status, since, self.now)
    }

    /// Looks again at ages and graces, which no watch shows: the longer the phase, or its trial, has lasted, the later. With a
    /// sign of trouble it looks soon.
    pub(crate) fn look_again_slower(&mut self) {
        let state = &self.run.status().state;
        let trial = state.trials.last().filter(|trial| trial.outcome.is_none());
        let since = trial
            .map(|trial| trial.started_at)
            .or(status::phase_started_at(&self.status));
        let lasted = since.map_or(Duration::ZERO, |since| time::until(self.now, since));
        let pause = if state.signs.is_empty() {
            (lasted / 2).clamp(LOOK_SELDOM, LONGEST_PAUSE)
        } else {
            LOOK_SOON
        };
        self.look_again_in(pause);
    }

    /// Moves the heartbeat with every change. Alone, it is a reason to write only once it is old and a limit runs, or
    /// where a limit passes as soon as the next look confirms it; and in the queue, where other operators plan too and have
    /// to see that this one looks.
    pub(super) fn record_look(&mut self, limit: Option<Limit>) {
        let rests = self.status.phase.is_none_or(Phase::is_over);
        let quiet = self.without_new_jobs();
        let is_news = quiet != *self.run.status() || self.looks_once_more;
        let is_queued = queue::is_queued(&self.status);
        if rests {
            self.status.state.last_looked_at = None;
            return;
        }
        if !is_news {
            let in_line = is_queued && self.run.settings.shares_the_cluster;
            let Some(written) = limit
                .map(|limit| limit.written)
                .or(in_line.then_some(queue::HEARTBEAT_WRITTEN))
            else {
                self.status = quiet;
                return;
            };
            let last_look = self.status.state.last_looked_at;
            let due = last_look.map(|last| time::until(time::after(last, written), self.now));
            if let Some(due) = due.filter(|due| !due.is_zero()) {
                self.look_again_in(due);
                self.status = quiet;
                return;
            }
        }
        self.status.state.last_looked_at = Some(self.now);
    }

    /// The next status without the uid of a Job that was just created. It is written with the first progress of its trial:
    /// until then the Job is known by its owner and its run. A queue may stop a Job within seconds of its start, and then the next
    /// pass must know of the start. So the uid of such a Job is written at once. A start and a stop between two looks stay unseen.
    fn without_new_jobs(&self) -> PerfValidationStatus {
        let mut quiet = self.status.clone();
        let job = self.seen.trial.present().and_then(|trial| trial.job.as_ref());
        if job.is_some_and(job::may_be_stopped) {
            return quiet;
        }
        for (trial, known) in quiet.state.trials.iter_mut().zip(&self.run.status().state.trials) {
            if known.job_uid.is_none() && progress::is_young(trial, self.now) {
                trial.job_uid = None;
            }
        }
        quiet
    }
}
