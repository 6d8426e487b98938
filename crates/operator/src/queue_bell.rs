//! What wakes the planner.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use perfval_run::Run;
use tokio::sync::Notify;

/// Wakes the planner, and remembers for whom it looked last.
#[derive(Default)]
pub struct QueueBell {
    bell: Notify,
    known: Mutex<HashSet<(String, String)>>,
}

impl QueueBell {
    /// Something may have changed for those who wait.
    pub fn wake(&self) {
        self.bell.notify_one();
    }

    /// Waits until somebody wakes the planner.
    pub(crate) async fn woken(&self) {
        self.bell.notified().await;
    }

    /// A run of the queue came by: the planner looks if it has not looked for this one yet.
    pub fn expects(&self, run: &Run<'_>) {
        let id = (run.uid().to_owned(), run.id());
        if !self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&id) {
            self.wake();
        }
    }

    /// The planner looks for these now.
    pub(crate) fn looks_for<'a>(&self, runs: impl Iterator<Item = Run<'a>>) {
        let ids = runs.map(|run| (run.uid().to_owned(), run.id())).collect();
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = ids;
    }
}
