//! How many workers a node's cpu, memory and pod slots take, beside the GPUs.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceRequirements;
use perfval_api::PerfValidationSpec;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::build;
use crate::inventory::{Amounts, Node, PodUse, Strings};

/// The resource that counts pods.
const PODS: &str = "pods";

/// Workers that fit on a node, and the resource that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    pub workers: i64,
    pub short_of: String,
}

/// What is left on a node for workers beside its pods, once our other pods that must land there are on it too.
pub fn room(node: &Node, pods: &[&PodUse], spec: &PerfValidationSpec) -> Room {
    let mut taken = others(spec);
    for pod in pods {
        taken.add(&pod.requests);
        taken.add(&one_pod(Amounts::default()));
    }
    let fits = |(resource, need): (&str, Decimal)| {
        let left = node.allocatable.get(resource).saturating_sub(taken.get(resource));
        let workers = left
            .checked_div(need)
            .and_then(|workers| workers.floor().to_i64())
            .unwrap_or(i64::MAX);
        Room {
            workers: workers.max(0),
            short_of: resource.to_owned(),
        }
    };
    worker(spec)
        .iter()
        .filter(|(_, need)| *need > Decimal::ZERO)
        .map(fits)
        .min_by_key(|room| room.workers)
        .unwrap_or(Room {
            workers: 0,
            short_of: PODS.to_owned(),
        })
}

/// One worker, without its GPU, which is counted elsewhere.
fn worker(spec: &PerfValidationSpec) -> Amounts {
    let mut need = requests(&spec.workload.resources);
    need.remove(&spec.placement.resource_name);
    one_pod(need)
}

/// Our pods beside the workers that land on the node under test.
fn others(spec: &PerfValidationSpec) -> Amounts {
    let mut need = Amounts::default();
    if build::frontend_is_pinned(spec) {
        need.add(&one_pod(Amounts::default()));
    }
    if build::trial_is_pinned(spec) {
        let mut trial = requests(&spec.benchmark.resources);
        trial.raise(&requests(&build::installer_resources()));
        need.add(&one_pod(trial));
    }
    need
}

fn requests(resources: &ResourceRequirements) -> Amounts {
    Amounts::requests(Some(resources), &mut Strings::default())
}

fn one_pod(mut need: Amounts) -> Amounts {
    need.set(&Arc::from(PODS), Decimal::ONE);
    need
}
