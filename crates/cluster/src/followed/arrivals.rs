//! One kind, as its watch brings it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::{self, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::api::ListParams;
use kube::core::{Resource, ResourceExt};
use parking_lot::Mutex;
use perfval_sizing::Seen;
use perfval_sizing::inventory::{ClaimUse, Interned, Node, PodUse, Slice};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::copies::Copies;
use crate::read::{Read, Unread, seen};

/// A kind that sizing counts, reduced.
pub(crate) trait Counted: Sized + Send + Sync {
    /// Its objects as the API server has them.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send;
    /// Its name in errors.
    const PLURAL: &'static str;

    /// Selection of its lists.
    fn selection() -> ListParams {
        ListParams::default()
    }

    /// Reduces an object; `None` if it does not count.
    fn reduce(object: &Self::Object, interned: &mut Interned) -> Option<Self>;

    /// Replaces the copy of an object of a run.
    fn update_copy(_: &Self::Object, _: &Copies) {}

    /// Name that no other one has.
    fn key(&self) -> &str;
}

impl Counted for Slice {
    type Object = ResourceSlice;
    const PLURAL: &'static str = "ResourceSlices";

    fn reduce(slice: &ResourceSlice, interned: &mut Interned) -> Option<Self> {
        Some(Self::read(slice, interned))
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Counted for Node {
    type Object = v1::Node;
    const PLURAL: &'static str = "Nodes";

    fn reduce(node: &v1::Node, interned: &mut Interned) -> Option<Self> {
        Some(Self::read(node, interned))
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Counted for PodUse {
    type Object = Pod;
    const PLURAL: &'static str = "Pods";

    fn selection() -> ListParams {
        ListParams::default().fields("status.phase!=Succeeded,status.phase!=Failed")
    }

    fn reduce(pod: &Pod, interned: &mut Interned) -> Option<Self> {
        Self::read(pod, interned)
    }

    fn update_copy(pod: &Pod, copies: &Copies) {
        copies.take(pod);
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Counted for ClaimUse {
    type Object = ResourceClaim;
    const PLURAL: &'static str = "ResourceClaims";

    fn reduce(claim: &ResourceClaim, interned: &mut Interned) -> Option<Self> {
        Self::read(claim, interned)
    }

    fn key(&self) -> &str {
        &self.name
    }
}

/// The key of an object, reduced or not.
pub(crate) fn object_key(object: &impl ResourceExt) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

#[derive(Clone)]
enum WatchState {
    /// A list is under way, or its watch begins.
    Listing,
    /// The list is here, and every change follows.
    Followed,
    /// The list is here. The watch that began then cannot go on, so that the next look needs a new list.
    Expired(Instant),
    /// The attempt that began then has failed.
    Failed(Instant, Unread),
}

/// Changes of a watch since the last look. They wait here, because a look may hold the inventory for seconds.
pub(crate) struct Arrivals<T> {
    state: watch::Sender<WatchState>,
    /// Rings when a look needs a kind that has failed or expired.
    requested: Notify,
    pending: Mutex<Pending<T>>,
}

/// Changes that wait for a look, some 3 MB. A tenant may create and delete pods all the time while no run needs a look.
const MAX_CHANGES: usize = 20_000;

/// Spare room that a list gets: one object in 32.
const OBJECTS_PER_SPARE: usize = 32;
/// Most new objects that are inserted one by one. Each moves a part of the list, and sorting compares all of it.
const MAX_INSERTS: usize = 64;

/// Objects by key; `None`: it does not count any more.
type Changes<T> = BTreeMap<Box<str>, Option<T>>;

struct Pending<T> {
    listed: Option<Vec<T>>,
    changes: Changes<T>,
}

impl<T> Pending<T> {
    fn new(listed: Option<Vec<T>>) -> Self {
        let changes = Changes::new();
        Self { listed, changes }
    }
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(WatchState::Listing),
            requested: Notify::new(),
            pending: Mutex::new(Pending::new(None)),
        }
    }
}

impl<T: Counted> Arrivals<T> {
    /// A list begins. What came before it does not count.
    pub(crate) fn begin_list(&self) {
        self.state.send_replace(WatchState::Listing);
    }

    /// A list ended. It counts once its watch has begun.
    pub(crate) fn replace(&self, mut objects: Vec<T>) {
        objects.shrink_to_fit();
        objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        *self.pending.lock() = Pending::new(Some(objects));
    }

    pub(crate) fn begin_watch(&self) {
        self.state.send_replace(WatchState::Followed);
    }

    /// The watch that began then cannot go on. Waits until a look needs the kind again.
    pub(crate) async fn expire(&self, began: Instant) {
        self.state.send_replace(WatchState::Expired(began));
        self.requested.notified().await;
    }

    /// An object changed. `None`: it does not count any more. Fails if too many changes wait for a look.
    pub(crate) fn add_change(&self, key: String, object: Option<T>) -> Read<()> {
        let changes = &mut self.pending.lock().changes;
        changes.insert(key.into(), object);
        if changes.len() <= MAX_CHANGES {
            return Ok(());
        }
        let kind = T::PLURAL;
        let why = format!("watch {kind}: more than {MAX_CHANGES} changes since the last look");
        Err(Unread::Unknown(why))
    }

    /// The attempt that began then has failed. Waits until a look needs the kind again.
    pub(crate) async fn fail(&self, began: Instant, why: Unread) {
        self.state.send_replace(WatchState::Failed(began, why));
        *self.pending.lock() = Pending::new(None);
        self.requested.notified().await;
    }

    /// Lists a kind again whose last attempt began before a look asked for it. Looks that wait for one another share the
    /// end of an attempt. Objects that will be replaced are dropped: two copies of 100,000 pods take 20 MB.
    pub(crate) fn request(&self, asked: Instant, objects: &mut Seen<Vec<T>>) {
        let is_over = self.state.send_if_modified(|state| {
            let is_over = matches!(state, WatchState::Failed(began, _) | WatchState::Expired(began) if *began < asked);
            if is_over {
                *state = WatchState::Listing;
            }
            is_over
        });
        if is_over {
            self.requested.notify_one();
        }
        if matches!(*self.state.borrow(), WatchState::Listing) {
            *objects = Seen::NotAsked;
        }
    }

    /// No task follows the kind any more.
    pub(crate) fn give_up(&self, why: Unread) {
        self.state.send_replace(WatchState::Failed(Instant::now(), why));
    }

    /// Waits until the kind is followed or has failed.
    pub(crate) async fn settled(&self) {
        // It fails only without a sender, which `self` holds.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| !matches!(state, WatchState::Listing))
            .await;
    }

    /// Returns true if each change arrives.
    pub(crate) fn is_followed(&self) -> bool {
        matches!(*self.state.borrow(), WatchState::Followed)
    }

    /// Merges what has arrived into the objects of the inventory.
    pub(crate) fn merge_into(&self, objects: &mut Seen<Vec<T>>) {
        *objects = match &*self.state.borrow() {
            WatchState::Listing => Seen::Unknown(format!("list {}: no answer yet", T::PLURAL)),
            WatchState::Failed(_, why) => seen(Err(why.clone())),
            WatchState::Followed | WatchState::Expired(_) => {
                let mut pending = self.pending.lock();
                match (pending.listed.take(), std::mem::take(objects)) {
                    (Some(mut current), _) | (None, Seen::Present(mut current)) => {
                        apply(std::mem::take(&mut pending.changes), &mut current);
                        Seen::Present(current)
                    }
                    // A panic took the list. Without it the changes show a part of the cluster.
                    (None, _) => Seen::Unknown(format!("list {}: it was lost", T::PLURAL)),
                }
            }
        };
    }
}

/// Applies changes to objects that are sorted by key.
fn apply<T: Counted>(changes: Changes<T>, objects: &mut Vec<T>) {
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    for (key, object) in changes {
        match (objects.binary_search_by(|known| known.key().cmp(&key)), object) {
            (Ok(index), Some(object)) => objects[index] = object,
            (Ok(index), None) => removed.push(index),
            (Err(_), Some(object)) => added.push(object),
            (Err(_), None) => {}
        }
    }
    if !removed.is_empty() {
        let mut index = 0;
        objects.retain(|_| {
            index += 1;
            removed.binary_search(&(index - 1)).is_err()
        });
    }
    // A vector that doubles takes 12 MiB with 100,000 pods, and a stable sort copies them.
    if objects.capacity() < objects.len() + added.len() {
        objects.reserve_exact(added.len() + objects.len() / OBJECTS_PER_SPARE);
    }
    if added.len() <= MAX_INSERTS {
        for object in added {
            let index = objects.partition_point(|known| known.key() < object.key());
            objects.insert(index, object);
        }
    } else {
        objects.append(&mut added);
        objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    }
}

#[cfg(test)]
mod tests;
