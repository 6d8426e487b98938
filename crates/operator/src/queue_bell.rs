//! Bell that wakes the planner.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use perfval_run::Run;
use tokio::sync::Notify;

/// Wakes the planner, and remembers for whom it looked last.
#[derive(Default)]
pub struct QueueBell {
    bell: Notify,
    known: Mutex<HashMap<RunKey, DateTime<Utc>>>,
}

/// Uid of the object, and id of its run.
pub(crate) type RunKey = (String, String);

pub(crate) fn key(run: &Run<'_>) -> RunKey {
    (run.uid().to_owned(), run.id())
}

impl QueueBell {
    /// Something may have changed for those who wait.
    pub fn wake(&self) {
        self.bell.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.bell.notified().await;
    }

    /// A run of the queue came by: the planner looks if it has not looked for this one yet.
    pub fn expects(&self, run: &Run<'_>) {
        if !self.known.lock().contains_key(&key(run)) {
            self.wake();
        }
    }

    /// Records that the planner looks for these now. Returns the times of its last looks for them.
    pub(crate) fn looks_for(
        &self,
        runs: impl Iterator<Item = RunKey>,
        now: DateTime<Utc>,
    ) -> HashMap<RunKey, DateTime<Utc>> {
        let ids = runs.map(|run| (run, now)).collect();
        std::mem::replace(&mut *self.known.lock(), ids)
    }
}
