//! Number of free GPUs: the cases that naive counting gets wrong, one row each, and laws for every cluster.

mod confirm;
mod devices;
mod drivers;
mod expected;
mod fleet;
mod ledgers;
mod namespaces;
mod nodes;
mod properties;
mod reports;
mod scheduler;
mod shared;
mod survey;
mod vectors;
mod workers;

use perfval_api::{PerfValidationSpec, Reason};
use perfval_sizing::inventory::Inventory;
use perfval_sizing::{Fleet, OtherRun, Plan, Sizing};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, DeviceBuilder, NodeBuilder, SliceBuilder, gpu};
use serde_json::{Value, json};

fn spec(fields: &Value) -> PerfValidationSpec {
    let mut spec = json!({ "model": { "name": "m" }, "workload": { "dynamo": { "image": "i:1" } } });
    for (key, value) in fields.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec["workload"]["dynamo"]["image"] = json!("i:1");
    serde_json::from_value(spec).expect("a spec")
}

fn placed(placement: &Value) -> PerfValidationSpec {
    spec(&json!({ "placement": placement }))
}

fn any() -> PerfValidationSpec {
    spec(&json!({}))
}

/// The choice for a run beside others that hold nodes.
fn choose(inventory: &Inventory, spec: &PerfValidationSpec, busy: &[OtherRun]) -> Sizing {
    let held = busy.iter().cloned().collect();
    Fleet::new(inventory).choose(inventory.for_run(), spec, &held, &[])
}

fn warnings(inventory: &Inventory) -> Vec<String> {
    Fleet::new(inventory).warnings(&inventory.naming)
}

fn sized(cluster: &Cluster, spec: &PerfValidationSpec) -> Sizing {
    choose(&cluster.inventory(), spec, &[])
}

#[track_caller]
fn chosen(cluster: &Cluster, spec: &PerfValidationSpec) -> Plan {
    match sized(cluster, spec) {
        Sizing::Chosen(plan) => *plan,
        other => panic!("{other:?}"),
    }
}

/// Asserts that there is no plan now; `says` must be in the message.
#[track_caller]
fn waits(cluster: &Cluster, spec: &PerfValidationSpec, reason: Reason, says: &str) {
    assert_eq!(not_chosen(cluster, spec, says), Ok(reason), "{says}");
}

/// Asserts that there will never be a plan; `says` must be in the message.
#[track_caller]
fn refuses(cluster: &Cluster, spec: &PerfValidationSpec, reason: Reason, says: &str) {
    assert_eq!(not_chosen(cluster, spec, says), Err(reason), "{says}");
}

/// The reason why there is no plan; `says` must be in its message. Waiting is `Ok`, refusing `Err`.
#[track_caller]
fn not_chosen(cluster: &Cluster, spec: &PerfValidationSpec, says: &str) -> Result<Reason, Reason> {
    let (answer, message) = match sized(cluster, spec) {
        Sizing::Wait { reason, message } => (Ok(reason), message),
        Sizing::Refuse { reason, message } => (Err(reason), message),
        Sizing::Chosen(plan) => panic!("{plan:?}"),
    };
    assert!(message.contains(says), "{message:?} does not say {says:?}");
    answer
}

fn eight() -> Cluster {
    Cluster::of_gpus(8)
}

/// The node `n1` with a slice.
fn n1_with(slice: SliceBuilder) -> Cluster {
    Cluster::empty().node(NodeBuilder::named("n1")).slice(slice)
}

fn slice_with(devices: impl IntoIterator<Item = DeviceBuilder>) -> SliceBuilder {
    devices.into_iter().fold(SliceBuilder::of("n1"), SliceBuilder::device)
}

/// One of the two slices of the pool `n1`.
fn one_of_two(name: &str) -> SliceBuilder {
    SliceBuilder::of("n1").named(name).generation(1, 2)
}

/// Eight GPUs, the first of them another one.
fn eight_with(first: DeviceBuilder) -> Cluster {
    n1_with(slice_with([first].into_iter().chain((1..8).map(gpu))))
}

/// Eight GPUs, the first of them in use.
fn with_taken(taken: usize) -> Cluster {
    (0..taken).fold(eight(), |cluster, index| {
        cluster.claim(ClaimBuilder::named(&format!("train-{index}")).holds("n1", &format!("gpu-{index}")))
    })
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.details
        .device_ids
        .iter()
        .map(|device| device.name.as_str())
        .collect()
}
