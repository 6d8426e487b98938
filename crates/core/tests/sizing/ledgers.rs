//! Who gives out the GPUs of a node: claims, a device plugin, both or neither.

use perfval_api::Reason;
use perfval_core::sizing::{Sizing, choose};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::json;

use super::{any, chosen, eight, not_chosen, spec};

#[test]
fn both_ways_at_once_are_refused() {
    let dual = eight().node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"));
    let with_pod = dual
        .clone()
        .pod(PodBuilder::on("n1", "p").requests("nvidia.com/gpu", "2"));
    let all_held = (0..8).fold(ClaimBuilder::named("c"), |claim, index| {
        claim.holds("n1", &format!("gpu-{index}"))
    });
    for cluster in [dual.clone(), with_pod, dual.claim(all_held)] {
        for allocation in ["Auto", "DRA", "DevicePlugin"] {
            let spec = spec(&json!({ "placement": { "allocation": allocation } }));
            assert_eq!(
                not_chosen(&cluster, &spec, "turn one of them off"),
                Err(Reason::MixedAllocation),
                "15 {allocation}"
            );
        }
    }
}

#[test]
fn claims_without_any_driver_are_refused() {
    let dra = spec(&json!({ "placement": { "allocation": "DRA" } }));
    let bare = Cluster::empty().node(NodeBuilder::named("n1"));
    assert_eq!(
        not_chosen(&bare.clone().without_class(), &dra, "no GPU driver"),
        Err(Reason::DeviceClassMissing)
    );
    let mut inventory = bare.inventory();
    inventory.slices = perfval_core::Seen::Absent;
    let Sizing::Refuse { reason, message } = choose(&inventory, &dra, &[]) else {
        panic!()
    };
    assert_eq!(reason, Reason::DeviceClassMissing);
    assert!(message.contains("is not served"), "{message}");
    assert_eq!(
        not_chosen(&bare, &any(), "none of 1 nodes has a GPU"),
        Ok(Reason::NoCandidateNode)
    );
}

fn plugin_node(name: &str, gpus: &str) -> NodeBuilder {
    NodeBuilder::named(name)
        .offers("nvidia.com/gpu", gpus)
        .label("nvidia.com/gpu.product", "NVIDIA-H100")
}

#[test]
fn a_device_plugin_s_gpus_are_counted() {
    let gpu_pod = |name: &str, gpus: &str| PodBuilder::on("n1", name).requests("nvidia.com/gpu", gpus);
    let cluster = Cluster::empty().without_class().node(plugin_node("n1", "8"));
    let busy = cluster
        .clone()
        .pod(gpu_pod("a", "2"))
        .pod(gpu_pod("b", "1"))
        .pod(gpu_pod("over", "4").phase("Failed"))
        .pod(gpu_pod("mapped", "1").served_by_claim("c", "nvidia.com/gpu"))
        .pod(PodBuilder::on("n2", "elsewhere").requests("nvidia.com/gpu", "4"));
    for allocation in ["Auto", "DevicePlugin"] {
        let spec = spec(&json!({ "placement": { "allocation": allocation } }));
        assert_eq!(chosen(&cluster, &spec).gpus, 8);
        let plan = chosen(&busy, &spec);
        assert_eq!(
            (plan.gpus, plan.node_gpus, plan.allocation.as_str()),
            (5, 8, "DevicePlugin")
        );
        assert_eq!(plan.product.as_deref(), Some("NVIDIA-H100"));
        assert!(plan.devices.is_empty(), "which ones is not known before binding");
    }
    let dra = spec(&json!({ "placement": { "allocation": "DRA" } }));
    assert_eq!(
        not_chosen(&cluster.clone().class("true"), &dra, "as nvidia.com/gpu only"),
        Ok(Reason::NoCandidateNode)
    );
    let over = cluster.pod(gpu_pod("a", "9"));
    assert_eq!(
        not_chosen(&over, &any(), "0 of 8"),
        Ok(Reason::Saturated),
        "never below zero"
    );
    let plugin = spec(&json!({ "placement": { "allocation": "DevicePlugin" } }));
    assert_eq!(
        not_chosen(&eight(), &plugin, "by DRA only"),
        Ok(Reason::NoCandidateNode)
    );
}

#[test]
fn a_slice_of_compute_domains_leaves_the_plugin_alone() {
    let channel = gpu(0).named("channel-0").attribute("type", "channel");
    let cluster = Cluster::empty().node(plugin_node("n1", "4")).slice(
        SliceBuilder::of("n1")
            .driver("compute-domain.nvidia.com")
            .device(channel),
    );
    let plan = chosen(&cluster, &any());
    assert_eq!((plan.gpus, plan.allocation.as_str()), (4, "DevicePlugin"));
}
