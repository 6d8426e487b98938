//! Devices of one node: who holds them, what stands against them.

use perfval_api::Reason;
use perfval_core::sizing;
use perfval_testkit::inventory::{ClaimBuilder, Cluster, GPU_DRIVER, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::{Value, json};

use super::{any, chosen, eight, eight_with, names, not_chosen};

#[test]
fn free_gpus_are_counted() {
    let claim = || ClaimBuilder::named("c");
    let four = (0..4).fold(claim(), |claim, index| claim.holds("n1", &format!("gpu-{index}")));
    let admin = |device: &str| json!({ "driver": GPU_DRIVER, "pool": "n1", "device": device, "adminAccess": true });
    let compute_domain = json!({ "driver": "compute-domain.nvidia.com", "pool": "n1", "device": "gpu-0" });
    let counters = (0..8).fold(
        SliceBuilder::of("n1").named("counters").generation(1, 9),
        |slice, index| slice.counter_set(&format!("set-{index}"), "memory", "80Gi"),
    );
    let by_counters = (0..8).fold(eight().without_slices().slice(counters), |cluster, index| {
        let device = gpu(index).consumes(&format!("set-{index}"), "memory", "80Gi");
        cluster.slice(
            SliceBuilder::of("n1")
                .named(&format!("devices-{index}"))
                .generation(1, 9)
                .device(device),
        )
    });
    let rule = |selector: &Value, effect: &str| json!({ "deviceSelector": selector, "taint": { "key": "k", "effect": effect } });

    let rows: Vec<(&str, Cluster, i64)> = vec![
        ("1 nothing used", eight(), 8),
        (
            "2 allocated and reserved",
            eight().claim(claim().holds("n1", "gpu-3").reserved()),
            7,
        ),
        (
            "3 allocated, not reserved",
            eight().claim(claim().holds("n1", "gpu-3")),
            7,
        ),
        (
            "4 allocated, being deleted",
            eight().claim(claim().holds("n1", "gpu-3").deleting()),
            7,
        ),
        (
            "5 admin access takes nothing",
            eight().claim(
                ["gpu-0", "gpu-1", "gpu-2"]
                    .iter()
                    .fold(claim(), |claim, device| claim.result(&admin(device))),
            ),
            8,
        ),
        ("6 one claim, four devices", eight().claim(four), 4),
        ("6b a pending claim takes nothing", eight().claim(claim()), 8),
        (
            "7 only the newest generation",
            eight().slice(SliceBuilder::of("n1").named("b").generation(2, 1).gpus(4)),
            4,
        ),
        ("9 a slice of counters", by_counters, 8),
        (
            "11 a tainted device",
            eight_with(gpu(0).taint("gpu.nvidia.com/xid", "NoSchedule")),
            7,
        ),
        (
            "11 evicting taint",
            eight_with(gpu(0).taint("gpu.nvidia.com/gpu-lost", "NoExecute")),
            7,
        ),
        (
            "11 a taint of no effect",
            eight_with(gpu(0).taint("gpu.nvidia.com/unmonitored", "None")),
            8,
        ),
        (
            "12b a rule for one device",
            eight().taint_rule(&rule(&json!({ "device": "gpu-3" }), "NoSchedule")),
            7,
        ),
        (
            "12c a rule for another driver",
            eight().taint_rule(&rule(&json!({ "driver": "x" }), "NoSchedule")),
            8,
        ),
        (
            "12d a rule without selector",
            eight().taint_rule(&rule(&Value::Null, "NoSchedule")),
            8,
        ),
        (
            "12e a rule of no effect",
            eight().taint_rule(&rule(&json!({}), "None")),
            8,
        ),
        (
            "13 a claim on a device that is gone",
            eight().claim(claim().holds("n1", "gpu-9")),
            8,
        ),
        (
            "14 another driver in the pool's name",
            eight().claim(claim().result(&compute_domain)),
            8,
        ),
        (
            "16 an extended resource served by a claim",
            eight().claim(claim().holds("n1", "gpu-0")).pod(
                PodBuilder::on("n1", "p")
                    .requests("nvidia.com/gpu", "1")
                    .served_by_claim("c", "nvidia.com/gpu"),
            ),
            7,
        ),
        (
            "17 a pod that is over",
            eight().pod(PodBuilder::on("n1", "p").requests("cpu", "256").phase("Succeeded")),
            8,
        ),
        ("27 a device given out in shares", eight_with(gpu(0).shareable()), 7),
        (
            "27b a share in use",
            eight_with(gpu(0).shareable()).claim(claim().result(&share("gpu-0"))),
            7,
        ),
        (
            "a device that is attached late",
            eight_with(gpu(0).field("bindingConditions", json!(["c"]))),
            7,
        ),
        (
            "a device of another kind",
            eight_with(gpu(0).attribute("type", "mig")),
            7,
        ),
        (
            "the same device of another pool",
            eight().claim(claim().holds("n2", "gpu-0")),
            8,
        ),
        (
            "two claims on one device",
            eight()
                .claim(claim().holds("n1", "gpu-0"))
                .claim(claim().holds("n1", "gpu-0")),
            7,
        ),
    ];
    for (name, cluster, expected) in rows {
        let plan = chosen(&cluster, &any());
        assert_eq!(
            (plan.gpus, plan.allocation.as_str()),
            (expected, "DRA"),
            "{name}: {plan:?}"
        );
        assert_eq!(plan.devices.len(), usize::try_from(expected).unwrap(), "{name}");
    }
}

fn share(device: &str) -> Value {
    json!({ "driver": GPU_DRIVER, "pool": "n1", "device": device, "shareID": "0b8f6f0e-5d3c-4f3a-9d60-2f6a3a0d9f11", "consumedCapacity": { "memory": "40Gi" } })
}

#[test]
fn every_device_tainted_is_saturated_and_says_why() {
    let by_pool = json!({
        "deviceSelector": { "driver": GPU_DRIVER, "pool": "n1" }, "taint": { "key": "k", "effect": "NoSchedule" },
    });
    let cluster = eight().taint_rule(&by_pool);
    let says = "n1: 0 of 8 GPUs free (8 tainted (DeviceTaintRule rule-0))";
    assert_eq!(not_chosen(&cluster, &any(), says), Ok(Reason::Saturated), "12");
    let newer = json!({
        "deviceSelector": { "deviceClassName": "other" }, "taint": { "key": "k", "effect": "NoSchedule" },
    });
    let cluster = eight().taint_rule(&newer);
    assert_eq!(
        not_chosen(&cluster, &any(), "0 of 8"),
        Ok(Reason::Saturated),
        "an unknown selector never counts more"
    );
}

#[test]
fn shares_everywhere_name_the_driver_s_setting() {
    let slice = (0..8).fold(SliceBuilder::of("n1"), |slice, index| {
        slice.device(gpu(index).shareable())
    });
    let cluster = eight().without_slices().slice(slice);
    assert_eq!(
        not_chosen(
            &cluster,
            &any(),
            "only 0 of 8 GPUs can be had whole (8 given out in shares"
        ),
        Ok(Reason::NoCandidateNode)
    );
}

#[test]
fn a_pool_in_motion_is_waited_for() {
    let half = eight()
        .without_slices()
        .slice(SliceBuilder::of("n1").gpus(4).generation(1, 2));
    assert_eq!(
        not_chosen(&half, &any(), "pool n1 has 1 of 2 slices"),
        Ok(Reason::PoolUnsettled),
        "8"
    );

    let moving = eight().slice(SliceBuilder::of("n1").named("b").generation(2, 2).gpus(4));
    assert_eq!(
        not_chosen(&moving, &any(), "1 of 2"),
        Ok(Reason::PoolUnsettled),
        "never the old generation either"
    );

    // The new generation's first slice is for another node: only an outdated one still names n1.
    let elsewhere = eight().slice(SliceBuilder::of("n1").named("b").generation(2, 2).target(&json!({
        "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n2"] }] }] },
    })));
    assert_eq!(not_chosen(&elsewhere, &any(), "1 of 2"), Ok(Reason::PoolUnsettled));

    let twice = eight().without_slices().slice(SliceBuilder::of("n1").gpus(4).gpus(4));
    assert_eq!(
        not_chosen(&twice, &any(), "two devices are called gpu-0"),
        Ok(Reason::PoolUnsettled)
    );

    let dangling = eight_with(gpu(0).consumes("no-such-set", "memory", "1"));
    assert_eq!(
        not_chosen(&dangling, &any(), "no-such-set/memory"),
        Ok(Reason::PoolUnsettled)
    );
}

#[test]
fn a_foreign_driver_in_motion_is_no_obstacle() {
    let cluster = eight().slice(
        SliceBuilder::of("n1")
            .named("nic")
            .driver("nic.example")
            .generation(1, 2)
            .device(gpu(0)),
    );
    assert_eq!(chosen(&cluster, &any()).gpus, 8);
}

#[test]
fn partitions_and_their_card_block_each_other() {
    // gpu-0 as a whole, and as three partitions of which two fit at a time; a counter set ties them.
    let half = |index: usize| {
        gpu(0)
            .named(&format!("gpu-0-mig-{index}"))
            .attribute("type", "mig")
            .attribute("parentUUID", "GPU-0")
            .attribute("uuid", &format!("MIG-{index}"))
            .consumes("set-0", "memory", "40Gi")
    };
    let cluster = Cluster::of_gpus(0)
        .without_slices()
        .slice(
            SliceBuilder::of("n1")
                .named("a")
                .generation(1, 2)
                .counter_set("set-0", "memory", "80Gi"),
        )
        .slice(
            SliceBuilder::of("n1")
                .named("b")
                .generation(1, 2)
                .device(gpu(0).consumes("set-0", "memory", "80Gi"))
                .device(half(0))
                .device(half(1))
                .device(half(2))
                .device(gpu(1)),
        );
    assert_eq!(chosen(&cluster, &any()).gpus, 2);
    let with_child = cluster
        .clone()
        .claim(ClaimBuilder::named("c").holds("n1", "gpu-0-mig-0"));
    assert_eq!(names(&chosen(&with_child, &any())), ["gpu-1"], "10: its child holds it");

    let mig = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'";
    let partitions = cluster.class(mig);
    assert_eq!(names(&chosen(&partitions, &any())), ["gpu-0-mig-0", "gpu-0-mig-1"]);
    let sibling = partitions
        .clone()
        .claim(ClaimBuilder::named("c").holds("n1", "gpu-0-mig-0"));
    assert_eq!(
        names(&chosen(&sibling, &any())),
        ["gpu-0-mig-1"],
        "partitions get along"
    );
    let card = partitions.claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    assert_eq!(
        not_chosen(&card, &any(), "0 of 3"),
        Ok(Reason::Saturated),
        "10: the whole card is gone"
    );
}

#[test]
fn a_passthrough_twin_holds_its_gpu() {
    let cluster = eight()
        .without_slices()
        .slice(
            SliceBuilder::of("n1")
                .gpus(2)
                .device(gpu(0).named("gpu-vfio-0").attribute("type", "vfio")),
        )
        .claim(ClaimBuilder::named("c").holds("n1", "gpu-vfio-0"));
    assert_eq!(names(&chosen(&cluster, &any())), ["gpu-1"]);
}

#[test]
fn devices_belong_to_the_nodes_that_their_slice_names() {
    let two = Cluster::empty()
        .node(NodeBuilder::named("n1").label("rack", "a"))
        .node(NodeBuilder::named("n2"));
    let by_label = json!({ "nodeSelector": { "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "rack", "operator": "In", "values": ["a"] }] }] } });
    let slice = |target: &Value| SliceBuilder::of("rack-a").gpus(3).target(target);
    let plan = chosen(&two.clone().slice(slice(&by_label)), &any());
    assert_eq!((plan.node.as_str(), plan.gpus), ("n1", 3));
    let unknown_target = two.clone().slice(slice(&json!({})));
    assert_eq!(
        not_chosen(&unknown_target, &any(), "none of 2 nodes"),
        Ok(Reason::NoCandidateNode)
    );
    let per_device = SliceBuilder::of("rack-a")
        .target(&json!({ "perDeviceNodeSelection": true }))
        .device(gpu(0).field("nodeName", json!("n1")))
        .device(gpu(1).field("nodeName", json!("n2")))
        .device(gpu(2).field("nodeName", json!("n2")));
    let plan = chosen(&two.slice(per_device), &any());
    assert_eq!((plan.node.as_str(), names(&plan)), ("n2", vec!["gpu-1", "gpu-2"]));
}

#[test]
fn a_selector_that_cannot_be_evaluated_is_refused() {
    for expression in [
        "device.driver == 'gpu.nvidia.com' &&",
        "device.attributes['gpu.nvidia.com'].futureField.f()",
    ] {
        let cluster = eight().class(expression);
        assert_eq!(
            not_chosen(&cluster, &any(), "cannot be evaluated"),
            Err(Reason::SelectorNotEvaluable),
            "26"
        );
    }
    let foreign = eight_with(gpu(0).without("type"));
    assert_eq!(
        not_chosen(&foreign, &any(), "gpu-0"),
        Err(Reason::SelectorNotEvaluable),
        "the scheduler fails as well"
    );
}

#[test]
fn warnings_change_no_number() {
    let cluster = eight()
        .claim(ClaimBuilder::named("stale").holds("n1", "gpu-9"))
        .claim(ClaimBuilder::named("b").holds("n1", "gpu-0"))
        .claim(ClaimBuilder::named("a").holds("n1", "gpu-0"));
    let warnings = sizing::warnings(&cluster.inventory());
    assert_eq!(
        warnings,
        [
            "gpu.nvidia.com/n1/gpu-0 is held twice: by other/a, other/b",
            "gpu.nvidia.com/n1/gpu-9 is held by other/stale, but no ResourceSlice has it",
        ],
        "13"
    );
    assert_eq!(chosen(&cluster, &any()).gpus, 7);
}
