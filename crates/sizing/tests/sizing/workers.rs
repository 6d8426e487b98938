//! Workers with several GPUs each: a run uses whole workers only.

use perfval_api::{PerfValidationSpec, Reason};
use perfval_testkit::inventory::{Cluster, NodeBuilder, PodBuilder};
use serde_json::{Value, json};

use super::{any, chosen, eight, not_chosen, placed, waits, with_taken};

/// A run whose workers have `each` GPUs.
fn split(each: i32, placement: &Value) -> PerfValidationSpec {
    let mut spec = placed(placement);
    spec.dynamo_mut().worker.gpus = each;
    spec
}

#[test]
fn gpus_that_make_no_whole_worker_stay_free() {
    for (taken, each, gpus) in [(0, 1, 8), (0, 2, 8), (1, 2, 6), (1, 4, 4), (0, 8, 8), (0, 3, 6)] {
        let plan = chosen(&with_taken(taken), &split(each, &json!({})));
        assert_eq!(plan.gpus, gpus, "{taken} taken, {each} each");
        assert_eq!(plan.details.device_ids.len(), usize::try_from(gpus).unwrap());
    }
    assert_eq!(chosen(&eight(), &split(2, &json!({ "maxGPUs": 5 }))).gpus, 4);
}

#[test]
fn a_node_without_room_for_one_worker_is_named() {
    let busy = with_taken(5);
    let says = "no node for 4 GPUs or more: n1: 3 of 8 GPUs free";
    waits(&busy, &split(4, &json!({})), Reason::Saturated, says);
    let two = Cluster::of_gpus(2);
    let never = not_chosen(&two, &split(4, &json!({})), "n1: has 2 GPUs in all");
    assert_eq!(never, not_chosen(&two, &placed(&json!({ "minGPUs": 4 })), ""));
    // A minimum between two workers is rounded up.
    let five = split(4, &json!({ "minGPUs": 5 }));
    waits(&with_taken(3), &five, Reason::Saturated, "no node for 8 GPUs or more");
}

#[test]
fn a_quota_counts_every_device_of_a_claim() {
    let devices = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices";
    let claims = "count/resourceclaims.resource.k8s.io";
    for (resource, hard, gpus) in [(devices, "5", 4), (devices, "6", 6), (claims, "3", 6)] {
        let cluster = eight().quota(&json!({ "hard": { resource: hard } }), &json!({ resource: "0" }));
        assert_eq!(chosen(&cluster, &split(2, &json!({}))).gpus, gpus, "{resource}: {hard}");
    }
    let plugin = Cluster::empty()
        .node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"))
        .quota(
            &json!({ "hard": { "requests.nvidia.com/gpu": "7" } }),
            &json!({ "requests.nvidia.com/gpu": "0" }),
        );
    assert_eq!(chosen(&plugin, &split(2, &json!({}))).gpus, 6);
    assert_eq!(chosen(&plugin, &any()).gpus, 7);
}

#[test]
fn room_on_the_node_is_counted_by_worker() {
    let busy = eight().pod(PodBuilder::on("n1", "p").requests("cpu", "190"));
    let mut spec = split(2, &json!({}));
    let cpu = |amount: &str| serde_json::from_value(json!({ "requests": { "cpu": amount } })).expect("resources");
    spec.dynamo_mut().worker.resources = cpu("20");
    spec.benchmark.resources = cpu("1");
    // 66 less the others' are enough for three workers.
    assert_eq!(chosen(&busy, &spec).gpus, 6);
}
