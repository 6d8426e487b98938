//! Requests of a pod on its node.

use serde_json::{Value, from_value, json};

use super::*;
use perfval_api::quantity;

#[track_caller]
fn counts(pod: &Value, resource: &str, expected: &str) {
    let mut bound = pod.clone();
    bound["metadata"] = json!({ "name": "p" });
    bound["spec"]["nodeName"] = json!("n1");
    let pod_use = PodUse::read(&from_value(bound).unwrap(), &mut Interned::default());
    let amount = pod_use.map(|pod| pod.requests.get(resource));
    assert_eq!(amount, quantity::parse(expected), "{pod}");
}

fn cpu(amount: &str) -> Value {
    json!({ "requests": { "cpu": amount } })
}

#[test]
fn a_pod_counts_as_the_scheduler_counts_it() {
    let one = json!({ "name": "a", "resources": cpu("1") });
    let cases = [
        (
            json!({ "containers": [one, { "name": "b", "resources": cpu("500m") }] }),
            "1.5",
        ),
        (
            json!({ "containers": [{ "name": "a", "resources": { "limits": { "cpu": "2" } } }] }),
            "2",
        ),
        (
            json!({ "initContainers": [{ "name": "i", "resources": cpu("4") }], "containers": [one] }),
            "4",
        ),
        (
            json!({
                "initContainers": [
                    { "name": "s", "restartPolicy": "Always", "resources": cpu("2") },
                    { "name": "i", "resources": cpu("3") },
                ],
                "containers": [one],
            }),
            "5",
        ),
        (
            json!({
                "initContainers": [
                    { "name": "i", "resources": cpu("2500m") },
                    { "name": "s", "restartPolicy": "Always", "resources": cpu("2") },
                ],
                "containers": [one],
            }),
            "3",
        ),
        (json!({ "overhead": { "cpu": "250m" }, "containers": [one] }), "1.25"),
        (json!({ "resources": cpu("8"), "containers": [one] }), "8"),
        (
            json!({ "resources": { "requests": { "memory": "1Gi" } }, "containers": [one] }),
            "1",
        ),
    ];
    for (spec, expected) in cases {
        counts(&json!({ "spec": spec }), "cpu", expected);
    }
    let gpus = json!({
        "resources": { "requests": { "nvidia.com/gpu": "8" } },
        "containers": [{ "name": "a", "resources": { "limits": { "nvidia.com/gpu": "2" } } }],
    });
    counts(&json!({ "spec": gpus }), "nvidia.com/gpu", "2");
}

#[test]
fn a_resize_in_place_counts_as_the_larger_until_it_is_done() {
    let spec = |cpus: &str| json!({ "containers": [{ "name": "a", "resources": cpu(cpus) }] });
    let status = |has: &str, promised: &str| {
        json!({
            "phase": "Running",
            "containerStatuses": [{ "name": "a", "resources": cpu(has), "allocatedResources": { "cpu": promised } }],
        })
    };
    let pending = |reason: &str| {
        let mut status = status("2", "2");
        status["conditions"] = json!([{ "type": "PodResizePending", "status": "True", "reason": reason }]);
        status
    };
    let cases = [
        ("1", status("4", "1"), "4"),
        ("1", status("2", "4"), "4"),
        ("4", status("2", "2"), "4"),
        ("8", pending("Deferred"), "8"),
        ("8", pending("Infeasible"), "2"),
    ];
    for (asks, status, expected) in cases {
        counts(&json!({ "spec": spec(asks), "status": status }), "cpu", expected);
    }
    let sidecar = json!({
        "spec": { "initContainers": [{ "name": "s", "restartPolicy": "Always", "resources": cpu("1") }], "containers": [] },
        "status": { "initContainerStatuses": [{ "name": "s", "resources": cpu("3") }] },
    });
    counts(&sidecar, "cpu", "3");
    // The scheduler does the same: an allocation counts once the kubelet reports the container's resources.
    let mut unreported = status("4", "4");
    unreported["containerStatuses"][0]
        .as_object_mut()
        .map(|fields| fields.remove("resources"));
    counts(&json!({ "spec": spec("1"), "status": unreported }), "cpu", "1");
    let over = json!({
        "spec": { "initContainers": [{ "name": "i", "resources": cpu("1") }], "containers": [] },
        "status": { "initContainerStatuses": [{ "name": "i", "resources": cpu("3") }] },
    });
    counts(&over, "cpu", "1");
}

#[test]
fn a_resize_of_the_whole_pod_counts_as_the_larger_until_it_is_done() {
    let spec = |cpus: &str| json!({ "resources": cpu(cpus), "containers": [{ "name": "a", "resources": cpu("1") }] });
    let status = |has: &str, promised: &str| json!({ "phase": "Running", "resources": cpu(has), "allocatedResources": { "cpu": promised } });
    let pending = |reason: &str| {
        let mut status = status("2", "4");
        status["conditions"] = json!([{ "type": "PodResizePending", "status": "True", "reason": reason }]);
        status
    };
    let cases = [
        ("2", status("6", "2"), "6"),
        ("2", status("2", "6"), "6"),
        ("6", status("2", "2"), "6"),
        ("6", pending("Deferred"), "6"),
        ("6", pending("Infeasible"), "4"),
        (
            "2",
            json!({ "phase": "Running", "allocatedResources": { "cpu": "6" } }),
            "2",
        ),
    ];
    for (asks, status, expected) in cases {
        counts(&json!({ "spec": spec(asks), "status": status }), "cpu", expected);
    }
    let of_containers = json!({ "containers": [{ "name": "a", "resources": cpu("1") }] });
    counts(
        &json!({ "spec": of_containers, "status": status("6", "6") }),
        "cpu",
        "1",
    );
}

#[test]
fn only_the_containers_that_a_claim_serves_ask_the_device_plugin_for_nothing() {
    let one = |name: &str| json!({ "name": name, "resources": { "limits": { "nvidia.com/gpu": "1" } } });
    let mapping = json!({ "containerName": "a", "resourceName": "nvidia.com/gpu", "requestName": "r" });
    let pod = json!({
        "spec": { "containers": [one("a"), one("b")] },
        "status": { "extendedResourceClaimStatus": { "resourceClaimName": "c", "requestMappings": [mapping] } },
    });
    counts(&pod, "nvidia.com/gpu", "1");
}

#[test]
fn a_pod_takes_room_from_its_nomination_until_it_is_over() {
    let read = |pod: Value| PodUse::read(&from_value(pod).unwrap(), &mut Interned::default());
    let pod = |spec: Value, status: Value| json!({ "metadata": { "name": "p", "namespace": "ns", "deletionTimestamp": "2026-11-20T10:00:00Z" }, "spec": spec, "status": status });
    let bound = || json!({ "nodeName": "n1", "containers": [] });
    let free = || json!({ "nodeName": "", "containers": [] });
    let terminating = read(pod(bound(), json!({ "phase": "Running" }))).unwrap();
    assert_eq!((&*terminating.name, &*terminating.node), ("ns/p", "n1"));
    let nominated = read(pod(free(), json!({ "phase": "Pending", "nominatedNodeName": "n2" }))).unwrap();
    assert_eq!(&*nominated.node, "n2");
    let bound_elsewhere = read(pod(bound(), json!({ "nominatedNodeName": "n2" }))).unwrap();
    assert_eq!(&*bound_elsewhere.node, "n1");
    for over in ["Succeeded", "Failed"] {
        assert_eq!(read(pod(bound(), json!({ "phase": over }))), None);
    }
    assert_eq!(read(pod(free(), json!({ "phase": "Pending" }))), None);
    let mut of_run = pod(free(), json!({ "phase": "Pending" }));
    of_run["metadata"]["labels"] = json!({ "perfvalidation.dev/run": "0011aabb" });
    let unscheduled = read(of_run).expect("quotas count it");
    assert_eq!((&*unscheduled.name, &*unscheduled.node), ("ns/p", ""));
}
