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
            ..Pods::default()
        };
        misplaced(&pods, None, &plan, 1)
    };
    assert_eq!(misplaced(["GPU-a", "GPU-b"]), None);
    for devices in [["GPU-a", "GPU-b::1"], ["GPU-a::0", "GPU-a::1"]] {
        let wrong = misplaced(devices).unwrap_or_default();
        assert!(wrong.contains("holds only a share of a GPU"), "{wrong}");
    }
}

/// The kubelet lists the sidecar first.
#[test]
fn the_newest_end_of_a_worker_is_its_last_exit() {
    let ended = |name: &str, code: i32, at: &str| {
        let last = json!({ "terminated": { "exitCode": code, "finishedAt": at } });
        json!({ "name": name, "image": "", "imageID": "", "ready": true, "restartCount": 1, "lastState": last })
    };
    let sidecar = ended("istio-proxy", 0, "2026-11-20T12:00:00Z");
    let mut pod = worker("w-0", "");
    pod.status = from_value(json!({ "containerStatuses": [sidecar, ended("main", 139, "2026-11-20T12:05:00Z")] }))
        .expect("a status");
    let pods = Pods {
        workers: vec![&pod],
        ..Pods::default()
    };
    let recorded = workers(&pods, &[], &[], &Seen::NotAsked);
    assert_eq!(recorded[0].last_exit.as_deref(), Some("exit code 139"));
    assert_eq!(recorded[0].ended_by, None);
}

fn claim(owner: &str, devices: &[&str]) -> ResourceClaim {
    let results: Vec<_> = devices
        .iter()
        .map(|device| json!({ "request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": device }))
        .collect();
    from_value(json!({
        "metadata": { "name": owner, "ownerReferences": [
            { "apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner } ] },
        "spec": {},
        "status": { "allocation": { "devices": { "results": results } } },
    }))
    .expect("a claim")
}

#[test]
fn each_worker_must_hold_all_of_its_gpus() {
    let plan = PlacementStatus {
        node: "n1".to_owned(),
        allocation: Allocation::Dra,
        ..PlacementStatus::default()
    };
    let mut pods = [worker("w-0", ""), worker("w-1", "")];
    for pod in &mut pods {
        pod.metadata.uid.clone_from(&pod.metadata.name);
    }
    let pods = Pods {
        workers: pods.iter().collect(),
        ..Pods::default()
    };
    let misplaced = |first: &[&str], second: &[&str]| {
        let claims = [claim("w-0", first), claim("w-1", second)];
        misplaced(&pods, Some(&claims), &plan, 2)
    };
    assert_eq!(misplaced(&["gpu-0", "gpu-3"], &["gpu-1", "gpu-2"]), None);
    let short = misplaced(&["gpu-0", "gpu-3"], &["gpu-1"]);
    assert_eq!(short.as_deref(), Some("worker w-1 holds 1 GPU instead of 2"));
    let twice = misplaced(&["gpu-0", "gpu-3"], &["gpu-1", "gpu-3"]);
    assert_eq!(twice.as_deref(), Some("GPU gpu-3 of n1 is held by two workers"));

    let claims = [claim("w-0", &["gpu-3", "gpu-0"]), claim("w-1", &[])];
    let recorded = workers(&pods, &claims, &[], &Seen::NotAsked);
    assert_eq!(recorded[0].devices, ["n1/gpu-0", "n1/gpu-3"]);
    assert!(recorded[1].devices.is_empty());
}
