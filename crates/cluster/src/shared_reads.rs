//! Reads of the whole cluster that serve several runs.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use perfval_run::queue::Contender;
use tokio::sync::Mutex;
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
