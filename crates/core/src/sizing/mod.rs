//! How many GPUs of which node are really free.

/// `placement.allocation` of a run that asks for GPUs by `ResourceClaim`s.
pub const DRA: &str = "DRA";
/// `placement.allocation` of a run that asks for a device plugin's extended resource.
pub const DEVICE_PLUGIN: &str = "DevicePlugin";

use perfval_api::{PerfValidationSpec, PlacementStatus, Reason};

use crate::observed::{Inventory, OtherRun};

/// The answer of a count.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizing {
    /// The whole plan.
    Chosen(PlacementStatus),
    /// Waiting may help.
    Wait {
        /// Stable word.
        reason: Reason,
        /// Each node's reason.
        message: String,
    },
    /// Waiting cannot help.
    Refuse {
        /// Stable word.
        reason: Reason,
        /// Each node's reason.
        message: String,
    },
}

/// Chooses a node and its free GPUs.
pub fn choose(_inventory: &Inventory, _spec: &PerfValidationSpec, _busy: &[OtherRun]) -> Sizing {
    Sizing::Wait {
        reason: Reason::InventoryUnreadable,
        message: String::new(),
    }
}
