//! Every object this process looks after, and the bell that wakes some of them.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{FutureExt, Stream, StreamExt, stream};
use kube::Resource as _;
use kube::runtime::reflector::{ObjectRef, Store, store, store::Writer};
use perfval_api::{PerfValidation, Phase};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::metrics::Metrics;
use crate::stored::Stored;

/// One watched namespace (`None` is all of them), and where its objects are kept.
pub struct Scope {
    /// The namespace.
    pub namespace: Option<String>,
    /// Store from which its objects are read.
    pub reader: Store<Stored>,
    /// Writer of the watch.
    pub writer: Writer<Stored>,
}

/// Wakes that a scope may be behind by; a lost one costs the wait for the next look, at most 15 s.
const BACKLOG: usize = 256;

/// The objects of all watched namespaces, as last seen, and a way to have some looked at again.
#[derive(Clone)]
pub struct Objects {
    stores: Arc<[Store<Stored>]>,
    namespaces: Arc<[Option<String>]>,
    bell: broadcast::Sender<ObjectRef<Stored>>,
}

/// Stores for the namespaces (`None` is all of them), and the scopes that will fill them.
pub fn watched(namespaces: Vec<Option<String>>) -> (Objects, Vec<Scope>) {
    let (bell, _) = broadcast::channel(BACKLOG);
    let watched: Arc<[Option<String>]> = namespaces.clone().into();
    let (stores, scopes): (Vec<_>, Vec<_>) = namespaces
        .into_iter()
        .map(|namespace| {
            let (reader, writer) = store();
            (
                reader.clone(),
                Scope {
                    namespace,
                    reader,
                    writer,
                },
            )
        })
        .unzip();
    (
        Objects {
            stores: stores.into(),
            namespaces: watched,
            bell,
        },
        scopes,
    )
}

impl Objects {
    /// Returns true if the first list of every namespace is here.
    pub fn listed(&self) -> bool {
        self.stores
            .iter()
            .all(|store| matches!(store.wait_until_ready().now_or_never(), Some(Ok(()))))
    }

    /// The namespaces that are looked after; `None` is all of them.
    pub(crate) fn namespaces(&self) -> &[Option<String>] {
        &self.namespaces
    }

    /// Text for a scraper, with every object that can be read.
    pub fn scraped(&self, metrics: &Metrics) -> String {
        metrics.text(self.readable().filter_map(|object| object.unpack().ok()))
    }

    /// Every object that can be read, as last seen.
    pub(crate) fn readable(&self) -> impl Iterator<Item = Arc<Stored>> {
        let all = self.stores.iter().flat_map(Store::state);
        all.filter(|object| object.is_readable())
    }

    /// Uids of all objects, as last seen.
    pub(crate) fn uids(&self) -> HashSet<String> {
        let all = self.stores.iter().flat_map(Store::state);
        all.filter_map(|object| object.meta().uid.clone()).collect()
    }

    /// Has one object looked at.
    pub fn wake(&self, object: ObjectRef<Stored>) {
        // No task listens in a follower.
        let _ = self.bell.send(object);
    }

    /// Has objects looked at whose probe was answered, for as long as there may be answers.
    pub async fn wake_from(&self, answers: impl Stream<Item = ObjectRef<PerfValidation>>) {
        answers
            .for_each(async |object| self.wake(object.into_kind_unchecked(())))
            .await;
    }

    /// Has every object looked at whose run is not over.
    pub fn wake_active(&self) {
        let active: Vec<Phase> = Phase::ALL.iter().copied().filter(|phase| !phase.is_over()).collect();
        self.wake_in(&active);
    }

    /// Triggers a look at every object in one of these phases.
    pub fn wake_in(&self, phases: &[Phase]) {
        let waiting = |object: &Stored| object.phase().is_some_and(|phase| phases.contains(&phase));
        for object in self
            .stores
            .iter()
            .flat_map(|store| store.state_filter(|object| waiting(object)))
        {
            self.wake(ObjectRef::from_obj(&*object));
        }
    }

    /// The wakes for one namespace.
    pub(crate) fn wakes(&self, namespace: Option<String>) -> impl Stream<Item = ObjectRef<Stored>> + Send + use<> {
        stream::unfold((self.bell.subscribe(), namespace), |(mut bell, namespace)| async move {
            loop {
                match bell.recv().await {
                    Ok(object) if namespace.is_none() || object.namespace == namespace => {
                        return Some((object, (bell, namespace)));
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        })
    }
}
