//! Calls for the [inventory](crate::followed) that all runs share: lists of the kinds that sizing counts, and their watches.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::{FutureExt as _, TryStreamExt as _};
use kube::api::{Api, WatchParams};
use kube::core::{ResourceExt, WatchEvent};
use perfval_run::build::ARCHITECTURE_LABEL;
use perfval_run::observed::NodeSeen;
use perfval_sizing::inventory::{ClaimUse, Interned, Inventory, PodUse};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use crate::call::{ALL, Listed, PATIENCE, Read, look_left, read, seen};
use crate::followed::{Arrivals, Counted, Followed, Kinds, LookTurn, Shared, drop_when_idle, object_key};
use crate::{CallFailure, Cluster};

/// Length of a watch (s). A connection that is silently dead is noticed after it and [`PATIENCE`].
const WATCH: u32 = 30;
/// Time for which a run waits for the inventory before it lists its own devices. A look may have it for many seconds.
const TURN: Duration = Duration::from_secs(2);
/// Shortest time between the starts of two watches of a kind: an API server that closes them at once is not flooded.
const SHORTEST: Duration = Duration::from_secs(1);

impl Cluster {
    /// The inventory with everything that changed, and the result of `first`, which is older.
    pub(crate) async fn counted<T>(&self, first: impl Future<Output = T>) -> (T, LookTurn) {
        let first = first.await;
        let asked = Instant::now();
        let mut turn = self.shared.turn().await;
        // Promises are listed before claims are taken: one may be seen twice. It is missed if the watch of the claims is behind,
        // and then the second look shows it.
        if !turn.was_listed_since(asked) {
            let began = Instant::now();
            let (taint_rules, promises) = futures::join!(self.device_taint_rules(), self.bind_requests());
            turn.add(began, seen(taint_rules), seen(promises));
        }
        turn.refresh(asked, look_left(), || follow(self)).await;
        (first, turn)
    }

    /// The inventory of one moment, for a command that looks once and may not be allowed to watch.
    pub(crate) async fn inventory_now(&self) -> Inventory {
        let mut interned = [(); 4].map(|()| Interned::default());
        let [of_slices, of_nodes, of_pods, of_claims] = &mut interned;
        let (taint_rules, slices, nodes) = futures::join!(
            self.device_taint_rules(),
            list(self, |slice| Counted::reduce(slice, of_slices)),
            list(self, |node| Counted::reduce(node, of_nodes)),
        );
        // A pod may refer to a claim that serves it, so the claim must not be older.
        let (pods, promises) = futures::join!(list(self, |pod| PodUse::read(pod, of_pods)), self.bind_requests());
        let claims = list(self, |claim| ClaimUse::read(claim, of_claims)).await;
        Inventory {
            slices: seen(slices.map(|listed| listed.items)),
            taint_rules: seen(taint_rules),
            nodes: seen(nodes.map(|listed| listed.items)),
            pods: seen(pods.map(|listed| listed.items)),
            promises: seen(promises),
            claims: seen(claims.map(|listed| listed.items)),
            ..Inventory::default()
        }
    }

    /// Begins to follow the cluster. The lists of 5,000 nodes take seconds, and a look that comes later finds them.
    pub async fn prepare(&self) {
        let asked = Instant::now();
        let mut turn = self.shared.turn().await;
        turn.refresh(asked, look_left(), || follow(self)).await;
    }

    /// The devices of a node and their holders, as the watches have them; `None` if nothing is watched, or while a look has the
    /// inventory for long.
    pub(crate) async fn known_devices_of(&self, node: &str) -> Option<Inventory> {
        let asked = Instant::now();
        let turn = timeout(TURN, self.shared.turn()).await;
        let mut turn = turn.ok().filter(LookTurn::is_followed)?;
        turn.refresh(asked, TURN, || follow(self)).await;
        Some(turn.inventory().for_node(node))
    }

    /// A node that is Ready, as the watch has it; `None` if it is not, if nothing is watched, or while a look has the inventory.
    pub(crate) fn known_ready_node(&self, name: &str) -> Option<NodeSeen> {
        let mut turn = self.shared.turn_now()?;
        let mut nodes = turn.followed_nodes()?.iter();
        let node = nodes.find(|node| &*node.name == name && node.ready)?;
        Some(NodeSeen {
            ready: true,
            message: String::new(),
            architecture: node.label(ARCHITECTURE_LABEL)?.to_owned(),
        })
    }

    /// The devices of a node and their holders at this moment, because a watch may be behind. One at a time: the slices of 5,000
    /// nodes take 13 MB. The claims are listed last, so that a device that is given out in between is seen as held.
    pub(crate) async fn devices_of(&self, node: &str) -> Inventory {
        let _turn = self.shared.devices.lock().await;
        let (mut of_slices, mut of_claims) = (Interned::default(), Interned::default());
        let (slices, node_object) = futures::join!(
            list(self, |slice| Counted::reduce(slice, &mut of_slices)),
            self.one_node(node)
        );
        let devices = Inventory {
            slices: seen(slices.map(|listed| listed.items)),
            nodes: seen(node_object),
            ..Inventory::default()
        };
        let devices = devices.for_node(node);
        let slices = devices.slices.present().into_iter().flatten();
        let pools: HashSet<(&str, &str)> = slices.map(|slice| (&*slice.driver, &*slice.pool)).collect();
        let claims = list(self, |claim| {
            let claim = ClaimUse::read(claim, &mut of_claims)?;
            let mut held = claim.devices.iter();
            let is_here = held.any(|device| pools.contains(&(&*device.driver, &*device.pool)));
            is_here.then_some(claim)
        });
        let claims = seen(claims.await.map(|listed| listed.items));
        Inventory { claims, ..devices }
    }
}

/// Follows the cluster until the result is dropped.
fn follow(cluster: &Cluster) -> Followed {
    let kinds = Arc::new(Kinds::default());
    // Without the shared inventory, which ends the task when the last cluster goes.
    let kept = cluster.shared.downgrade();
    let cluster = Cluster {
        shared: Shared::default(),
        ..cluster.clone()
    };
    let of_task = kinds.clone();
    let task = tokio::spawn(async move {
        let followed = pin!(AssertUnwindSafe(follow_all(&cluster, &of_task)).catch_unwind());
        let idle = pin!(drop_when_idle(kept, &of_task));
        if let Either::Left((Err(_), _)) = select(followed, idle).await {
            of_task.give_up();
        }
    });
    Followed {
        kinds,
        task: task.abort_handle(),
    }
}

async fn follow_all(cluster: &Cluster, kinds: &Kinds) {
    // One list at a time: each has a buffer of up to 8 MiB.
    let lists = Mutex::new(());
    futures::join!(
        follow_kind(cluster, &kinds.slices, &lists),
        follow_kind(cluster, &kinds.nodes, &lists),
        follow_kind(cluster, &kinds.pods, &lists),
        follow_kind(cluster, &kinds.claims, &lists),
    );
}

async fn follow_kind<T: Counted>(cluster: &Cluster, arrivals: &Arrivals<T>, lists: &Mutex<()>) {
    loop {
        arrivals.begin_list();
        let mut began = Instant::now();
        match follow_a_list(cluster, arrivals, lists, &mut began).await {
            Ok(()) => {
                debug!(kind = T::PLURAL, "its version is forgotten");
                arrivals.expire(began).await;
            }
            Err(why) => {
                debug!(kind = T::PLURAL, ?why, "cannot be followed");
                arrivals.fail(began, why).await;
            }
        }
    }
}

/// Lists a kind and follows it until the API server has forgotten its version. `began`: start of the last attempt.
async fn follow_a_list<T: Counted>(
    cluster: &Cluster,
    arrivals: &Arrivals<T>,
    lists: &Mutex<()>,
    began: &mut Instant,
) -> Read<()> {
    let mut interned = Interned::default();
    let mut version = {
        let _turn = lists.lock().await;
        *began = Instant::now();
        let listed = list(cluster, |object| T::reduce(object, &mut interned)).await?;
        arrivals.replace(listed.items);
        interned.keep_held_by(2);
        listed.version
    };
    loop {
        *began = Instant::now();
        let is_expired = watch(cluster, arrivals, &mut version, &mut interned).await?;
        if is_expired {
            return Ok(());
        }
        interned.keep_held_by(1);
        sleep_until(*began + SHORTEST).await;
    }
}

async fn list<T: Counted>(cluster: &Cluster, mut reduce: impl FnMut(&T::Object) -> Option<T>) -> Read<Listed<T>> {
    let url = Api::<T::Object>::all(cluster.client.clone()).resource_url().to_owned();
    let reduce = |(): &mut (), object: T::Object| reduce(&object);
    let listed = cluster.list_as(ALL, &url, T::selection(), (), reduce).await;
    read(&format!("list {}", T::PLURAL), listed)
}

/// Takes the version of the newest object, from which the next watch goes on.
fn advance(object: &impl ResourceExt, version: &mut String) {
    if let Some(now) = object.resource_version() {
        *version = now;
    }
}

/// Hands on the changes of a kind after a version until the watch ends. A broken connection is such an end. Returns true if the
/// API server has forgotten the version, so that no watch goes on from it.
async fn watch<T: Counted>(
    cluster: &Cluster,
    arrivals: &Arrivals<T>,
    version: &mut String,
    interned: &mut Interned,
) -> Read<bool> {
    let call = format!("watch {}", T::PLURAL);
    // Without the selection of the list: then a pod that ends is a change like any other.
    let params = WatchParams::default().timeout(WATCH);
    let api = Api::<T::Object>::all(cluster.client.clone());
    let events = match cluster.bounded(api.watch(&params, version)).await {
        Err(expired) if expired.code() == Some(410) => return Ok(true),
        begun => read(&call, begun)?,
    };
    arrivals.begin_watch();
    let mut events = pin!(events);
    let silence = Duration::from_secs(u64::from(WATCH)) + PATIENCE;
    loop {
        let event = match timeout(silence, events.try_next()).await {
            Ok(Ok(Some(event))) => event,
            Ok(Err(kube::Error::Api(status))) => WatchEvent::Error(status),
            Ok(Err(error @ kube::Error::SerdeError(_))) => return read(&call, Err(CallFailure::Call(error))),
            // Closed, broken or silent.
            Ok(Ok(None) | Err(_)) | Err(_) => return Ok(false),
        };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                T::update_copy(&object, &cluster.copies);
                arrivals.add_change(object_key(&object), T::reduce(&object, interned))?;
                advance(&object, version);
            }
            WatchEvent::Deleted(object) => {
                arrivals.add_change(object_key(&object), None)?;
                advance(&object, version);
            }
            WatchEvent::Bookmark(bookmark) => *version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) if status.code == 410 => return Ok(true),
            WatchEvent::Error(status) => return read(&call, Err(CallFailure::Call(kube::Error::Api(status)))),
        }
    }
}
