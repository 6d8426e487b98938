//! Drivers of devices next to that of the GPUs.

use perfval_api::Reason;
use perfval_testkit::inventory::{Cluster, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::json;

use super::{any, chosen, eight, not_chosen, placed, refuses};

/// Eight GPUs of a device plugin; pods have three of them.
fn plugin() -> Cluster {
    Cluster::empty()
        .node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"))
        .pod(PodBuilder::on("n1", "train").requests("nvidia.com/gpu", "3"))
}

fn slice_of(driver: &str) -> SliceBuilder {
    SliceBuilder::of("n1").named("other").driver(driver).device(gpu(0))
}

#[test]
fn a_driver_of_another_vendor_leaves_the_plugin_s_gpus_alone() {
    for driver in [
        "gpu.intel.com",
        "gpu.amd.com",
        "gpudirect-nic.example.com",
        "rdma-nic.nvidia.com",
    ] {
        let plan = chosen(&plugin().slice(slice_of(driver)), &any());
        assert_eq!((plan.gpus, plan.allocation.as_ref()), (5, "DevicePlugin"), "{driver}");
    }
}

#[test]
fn a_driver_of_no_gpus_that_is_still_publishing_is_no_obstacle() {
    for driver in ["gpudirect-nic.example.com", "gpudirect-nic.nvidia.com", "gpu.intel.com"] {
        let cluster = eight().slice(slice_of(driver).generation(1, 2));
        assert_eq!(chosen(&cluster, &any()).gpus, 8, "{driver}");
    }
}

#[test]
fn a_driver_of_the_same_vendor_s_gpus_counts_under_any_class_name() {
    let own_class = |resource: &str| placed(&json!({ "deviceClassName": "fast", "resourceName": resource }));
    let says = "by ResourceSlices and as nvidia.com/gpu at once";
    for class in [plugin().class("device.newField == 1"), plugin().without_class()] {
        for driver in ["gpu.nvidia.com", "vfio-gpu.nvidia.com", "gpu.nvidia.com.nvidia.com"] {
            let cluster = class.clone().slice(slice_of(driver));
            let refused = not_chosen(&cluster, &own_class("nvidia.com/gpu"), says);
            assert_eq!(refused, Err(Reason::MixedAllocation), "{driver}");
        }
        // Its name is that of the class, or the class's name ends with it.
        for (driver, class_name) in [
            ("accel.example", "accel.example"),
            ("accel.example", "whole.accel.example"),
        ] {
            let cluster = class.clone().slice(slice_of(driver));
            let spec = placed(&json!({ "deviceClassName": class_name }));
            let refused = not_chosen(&cluster, &spec, "at once");
            assert_eq!(refused, Err(Reason::MixedAllocation), "{class_name}");
        }
    }
}

#[test]
fn a_driver_of_any_name_counts_once_it_has_a_device_of_the_class() {
    let cluster = plugin()
        .class("device.driver == 'accel.example'")
        .slice(slice_of("accel.example"));
    refuses(&cluster, &any(), Reason::MixedAllocation, "at once");
}
