//! One kind, as its watch brings it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{self, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::api::ListParams;
use kube::core::{Resource, ResourceExt};
use perfval_sizing::Seen;
use perfval_sizing::inventory::protobuf::Message;
use perfval_sizing::inventory::{ClaimUse, Interned, Node, PodUse, Slice};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::read::{Read, Unread, seen};

/// A kind that sizing counts, reduced.
pub(crate) trait Counted: Sized + Send + Sync {
    /// Its objects as the API server has them.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Message + Send;
    /// Its name in errors.
    const PLURAL: &'static str;

    /// Selection of its lists.
    fn selection() -> ListParams {
        ListParams::default()
    }

    /// Reduces an object; `None` if it does not count.
    fn read(object: &Self::Object, interned: &mut Interned) -> Option<Self>;

    /// Name that no other one has.
    fn key(&self) -> &str;
}

impl Counted for Slice {
    type Object = ResourceSlice;
    const PLURAL: &'static str = "ResourceSlices";

    fn read(slice: &ResourceSlice, interned: &mut Interned) -> Option<Self> {
        Some(Self::read(slice, interned))
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Counted for Node {
    type Object = v1::Node;
    const PLURAL: &'static str = "Nodes";

    fn read(node: &v1::Node, interned: &mut Interned) -> Option<Self> {
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

    fn read(pod: &Pod, interned: &mut Interned) -> Option<Self> {
        Self::read(pod, interned)
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Counted for ClaimUse {
    type Object = ResourceClaim;
    const PLURAL: &'static str = "ResourceClaims";

    fn read(claim: &ResourceClaim, interned: &mut Interned) -> Option<Self> {
        Self::read(claim, interned)
    }

    fn key(&self) -> &str {
        &self.name
    }
}

/// The key of an object, reduced or not.
pub(crate) fn key(object: &impl ResourceExt) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

/// State of a watch.
#[derive(Clone)]
enum State {
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
    state: watch::Sender<State>,
    /// Rings when a look needs a kind that has failed or expired.
    wanted: Notify,
    arrived: Mutex<Arrived<T>>,
}

/// Changes that wait for a look, some 3 MB. A tenant may create and delete pods all the time while no run needs a look.
const MOST: usize = 20_000;

/// Spare room that a list gets: one object in 32.
const SPARE: usize = 32;
/// New objects that are inserted one by one. Each moves half of the list, 0.3 ms with 100,000 pods; sorting them takes 50 ms.
const FEW: usize = 64;

struct Arrived<T> {
    listed: Option<Vec<T>>,
    /// By key; `None`: it does not count any more.
    changed: BTreeMap<Box<str>, Option<T>>,
}

impl<T> Default for Arrived<T> {
    fn default() -> Self {
        Self {
            listed: None,
            changed: BTreeMap::new(),
        }
    }
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State::Listing),
            wanted: Notify::new(),
            arrived: Mutex::default(),
        }
    }
}

impl<T: Counted> Arrivals<T> {
    /// A list begins. What came before it does not count.
    pub(crate) fn begin(&self) {
        self.state.send_replace(State::Listing);
    }

    /// A list ended. It counts once its watch has begun.
    pub(crate) fn list(&self, mut all: Vec<T>) {
        all.shrink_to_fit();
        all.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        *self.lock() = Arrived {
            listed: Some(all),
            changed: BTreeMap::new(),
        };
    }

    /// A watch began.
    pub(crate) fn follow(&self) {
        self.state.send_replace(State::Followed);
    }

    /// The watch that began then cannot go on. Waits until a look needs the kind again.
    pub(crate) async fn expire(&self, began: Instant) {
        self.state.send_replace(State::Expired(began));
        self.wanted.notified().await;
    }

    /// An object changed. `None`: it does not count any more. Fails if too many changes wait for a look.
    pub(crate) fn change(&self, key: String, now: Option<T>) -> Read<()> {
        let changed = &mut self.lock().changed;
        changed.insert(key.into(), now);
        if changed.len() <= MOST {
            return Ok(());
        }
        let why = format!("watch {}: more than {MOST} changes since the last look", T::PLURAL);
        Err(Unread::Unknown(why))
    }

    /// The attempt that began then has failed. Waits until a look needs the kind again.
    pub(crate) async fn fail(&self, began: Instant, why: Unread) {
        self.state.send_replace(State::Failed(began, why));
        *self.lock() = Arrived::default();
        self.wanted.notified().await;
    }

    /// Lists a kind again whose last attempt began before a look asked for it. Looks that wait for one another share the
    /// end of an attempt. Objects that will be replaced are dropped: two copies of 100,000 pods take 20 MB.
    pub(crate) fn want(&self, asked: Instant, all: &mut Seen<Vec<T>>) {
        let is_over = self.state.send_if_modified(|state| {
            let is_over = matches!(state, State::Failed(began, _) | State::Expired(began) if *began < asked);
            if is_over {
                *state = State::Listing;
            }
            is_over
        });
        if is_over {
            self.wanted.notify_one();
        }
        if matches!(*self.state.borrow(), State::Listing) {
            *all = Seen::NotAsked;
        }
    }

    /// No task follows the kind any more.
    pub(crate) fn give_up(&self, why: Unread) {
        self.state.send_replace(State::Failed(Instant::now(), why));
    }

    /// Waits until the kind is followed or has failed.
    pub(crate) async fn settled(&self) {
        // It fails only without a sender, which `self` holds.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| !matches!(state, State::Listing))
            .await;
    }

    /// Takes what has arrived into the inventory.
    pub(crate) fn take(&self, all: &mut Seen<Vec<T>>) {
        *all = match &*self.state.borrow() {
            State::Listing => Seen::Unknown(format!("list {}: no answer yet", T::PLURAL)),
            State::Failed(_, why) => seen(Err(why.clone())),
            State::Followed | State::Expired(_) => {
                let mut arrived = self.lock();
                match (arrived.listed.take(), std::mem::take(all)) {
                    (Some(mut now), _) | (None, Seen::Present(mut now)) => {
                        merge(&mut now, std::mem::take(&mut arrived.changed));
                        Seen::Present(now)
                    }
                    // A panic took the list. Without it the changes show a part of the cluster.
                    (None, _) => Seen::Unknown(format!("list {}: it was lost", T::PLURAL)),
                }
            }
        };
    }

    fn lock(&self) -> MutexGuard<'_, Arrived<T>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies changes to objects that are sorted by key.
fn merge<T: Counted>(all: &mut Vec<T>, changed: BTreeMap<Box<str>, Option<T>>) {
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for (key, now) in changed {
        match (all.binary_search_by(|known| known.key().cmp(&key)), now) {
            (Ok(index), Some(now)) => all[index] = now,
            (Ok(index), None) => gone.push(index),
            (Err(_), Some(now)) => new.push(now),
            (Err(_), None) => {}
        }
    }
    if !gone.is_empty() {
        let mut index = 0;
        all.retain(|_| {
            index += 1;
            gone.binary_search(&(index - 1)).is_err()
        });
    }
    if !new.is_empty() {
        // A vector that doubles takes 12 MiB with 100,000 pods, and a stable sort 6 more.
        if all.capacity() < all.len() + new.len() {
            all.reserve_exact(new.len() + all.len() / SPARE);
        }
        if new.len() <= FEW {
            for now in new {
                let index = all.partition_point(|known| known.key() < now.key());
                all.insert(index, now);
            }
        } else {
            all.append(&mut new);
            all.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use serde_json::{from_value, json};

    use super::*;

    fn node(name: &str, ready: bool) -> Node {
        let status = if ready { "True" } else { "False" };
        let node = json!({
            "metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": status}]},
        });
        Node::read(&from_value(node).expect("a node"), &mut Interned::default())
    }

    fn names(all: &Seen<Vec<Node>>) -> Vec<(String, bool)> {
        let nodes = all.present().expect("they were listed");
        nodes.iter().map(|node| (node.name.to_string(), node.ready)).collect()
    }

    fn named(all: &[(&str, bool)]) -> Vec<(String, bool)> {
        all.iter().map(|(name, ready)| ((*name).to_owned(), *ready)).collect()
    }

    #[test]
    fn changes_are_merged_in_order() {
        let arrivals = Arrivals::<Node>::default();
        let mut all = Seen::NotAsked;
        arrivals.list(vec![node("d", false), node("b", false), node("f", false)]);
        arrivals.follow();
        let change = |name: &str, now| arrivals.change(name.to_owned(), now).is_ok();
        assert!(change("b", None) && change("never there", None));
        assert!(change("d", Some(node("d", true))) && change("c", Some(node("c", true))));
        arrivals.take(&mut all);
        assert_eq!(names(&all), named(&[("c", true), ("d", true), ("f", false)]));
        // The last change of an object counts, and nothing twice.
        assert!(change("a", Some(node("a", false))) && change("a", None));
        assert!(change("f", Some(node("f", true))));
        arrivals.take(&mut all);
        assert_eq!(names(&all), named(&[("c", true), ("d", true), ("f", true)]));
        // A new list replaces the old one.
        assert!(change("z", Some(node("z", true))));
        arrivals.begin();
        arrivals.list(vec![node("x", true)]);
        arrivals.follow();
        arrivals.take(&mut all);
        assert_eq!(names(&all), named(&[("x", true)]));
    }

    #[test]
    fn many_new_objects_are_merged_as_few_are() {
        let arrivals = Arrivals::<Node>::default();
        let mut all = Seen::NotAsked;
        arrivals.list((0..100).map(|number| node(&format!("n{number:03}5"), true)).collect());
        arrivals.follow();
        for count in [1, FEW, 300] {
            for number in 0..count {
                let name = format!("n{number:03}{}", count % 7);
                assert!(arrivals.change(name.clone(), Some(node(&name, true))).is_ok());
            }
            arrivals.take(&mut all);
            let names = names(&all);
            assert!(names.is_sorted(), "{names:?}");
        }
        assert_eq!(names(&all).len(), 100 + 1 + FEW + 300 - 1);
    }

    #[tokio::test]
    async fn a_kind_that_failed_is_unknown_until_it_is_listed_again() {
        let arrivals = Arrivals::<Node>::default();
        let mut all = Seen::NotAsked;
        arrivals.take(&mut all);
        assert!(
            all.unknown()
                .is_some_and(|why| why.contains("list Nodes: no answer yet")),
            "{all:?}"
        );
        arrivals.list(vec![node("a", true)]);
        arrivals.take(&mut all);
        assert!(all.unknown().is_some(), "its watch has not begun");
        arrivals.follow();
        arrivals.take(&mut all);
        assert_eq!(names(&all), named(&[("a", true)]));
        let began = Instant::now();
        let failed = async {
            let why = Unread::Unknown("watch Nodes: 403".to_owned());
            arrivals.fail(began, why).await;
            arrivals.begin();
            arrivals.list(vec![node("b", true)]);
            arrivals.follow();
        };
        let looked = async {
            tokio::task::yield_now().await;
            arrivals.take(&mut all);
            assert_eq!(all.unknown(), Some("watch Nodes: 403"));
            // A look that asked before the attempt shares its failure.
            arrivals.want(began, &mut all);
            assert!(arrivals.settled().now_or_never().is_some());
            arrivals.want(began + Duration::from_millis(1), &mut all);
            assert_eq!(all, Seen::NotAsked, "it will be replaced");
            arrivals.settled().await;
            arrivals.take(&mut all);
        };
        futures::join!(failed, looked);
        assert_eq!(names(&all), named(&[("b", true)]));
    }

    #[tokio::test]
    async fn changes_do_not_pile_up_without_a_look() {
        let arrivals = Arrivals::<Node>::default();
        arrivals.list(Vec::new());
        let change = |number: usize| arrivals.change(number.to_string(), None).is_ok();
        assert!((0..MOST).all(change) && change(0) && !change(MOST));
        let too_many = Unread::Unknown("too many".to_owned());
        assert!(arrivals.fail(Instant::now(), too_many).now_or_never().is_none());
        assert!(arrivals.lock().changed.is_empty());
    }

    #[test]
    fn a_key_is_the_name_of_the_reduced_object() {
        let pod = json!({
            "metadata": {"name": "a", "namespace": "team"}, "spec": {"nodeName": "n1", "containers": []},
        });
        let pod: Pod = from_value(pod).expect("a pod");
        let reduced = PodUse::read(&pod, &mut Interned::default()).expect("it is bound");
        assert_eq!(reduced.key(), key(&pod));
        let device = json!({"request": "gpu", "driver": "d", "pool": "n1", "device": "gpu-0"});
        let claim = json!({
            "metadata": {"name": "a", "namespace": "team"}, "spec": {},
            "status": {"allocation": {"devices": {"results": [device]}}},
        });
        let claim: ResourceClaim = from_value(claim).expect("a claim");
        let reduced = ClaimUse::read(&claim, &mut Interned::default()).expect("it holds a device");
        assert_eq!(reduced.key(), key(&claim));
    }
}
