//! Every object this process looks after, and the bell that wakes some of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, stream};
use kube::Resource as _;
use kube::runtime::reflector::{ObjectRef, Store, store, store::Writer};
use parking_lot::Mutex;
use perfval_api::{PerfValidation, Phase};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::sleep;

use crate::metrics::OperatorMetrics;
use crate::stored::Stored;

/// One watched namespace (`None` is all of them), and where its objects are kept.
pub struct WatchScope {
    /// The namespace.
    pub namespace: Option<String>,
    /// Store from which its objects are read.
    pub reader: Store<Stored>,
    /// Writer of the watch.
    pub writer: Writer<Stored>,
}

/// Pause between two looks at the first lists.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Wakes that a scope may be behind by; a lost one costs the wait for the next look, at most 15 s.
const BACKLOG: usize = 256;

/// The objects of all watched namespaces, as last seen, and a way to have some looked at again.
#[derive(Clone)]
pub struct Objects {
    stores: Arc<[Store<Stored>]>,
    namespaces: Arc<[Option<String>]>,
    unfinished: Arc<Mutex<UnfinishedLists>>,
    bell: broadcast::Sender<ObjectRef<Stored>>,
}

/// Uids in incomplete lists, by namespace. A store takes the objects of a list only at its end.
type UnfinishedLists = HashMap<Option<String>, HashSet<String>>;

/// Stores for the namespaces (`None` is all of them), and the scopes that will fill them.
pub fn watched(namespaces: Vec<Option<String>>) -> (Objects, Vec<WatchScope>) {
    let scope = |namespace: &Option<String>| {
        let (reader, writer) = store();
        WatchScope {
            namespace: namespace.clone(),
            reader,
            writer,
        }
    };
    let scopes: Vec<WatchScope> = namespaces.iter().map(scope).collect();
    let objects = Objects {
        stores: scopes.iter().map(|scope| scope.reader.clone()).collect(),
        namespaces: namespaces.into(),
        unfinished: Arc::default(),
        bell: broadcast::Sender::new(BACKLOG),
    };
    (objects, scopes)
}

impl Objects {
    /// Returns true if the first list of every namespace is here.
    pub fn listed(&self) -> bool {
        self.stores
            .iter()
            .all(|store| matches!(store.wait_until_ready().now_or_never(), Some(Ok(()))))
    }

    /// Waits for the first list of every namespace. Returns false if a watch has ended, as it does with this process.
    pub(crate) async fn wait_until_listed(&self) -> bool {
        // A store wakes only the last task that waits for it.
        loop {
            let lists = self.stores.iter().map(|store| store.wait_until_ready().now_or_never());
            let lists: Vec<_> = lists.collect();
            if lists.iter().any(|list| matches!(list, Some(Err(_)))) {
                return false;
            }
            if lists.iter().all(Option::is_some) {
                return true;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits for the first list of every namespace. Returns true if the run of any object is not over.
    pub(crate) async fn any_active(&self) -> bool {
        let is_active = |object: &Stored| object.phase().is_some_and(|phase| !phase.is_over());
        self.wait_until_listed().await && self.stores.iter().any(|store| store.find(is_active).is_some())
    }

    /// The namespaces that are looked after; `None` is all of them.
    pub(crate) fn namespaces(&self) -> &[Option<String>] {
        &self.namespaces
    }

    /// Text for a scraper, with every object that can be read.
    pub fn scraped(&self, metrics: &OperatorMetrics) -> String {
        metrics.unreadable(self.all().filter(|object| !object.is_readable()).count());
        metrics.text(self.readable().filter_map(|object| object.unpack().ok()))
    }

    /// Every object that can be read, as last seen.
    pub(crate) fn readable(&self) -> impl Iterator<Item = Arc<Stored>> {
        self.all().filter(|object| object.is_readable())
    }

    /// Every object with an outline, as last seen: also those for which the store has no room, because they exist all the same.
    pub(crate) fn outlined(&self) -> impl Iterator<Item = Arc<Stored>> {
        self.all().filter(|object| object.has_outline())
    }

    fn all(&self) -> impl Iterator<Item = Arc<Stored>> {
        self.stores.iter().flat_map(Store::state)
    }

    /// Times for which the last runs of all objects had GPUs, if they are over.
    pub(crate) fn times_with_gpus(&self) -> Vec<Duration> {
        self.outlined()
            .filter_map(|object| object.outline().held_for())
            .collect()
    }

    /// Notes that the watch of a namespace begins a list.
    pub(crate) fn begin_list(&self, namespace: Option<&str>) {
        self.unfinished
            .lock()
            .insert(namespace.map(str::to_owned), HashSet::new());
    }

    /// Notes an object of an unfinished list.
    pub(crate) fn add_to_list(&self, namespace: Option<&str>, object: &Stored) {
        let Some(uid) = object.meta().uid.clone() else { return };
        let mut unfinished = self.unfinished.lock();
        unfinished.entry(namespace.map(str::to_owned)).or_default().insert(uid);
    }

    /// Notes that the store of a namespace has its list.
    pub(crate) fn end_list(&self, namespace: Option<&str>) {
        self.unfinished.lock().remove(&namespace.map(str::to_owned));
    }

    /// Uids of all objects, as last seen, with those of unfinished lists.
    pub(crate) fn uids(&self) -> HashSet<String> {
        // Before the stores: a list that ends between the two reads is in its store by then.
        let mut uids: HashSet<String> = self.unfinished.lock().values().flatten().cloned().collect();
        uids.extend(self.all().filter_map(|object| object.meta().uid.clone()));
        uids
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

    /// Triggers a look at every object in a phase that `is_wanted` accepts.
    pub fn wake_in(&self, is_wanted: impl Fn(Phase) -> bool) {
        for object in self.all().filter(|object| object.phase().is_some_and(&is_wanted)) {
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

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;
    use crate::test_object;

    fn object(phase: &str) -> Stored {
        let metadata = json!({"name": phase.to_lowercase(), "uid": phase});
        test_object::object(&metadata, &json!({"phase": phase}))
    }

    #[tokio::test]
    async fn objects_whose_runs_are_over_are_not_active() {
        let (objects, mut scopes) = watched(vec![None]);
        let writer = &mut scopes[0].writer;
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitApply(object("Completed")));
        writer.apply_watcher_event(&Event::InitApply(object("Suspended")));
        assert!(objects.any_active().now_or_never().is_none(), "the list is under way");
        writer.apply_watcher_event(&Event::InitDone);
        assert!(!objects.any_active().await);
        writer.apply_watcher_event(&Event::Apply(object("Sizing")));
        assert!(objects.any_active().await);
    }

    #[tokio::test]
    async fn each_of_several_waiters_sees_the_first_list() {
        let (objects, mut scopes) = watched(vec![None]);
        let waiters = [objects.clone(), objects.clone()]
            .map(|objects| tokio::spawn(async move { objects.wait_until_listed().await }));
        tokio::task::yield_now().await;
        assert!(!objects.listed(), "which also polls the store");
        let writer = &mut scopes[0].writer;
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitDone);
        for waiter in waiters {
            let seen = tokio::time::timeout(Duration::from_secs(30), waiter).await;
            assert!(seen.expect("it ends").expect("no panic"));
        }
    }

    #[test]
    fn objects_of_an_unfinished_list_count_although_no_store_has_them() {
        let (objects, mut scopes) = watched(vec![Some("a".to_owned()), Some("b".to_owned())]);
        objects.begin_list(Some("b"));
        objects.add_to_list(Some("b"), &object("Sizing"));
        objects.begin_list(Some("a"));
        objects.end_list(Some("a"));
        assert_eq!(objects.uids(), HashSet::from(["Sizing".to_owned()]));
        objects.begin_list(Some("b"));
        assert_eq!(objects.uids(), HashSet::new(), "the list begins again");
        objects.add_to_list(Some("b"), &object("Pending"));
        let writer = &mut scopes[1].writer;
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitApply(object("Pending")));
        writer.apply_watcher_event(&Event::InitDone);
        objects.end_list(Some("b"));
        assert_eq!(objects.uids(), HashSet::from(["Pending".to_owned()]));
    }

    #[test]
    fn an_object_without_room_counts_although_it_cannot_be_read() {
        let (objects, mut scopes) = watched(vec![None]);
        let writer = &mut scopes[0].writer;
        let mut refused = object("Sizing");
        refused.refuse("there is no room");
        writer.apply_watcher_event(&Event::Apply(refused));
        assert_eq!((objects.readable().count(), objects.outlined().count()), (0, 1));
        writer.apply_watcher_event(&Event::Apply(object("Completed")));
        let text = objects.scraped(&OperatorMetrics::new(true));
        assert!(text.contains("\nperfvalidation_unreadable_objects 1\n"), "{text}");
    }
}
