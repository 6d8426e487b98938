//! The number of GPUs that are really free, node by node.
//!
//! [`Fleet::choose`] returns a whole plan or the obstacle of every node. Reads that failed never become numbers: with one
//! part unknown there is no plan. A scheduler's decision is invisible until it is written, so a plan is a forecast,
//! confirmed once the workers hold their devices.

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
mod room;
mod seen;
mod selector;
mod separation;
mod sharing;
mod summary;
mod survey;
mod taints;
mod taken;

use perfval_api::Reason;

pub use choose::{examine, explain};
pub use confirm::{HeldByWorker, Unconfirmed, confirm};
pub use fleet::Fleet;
pub use holders::{Granted, HeldNodes, OtherRun, holds_node};
pub use mixed_allocation::intruder;
pub use naming::{Holder, Naming};
pub use node::GPU_PRESENT;
pub use our_pods::{
    IN_FLIGHT_PER_CPU, frontend_is_pinned, frontend_resources, generator_resources, installer_resources,
    trial_is_pinned,
};
pub use plan::{Plan, hold};
pub use report::{NodeObstacle, NodeReport};
pub use seen::Seen;
pub use taints::tolerated;
pub use taken::{Taken, TakenBy};

/// Result of sizing.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizing {
    /// The plan.
    Chosen(Box<Plan>),
    /// None now; waiting may help.
    Wait {
        /// Reason for scripts.
        reason: Reason,
        /// Reason of every node, for people.
        message: String,
    },
    /// None, and waiting does not change that.
    Refuse {
        /// Reason for scripts.
        reason: Reason,
        /// Reason of every node, for people.
        message: String,
    },
}
