//! Devices of one node: who holds them, what rules them out.

use perfval_api::Reason;
use perfval_sizing as sizing;
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::{Value, json};

use super::{any, chosen, eight, eight_with, n1_with, names, one_of_two, placed, refuses, slice_with, waits, warnings};

#[test]
fn free_gpus_are_counted() {
    let claim = || ClaimBuilder::named("c");
    let with_rule = |selector: Value, effect: &str| {
        eight().taint_rule(&json!({ "deviceSelector": selector, "taint": { "key": "k", "effect": effect } }))
    };
    let rows: Vec<(&str, Cluster, i64)> = vec![
        ("a pending claim takes nothing", eight().claim(claim()), 8),
        (
            "a rule for one device",
            with_rule(json!({ "device": "gpu-3" }), "NoSchedule"),
            7,
        ),
        (
            "a rule that evicts",
            with_rule(json!({ "device": "gpu-3" }), "NoExecute"),
            7,
        ),
        (
            "a rule for another driver",
            with_rule(json!({ "driver": "x" }), "NoSchedule"),
            8,
        ),
        ("a rule of no effect", with_rule(json!({}), "None"), 8),
        (
            "a request of a prioritized list",
            eight().claim(claim().holds("n1", "gpu-2").with_request("main/sub")),
            7,
        ),
        (
            "a device that the scheduler takes last and attaches late",
            eight().slice(
                SliceBuilder::of("n1")
                    .pool("a-first")
                    .named("late")
                    .device(gpu(8).field("bindingConditions", json!(["c"]))),
            ),
            8,
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
            "a device in use that lacks what the class reads",
            eight()
                .slice(SliceBuilder::of("n1").pool("old").device(gpu(8).without("type")))
                .claim(claim().holds("old", "gpu-8")),
            8,
        ),
        (
            "the same of another node, in a slice that both nodes can use",
            eight()
                .slice(
                    SliceBuilder::of("n1")
                        .pool("old")
                        .target(&json!({ "perDeviceNodeSelection": true }))
                        .device(gpu(8).without("type").field("nodeName", json!("n2")))
                        .device(gpu(9).attribute("type", "mig").field("nodeName", json!("n1"))),
                )
                .claim(claim().holds("old", "gpu-8")),
            8,
        ),
    ];
    for (name, cluster, expected) in rows {
        let plan = chosen(&cluster, &any());
        assert_eq!(
            (plan.gpus, plan.allocation.as_ref()),
            (expected, "DRA"),
            "{name}: {plan:?}"
        );
        assert_eq!(
            plan.details.device_ids.len(),
            usize::try_from(expected).unwrap(),
            "{name}"
        );
        assert!(plan.details.selectors.is_empty(), "{name}");
    }
}

#[test]
fn nothing_is_counted_behind_a_device_that_is_attached_late() {
    // Walked before gpu-3, it is what the fourth worker would get and wait for.
    let without = slice_with((0..3).chain(4..8).map(gpu));
    assert_eq!(chosen(&n1_with(without), &any()).gpus, 7);
    let late = gpu(3).field("bindingConditions", json!(["c"]));
    let behind = (0..3).map(gpu).chain([late]).chain((4..8).map(gpu));
    let plan = chosen(&n1_with(slice_with(behind)), &any());
    assert_eq!((plan.gpus, plan.node_gpus), (3, 8));
}

#[test]
fn a_device_held_in_shares_is_evaluated_by_the_class() {
    let share = json!({ "driver": "gpu.nvidia.com", "pool": "old", "device": "gpu-8", "shareID": "u" });
    let cluster = eight()
        .slice(
            SliceBuilder::of("n1")
                .pool("old")
                .device(gpu(8).without("type").shareable()),
        )
        .claim(ClaimBuilder::named("c").result(&share));
    refuses(&cluster, &any(), Reason::SelectorNotEvaluable, "No such key: type");
}

#[test]
fn a_rule_without_a_selector_taints_every_device_until_the_api_is_v1() {
    let rule = json!({ "taint": { "key": "k", "effect": "NoSchedule" } });
    let mut inventory = eight().taint_rule(&rule).inventory();
    let sized = |inventory: &sizing::inventory::Inventory| sizing::examine(inventory, &any(), "n1").expect("n1");
    for version in [None, Some("v1alpha3"), Some("v1beta2")] {
        if let (Some(version), sizing::Seen::Present(rules)) = (version, &mut inventory.taint_rules) {
            rules[0]["apiVersion"] = json!(format!("resource.k8s.io/{version}"));
        }
        let report = sized(&inventory);
        assert_eq!((report.free, report.total), (0, 8), "{version:?}");
        assert_eq!(
            report.summary(),
            "0 of 8 GPUs free (8 tainted: k (DeviceTaintRule rule-0, which has no deviceSelector and so is for every \
             device before Kubernetes 1.37))"
        );
    }
    if let sizing::Seen::Present(rules) = &mut inventory.taint_rules {
        rules[0]["apiVersion"] = json!("resource.k8s.io/v1");
    }
    assert_eq!(sized(&inventory).free, 8);
}

#[test]
fn a_rule_of_a_newer_kind_never_counts_more() {
    let newer = json!({
        "deviceSelector": { "deviceClassName": "other" }, "taint": { "key": "k", "effect": "NoSchedule" },
    });
    let cluster = eight().taint_rule(&newer);
    waits(&cluster, &any(), Reason::Saturated, "0 of 8");
}

#[test]
fn shares_everywhere_name_the_driver_s_setting() {
    let cluster = n1_with(slice_with((0..8).map(|index| gpu(index).shareable())));
    let says = "only 0 of 8 GPUs can be had whole (8 given out in shares";
    waits(&cluster, &any(), Reason::NoCandidateNode, says);
}

#[test]
fn a_pool_in_motion_is_waited_for() {
    let moving = eight().slice(SliceBuilder::of("n1").named("b").generation(2, 2).gpus(4));
    // Never the old generation either.
    waits(&moving, &any(), Reason::PoolUnsettled, "1 of 2");

    // The new generation's first slice is for another node: only an outdated one still names n1.
    let elsewhere = eight().slice(SliceBuilder::of("n1").named("b").generation(2, 2).target(&json!({
        "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n2"] }] }] },
    })));
    waits(&elsewhere, &any(), Reason::PoolUnsettled, "1 of 2");

    let twice = n1_with(SliceBuilder::of("n1").gpus(4).gpus(4));
    waits(&twice, &any(), Reason::PoolUnsettled, "two devices are called gpu-0");

    let dangling = eight_with(gpu(0).consumes("no-such-set", "memory", "1"));
    waits(&dangling, &any(), Reason::PoolUnsettled, "no-such-set/memory");
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
    // gpu-0 as a whole, and as three partitions. Two of them fit at a time; a counter set ties them.
    let half = |index: usize| {
        gpu(0)
            .named(&format!("gpu-0-mig-{index}"))
            .attribute("type", "mig")
            .attribute("parentUUID", "GPU-0")
            .attribute("uuid", &format!("MIG-{index}"))
            .consumes("set-0", "memory", "40Gi")
    };
    let cluster = n1_with(one_of_two("a").counter_set("set-0", "memory", "80Gi")).slice(
        one_of_two("b")
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
    assert_eq!(names(&chosen(&with_child, &any())), ["gpu-1"], "its child holds it");

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
    // The whole card is gone.
    waits(&card, &any(), Reason::Saturated, "0 of 3");
}

#[test]
fn a_passthrough_twin_holds_its_gpu() {
    let cluster = n1_with(
        SliceBuilder::of("n1")
            .gpus(2)
            .device(gpu(0).named("gpu-vfio-0").attribute("type", "vfio")),
    )
    .claim(ClaimBuilder::named("c").holds("n1", "gpu-vfio-0"));
    let plan = chosen(&cluster, &any());
    assert_eq!(names(&plan), ["gpu-1"]);
    assert_eq!(
        plan.details.selectors,
        ["device.driver != 'gpu.nvidia.com' || !(device.attributes['gpu.nvidia.com'].uuid in ['GPU-0'])"],
        "the scheduler does not know that gpu-0 is in use"
    );
    let nameless = n1_with(
        SliceBuilder::of("n1")
            .device(gpu(0).without("uuid"))
            .device(gpu(1))
            .device(gpu(0).named("gpu-vfio-0").attribute("type", "vfio")),
    )
    .claim(ClaimBuilder::named("c").holds("n1", "gpu-vfio-0"));
    let says = "it has no UUID by which it can be excluded";
    waits(&nameless, &any(), Reason::NoCandidateNode, says);
}

#[test]
fn a_class_of_several_kinds_is_refused() {
    let mixed = eight_with(gpu(0).attribute("type", "mig")).class("device.driver == 'gpu.nvidia.com'");
    let says = "several types (gpu, mig): use one for whole GPUs";
    waits(&mixed, &any(), Reason::NoCandidateNode, says);

    let a100 = || gpu(0).attribute("productName", "NVIDIA A100-SXM4-80GB");
    let held = ClaimBuilder::named("c").holds("n1", "gpu-0");
    // A held one may come free before the workers' claims are allocated.
    for cluster in [eight_with(a100()), eight_with(a100()).claim(held)] {
        let says = "several products (NVIDIA A100-SXM4-80GB, NVIDIA H100 80GB HBM3): use one for a single product";
        waits(&cluster, &any(), Reason::NoCandidateNode, says);
    }
    let partition = |index: usize, profile: &str| gpu(index).attribute("type", "mig").attribute("profile", profile);
    let partitions = |profiles: [&str; 2]| {
        let mig = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'";
        let devices = (0..).zip(profiles).map(|(index, profile)| partition(index, profile));
        n1_with(slice_with(devices)).class(mig)
    };
    let says = "several profiles (1g.10gb, 3g.40gb): use one for a single profile";
    let unlike = partitions(["3g.40gb", "1g.10gb"]);
    waits(&unlike, &any(), Reason::NoCandidateNode, says);
    assert_eq!(chosen(&partitions(["3g.40gb", "3g.40gb"]), &any()).gpus, 2);
}

#[test]
fn a_device_of_another_product_that_claims_exclude_is_no_obstacle() {
    let a100 = || gpu(0).attribute("productName", "NVIDIA A100-SXM4-80GB");
    assert_eq!(chosen(&eight_with(a100().shareable()), &any()).gpus, 7);
    let taint = json!([{ "key": "k", "effect": "NoSchedule" }]);
    assert_eq!(chosen(&eight_with(a100().field("taints", taint)), &any()).gpus, 7);
    let resource = "nvidia.com/gpu";
    let pod = PodBuilder::on("n1", "p").requests(resource, "1");
    let by_plugin = eight_with(a100())
        .node(NodeBuilder::named("n1").offers(resource, "8"))
        .pod(pod.has_devices(resource, &["GPU-0"]));
    assert_eq!(chosen(&by_plugin, &placed(&json!({ "allocation": "DRA" }))).gpus, 7);
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
    waits(&unknown_target, &any(), Reason::NoCandidateNode, "none of 2 nodes");
    let per_device = SliceBuilder::of("rack-a")
        .target(&json!({ "perDeviceNodeSelection": true }))
        .device(gpu(0).field("nodeName", json!("n1")))
        .device(gpu(1).field("nodeName", json!("n2")))
        .device(gpu(2).field("nodeName", json!("n2")));
    let plan = chosen(&two.slice(per_device), &any());
    assert_eq!((plan.node.as_str(), names(&plan)), ("n2", vec!["gpu-1", "gpu-2"]));
}

#[test]
fn a_device_of_another_node_that_breaks_the_selector_breaks_it_for_all() {
    let slice = SliceBuilder::of("rack-a")
        .target(&json!({ "perDeviceNodeSelection": true }))
        .device(gpu(0).field("nodeName", json!("n1")))
        .device(gpu(1).field("nodeName", json!("n2")).without("type"));
    let cluster = Cluster::empty().node(NodeBuilder::named("n1")).slice(slice);
    // The scheduler evaluates all devices of a slice.
    refuses(&cluster, &any(), Reason::SelectorNotEvaluable, "gpu-1");
}

#[test]
fn counters_beside_devices_belong_to_their_slice_alone() {
    let slice = |name: &str, first: usize| {
        SliceBuilder::of("n1")
            .named(name)
            .generation(1, 2)
            .counter_set("set", "memory", "160Gi")
            .device(gpu(first).consumes("set", "memory", "80Gi"))
            .device(gpu(first + 1).consumes("set", "memory", "80Gi"))
    };
    let cluster = Cluster::empty()
        .node(NodeBuilder::named("n1"))
        .slice(slice("a", 0))
        .slice(slice("b", 2))
        .claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    assert_eq!(names(&chosen(&cluster, &any())), ["gpu-1", "gpu-2", "gpu-3"]);
}

#[test]
fn a_malformed_slice_makes_its_node_ineligible_with_a_reason() {
    let counters = |amount: &str| {
        n1_with(one_of_two("a").counter_set("set-0", "memory", amount))
            .slice(one_of_two("b").device(gpu(0).consumes("set-0", "memory", "1")))
    };
    let unknown_operator = json!({ "nodeSelector": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "rack", "operator": "Like", "values": ["a"] }] },
    ] } });
    let rows = [
        (eight_with(gpu(1)), "two devices are called gpu-1"),
        (counters("-1"), "set-0/memory is not an amount"),
        (counters("many"), "set-0/memory is not an amount"),
        (counters("1e40"), "set-0/memory is not an amount"),
        (
            eight_with(gpu(0).consumes("no-such-set", "memory", "1")),
            "no-such-set/memory, which the pool does not have",
        ),
        (
            n1_with(SliceBuilder::of("n1").gpus(8).generation(1, -1)),
            "1 of -1 slices",
        ),
        (
            n1_with(SliceBuilder::of("n1").gpus(8).target(&unknown_operator)),
            "its node selector \"rack\" Like [\"a\"] cannot be read",
        ),
    ];
    for (cluster, says) in rows {
        waits(&cluster, &any(), Reason::PoolUnsettled, says);
    }
}

#[test]
fn warnings_change_no_number() {
    let cluster = eight()
        .claim(ClaimBuilder::named("stale").holds("n1", "gpu-9"))
        .claim(ClaimBuilder::named("b").holds("n1", "gpu-0"))
        .claim(ClaimBuilder::named("a").holds("n1", "gpu-0"));
    let warnings = warnings(&cluster.inventory());
    assert_eq!(
        warnings,
        [
            "gpu.nvidia.com/n1/gpu-0 is held twice: by other/a, other/b",
            "gpu.nvidia.com/n1/gpu-9 is held by other/stale, but no ResourceSlice has it",
        ],
        "warnings are sorted"
    );
    assert_eq!(chosen(&cluster, &any()).gpus, 7);
}
