//! Lost races: GPUs that were free at sizing went to other pods before our workers got them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::core::ResourceExt as _;
use perfval_api::{Allocation, PlacementStatus, PlanDetails};
use perfval_sizing::inventory::Inventory;
use perfval_sizing::{self as sizing, Holder, Naming};
use rust_decimal::Decimal;

use super::scheduling;
use crate::names;
use crate::readiness::{Pods, pod_condition};
use crate::run::Run;

/// Most holders whose names are in a message.
const NAMED: usize = 3;

/// A holder of GPUs of the node.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Taker {
    /// `namespace/name`.
    name: String,
    /// Devices, or a number of GPUs.
    has: String,
}

/// Returns true if the scheduler finds no place for a pod now. It has not looked for one while a queue holds the pod.
pub fn is_unschedulable(pod: &Pod) -> bool {
    if !scheduling::gates(pod).is_empty() {
        return false;
    }
    pod_condition(pod, "PodScheduled").is_some_and(|condition| condition.status == "False")
}

/// Holders of the GPUs that workers of a run lack. `None` as long as each may still get one, or no holder is known:
/// then the scheduler's refusal has to last before it is believed.
pub fn lost(inventory: &Inventory, run: &Run<'_>, pods: &Pods<'_>, own: &[ResourceClaim]) -> Option<String> {
    let (spec, plan) = (run.spec(), run.placement()?);
    let short = pods.workers.iter().filter(|pod| is_unschedulable(pod));
    let short = short.filter(|pod| !is_served(pod, inventory)).count();
    let report = sizing::examine(inventory, spec, &plan.node)?;
    if report.allocation.as_ref() != Some(&plan.allocation)
        || i64::try_from(short).ok()? * spec.gpus_per_worker() <= report.free
    {
        return None;
    }
    let (holder, takers) = if plan.allocation == Allocation::Dra {
        (
            Holder::Claim,
            holders_of_planned(inventory, &run.status().state.plan, own),
        )
    } else {
        (Holder::Pod, plugin_users(inventory, run, plan))
    };
    let (planned, node) = (spec.workers(plan.gpus), &plan.node);
    let who = some_of(&takers, holder, &inventory.naming)?;
    Some(format!(
        "{short} of {planned} workers are left without GPUs on {node}: {who}"
    ))
}

/// Returns true if a pod that was refused when it was read has its place or its GPU by now: the inventory may be newer.
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
fn holders_of_planned(inventory: &Inventory, plan: &PlanDetails, own: &[ResourceClaim]) -> Vec<Taker> {
    let own: Vec<String> = own
        .iter()
        .map(|claim| format!("{}/{}", claim.namespace().unwrap_or_default(), claim.name_any()))
        .collect();
    let mut held: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for claim in inventory.claims.present().into_iter().flatten() {
        let taken = claim.devices.iter().filter(|device| {
            let mut planned = plan.device_ids.iter();
            planned.any(|planned| *planned.pool == *device.pool && *planned.name == *device.device)
        });
        let taken: Vec<&str> = taken.map(|device| &*device.device).collect();
        if !taken.is_empty() && !own.iter().any(|own| **own == *claim.name) {
            held.entry(&claim.name).or_default().extend(taken);
        }
    }
    let taker = |(claim, devices): (&str, Vec<&str>)| Taker {
        name: claim.to_owned(),
        has: devices.join(", "),
    };
    held.into_iter().map(taker).collect()
}

/// Pods of others on the node that get GPUs from the device plugin. A plugin does not report which GPU a pod has. None if
/// they have no more than at planning: then a GPU turned unhealthy, and the scheduler's own words explain it.
fn plugin_users(inventory: &Inventory, run: &Run<'_>, plan: &PlacementStatus) -> Vec<Taker> {
    let resource = &run.spec().placement.resource_name;
    // By name, because the inventory is older or newer than the list of the run's pods.
    let ours = format!("{}/{}-", run.namespace(), names::deployment(&run.id()));
    let is_ours = |name: &str| name.starts_with(&ours);
    let users = inventory.pods.present().into_iter().flatten();
    let users = users
        .filter(|pod| *pod.node == *plan.node && pod.requests.get(resource) > Decimal::ZERO && !is_ours(&pod.name));
    let users: Vec<(&str, Decimal)> = users.map(|pod| (&*pod.name, pod.requests.get(resource))).collect();
    let held = users
        .iter()
        .fold(Decimal::ZERO, |sum, (_, gpus)| sum.saturating_add(*gpus));
    if held <= Decimal::from(plan.node_gpus - plan.gpus - plan.faulty_gpus) {
        return Vec::new();
    }
    let taker = |(name, gpus): (&str, Decimal)| Taker {
        name: name.to_owned(),
        has: gpus.normalize().to_string(),
    };
    let mut takers: Vec<Taker> = users.into_iter().map(taker).collect();
    takers.sort();
    takers
}

/// The first takers whose names may be shown, and the number of the others.
fn some_of(takers: &[Taker], holder: Holder, naming: &Naming) -> Option<String> {
    let (shown, hidden): (Vec<&Taker>, Vec<&Taker>) = takers.iter().partition(|taker| naming.shows(&taker.name));
    let mut some = shown
        .iter()
        .take(NAMED)
        .map(|Taker { name, has }| format!("{name} has {has}"))
        .collect::<Vec<_>>()
        .join(", ");
    if let more @ 1.. = shown.len().saturating_sub(NAMED) {
        let _ = write!(some, " and {more} more");
    }
    let has = hidden
        .iter()
        .map(|taker| taker.has.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let others = holder.foreign(hidden.len()).map(|others| match hidden.len() {
        1 => format!("{others} has {has}"),
        _ => format!("{others} have {has}"),
    });
    let parts: Vec<String> = [Some(some).filter(|some| !some.is_empty()), others]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
