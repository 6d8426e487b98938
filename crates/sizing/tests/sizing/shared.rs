//! A device plugin that gives one GPU to several pods: none of its "GPUs" is a whole one.

use perfval_api::Reason;
use perfval_sizing::{NodeReport, examine};
use perfval_testkit::inventory::{Cluster, NodeBuilder, PodBuilder, SliceBuilder};
use serde_json::json;

use super::{any, chosen, placed, waits};

const GPU: &str = "nvidia.com/gpu";

/// A node that offers `offers` GPUs, with NVIDIA's labels.
fn node(name: &str, offers: &str, labels: &[(&str, &str)]) -> NodeBuilder {
    let node = NodeBuilder::named(name)
        .offers(GPU, offers)
        .label("nvidia.com/gpu.present", "true");
    labels.iter().fold(node, |node, (key, value)| {
        node.label(&format!("nvidia.com/{key}"), value)
    })
}

/// As feature discovery labels a node with eight whole H100.
const WHOLE: [(&str, &str); 4] = [
    ("gpu.product", "NVIDIA-H100-80GB-HBM3"),
    ("gpu.count", "8"),
    ("gpu.replicas", "1"),
    ("gpu.sharing-strategy", "none"),
];
const SLICED: [(&str, &str); 4] = [
    ("gpu.product", "NVIDIA-H100-80GB-HBM3-SHARED"),
    ("gpu.count", "8"),
    ("gpu.replicas", "4"),
    ("gpu.sharing-strategy", "time-slicing"),
];
const PARTITIONED: [(&str, &str); 5] = [
    ("gpu.product", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"),
    ("gpu.count", "56"),
    ("gpu.replicas", "1"),
    ("gpu.sharing-strategy", "none"),
    ("mig.strategy", "single"),
];

fn report(node: NodeBuilder) -> NodeReport {
    examine(&Cluster::empty().node(node).inventory(), &any(), "n1").expect("n1")
}

#[test]
fn whole_gpus_are_chosen_and_shares_of_more_are_not() {
    let cluster = Cluster::empty()
        .node(node("sliced", "32", &SLICED))
        .node(node("partitioned", "56", &PARTITIONED))
        .node(node(
            "whole",
            "4",
            &[("gpu.count", "4"), ("gpu.replicas", "1"), ("mig.strategy", "single")],
        ));
    let plan = chosen(&cluster, &any());
    assert_eq!((plan.node.as_str(), plan.gpus), ("whole", 4));
}

#[test]
fn shares_of_a_gpu_are_no_gpus() {
    let turn_off = "turn sharing off for this node in the device plugin's configuration";
    let mut mps = SLICED;
    mps[3].1 = "mps";
    let rows = [
        (
            node("n1", "32", &SLICED),
            format!("its 32 nvidia.com/gpu are shares of GPUs (time-slicing, 4 pods to a GPU), and a worker needs a whole GPU: {turn_off}"),
        ),
        (
            node("n1", "32", &mps),
            format!("its 32 nvidia.com/gpu are shares of GPUs (mps, 4 pods to a GPU), and a worker needs a whole GPU: {turn_off}"),
        ),
        // A version of feature discovery without replicas and strategies.
        (
            node("n1", "32", &SLICED[..1]),
            format!("its 32 nvidia.com/gpu are shares of GPUs (time-slicing), and a worker needs a whole GPU: {turn_off}"),
        ),
        (
            node("n1", "56", &PARTITIONED),
            "its 56 nvidia.com/gpu are MIG partitions (1g.10gb), and a worker needs a whole GPU: turn MIG off on this node".to_owned(),
        ),
        (
            node("n1", "32", &[]).label("cloud.google.com/gke-gpu-sharing-strategy", "time-sharing").label("cloud.google.com/gke-max-shared-clients-per-gpu", "4"),
            format!("its 32 nvidia.com/gpu are shares of GPUs (time-sharing, 4 pods to a GPU), and a worker needs a whole GPU: {turn_off}"),
        ),
        (
            node("n1", "56", &[]).label("cloud.google.com/gke-gpu-partition-size", "1g.10gb"),
            "its 56 nvidia.com/gpu are MIG partitions (1g.10gb), and a worker needs a whole GPU: turn MIG off on this node".to_owned(),
        ),
        // No label shows how, and no node has more GPUs than GPUs.
        (
            node("n1", "80", &WHOLE),
            "its 80 nvidia.com/gpu are more than the 8 GPUs of its label nvidia.com/gpu.count, and a worker needs a whole GPU: give out each GPU once".to_owned(),
        ),
        (
            node("n1", "32", &[]).label("karpenter.k8s.aws/instance-gpu-count", "8"),
            "its 32 nvidia.com/gpu are more than the 8 GPUs of its label karpenter.k8s.aws/instance-gpu-count, and a worker needs a whole GPU: give out each GPU once".to_owned(),
        ),
    ];
    for (node, says) in rows {
        let report = report(node);
        assert_eq!(report.summary(), says);
        assert_eq!(
            (report.usable, json!(report)["why"].as_str()),
            (0, Some("SharedGpus")),
            "{says}"
        );
    }
}

#[test]
fn shares_under_a_name_of_their_own_are_no_gpus() {
    let renamed = |labels: &[(&str, &str)], resource: &str, offers: &str| {
        node("n1", "0", labels).has_in_all(GPU, "0").offers(resource, offers)
    };
    let sliced = [
        ("gpu.count", "8"),
        ("gpu.replicas", "4"),
        ("gpu.sharing-strategy", "time-slicing"),
    ];
    let shared = Cluster::empty().node(renamed(&sliced, "nvidia.com/gpu.shared", "32"));
    let says = "n1: its 32 nvidia.com/gpu.shared are shares of GPUs (time-slicing, 4 pods to a GPU)";
    let by_name = |resource: &str| placed(&json!({ "resourceName": resource }));
    for spec in [any(), by_name("nvidia.com/gpu.shared")] {
        waits(&shared, &spec, Reason::NoCandidateNode, says);
    }
    let mixed = [("gpu.count", "8"), ("gpu.replicas", "0"), ("mig.strategy", "mixed")];
    let partitions = Cluster::empty().node(renamed(&mixed, "nvidia.com/mig-1g.10gb", "56"));
    let says = "n1: its 56 nvidia.com/mig-1g.10gb are MIG partitions (1g.10gb)";
    waits(&partitions, &any(), Reason::NoCandidateNode, says);
    // A run that asks for partitions of another size is not advised to turn MIG off.
    let others = Cluster::empty().node(renamed(&mixed, "nvidia.com/mig-3g.40gb", "8"));
    let says = "neither ResourceSlices nor nvidia.com/mig-1g.10gb offer any";
    let small = by_name("nvidia.com/mig-1g.10gb");
    waits(&others, &small, Reason::NoDevicesPublished, says);
    // Whole GPUs next to partitions of others are whole.
    let some = Cluster::empty().node(renamed(&mixed, "nvidia.com/mig-1g.10gb", "28").offers(GPU, "4"));
    assert_eq!(chosen(&some, &any()).gpus, 4);
}

#[test]
fn a_device_of_a_pod_shows_that_it_is_shared() {
    for (device, says) in [
        (
            "GPU-5d5d::2",
            "its 32 nvidia.com/gpu are shares of GPUs (a pod has GPU-5d5d::2)",
        ),
        (
            "MIG-5d5d",
            "its 32 nvidia.com/gpu are MIG partitions (a pod has MIG-5d5d)",
        ),
    ] {
        let pod = PodBuilder::on("n1", "p").requests(GPU, "1").has_devices(GPU, &[device]);
        let cluster = Cluster::empty().node(node("n1", "32", &[])).pod(pod);
        waits(&cluster, &any(), Reason::NoCandidateNode, says);
    }
}

#[test]
fn labels_of_whole_gpus_rule_out_nothing() {
    let mut strategies = WHOLE.to_vec();
    for strategy in ["none", "single", "mixed"] {
        strategies.push(("mig.strategy", strategy));
        let plan = chosen(&Cluster::empty().node(node("n1", "8", &strategies)), &any());
        assert_eq!(plan.gpus, 8, "{strategy}");
        strategies.pop();
    }
    let fewer = node("n1", "7", &WHOLE).has_in_all(GPU, "8");
    assert_eq!(chosen(&Cluster::empty().node(fewer), &any()).gpus, 7);
    let unlabelled = NodeBuilder::named("n1").offers(GPU, "16");
    assert_eq!(chosen(&Cluster::empty().node(unlabelled), &any()).gpus, 16);
    // Claims give out whole GPUs, independent of a plugin's own.
    let by_claims = Cluster::of_gpus(8).node(node("n1", "32", &SLICED));
    let dra = placed(&json!({ "allocation": "DRA" }));
    assert_eq!(chosen(&by_claims, &dra).gpus, 8);
    let plugin = placed(&json!({ "allocation": "DevicePlugin" }));
    waits(&by_claims, &plugin, Reason::NoCandidateNode, "are shares of GPUs");
}

#[test]
fn gpus_that_are_all_unhealthy_are_there() {
    let node = node("n1", "0", &[]).has_in_all(GPU, "8");
    let report = report(node.clone());
    assert_eq!(report.summary(), "0 of 8 GPUs free (8 unhealthy)");
    let cluster = Cluster::empty().node(node.clone());
    let expecting = placed(&json!({ "expectGPUs": 8 }));
    let says = "0 of 8 GPUs free (8 unhealthy)";
    waits(&cluster, &expecting, Reason::Saturated, says);
    // A plugin that left its node to claims.
    let by_claims = Cluster::of_gpus(8).node(node.clone());
    assert_eq!(chosen(&by_claims, &any()).gpus, 8);
    let dra = placed(&json!({ "allocation": "DRA" }));
    waits(
        &cluster.slice(SliceBuilder::of("n2").gpus(1)),
        &dra,
        Reason::NoDevicesPublished,
        "has GPUs by its labels or its capacity, but neither",
    );
}
