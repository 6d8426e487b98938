//! Reads of the whole cluster that serve several runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use perfval_run::queue::Contender;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The runs that hold a node, and the time of the read: callers that came before it share them.
pub(crate) type LastHolders = Arc<Mutex<Option<(Instant, Arc<[Contender]>)>>>;

/// Installation of Dynamo.
#[derive(Clone)]
pub(crate) struct Installed {
    /// The newest served version of its deployments that the operator supports.
    pub resource: ApiResource,
    /// Version of its operator, if the CRD contains it.
    pub operator_version: Option<String>,
    /// True if a deployment may contain the version of its runtime; read only for a run that needs it.
    pub takes_runtime_version: Option<bool>,
}

/// The last good answer and its time. A caller that comes while a read is under way gets the same answer.
pub(crate) type LastInstalled = Arc<Mutex<Option<(Instant, Installed)>>>;

/// Presence of a kind that clusters serve at different versions, or not at all.
#[derive(Clone, Copy)]
pub(crate) enum Served {
    At(&'static str),
    Nowhere,
}

/// The last answer of this kind, and when it came.
#[derive(Clone, Default)]
pub(crate) struct LastServed(Arc<parking_lot::Mutex<Option<(Instant, Served)>>>);

/// Time for which the versions of a kind are taken to be the same: they change with an upgrade of the cluster.
const SERVED: Duration = Duration::from_mins(1);

impl LastServed {
    /// The last answer, if it is young enough.
    pub(crate) fn last(&self) -> Option<Served> {
        let last = *self.0.lock();
        last.filter(|(at, _)| at.elapsed() < SERVED).map(|(_, served)| served)
    }

    /// Keeps an answer that was given after all versions were asked for.
    pub(crate) fn keep(&self, served: Served) {
        *self.0.lock() = Some((Instant::now(), served));
    }
}

/// Namespaces in which the operator was allowed to run, and when it asked.
#[derive(Clone, Default)]
pub(crate) struct LastAllowed(Arc<parking_lot::Mutex<HashMap<String, Instant>>>);

/// Time for which a permission is taken to be the same. A policy with 100 runs at once asked 2.7 times a second.
const ALLOWED: Duration = Duration::from_secs(5);

impl LastAllowed {
    /// Returns true if runs were allowed in a namespace a moment ago.
    pub(crate) fn includes(&self, namespace: &str) -> bool {
        self.lock().contains_key(namespace)
    }

    /// Keeps a permission. A refusal is not kept, so that a new right counts at once.
    pub(crate) fn add(&self, namespace: &str) {
        self.lock().insert(namespace.to_owned(), Instant::now());
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Instant>> {
        let mut last = self.0.lock();
        last.retain(|_, at| at.elapsed() < ALLOWED);
        last
    }
}
