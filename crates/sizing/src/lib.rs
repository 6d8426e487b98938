//! How many GPUs of which node are really free.
//!
//! [`choose`] answers with a whole plan or with the reason of every node. Reads that failed never become numbers: with
//! one part unknown there is no plan. What a scheduler has decided but not written yet is not visible, so a plan is a
//! forecast, confirmed once the workers hold their devices.

mod busy_devices;
mod choose;
mod confirm;
mod counters;
mod devices;
mod dra;
mod examine;
mod expected;
mod fleet;
mod generator;
mod gpus;
mod holders;
pub mod inventory;
mod mixed_allocation;
mod namespace;
mod naming;
mod node;
mod node_selector;
mod our_pods;
mod plan;
mod plugin;
mod pods;
mod pools;
mod report;
pub mod resource_api;
mod room;
mod seen;
mod selector;
mod separation;
mod sharing;
mod summary;
mod taints;
mod taken;

use perfval_api::Reason;

pub use busy_devices::warnings;
pub use choose::{choose, examine, explain};
pub use confirm::{HeldByWorker, Unconfirmed, confirm};
pub use fleet::Fleet;
pub use holders::{Granted, HeldNodes, OtherRun, holds_node};
pub use mixed_allocation::intruder;
pub use naming::{Holder, Naming};
pub use our_pods::{
    IN_FLIGHT_PER_CPU, frontend_is_pinned, frontend_resources, generator_resources, installer_resources,
    trial_is_pinned,
};
pub use plan::Plan;
pub use report::{NodeReport, Obstacle};
pub use seen::Seen;
pub use taken::{Taken, TakenBy};

/// What sizing found.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizing {
    /// The plan.
    Chosen(Box<Plan>),
    /// None now; waiting may help.
    Wait {
        /// Why.
        reason: Reason,
        /// Why, node by node.
        message: String,
    },
    /// None, and waiting does not change that.
    Refuse {
        /// Why.
        reason: Reason,
        /// Why, node by node.
        message: String,
    },
}
