use std::ops::Deref;

use perfval_api::{DeviceStatus, ExpectedGpus, PlacementStatus, PlanDetails};
use serde::{Deserialize, Serialize};

/// Plan of a run: its placement, and the details that only the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The node and GPUs.
    #[serde(flatten)]
    pub placement: PlacementStatus,
    /// The rest of the plan.
    #[serde(flatten)]
    pub details: PlanDetails,
}

impl Plan {
    /// Sets the number of GPUs that the node should have.
    pub fn expect(&mut self, expected: Option<ExpectedGpus>) {
        self.placement.expected_gpus = expected.map(|expected| expected.gpus);
        self.details.expected_by = expected.map(|expected| expected.by);
    }
}

/// Sets the devices of a plan, in the status and in the details.
pub fn hold(placement: &mut PlacementStatus, details: &mut PlanDetails, devices: Vec<DeviceStatus>) {
    placement.devices = devices.iter().map(DeviceStatus::label).collect();
    details.device_ids = devices;
}

impl Deref for Plan {
    type Target = PlacementStatus;

    fn deref(&self) -> &PlacementStatus {
        &self.placement
    }
}
