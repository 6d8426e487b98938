//! How many workers a node's cpu, memory and pod slots take, apart from the GPUs.

use std::sync::Arc;

use perfval_api::PerfValidationSpec;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::our_pods::{OurPods, frontend_is_pinned, trial_is_pinned};
use crate::inventory::{Amounts, Node, PodUse};

/// The resource that counts pods.
const PODS: &str = "pods";

/// Workers that fit on a node, and the resource that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    pub workers: i64,
    pub short_of: String,
}

/// What is left on a node for workers in addition to its pods, once our other pods that must land there are on it too.
pub fn room(node: &Node, pods: &[&PodUse], ours: &OurPods, spec: &PerfValidationSpec) -> Room {
    let others = others(ours, spec);
    let mut taken = others.clone();
    for pod in pods {
        taken.add(&pod.requests);
    }
    taken.add(&slots(pods.len()));
    let left = |resource: &str| node.allocatable.get(resource).saturating_sub(taken.get(resource));
    let mut asked_by_others = others.iter().filter(|(_, need)| *need > Decimal::ZERO);
    if let Some((resource, _)) = asked_by_others.find(|(resource, _)| left(resource) < Decimal::ZERO) {
        return Room {
            workers: 0,
            short_of: resource.to_owned(),
        };
    }
    // The GPU is counted elsewhere.
    let mut worker = one_pod(ours.worker.total().requests);
    worker.remove(&spec.placement.resource_name);
    let fits = |(resource, need): (&str, Decimal)| {
        let workers = left(resource)
            .max(Decimal::ZERO)
            .checked_div(need)
            .and_then(|workers| workers.floor().to_i64())
            .unwrap_or(i64::MAX);
        Room {
            workers,
            short_of: resource.to_owned(),
        }
    };
    worker
        .iter()
        .filter(|(_, need)| *need > Decimal::ZERO)
        .map(fits)
        .min_by_key(|room| room.workers)
        .unwrap_or(Room {
            workers: 0,
            short_of: PODS.to_owned(),
        })
}

/// Our pods other than the workers that land on the node under test.
fn others(ours: &OurPods, spec: &PerfValidationSpec) -> Amounts {
    let mut need = Amounts::default();
    if frontend_is_pinned(spec) {
        need.add(&one_pod(ours.frontend.total().requests));
    }
    if trial_is_pinned(spec) {
        need.add(&one_pod(ours.trial.total().requests));
    }
    need
}

fn one_pod(mut need: Amounts) -> Amounts {
    need.add(&slots(1));
    need
}

fn slots(pods: usize) -> Amounts {
    let mut slots = Amounts::default();
    slots.set(&Arc::from(PODS), Decimal::from(pods));
    slots
}
