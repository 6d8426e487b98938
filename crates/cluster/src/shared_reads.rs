//! Reads of the whole cluster that serve several runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use perfval_run::queue::Contender;
use perfval_sizing::inventory::Inventory;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

/// The runs that hold a node, and the time of the read: callers that came before it share them.
pub(crate) type LastHolders = Arc<Mutex<Option<(Instant, Arc<[Contender]>)>>>;

/// Presence of a kind that clusters serve at different versions.
#[derive(Clone, Copy)]
pub(crate) enum Served {
    At(&'static str),
    Nowhere,
}

/// The last answer of this kind, and when it came.
#[derive(Clone, Default)]
pub(crate) struct LastServed(Arc<std::sync::Mutex<Option<(Instant, Served)>>>);

/// Time for which the versions of a kind are taken to be the same: they change with an upgrade of the cluster.
const SERVED: Duration = Duration::from_mins(1);

impl LastServed {
    /// The last answer, if it is young enough.
    pub(crate) fn last(&self) -> Option<Served> {
        let last = *self.lock();
        last.filter(|(at, _)| at.elapsed() < SERVED).map(|(_, served)| served)
    }

    /// Keeps an answer that was given after all versions were asked for.
    pub(crate) fn keep(&self, served: Served) {
        *self.lock() = Some((Instant::now(), served));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Served)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The whole cluster as last read with the start of the read, kept while a caller waits for it. There is one at a time, that of
/// the planner included: with 5,000 nodes one takes 50 MiB.
#[derive(Default)]
pub(crate) struct LastInventory {
    last: Arc<Mutex<Option<(Instant, Inventory)>>>,
    waiting: Arc<AtomicUsize>,
}

/// The only whole inventory in memory. It is dropped after this, unless a caller waits for it.
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

/// A caller that waits. A pass that is given up waits no longer.
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
