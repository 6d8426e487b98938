//! Places of the workers, as their pods show them.

use perfval_api::Allocation;
use serde_json::{from_value, json};

use super::*;

fn worker(name: &str, device: &str) -> Pod {
    from_value(json!({
        "metadata": { "name": name }, "spec": { "nodeName": "n1", "containers": [] },
        "status": { "containerStatuses": [{
            "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "allocatedResourcesStatus": [
                { "name": "rdma/hca", "resources": [{ "resourceID": "hca::1" }] },
                { "name": "nvidia.com/gpu", "resources": [{ "resourceID": device }] },
            ],
        }] },
    }))
    .expect("a pod")
}

#[test]
fn workers_with_shares_of_a_gpu_are_misplaced() {
    let plan = PlacementStatus {
        node: "n1".to_owned(),
        allocation: Allocation::DevicePlugin,
        ..PlacementStatus::default()
    };
    let misplaced = |devices: [&str; 2]| {
        let pods = [worker("w-0", devices[0]), worker("w-1", devices[1])];
        let pods = Pods {
            workers: pods.iter().collect(),
            frontends: Vec::new(),
            load_generators: Vec::new(),
        };
        misplaced(&pods, None, &plan)
    };
    assert_eq!(misplaced(["GPU-a", "GPU-b"]), None);
    for devices in [["GPU-a", "GPU-b::1"], ["GPU-a::0", "GPU-a::1"]] {
        let wrong = misplaced(devices).unwrap_or_default();
        assert!(wrong.contains("holds only a share of a GPU"), "{wrong}");
    }
}
