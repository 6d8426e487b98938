//! The inventory that all runs share: listed once, then followed by watches.
//!
//! Each look listed the whole cluster before. With 100,000 pods that takes the operator 2.9 s of CPU, and the API server more. 50
//! runs that became ready together listed all claims at once, and 256 MiB were too little for them (`just bench-crowd`).

mod arrivals;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use perfval_sizing::Seen;
use perfval_sizing::inventory::{ClaimUse, Inventory, Node, PodUse, Slice};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, sleep, timeout};

pub(crate) use self::arrivals::{Arrivals, Counted, object_key};
use crate::read::Unread;

/// Time without a look after which the inventory is dropped, at the latest after twice this: an operator without runs needs no
/// watch of all pods.
const IDLE: Duration = Duration::from_mins(5);

/// The shared inventory, and the turn to list the devices of one node. It is shared because 5,000 nodes take 40 MiB.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    kept: Arc<Mutex<Kept>>,
    pub(crate) devices: Arc<Mutex<()>>,
}

impl Shared {
    /// The turn of one look, after those that asked before.
    pub(crate) async fn turn(&self) -> LookTurn {
        LookTurn(self.kept.clone().lock_owned().await)
    }

    /// The turn, if no other look has it.
    pub(crate) fn turn_now(&self) -> Option<LookTurn> {
        self.kept.clone().try_lock_owned().ok().map(LookTurn)
    }

    /// The inventory, for the task that follows it. Without another owner it goes, and the task with it.
    pub(crate) fn downgrade(&self) -> Weak<Mutex<Kept>> {
        Arc::downgrade(&self.kept)
    }
}

/// Inventory with the task that follows it.
#[derive(Default)]
pub(crate) struct Kept {
    inventory: Inventory,
    followed: Option<Followed>,
    /// Start of the lists of taint rules and promises.
    listed_at: Option<Instant>,
}

/// Kinds that are followed while this exists.
pub(crate) struct Followed {
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) task: AbortHandle,
}

impl Followed {
    fn is_over(&self) -> bool {
        self.task.is_finished() || self.kinds.is_given_up.load(Ordering::Relaxed)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Changes that the watches brought since the last look.
#[derive(Default)]
pub(crate) struct Kinds {
    pub(crate) slices: Arrivals<Slice>,
    pub(crate) nodes: Arrivals<Node>,
    pub(crate) pods: Arrivals<PodUse>,
    pub(crate) claims: Arrivals<ClaimUse>,
    used: parking_lot::Mutex<Option<Instant>>,
    is_given_up: AtomicBool,
}

impl Kinds {
    /// A look has asked for all kinds.
    fn request(&self, asked: Instant, inventory: &mut Inventory) {
        self.slices.request(asked, &mut inventory.slices);
        self.nodes.request(asked, &mut inventory.nodes);
        self.pods.request(asked, &mut inventory.pods);
        self.claims.request(asked, &mut inventory.claims);
        self.note_use();
    }

    /// Merges what has arrived into the inventory.
    fn merge_into(&self, inventory: &mut Inventory) {
        self.slices.merge_into(&mut inventory.slices);
        self.nodes.merge_into(&mut inventory.nodes);
        self.pods.merge_into(&mut inventory.pods);
        self.claims.merge_into(&mut inventory.claims);
    }

    fn note_use(&self) {
        *self.used.lock() = Some(Instant::now());
    }

    /// The task panicked. The next look starts another one.
    pub(crate) fn give_up(&self) {
        let why = || Unread::Unknown("the watches of the cluster panicked".to_owned());
        self.is_given_up.store(true, Ordering::Relaxed);
        self.slices.give_up(why());
        self.nodes.give_up(why());
        self.pods.give_up(why());
        self.claims.give_up(why());
    }

    fn is_idle(&self) -> bool {
        let used = *self.used.lock();
        used.is_some_and(|used| used.elapsed() >= IDLE)
    }

    /// Waits until each kind is followed or has failed.
    async fn settled(&self) {
        futures::join!(
            self.slices.settled(),
            self.nodes.settled(),
            self.pods.settled(),
            self.claims.settled(),
        );
    }
}

/// The turn of one look: no other look changes the inventory meanwhile.
pub(crate) struct LookTurn(OwnedMutexGuard<Kept>);

impl LookTurn {
    /// The inventory, without the parts of one run.
    pub(crate) fn inventory(&self) -> &Inventory {
        &self.0.inventory
    }

    /// Returns true if the kinds are followed.
    pub(crate) fn is_followed(&self) -> bool {
        self.0.followed.as_ref().is_some_and(|followed| !followed.is_over())
    }

    /// The nodes as they are now, if they are followed. A run that waits for its pods keeps the watches alive so.
    pub(crate) fn followed_nodes(&mut self) -> Option<&[Node]> {
        let Kept {
            inventory, followed, ..
        } = &mut *self.0;
        let kinds = &followed.as_ref().filter(|followed| !followed.is_over())?.kinds;
        if !kinds.nodes.is_followed() {
            return None;
        }
        kinds.note_use();
        // All kinds: too many changes that wait would end a watch.
        kinds.merge_into(inventory);
        inventory.nodes.present().map(Vec::as_slice)
    }

    /// Takes in all changes since the last look. `asked`: time at which the look was requested; `limit`: time for lists that are
    /// under way; `start`: follows the cluster from the beginning.
    pub(crate) async fn refresh(&mut self, asked: Instant, limit: Duration, start: impl FnOnce() -> Followed) {
        let Kept {
            inventory, followed, ..
        } = &mut *self.0;
        // The task may be over, with its runtime or after a panic.
        let followed = match followed {
            Some(followed) if !followed.is_over() => followed,
            over => {
                *inventory = Inventory {
                    taint_rules: std::mem::take(&mut inventory.taint_rules),
                    promises: std::mem::take(&mut inventory.promises),
                    ..Inventory::default()
                };
                over.insert(start())
            }
        };
        let kinds = &followed.kinds;
        kinds.request(asked, inventory);
        // With one thread the task has its turn now.
        yield_now().await;
        // A kind that is not there by then is unknown.
        let _ = timeout(limit, kinds.settled()).await;
        // The watches have no common order, and one may be behind. A plan counts once two looks have shown it, two seconds apart.
        kinds.merge_into(inventory);
    }

    /// Returns true if the kinds of [`add`](Self::add) were listed after a look asked for them.
    pub(crate) fn was_listed_since(&self, asked: Instant) -> bool {
        self.0.listed_at.is_some_and(|at| at >= asked)
    }

    /// Adds the kinds that looks list, with the start of their lists.
    pub(crate) fn add(&mut self, at: Instant, taint_rules: Seen<Vec<Value>>, promises: Seen<Vec<ClaimUse>>) {
        self.0.inventory.taint_rules = taint_rules;
        self.0.inventory.promises = promises;
        self.0.listed_at = Some(at);
    }
}

/// Drops the inventory once no look needs it.
pub(crate) async fn drop_when_idle(kept: Weak<Mutex<Kept>>, kinds: &Kinds) {
    loop {
        sleep(IDLE).await;
        let Some(kept) = kept.upgrade().filter(|_| kinds.is_idle()) else {
            continue;
        };
        let mut kept = kept.lock().await;
        // A look may have come first.
        if kinds.is_idle() {
            *kept = Kept::default();
            return;
        }
    }
}
