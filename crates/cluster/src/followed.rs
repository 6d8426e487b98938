//! The inventory that all runs share: listed once, then followed by watches.
//!
//! Each look listed the whole cluster before. A list of 100,000 pods takes the operator 0.7 s of CPU, and the API server more. 50
//! runs that became ready together listed all claims at once, and 256 MiB were too little for them (`just bench-crowd`).

mod arrivals;

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use perfval_sizing::Seen;
use perfval_sizing::inventory::{ClaimUse, Inventory, Node, PodUse, Slice};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, sleep, timeout};

pub(crate) use self::arrivals::{Arrivals, Counted, key};
use crate::read::Unread;

/// The inventory is dropped after as long without a look, or up to twice as long: an operator without runs needs no watch of
/// all pods.
const IDLE: Duration = Duration::from_mins(5);

/// The shared inventory, and the turn to list claims. There is one inventory: with 5,000 nodes it takes 40 MiB.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    kept: Arc<Mutex<Kept>>,
    pub(crate) claims: Arc<Mutex<()>>,
}

impl Shared {
    /// The turn of one look, after those that asked before.
    pub(crate) async fn turn(&self) -> Turn {
        Turn(self.kept.clone().lock_owned().await)
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
}

/// Kinds that are followed while this exists.
pub(crate) struct Followed {
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) task: AbortHandle,
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
    used: std::sync::Mutex<Option<Instant>>,
}

impl Kinds {
    /// A look has asked for all kinds.
    fn want(&self, asked: Instant, inventory: &mut Inventory) {
        self.slices.want(asked, &mut inventory.slices);
        self.nodes.want(asked, &mut inventory.nodes);
        self.pods.want(asked, &mut inventory.pods);
        self.claims.want(asked, &mut inventory.claims);
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// The task panicked. The next look starts another one.
    pub(crate) fn give_up(&self) {
        let why = || Unread::Unknown("the watches of the cluster panicked".to_owned());
        self.slices.give_up(why());
        self.nodes.give_up(why());
        self.pods.give_up(why());
        self.claims.give_up(why());
    }

    fn is_idle(&self) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
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
pub(crate) struct Turn(OwnedMutexGuard<Kept>);

impl Turn {
    /// The inventory, without the parts of one run.
    pub(crate) fn inventory(&self) -> &Inventory {
        &self.0.inventory
    }

    /// Takes in all changes since the last look. `asked`: time at which the look was requested; `limit`: time for lists that are
    /// under way; `start`: follows the cluster from the beginning.
    pub(crate) async fn refresh(&mut self, asked: Instant, limit: Duration, start: impl FnOnce() -> Followed) {
        let Kept { inventory, followed } = &mut *self.0;
        // The task may be over, with its runtime or after a panic.
        let followed = match followed {
            Some(followed) if !followed.task.is_finished() => followed,
            over => {
                *inventory = Inventory::default();
                over.insert(start())
            }
        };
        let kinds = &followed.kinds;
        kinds.want(asked, inventory);
        // With one thread the task has its turn now.
        yield_now().await;
        // A kind that is not there by then is unknown.
        let _ = timeout(limit, kinds.settled()).await;
        // The watches have no common order. A plan counts once two looks have shown it, two seconds apart.
        kinds.slices.take(&mut inventory.slices);
        kinds.nodes.take(&mut inventory.nodes);
        kinds.pods.take(&mut inventory.pods);
        kinds.claims.take(&mut inventory.claims);
    }

    /// Adds the kinds that every look lists.
    pub(crate) fn add(&mut self, taint_rules: Seen<Vec<Value>>, promises: Seen<Vec<ClaimUse>>) {
        self.0.inventory.taint_rules = taint_rules;
        self.0.inventory.promises = promises;
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
