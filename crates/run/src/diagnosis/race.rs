//! Lost races: GPUs that were free at sizing went to somebody else before our workers got them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::core::ResourceExt as _;
use perfval_api::{Allocation, PerfValidationSpec, PlacementStatus};
use perfval_sizing as sizing;
use perfval_sizing::inventory::Inventory;
use rust_decimal::Decimal;

use crate::readiness::Pods;

/// Holders that a message names.
const NAMED: usize = 3;

/// Whether the scheduler finds no place for a pod now.
pub fn is_unschedulable(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
}

/// Who has the GPUs that workers of a run are short of; `None` as long as each may still get one, or nobody is known to
/// have them: then the scheduler's refusal has to last before it is believed.
pub fn lost(
    inventory: &Inventory,
    spec: &PerfValidationSpec,
    plan: &PlacementStatus,
    pods: &Pods<'_>,
    own: &[ResourceClaim],
) -> Option<String> {
    let short = pods.workers.iter().filter(|pod| is_unschedulable(pod));
    let short = short.filter(|pod| !is_served(pod, inventory)).count();
    let report = sizing::examine(inventory, spec, &plan.node)?;
    if report.allocation.as_ref() != Some(&plan.allocation) || i64::try_from(short).ok()? <= report.free {
        return None;
    }
    let takers = if plan.allocation == Allocation::Dra {
        holders_of_planned(inventory, plan, own)
    } else {
        plugin_users(inventory, spec, plan, pods)
    };
    let (planned, node) = (plan.gpus, &plan.node);
    let who = some_of(&takers)?;
    Some(format!(
        "{short} of {planned} workers are left without a GPU on {node}: {who}"
    ))
}

/// Whether a pod that was refused when it was read has its place or its GPU by now: the inventory is read at the same
/// time, and may be newer.
fn is_served(pod: &Pod, inventory: &Inventory) -> bool {
    let namespace = pod.namespace().unwrap_or_default();
    let has_place = |name: &str| {
        let mut pods = inventory.pods.present().into_iter().flatten();
        pods.any(|pod| *pod.name == *name)
    };
    let has_device = |name: &str| {
        let mut claims = inventory.claims.present().into_iter().flatten();
        claims.any(|claim| *claim.name == *name)
    };
    let status = pod.status.as_ref();
    let claims = status.and_then(|status| status.resource_claim_statuses.as_ref());
    let mut claims = claims
        .into_iter()
        .flatten()
        .filter_map(|claim| claim.resource_claim_name.as_ref());
    has_place(&format!("{namespace}/{}", pod.name_any()))
        || claims.any(|claim| has_device(&format!("{namespace}/{claim}")))
}

/// Claims of others that hold planned devices.
fn holders_of_planned(inventory: &Inventory, plan: &PlacementStatus, own: &[ResourceClaim]) -> Vec<String> {
    let own: Vec<String> = own
        .iter()
        .map(|claim| format!("{}/{}", claim.namespace().unwrap_or_default(), claim.name_any()))
        .collect();
    let mut held: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for claim in inventory.claims.present().into_iter().flatten() {
        let taken = claim.devices.iter().filter(|device| {
            let mut planned = plan.devices.iter();
            planned.any(|planned| *planned.pool == *device.pool && *planned.name == *device.device)
        });
        let taken: Vec<&str> = taken.map(|device| &*device.device).collect();
        if !taken.is_empty() && !own.iter().any(|own| **own == *claim.name) {
            held.entry(&claim.name).or_default().extend(taken);
        }
    }
    let text = |(claim, devices): (&str, Vec<&str>)| format!("{claim} has {}", devices.join(", "));
    held.into_iter().map(text).collect()
}

/// Pods of others on the node that ask the device plugin for GPUs. Which GPU a pod has, a plugin does not tell.
fn plugin_users(
    inventory: &Inventory,
    spec: &PerfValidationSpec,
    plan: &PlacementStatus,
    pods: &Pods<'_>,
) -> Vec<String> {
    let resource = &spec.placement.resource_name;
    let is_ours = |name: &str| {
        let mut ours = pods.all();
        ours.any(|pod| name == format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()))
    };
    let users = inventory.pods.present().into_iter().flatten();
    let mut names: Vec<String> = users
        .filter(|pod| *pod.node == *plan.node && pod.requests.get(resource) > Decimal::ZERO && !is_ours(&pod.name))
        .map(|pod| format!("{} has {}", pod.name, pod.requests.get(resource).normalize()))
        .collect();
    names.sort();
    names
}

fn some_of(names: &[String]) -> Option<String> {
    let some = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        _ if names.is_empty() => None,
        0 => Some(some),
        more => Some(format!("{some} and {more} more")),
    }
}
