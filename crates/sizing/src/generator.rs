//! Whether a load generator that may run anywhere has a place: found before a model is loaded for it.

use perfval_api::{Allocation, PlacementStatus, Reason};
use rust_decimal::Decimal;

use super::Sizing;
use super::examine::World;
use super::namespace::tight;
use super::our_pods::{IN_FLIGHT_PER_CPU, trial_is_pinned};
use super::room::{generator_fits, left};
use super::taints::{strict, tolerated};
use crate::inventory::Node;

/// Why the load generator of this plan cannot be, if so: it would be refused, or no node has room for it.
pub fn homeless(world: &World<'_>, plan: &PlacementStatus, nodes: &[&Node]) -> Option<Sizing> {
    let ours = match plan.allocation {
        Allocation::Dra => &world.by_claims.pods,
        _ => &world.by_plugin.pods,
    };
    if let Some(message) = tight(&ours.trial_for(plan.gpus)) {
        let reason = Reason::LimitRangeViolated;
        return Some(Sizing::Refuse { reason, message });
    }
    // An amount that the spec gives is the user's: the scheduler says what becomes of it.
    if trial_is_pinned(world.spec) || !ours.derives_cpu() {
        return None;
    }
    let mut open = nodes.iter().filter(|node| may_run_on(node, plan));
    if open.any(|node| generator_fits(plan, ours, world.spec, node, world.pods.on(node))) {
        return None;
    }
    let need = ours.trial_for(plan.gpus).total().requests;
    let asked: Vec<String> = need
        .iter()
        .filter(|(_, amount)| *amount > Decimal::ZERO)
        .map(|(resource, amount)| format!("{resource} {}", amount.normalize()))
        .collect();
    let most = nodes
        .iter()
        .filter(|node| may_run_on(node, plan))
        .map(|node| (left(node, world.pods.on(node))("cpu"), &node.name))
        .max()
        .map_or(String::new(), |(cpu, name)| {
            format!("; the most cpu, {}, is left on {name} before the run", cpu.normalize())
        });
    let in_flight = i64::from(world.spec.benchmark.concurrency_per_gpu) * plan.gpus;
    let message = format!(
        "no node has room for the load generator of {} GPUs on {} ({}: one cpu for {IN_FLIGHT_PER_CPU} of {in_flight} requests \
         in flight, as benchmark.resources gives none){most}; free cpu, add a node, or lower maxGPUs or concurrencyPerGPU",
        plan.gpus,
        plan.node,
        asked.join(", "),
    );
    Some(Sizing::Wait {
        reason: Reason::Saturated,
        message,
    })
}

/// The scheduler's view of the Job's pod, which names no node.
fn may_run_on(node: &Node, plan: &PlacementStatus) -> bool {
    node.ready
        && !node.deleting
        && !node.unschedulable
        && strict(&node.taints).all(|taint| tolerated(taint, &plan.tolerations))
}
