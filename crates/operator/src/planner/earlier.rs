//! Facts of earlier looks for the queue.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{Phase, Reason};
use perfval_run::Run;
use perfval_run::queue::Turn;
use perfval_sizing::{Plan, Seen, Sizing};
use tokio::time::Instant;

use super::answer::Answer;
use crate::context::Queued;
use crate::queue_bell::RunKey;

/// Time in which waiting runs keep their messages while the cluster cannot be read. One list that failed would otherwise be two writes
/// for each of a thousand runs, when the API server is slow anyway.
const UNREAD: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(super) struct EarlierLooks {
    pub(super) chosen: Choices,
    /// Time from which no look could read the cluster for a run.
    unread_since: HashMap<RunKey, Instant>,
}

impl EarlierLooks {
    /// Keeps the plans of this look, each with the time of the first look that chose it. A run that rests keeps its last one, or
    /// each of its failures would come two seconds later.
    pub(super) fn remember(&mut self, queued: &[Queued], answers: &[(&Queued, Answer)], now: DateTime<Utc>) {
        let mut before = std::mem::take(&mut self.chosen);
        let answers: HashMap<&RunKey, &Answer> = answers.iter().map(|(queued, answer)| (&queued.key, answer)).collect();
        for Queued { key, .. } in queued {
            let known = before.remove(key);
            let choice = match answers.get(key).map(|answer| &answer.turn) {
                None => known,
                Some(Seen::Present(Turn::Sized(Sizing::Chosen(plan)))) => {
                    let since = known
                        .filter(|(known, _)| known == &**plan)
                        .map_or(now, |(_, since)| since);
                    Some((plan.as_ref().clone(), since))
                }
                Some(_) => None,
            };
            if let Some(choice) = choice {
                self.chosen.insert(key.clone(), choice);
            }
        }
    }

    /// Records the runs for which the cluster could not be read.
    pub(super) fn note_unread(&mut self, answers: &[(&Queued, Answer)]) {
        let before = std::mem::take(&mut self.unread_since);
        let unread = answers.iter().filter(|(_, answer)| answer.is_unread());
        let unread = unread.map(|(Queued { key, .. }, _)| (key.clone(), before.get(key).copied()));
        self.unread_since = unread
            .map(|(key, since)| (key, since.unwrap_or_else(Instant::now)))
            .collect();
    }

    /// Returns true if the cluster could not be read for a run, for less than a minute.
    pub(super) fn is_brief(&self, key: &RunKey) -> bool {
        let since = self.unread_since.get(key);
        since.is_some_and(|since| since.elapsed() < UNREAD)
    }
}

/// Returns true if a run shows the answer of an earlier look.
pub(super) fn has_answer(run: &Run<'_>) -> bool {
    let status = run.status();
    // A new run shows Running.
    let none = [Reason::CallFailed, Reason::Running].map(Reason::name);
    let reason = status.reason.as_deref();
    status.phase == Some(Phase::Sizing) && reason.is_some_and(|reason| !none.contains(&reason))
}

/// The plan that the last look chose for each run, and since when it is the same.
pub(super) type Choices = HashMap<RunKey, (Plan, DateTime<Utc>)>;
