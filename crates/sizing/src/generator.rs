//! Search for a place for a load generator that may run on any node. It comes before a model is loaded in vain.

use perfval_api::Reason;

use super::examine::Circumstances;
use super::namespace::tight;
use super::node::cordon;
use super::node_selector;
use super::our_pods::{CPU, IN_FLIGHT_PER_CPU, OurPods, trial_is_pinned};
use super::room::{lacking_for_generator, left, one_pod};
use super::taints::{strict, tolerated};
use super::{Plan, Sizing};
use crate::inventory::{CacheVolume, Node};

/// GPUs of a plan for which a load generator has room: the planned number or fewer. Fails if a pod would be refused, or if no
/// node has room.
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
    let may_run = |node: &&Node| may_run_on(node, &plan, world.cache);
    let open: Vec<&Node> = nodes.iter().copied().filter(may_run).collect();
    let least = world.spec.min_gpus().min(plan.gpus);
    let homeless = |plan: &Plan| {
        !open
            .iter()
            .any(|node| lacking_for_generator(plan, ours, world.spec, node, world.pods.on(node)).is_empty())
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
    let need = one_pod(ours.trial_for(world.spec.workers(plan.gpus)).total().requests);
    let reason = Reason::Saturated;
    let lacking = open
        .iter()
        .map(|node| lacking_for_generator(plan, ours, world.spec, node, world.pods.on(node)));
    // Lacking on every node.
    let lacking = lacking.reduce(|all, lacking| &all & &lacking).unwrap_or_default();
    if let Some(resource) = lacking.first().filter(|resource| *resource != CPU) {
        let message = format!(
            "no node has {resource} {} left for the load generator: free some, add a node, or lower minGPUs or benchmark.resources",
            need.get(resource).normalize()
        );
        return Sizing::Wait { reason, message };
    }
    let most = open
        .iter()
        .map(|node| (left(node, world.pods.on(node))(CPU), &node.name))
        .max()
        .map_or(String::new(), |(cpu, name)| {
            format!("; the most cpu, {}, is left on {name} before the run", cpu.normalize())
        });
    let in_flight = i64::from(world.spec.benchmark.concurrency_per_gpu) * plan.gpus;
    Sizing::Wait {
        reason,
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

/// The scheduler's view of the Job's pod, which names no node and mounts the model cache.
fn may_run_on(node: &Node, plan: &Plan, cache: Option<&CacheVolume>) -> bool {
    node.ready
        && !node.deleting
        && cache.is_none_or(|cache| node_selector::matches(&cache.nodes, node))
        && strict(&node.taints)
            .chain(&cordon(node))
            .all(|taint| tolerated(taint, &plan.details.tolerations))
}
