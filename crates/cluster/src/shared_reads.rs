//! Reads of the whole cluster that serve several runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfval_run::queue::Contender;
use perfval_sizing::inventory::Inventory;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

/// The runs that hold a node, and the time of the read: callers that came before it share them.
pub(crate) type LastHolders = Arc<Mutex<Option<(Instant, Arc<[Contender]>)>>>;

/// The whole cluster as last read, kept while a caller waits for it. There is one at a time, that of the planner
/// included: with 5,000 nodes one takes 50 MiB.
#[derive(Default)]
pub(crate) struct LastInventory {
    last: Arc<Mutex<Option<(Instant, Inventory)>>>,
    waiting: AtomicUsize,
}

/// The only whole inventory in memory.
pub(crate) type Turn = OwnedMutexGuard<Option<(Instant, Inventory)>>;

/// A caller that waits.
pub(crate) struct Waits<'a>(&'a LastInventory);

impl LastInventory {
    /// Waits until the guard is dropped.
    pub(crate) fn wait(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }

    /// The read, for one after the other.
    pub(crate) async fn turn(&self) -> Turn {
        self.last.clone().lock_owned().await
    }
}

impl Waits<'_> {
    /// The read, for one after the other.
    pub(crate) async fn turn(&self) -> Turn {
        self.0.turn().await
    }

    /// Returns true if no other caller waits.
    pub(crate) fn is_last(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) <= 1
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
