//! The last read of the whole cluster, which serves all runs that ask within a moment.

use std::sync::atomic::{AtomicUsize, Ordering};

use perfval_sizing::inventory::Inventory;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The whole cluster as last read, for as long as somebody waits for it.
#[derive(Default)]
pub(crate) struct LastInventory {
    last: Mutex<Option<(Instant, Inventory)>>,
    waiting: AtomicUsize,
}

/// One that waits, until it is dropped.
pub(crate) struct Waits<'a>(&'a LastInventory);

impl LastInventory {
    /// Begins to wait.
    pub(crate) fn wait(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }
}

impl<'a> Waits<'a> {
    /// The read, for one after the other.
    pub(crate) async fn turn(&self) -> MutexGuard<'a, Option<(Instant, Inventory)>> {
        self.0.last.lock().await
    }

    /// Whether nobody else waits.
    pub(crate) fn is_last(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) <= 1
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
