use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, ContainerExtendedResourceRequest, ContainerStatus, Pod, PodStatus, ResourceRequirements,
};
use kube::ResourceExt as _;

use super::{Amounts, Interned, Texts};

/// A pod that takes room on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUse {
    /// `namespace/name`.
    pub name: Box<str>,
    /// The node that it is bound to, or that the scheduler has nominated for it.
    pub node: Arc<str>,
    /// What it takes there. Extended resources that a claim serves (KEP-5004) are the claim's, not the pod's.
    pub requests: Arc<Amounts>,
    /// Devices of device plugins that the kubelet says it has, by resource (Kubernetes 1.36 and later).
    pub devices: Box<[(Arc<str>, Box<str>)]>,
}

impl PodUse {
    /// What a pod takes of its node; `None` for one that has none or is over. Terminating pods still take theirs.
    pub fn read(pod: &Pod, interned: &mut Interned) -> Option<Self> {
        let status = pod.status.as_ref();
        if status.is_some_and(|status| matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))) {
            return None;
        }
        let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let nominated = || status.and_then(|status| status.nominated_node_name.as_deref());
        let node = named(bound).or_else(|| named(nominated()))?;
        let requests = effective_request(pod, interned.texts()).trimmed();
        Some(Self {
            name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()).into(),
            node: interned.share(node),
            requests: interned.share_amounts(requests),
            devices: plugin_devices(status, interned),
        })
    }

    /// Ids of the devices of a resource that the kubelet says it has.
    pub fn devices_of(&self, resource: &str) -> impl Iterator<Item = &str> {
        let of_resource = self.devices.iter().filter(move |(known, _)| **known == *resource);
        of_resource.map(|(_, id)| &**id)
    }
}

fn plugin_devices(status: Option<&PodStatus>, interned: &mut Interned) -> Box<[(Arc<str>, Box<str>)]> {
    let containers = status.into_iter().flat_map(|status| {
        let lists = [&status.container_statuses, &status.init_container_statuses];
        lists.into_iter().flatten().flatten()
    });
    let of_resources = containers.flat_map(|container| container.allocated_resources_status.iter().flatten());
    let mut devices = Vec::new();
    for of_resource in of_resources.filter(|of_resource| !of_resource.name.starts_with("claim:")) {
        let ids = of_resource.resources.iter().flatten();
        devices.extend(ids.map(|device| (interned.share(&of_resource.name), device.resource_id.as_str().into())));
    }
    devices.into()
}

fn named(node: Option<&str>) -> Option<&str> {
    node.filter(|node| !node.is_empty())
}

/// What the scheduler counts for a pod: containers and sidecars together, or the largest moment of its start, plus the
/// overhead of its runtime class. A request for the whole pod stands for the sum.
fn effective_request(pod: &Pod, texts: &mut Texts) -> Amounts {
    let Some(spec) = &pod.spec else {
        return Amounts::default();
    };
    let containers = Containers::of(pod.status.as_ref());
    let mut sidecars = Amounts::default();
    let mut start = Amounts::default();
    for container in spec.init_containers.iter().flatten() {
        let mut moment = containers.request(container, texts);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&moment);
            moment.clone_from(&sidecars);
        } else {
            moment.add(&sidecars);
        }
        start.raise(&moment);
    }
    let mut total = sidecars;
    for container in &spec.containers {
        total.add(&containers.request(container, texts));
    }
    total.raise(&start);
    total.replace(&of_whole_pod(spec.resources.as_ref(), texts));
    total.add(&Amounts::read(spec.overhead.as_ref(), texts));
    total
}

/// Only these can be asked for a pod as a whole; the scheduler looks away from all others there.
fn of_whole_pod(resources: Option<&ResourceRequirements>, texts: &mut Texts) -> Amounts {
    let mut asked = Amounts::requests(resources, texts);
    asked.retain(|name| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-"));
    asked
}

/// What the status of a pod says about its containers.
struct Containers<'a> {
    status: Option<&'a PodStatus>,
    /// The kubelet will not resize it, so what it asks for does not count.
    resize_is_infeasible: bool,
}

impl<'a> Containers<'a> {
    fn of(status: Option<&'a PodStatus>) -> Self {
        let pending = |status: &PodStatus| {
            let conditions = status.conditions.as_deref().unwrap_or_default();
            let resize = conditions
                .iter()
                .find(|condition| condition.type_ == "PodResizePending");
            resize.is_some_and(|resize| resize.reason.as_deref() == Some("Infeasible"))
        };
        Self {
            status,
            resize_is_infeasible: status.is_some_and(pending),
        }
    }

    /// The most of what a container asks for, was promised and has: a resize in place takes its time.
    fn request(&self, container: &Container, texts: &mut Texts) -> Amounts {
        let mut request = Amounts::requests(container.resources.as_ref(), texts);
        if let Some(status) = self.status_of(&container.name) {
            let mut has = Amounts::read(status.resources.as_ref().and_then(|has| has.requests.as_ref()), texts);
            has.raise(&Amounts::read(status.allocated_resources.as_ref(), texts));
            if self.resize_is_infeasible {
                request.replace(&has);
            } else {
                request.raise(&has);
            }
        }
        for served in self.served_by_claim(&container.name) {
            request.remove(&served.resource_name);
        }
        request
    }

    fn status_of(&self, container: &str) -> Option<&'a ContainerStatus> {
        let status = self.status?;
        let mut all = [&status.container_statuses, &status.init_container_statuses]
            .into_iter()
            .flatten()
            .flatten();
        all.find(|status| status.name == container)
    }

    fn served_by_claim(&self, container: &str) -> impl Iterator<Item = &'a ContainerExtendedResourceRequest> {
        let claim = self
            .status
            .and_then(|status| status.extended_resource_claim_status.as_ref());
        claim
            .into_iter()
            .flat_map(|claim| &claim.request_mappings)
            .filter(move |mapping| mapping.container_name == container)
    }
}

#[cfg(test)]
mod tests {
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
    }
}
