//! How many workers a node's cpu, memory and pod slots take, beside the GPUs.

use k8s_openapi::api::core::v1::{Node, Pod};
use perfval_api::PerfValidationSpec;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::pods::{Amounts, add, amounts, effective_request, on_node, raise, requests};
use crate::build;

/// The resource that counts pods.
const PODS: &str = "pods";

/// Workers that fit on a node, and the resource that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    pub workers: i64,
    pub short_of: String,
}

/// What is left on a node for workers, once our other pods that must land there are on it too.
pub fn room(node: &Node, pods: &[Pod], spec: &PerfValidationSpec) -> Room {
    let allocatable = amounts(node.status.as_ref().and_then(|status| status.allocatable.as_ref()));
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let mut taken = others(spec);
    for pod in on_node(pods, name) {
        add(&mut taken, &one_pod(effective_request(pod)));
    }
    let worker = worker(spec);
    let fits = |(resource, need): (&String, &Decimal)| {
        let taken = taken.get(resource).copied().unwrap_or_default();
        let left = allocatable
            .get(resource)
            .copied()
            .unwrap_or_default()
            .saturating_sub(taken);
        let workers = left
            .checked_div(*need)
            .and_then(|workers| workers.floor().to_i64())
            .unwrap_or(i64::MAX);
        Room {
            workers: workers.max(0),
            short_of: resource.clone(),
        }
    };
    worker
        .iter()
        .filter(|(_, need)| **need > Decimal::ZERO)
        .map(fits)
        .min_by_key(|room| room.workers)
        .unwrap_or(Room {
            workers: 0,
            short_of: PODS.to_owned(),
        })
}

/// One worker, without its GPU, which is counted elsewhere.
fn worker(spec: &PerfValidationSpec) -> Amounts {
    let mut need = requests(Some(&spec.workload.resources));
    need.remove(&spec.placement.resource_name);
    one_pod(need)
}

/// Our pods beside the workers that land on the node under test.
fn others(spec: &PerfValidationSpec) -> Amounts {
    let mut need = Amounts::new();
    if build::frontend_is_pinned(spec) {
        add(&mut need, &one_pod(Amounts::new()));
    }
    if build::trial_is_pinned(spec) {
        let mut trial = requests(Some(&spec.benchmark.resources));
        raise(&mut trial, &requests(Some(&build::installer_resources())));
        add(&mut need, &one_pod(trial));
    }
    need
}

fn one_pod(mut need: Amounts) -> Amounts {
    need.insert(PODS.to_owned(), Decimal::ONE);
    need
}
