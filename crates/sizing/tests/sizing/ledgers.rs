//! Mechanism that gives out the GPUs of a node: claims, a device plugin, both or neither.

use perfval_api::{PerfValidationSpec, Reason};
use perfval_sizing::inventory::Inventory;
use perfval_sizing::{Naming, Plan, Seen, Sizing, intruder};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::json;

use super::{any, choose, chosen, eight, names, placed, refuses, waits};

fn dual() -> Cluster {
    eight().node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"))
}

fn by(allocation: &str) -> PerfValidationSpec {
    placed(&json!({ "allocation": allocation }))
}

fn find_intruder(inventory: &Inventory, plan: &Plan) -> Result<Option<String>, String> {
    intruder(inventory, &any(), plan, plan.details.neighbours.as_deref())
}

#[test]
fn v15_both_ways_at_once_are_never_mixed() {
    let pod = || PodBuilder::on("n1", "p").requests("nvidia.com/gpu", "2");
    let all_held = (0..8).fold(ClaimBuilder::named("c"), |claim, index| {
        claim.holds("n1", &format!("gpu-{index}"))
    });
    for cluster in [dual(), dual().pod(pod()), dual().claim(all_held)] {
        let says = "turn one of them off, or name the other one";
        refuses(&cluster, &any(), Reason::MixedAllocation, says);
    }
    let says = "pod other/p has nvidia.com/gpu, and it is not known which GPUs";
    refuses(&dual().pod(pod()), &by("DRA"), Reason::MixedAllocation, says);
    let half_reported = dual().pod(pod().has_devices("nvidia.com/gpu", &["GPU-3"]));
    let says = "it is not known which GPUs";
    refuses(&half_reported, &by("DRA"), Reason::MixedAllocation, says);
    let unknown = dual().pod(pod().has_devices("nvidia.com/gpu", &["GPU-3", "GPU-3::1"]));
    let says = "GPU-3::1 of nvidia.com/gpu, which is no free device";
    refuses(&unknown, &by("DRA"), Reason::MixedAllocation, says);

    let reported = dual().pod(pod().has_devices("nvidia.com/gpu", &["GPU-3", "GPU-5"]));
    let plan = chosen(&reported, &by("DRA"));
    assert_eq!((plan.gpus, plan.node_gpus), (6, 8));
    assert!(names(&plan).iter().all(|name| !["gpu-3", "gpu-5"].contains(name)));
    assert_eq!(
        plan.details.selectors,
        ["device.driver != 'gpu.nvidia.com' || !(device.attributes['gpu.nvidia.com'].uuid in ['GPU-3', 'GPU-5'])"]
    );
    assert_eq!(plan.details.neighbours, Some(vec!["other/p".to_owned()]));
}

#[test]
fn a_pod_of_a_plugin_that_is_gone_still_has_its_gpu() {
    let cluster = eight().pod(PodBuilder::on("n1", "old").requests("nvidia.com/gpu", "1"));
    let says = "n1: other/old still has nvidia.com/gpu of a device plugin that offers none";
    waits(&cluster, &any(), Reason::Saturated, says);
}

#[test]
fn an_explicit_choice_takes_a_node_that_is_free_the_other_way() {
    let plan = chosen(&dual(), &by("DRA"));
    assert_eq!((plan.gpus, plan.allocation.as_ref()), (8, "DRA"));
    assert_eq!(
        plan.details.neighbours,
        Some(Vec::new()),
        "watched while the run measures"
    );
    let plan = chosen(
        &dual().pod(PodBuilder::on("n1", "p").requests("nvidia.com/gpu", "2")),
        &by("DevicePlugin"),
    );
    assert_eq!((plan.gpus, plan.allocation.as_ref()), (6, "DevicePlugin"));
    let held = dual().claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    let says = "claims hold GPUs of it";
    refuses(&held, &by("DevicePlugin"), Reason::MixedAllocation, says);
    assert_eq!(chosen(&eight(), &any()).details.neighbours, None);
}

#[test]
fn a_pod_of_another_namespace_is_not_named_and_known_again() {
    let pod = |name: &str| {
        PodBuilder::on("n1", name)
            .requests("nvidia.com/gpu", "1")
            .has_devices("nvidia.com/gpu", &["GPU-3"])
    };
    let mut inventory = dual().pod(pod("known")).inventory();
    inventory.naming = Naming::Only("perf".into());
    let Sizing::Chosen(plan) = choose(&inventory, &by("DRA"), &[]) else {
        panic!("no plan")
    };
    let neighbours = plan.details.neighbours.clone().unwrap_or_default();
    assert!(
        neighbours.len() == 1 && !neighbours[0].contains("other"),
        "{neighbours:?}"
    );
    assert_eq!(find_intruder(&inventory, &plan), Ok(None));
    let mut with_new = dual().pod(pod("known")).pod(pod("new")).inventory();
    with_new.naming = inventory.naming;
    let says = "a pod of another namespace got nvidia.com/gpu";
    assert_eq!(find_intruder(&with_new, &plan), Ok(Some(says.to_owned())));
}

#[test]
fn a_pod_that_got_a_gpu_the_other_way_is_noticed() {
    let by_claims = chosen(&dual(), &by("DRA"));
    let who = |cluster: &Cluster, plan: &Plan| find_intruder(&cluster.inventory(), plan);
    assert_eq!(who(&dual(), &by_claims), Ok(None));
    let with_pod = dual().pod(PodBuilder::on("n1", "p").requests("nvidia.com/gpu", "1"));
    assert_eq!(
        who(&with_pod, &by_claims),
        Ok(Some("pod other/p got nvidia.com/gpu".to_owned()))
    );
    let elsewhere = dual().pod(PodBuilder::on("n2", "p").requests("nvidia.com/gpu", "1"));
    assert_eq!(who(&elsewhere, &by_claims), Ok(None));
    let train = |uuid: &str| {
        let pod = PodBuilder::on("n1", "train-0").requests("nvidia.com/gpu", "1");
        dual().pod(pod.has_devices("nvidia.com/gpu", &[uuid]))
    };
    let beside = chosen(&train("GPU-3"), &by("DRA"));
    assert_eq!(who(&train("GPU-3"), &beside), Ok(None));
    assert_eq!(
        who(&train("GPU-5"), &beside),
        Ok(Some("pod other/train-0 got nvidia.com/gpu".to_owned())),
        "it was created again under its name"
    );

    let by_plugin = chosen(&dual(), &by("DevicePlugin"));
    assert_eq!(who(&with_pod, &by_plugin), Ok(None), "that is seen by the scheduler");
    let with_claim = dual().claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    assert_eq!(
        who(&with_claim, &by_plugin),
        Ok(Some("claim other/c got a GPU".to_owned()))
    );
    assert_eq!(who(&with_claim, &chosen(&eight(), &any())), Ok(None), "one way only");

    let mut unread = with_pod.inventory();
    unread.pods = Seen::Unknown("list Pods: 403".to_owned());
    assert_eq!(
        find_intruder(&unread, &by_claims),
        Err("pods: list Pods: 403".to_owned())
    );
}

#[test]
fn claims_without_any_driver_are_refused() {
    let dra = placed(&json!({ "allocation": "DRA" }));
    let bare = Cluster::empty().node(NodeBuilder::named("n1"));
    let says = "no GPU driver";
    refuses(&bare.clone().without_class(), &dra, Reason::DeviceClassMissing, says);
    let mut inventory = bare.inventory();
    inventory.slices = Seen::Absent;
    let Sizing::Refuse { reason, message } = choose(&inventory, &dra, &[]) else {
        panic!()
    };
    assert_eq!(reason, Reason::DeviceClassMissing);
    assert!(message.contains("does not serve resource.k8s.io/v1"), "{message}");
    waits(&bare, &any(), Reason::NoCandidateNode, "none of 1 nodes has a GPU");
}

pub fn plugin_node(name: &str, gpus: &str) -> NodeBuilder {
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
        let spec = placed(&json!({ "allocation": allocation }));
        assert_eq!(chosen(&cluster, &spec).gpus, 8);
        let plan = chosen(&busy, &spec);
        assert_eq!(
            (plan.gpus, plan.node_gpus, plan.allocation.as_ref()),
            (5, 8, "DevicePlugin")
        );
        assert_eq!(plan.product.as_deref(), Some("NVIDIA-H100"));
        assert!(
            plan.details.device_ids.is_empty(),
            "which ones is not known before binding"
        );
    }
    let dra = placed(&json!({ "allocation": "DRA" }));
    let says = "as nvidia.com/gpu only";
    waits(&cluster.clone().class("true"), &dra, Reason::NoCandidateNode, says);
    let over = cluster.pod(gpu_pod("a", "9"));
    // Never below zero.
    waits(&over, &any(), Reason::Saturated, "0 of 8");
    let plugin = placed(&json!({ "allocation": "DevicePlugin" }));
    waits(&eight(), &plugin, Reason::NoCandidateNode, "by DRA only");
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
    assert_eq!((plan.gpus, plan.allocation.as_ref()), (4, "DevicePlugin"));
}
