//! Reads of the whole cluster that serve several runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfval_run::queue::Contender;
use perfval_sizing::inventory::Inventory;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

/// The runs that hold a node, and when they were asked for: they are shared by those who asked before that.
pub(crate) type LastHolders = Arc<Mutex<Option<(Instant, Arc<[Contender]>)>>>;

/// The whole cluster as last read, and when that began; for as long as somebody waits for it. There is one at a time, that of the
/// planner included: with 5,000 nodes one takes 50 MiB.
#[derive(Default)]
pub(crate) struct LastInventory {
    last: Arc<Mutex<Option<(Instant, Inventory)>>>,
    waiting: Arc<AtomicUsize>,
}

/// The only whole inventory in memory. It is dropped after this, unless somebody waits for it.
pub(crate) struct Turn {
    pub(crate) last: OwnedMutexGuard<Option<(Instant, Inventory)>>,
    waiting: Arc<AtomicUsize>,
}

impl LastInventory {
    /// The turn of one after the other.
    pub(crate) async fn turn(&self) -> Turn {
        let waits = Waits::new(&self.waiting);
        let last = self.last.clone().lock_owned().await;
        drop(waits);
        Turn {
            last,
            waiting: self.waiting.clone(),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            *self.last = None;
        }
    }
}

/// One that waits. A pass that is given up waits no longer.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
