//! What the namespace of a run allows: its `ResourceQuotas` and `LimitRanges`.

mod limit_range;
mod quota;

use perfval_api::{PerfValidationSpec, Reason};

pub use limit_range::tight;
use quota::{Allowance, Claim, allowance, unmeasured};

use super::Sizing;
use super::our_pods::OurPods;
use super::report::Obstacle;
use crate::inventory::Inventory;

/// The pods of a run in their namespace, for one way of asking for GPUs.
pub struct Namespace {
    /// The pods, as admission leaves them.
    pub pods: OurPods,
    /// Workers for which the quotas leave room, and what ends it; none without quota.
    pub allowance: Option<Allowance>,
}

impl Namespace {
    /// Reads what the namespace says of workers that ask for claims, or else for a device plugin's resource.
    pub fn read(inventory: &Inventory, spec: &PerfValidationSpec, by_claims: bool) -> Self {
        let resource = spec.placement.resource_name.as_str();
        let limit_ranges = inventory.limit_ranges.present().map(Vec::as_slice).unwrap_or_default();
        let quotas = inventory.quotas.present().map(Vec::as_slice).unwrap_or_default();
        let pods = OurPods::of(spec, Some(resource).filter(|_| !by_claims), limit_ranges);
        let claim = by_claims.then(|| Claim::of(inventory.device_class.present(), &spec.placement.device_class_name));
        Self {
            allowance: allowance(quotas, &pods, claim.as_ref()),
            pods,
        }
    }

    /// Workers that are allowed.
    pub fn workers(&self) -> i64 {
        self.allowance.as_ref().map_or(i64::MAX, |allowance| allowance.workers)
    }

    /// Why too few workers are allowed, if so.
    pub fn forbids(&self, min: i64) -> Option<Obstacle> {
        let Allowance {
            quota,
            resource,
            workers,
        } = self.allowance.clone().filter(|allowance| allowance.workers < min)?;
        Some(Obstacle::QuotaExceeded {
            quota,
            resource,
            workers,
        })
    }
}

/// What admission would refuse whatever is free, if anything.
pub fn refusal(inventory: &Inventory, spec: &PerfValidationSpec) -> Option<Sizing> {
    let limit_ranges = inventory.limit_ranges.present().map(Vec::as_slice).unwrap_or_default();
    let quotas = inventory.quotas.present().map(Vec::as_slice).unwrap_or_default();
    let pods = OurPods::of(spec, None, limit_ranges);
    let (reason, message) = limit_range::refusal(limit_ranges, &pods)
        .map(|message| (Reason::LimitRangeViolated, message))
        .or_else(|| unmeasured(quotas, &pods).map(|message| (Reason::QuotaExceeded, message)))?;
    Some(Sizing::Refuse { reason, message })
}
