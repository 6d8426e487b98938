//! The cases that naive counting gets wrong. Unless a case states otherwise: one Ready node `n1`
//! with eight GPUs that only claims give out, all free, and a spec that wants all of them.

use perfval_api::Reason;
use perfval_sizing::Plan;
use perfval_testkit::inventory::{ClaimBuilder, Cluster, GPU_DRIVER, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::{Value, json};

use super::{any, chosen, eight, eight_with, n1_with, names, placed, refuses, waits, warnings};

fn claim() -> ClaimBuilder {
    ClaimBuilder::named("c")
}

/// A plan for this many GPUs, all of them named.
#[track_caller]
fn gives(cluster: &Cluster, gpus: i64) -> Plan {
    let plan = chosen(cluster, &any());
    assert_eq!((plan.gpus, plan.allocation.as_ref()), (gpus, "DRA"), "{plan:?}");
    assert_eq!(i64::try_from(plan.details.device_ids.len()), Ok(gpus));
    plan
}

#[test]
fn v01_nothing_is_used() {
    gives(&eight(), 8);
}

#[test]
fn v02_a_claim_is_allocated_and_reserved() {
    gives(&eight().claim(claim().holds("n1", "gpu-3").reserved()), 7);
}

#[test]
fn v03_a_claim_is_allocated_and_not_reserved() {
    gives(&eight().claim(claim().holds("n1", "gpu-3")), 7);
}

#[test]
fn v04_an_allocated_claim_is_being_deleted() {
    gives(&eight().claim(claim().holds("n1", "gpu-3").deleting()), 7);
}

#[test]
fn v05_admin_access_takes_nothing() {
    let admin = |device: &str| json!({ "driver": GPU_DRIVER, "pool": "n1", "device": device, "adminAccess": true });
    let claim = ["gpu-0", "gpu-1", "gpu-2"]
        .iter()
        .fold(claim(), |claim, device| claim.result(&admin(device)));
    gives(&eight().claim(claim), 8);
}

#[test]
fn v06_one_claim_holds_four_devices() {
    let four = (0..4).fold(claim(), |claim, index| claim.holds("n1", &format!("gpu-{index}")));
    gives(&eight().claim(four), 4);
}

#[test]
fn v07_only_the_newest_generation_counts() {
    gives(
        &eight().slice(SliceBuilder::of("n1").named("b").generation(2, 1).gpus(4)),
        4,
    );
}

#[test]
fn v08_a_pool_with_a_slice_missing_is_unsettled() {
    let half = n1_with(SliceBuilder::of("n1").gpus(8).generation(1, 2));
    let says = "n1: gpu.nvidia.com is still publishing: pool n1 has 1 of 2 slices";
    waits(&half, &any(), Reason::PoolUnsettled, says);
}

#[test]
fn v09_a_slice_of_counters_has_no_devices() {
    let counters = (0..8).fold(
        SliceBuilder::of("n1").named("counters").generation(1, 9),
        |slice, index| slice.counter_set(&format!("set-{index}"), "memory", "80Gi"),
    );
    let cluster = (0..8).fold(n1_with(counters), |cluster, index| {
        let device = gpu(index).consumes(&format!("set-{index}"), "memory", "80Gi");
        cluster.slice(
            SliceBuilder::of("n1")
                .named(&format!("devices-{index}"))
                .generation(1, 9)
                .device(device),
        )
    });
    gives(&cluster, 8);
}

/// Eight GPUs with seven partitions each, all published; a counter set per GPU ties them.
fn dynamic_mig() -> Cluster {
    let counters = (0..8).fold(SliceBuilder::of("n1").named("a").generation(1, 9), |slice, index| {
        slice.counter_set(&format!("set-{index}"), "slices", "7")
    });
    (0..8).fold(n1_with(counters), |cluster, index| {
        let set = format!("set-{index}");
        let whole = SliceBuilder::of("n1")
            .named(&format!("b{index}"))
            .generation(1, 9)
            .device(gpu(index).consumes(&set, "slices", "7"));
        cluster.slice((0..7).fold(whole, |slice, part| {
            slice.device(
                gpu(index)
                    .named(&format!("gpu-{index}-mig-{part}"))
                    .attribute("type", "mig")
                    .attribute("uuid", &format!("MIG-{index}-{part}"))
                    .attribute("parentUUID", &format!("GPU-{index}"))
                    .consumes(&set, "slices", "1"),
            )
        }))
    })
}

#[test]
fn v10_a_partition_takes_its_gpu_and_a_gpu_its_partitions() {
    gives(&dynamic_mig(), 8);
    let plan = gives(&dynamic_mig().claim(claim().holds("n1", "gpu-3-mig-0")), 7);
    assert!(!names(&plan).contains(&"gpu-3"), "{plan:?}");

    let mig = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'";
    let partitions = dynamic_mig().class(mig);
    assert_eq!(gives(&partitions, 56).node_gpus, 56);
    let card_taken = gives(&partitions.claim(claim().holds("n1", "gpu-3")), 49);
    assert!(names(&card_taken).iter().all(|name| !name.starts_with("gpu-3")));
}

#[test]
fn v11_a_device_is_tainted() {
    gives(&eight_with(gpu(0).taint("gpu.nvidia.com/xid", "NoSchedule")), 7);
    gives(&eight_with(gpu(0).taint("gpu.nvidia.com/gpu-lost", "NoExecute")), 7);
    gives(&eight_with(gpu(0).taint("gpu.nvidia.com/unmonitored", "None")), 8);
    gives(&eight_with(gpu(0).taint("gpu.nvidia.com/later", "Newer")), 8);
    let tainted = eight_with(gpu(0).taint("gpu.nvidia.com/xid", "NoSchedule"));
    for (toleration, expected) in [
        (json!({ "key": "gpu.nvidia.com/xid", "operator": "Exists" }), 8),
        (json!({ "operator": "Exists", "effect": "NoSchedule" }), 8),
        (json!({ "operator": "Exists", "effect": "NoExecute" }), 7),
        (
            json!({ "key": "gpu.nvidia.com/xid", "operator": "Equal", "value": "79" }),
            7,
        ),
        (json!({ "key": "other", "operator": "Exists" }), 7),
    ] {
        let spec = placed(&json!({ "deviceTolerations": [toleration] }));
        assert_eq!(chosen(&tainted, &spec).gpus, expected, "{toleration}");
    }
}

#[test]
fn v12_a_rule_taints_every_device_of_a_pool() {
    let by_pool = json!({
        "deviceSelector": { "driver": GPU_DRIVER, "pool": "n1" }, "taint": { "key": "k", "effect": "NoSchedule" },
    });
    let cluster = eight().taint_rule(&by_pool);
    let says = "n1: 0 of 8 GPUs free (8 tainted: k (DeviceTaintRule rule-0))";
    waits(&cluster, &any(), Reason::Saturated, says);
    let tolerant = placed(&json!({ "deviceTolerations": [{ "key": "k", "operator": "Exists" }] }));
    assert_eq!(chosen(&cluster, &tolerant).gpus, 8);
}

#[test]
fn v14_compute_domains_of_the_same_pool_name() {
    let channel = json!({ "driver": "compute-domain.nvidia.com", "pool": "n1", "device": "gpu-0" });
    let daemon = json!({ "driver": "compute-domain.nvidia.com", "pool": "n1", "device": "daemon-0" });
    gives(&eight().claim(claim().result(&channel).result(&daemon)), 8);
}

#[test]
fn v16_an_extended_resource_is_served_by_a_claim() {
    let pod = PodBuilder::on("n1", "p")
        .requests("nvidia.com/gpu", "1")
        .served_by_claim("c", "nvidia.com/gpu");
    let cluster = eight()
        .node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "0"))
        .claim(claim().holds("n1", "gpu-0"))
        .pod(pod);
    gives(&cluster, 7);
}

#[test]
fn v17_a_pod_is_over_and_its_claim_released() {
    let over = PodBuilder::on("n1", "p").requests("cpu", "256").phase("Succeeded");
    gives(&eight().pod(over).claim(claim()), 8);
}

#[test]
fn v21_a_foreign_pod_takes_a_gpu_after_the_plan() {
    let planned = chosen(&eight(), &any());
    let now = chosen(&eight().claim(claim().holds("n1", "gpu-0")), &any());
    assert_ne!(planned, now, "so the second reading starts the settling again");
    assert_eq!(now.gpus, 7);
}

#[test]
fn v23_the_class_is_missing_and_slices_exist() {
    let cluster = eight().without_class();
    waits(&cluster, &any(), Reason::DeviceClassMissing, "half installed");
}

#[test]
fn v24_an_empty_slice_on_a_node_labelled_with_gpus() {
    let cluster = Cluster::of_gpus(0).node(NodeBuilder::named("n1").label("nvidia.com/gpu.present", "true"));
    waits(&cluster, &any(), Reason::NoDevicesPublished, "restart the plugin's pod");
}

#[test]
fn v25_a_device_is_promised_by_kai_s_scheduler() {
    let plan = gives(&eight().promised("n1", "gpu-2", "Pending"), 7);
    assert!(!names(&plan).contains(&"gpu-2"));
    gives(&eight().promised("n1", "gpu-2", "Succeeded"), 8);
    gives(&eight().promised("n1", "gpu-2", "Failed"), 8);
    // Once it is written into the claim, it still counts once.
    let written = eight()
        .promised("n1", "gpu-2", "Pending")
        .claim(claim().holds("n1", "gpu-2"));
    gives(&written, 7);
    assert!(warnings(&written.inventory()).is_empty(), "it is not held twice");
    let extended = eight().promised("n1", "gpu-2", "Pending").for_extended_resources();
    assert!(!names(&gives(&extended, 7)).contains(&"gpu-2"));
}

#[test]
fn v26_a_selector_that_cannot_be_evaluated() {
    for expression in [
        "device.driver == 'gpu.nvidia.com' &&",
        "device.attributes['gpu.nvidia.com'].futureField.f()",
    ] {
        let says = "cannot be evaluated";
        refuses(&eight().class(expression), &any(), Reason::SelectorNotEvaluable, says);
    }
    let foreign = eight_with(gpu(0).without("type"));
    // The scheduler fails as well.
    refuses(&foreign, &any(), Reason::SelectorNotEvaluable, "gpu-0");
}

#[test]
fn v27_a_device_is_given_out_in_shares() {
    let cluster = eight_with(gpu(0).shareable());
    let plan = gives(&cluster, 7);
    assert_eq!(
        plan.details.selectors,
        ["!device.allowMultipleAllocations"],
        "or the scheduler gives a worker a share of it"
    );
    let share: Value = json!({
        "driver": GPU_DRIVER, "pool": "n1", "device": "gpu-0", "consumedCapacity": { "memory": "40Gi" },
        "shareID": "0b8f6f0e-5d3c-4f3a-9d60-2f6a3a0d9f11",
    });
    gives(&cluster.claim(claim().result(&share)), 7);
}
