//! Reads of the whole cluster that serve several runs.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Shared};
use parking_lot::MutexGuard;
use perfval_run::observed::{DynamoApi, PodEvent};
use perfval_run::queue::Contender;
use perfval_sizing::Seen;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The runs that hold a node, and the time of the read: callers that came before it share them.
pub(crate) type LastHolders = Arc<Mutex<Option<(Instant, Arc<[Contender]>)>>>;

/// The last good answer and its time. A caller that comes while a read is under way gets the same answer.
pub(crate) type LastInstalled = Arc<Mutex<Option<(Instant, DynamoApi)>>>;

/// Refusals to create pods, by namespace. Callers that come while a read is under way share it.
pub(crate) type SharedRefusals = RecentAnswers<String, Shared<BoxFuture<'static, Seen<Arc<[PodEvent]>>>>>;

/// Answers that serve for a time.
#[derive(Clone)]
pub(crate) struct RecentAnswers<K, V> {
    lasts: Duration,
    answers: Arc<parking_lot::Mutex<HashMap<K, (Instant, V)>>>,
}

impl<K: Eq + Hash, V: Clone> RecentAnswers<K, V> {
    pub(crate) fn new(lasts: Duration) -> Self {
        Self {
            lasts,
            answers: Arc::default(),
        }
    }

    /// The last answer, if it is young enough.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.young().get(key).map(|(_, answer)| answer.clone())
    }

    /// A known answer, given once.
    pub(crate) fn take(&self, key: &K) -> Option<V> {
        self.young().remove(key).map(|(_, answer)| answer)
    }

    fn young(&self) -> MutexGuard<'_, HashMap<K, (Instant, V)>> {
        let mut answers = self.answers.lock();
        answers.retain(|_, (at, _)| at.elapsed() < self.lasts);
        answers
    }

    /// Keeps an answer that has just come.
    pub(crate) fn keep(&self, key: K, answer: V) {
        self.answers.lock().insert(key, (Instant::now(), answer));
    }
}
