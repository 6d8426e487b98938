//! Number of workers for which a node has CPU, memory and pod slots, apart from the GPUs.

use std::collections::BTreeSet;
use std::sync::Arc;

use perfval_api::{PerfValidationSpec, PlacementStatus};
use rust_decimal::Decimal;

use super::our_pods::{OurPods, frontend_is_pinned, most_workers, trial_is_pinned};
use crate::inventory::{Amounts, Node, PodUse};

const PODS: &str = "pods";

/// Workers that fit on a node, and the resource that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRoom {
    pub workers: i64,
    pub short_of: String,
}

/// Room for workers on a node in addition to its pods, with our other pods that must land there.
pub fn room(node: &Node, pods: &[&PodUse], ours: &OurPods, spec: &PerfValidationSpec) -> NodeRoom {
    let left = left(node, pods);
    let mut worker = one_pod(ours.worker.total().requests);
    // The GPU is counted elsewhere.
    worker.remove(&spec.placement.resource_name);
    let fixed = others(ours, spec, 1);
    let mut asked = fixed.clone();
    asked.add(&worker);
    let room = |resource: &str| {
        let left = left(resource).max(Decimal::ZERO);
        let fits = |workers: i64| {
            let of_workers = worker.get(resource).saturating_mul(workers.into());
            let of_others = if ours.grows(resource) {
                others(ours, spec, workers).get(resource)
            } else {
                fixed.get(resource)
            };
            of_others.saturating_add(of_workers) <= left
        };
        NodeRoom {
            workers: most_workers(fits),
            short_of: resource.to_owned(),
        }
    };
    asked
        .iter()
        .filter(|(_, need)| *need > Decimal::ZERO)
        .map(|(resource, _)| room(resource))
        .min_by_key(|room| room.workers)
        .unwrap_or(NodeRoom {
            workers: 0,
            short_of: PODS.to_owned(),
        })
}

/// Amounts that pods leave of a node, by resource; negative if they have more than it offers.
pub fn left<'a>(node: &'a Node, pods: &[&PodUse]) -> impl Fn(&str) -> Decimal + use<'a> {
    let mut taken = slots(pods.len());
    for pod in pods {
        taken.add(&pod.requests);
    }
    move |resource| node.allocatable.get(resource).saturating_sub(taken.get(resource))
}

/// Requests of our pods other than the workers that land on the node under test, with `workers` workers.
fn others(ours: &OurPods, spec: &PerfValidationSpec, workers: i64) -> Amounts {
    let mut need = Amounts::default();
    if frontend_is_pinned(spec) {
        need.add(&one_pod(ours.frontend_for(workers).total().requests));
    }
    if trial_is_pinned(spec) {
        need.add(&one_pod(ours.trial_for(workers).total().requests));
    }
    need
}

/// Resources that a node lacks for a load generator that runs anywhere, in a run by this plan.
pub fn lacking_for_generator(
    plan: &PlacementStatus,
    ours: &OurPods,
    spec: &PerfValidationSpec,
    node: &Node,
    pods: &[&PodUse],
) -> BTreeSet<String> {
    let left = left(node, pods);
    let workers = spec.workers(plan.gpus);
    let mut need = one_pod(ours.trial_for(workers).total().requests);
    if *node.name == *plan.node {
        for _ in 0..workers {
            need.add(&one_pod(ours.worker.total().requests));
        }
        if frontend_is_pinned(spec) {
            need.add(&one_pod(ours.frontend_for(workers).total().requests));
        }
        need.remove(&spec.placement.resource_name);
    }
    let lacks = |(resource, need): &(&str, Decimal)| !need.is_zero() && *need > left(resource);
    let lacking = need.iter().filter(lacks);
    lacking.map(|(resource, _)| resource.to_owned()).collect()
}

/// Requests of a pod, which takes a slot too.
pub fn one_pod(mut need: Amounts) -> Amounts {
    need.add(&slots(1));
    need
}

fn slots(pods: usize) -> Amounts {
    let mut slots = Amounts::default();
    slots.set(&Arc::from(PODS), Decimal::from(pods));
    slots
}
