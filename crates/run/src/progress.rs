//! Progress of the open trial, as the status shows it.

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::{PerfValidationStatus, ProgressStatus, TrialProgress, TrialState};
use perfval_verdict::progress::Progress;

use crate::build::load::Load;
use crate::run::Run;

/// Time until the first reading: a trial that is over by then needs none.
const FIRST: TimeDelta = TimeDelta::seconds(20);
/// Time between two readings, and so between two writes: etcd keeps every one of them, and every watcher receives it.
const PAUSE: TimeDelta = TimeDelta::seconds(60);

fn find(status: &PerfValidationStatus, trial: i64) -> Option<&TrialProgress> {
    let progress = status.state.progress.as_ref();
    progress.filter(|known| known.trial == trial)
}

/// Returns true if the status' progress of the open trial is old enough to be read again.
pub fn is_old(status: &PerfValidationStatus, trial: i64, now: DateTime<Utc>) -> bool {
    if let Some(known) = find(status, trial) {
        return now - known.shown.updated_at >= PAUSE;
    }
    let opened = status.state.trials.iter().find(|known| known.number == trial);
    opened.is_none_or(|opened| !is_young(opened, now))
}

/// Returns true if it is too early for the first reading of a trial.
pub(crate) fn is_young(trial: &TrialState, now: DateTime<Utc>) -> bool {
    now - trial.started_at < FIRST
}

/// The next progress in the status; `None` without any new reading.
pub(crate) fn next(run: &Run<'_>, trial: i64, read: &Progress, now: DateTime<Utc>) -> Option<TrialProgress> {
    let known = find(run.status(), trial);
    let is_news = known.is_none_or(|known| known.requests != read.requests && is_old(run.status(), trial, now));
    is_news.then(|| at(run, trial, read, now))
}

/// Progress of a trial, in the fields of a status.
pub fn at(run: &Run<'_>, trial: i64, read: &Progress, now: DateTime<Utc>) -> TrialProgress {
    let (done, all, expected) = match Load::new(run, trial) {
        Load::Requests(requests) => (read.requests, requests, Some(requests)),
        Load::Seconds(seconds) => (read.seconds, seconds, None),
    };
    let percent = (done.saturating_mul(100) / all.max(1)).clamp(0, 100);
    TrialProgress {
        trial,
        requests: read.requests,
        expected,
        failed_requests: read.errors,
        seconds: read.seconds,
        shown: ProgressStatus {
            percent: Some(percent),
            output_tokens_per_second: read.tokens_per_second,
            summary: format!("{trial}: {percent}%"),
            updated_at: now,
        },
    }
}
