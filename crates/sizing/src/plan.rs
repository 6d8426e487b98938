use std::ops::Deref;

use perfval_api::{PlacementStatus, PlanDetails};
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

impl Deref for Plan {
    type Target = PlacementStatus;

    fn deref(&self) -> &PlacementStatus {
        &self.placement
    }
}
