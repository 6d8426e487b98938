//! Search for a place for a load generator that may run on any node. It comes before a model is loaded in vain.

use perfval_api::Reason;

use super::examine::Circumstances;
use super::namespace::tight;
use super::node::cordon;
use super::our_pods::{CPU, IN_FLIGHT_PER_CPU, OurPods, trial_is_pinned};
use super::room::{generator_fits, left};
use super::taints::{strict, tolerated};
use super::{Plan, Sizing};
use crate::inventory::Node;

/// How many of a plan's GPUs a load generator has room for: as many as planned, or fewer, as with workers that lack CPU.
/// Otherwise what becomes of the run: a pod of it would be refused, or no node has room for the load generator.
pub fn with_home(world: &Circumstances<'_>, plan: Plan, nodes: &[&Node]) -> Result<i64, Sizing> {
    let ours = &world.namespace(Some(&plan.allocation)).pods;
    let workers = world.spec.workers(plan.gpus);
    let pods = [
        (&ours.trial_for(workers), "benchmark.resources"),
        (&ours.frontend_for(workers), "workload.dynamo.frontend.resources"),
        (&ours.worker, "workload.dynamo.worker.resources"),
    ];
    if let Some(message) = pods.into_iter().find_map(|(pod, field)| tight(pod, field)) {
        let reason = Reason::LimitRangeViolated;
        return Err(Sizing::Refuse { reason, message });
    }
    // An amount in the spec is the user's choice: the scheduler decides on it.
    if trial_is_pinned(world.spec) || !ours.derives_cpu() {
        return Ok(plan.gpus);
    }
    let open: Vec<&Node> = nodes.iter().copied().filter(|node| may_run_on(node, &plan)).collect();
    let least = world.spec.min_gpus().min(plan.gpus);
    let homeless = |plan: &Plan| {
        !open
            .iter()
            .any(|node| generator_fits(plan, ours, world.spec, node, world.pods.on(node)))
    };
    let mut fewer = plan;
    while homeless(&fewer) {
        if fewer.gpus <= least {
            return Err(nowhere(world, &fewer, ours, &open));
        }
        fewer.placement.gpus -= ours.gpus_per_worker;
    }
    Ok(fewer.gpus)
}

fn nowhere(world: &Circumstances<'_>, plan: &Plan, ours: &OurPods, open: &[&Node]) -> Sizing {
    let need = ours.trial_for(world.spec.workers(plan.gpus)).total().requests;
    let most = open
        .iter()
        .map(|node| (left(node, world.pods.on(node))(CPU), &node.name))
        .max()
        .map_or(String::new(), |(cpu, name)| {
            format!("; the most cpu, {}, is left on {name} before the run", cpu.normalize())
        });
    let in_flight = i64::from(world.spec.benchmark.concurrency_per_gpu) * plan.gpus;
    Sizing::Wait {
        reason: Reason::Saturated,
        message: format!(
            "no node has room for the load generator of {} GPUs on {} (cpu {}: one for {IN_FLIGHT_PER_CPU} of {in_flight} \
             requests in flight, as benchmark.resources gives none){most}; free cpu, add a node, or lower minGPUs or \
             concurrencyPerGPU",
            plan.gpus,
            plan.node,
            need.get(CPU).normalize(),
        ),
    }
}

/// The scheduler's view of the Job's pod, which names no node.
fn may_run_on(node: &Node, plan: &Plan) -> bool {
    node.ready
        && !node.deleting
        && strict(&node.taints)
            .chain(&cordon(node))
            .all(|taint| tolerated(taint, &plan.details.tolerations))
}
