use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, ContainerExtendedResourceRequest, ContainerStatus, Pod, PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt as _;
use perfval_api::meta::RUN_LABEL;

use super::{Amounts, Interned, Texts};

/// A pod that takes room on a node, or a pod of a run: quotas count it from its creation on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUse {
    /// `namespace/name`.
    pub name: Box<str>,
    /// The node that it is bound to, or that the scheduler has nominated for it; empty before.
    pub node: Arc<str>,
    /// Amounts that it takes there. Extended resources that a claim serves (KEP-5004) belong to the claim, not to the
    /// pod.
    pub requests: Arc<Amounts>,
    /// Devices of device plugins that the kubelet reports for it, by resource (Kubernetes 1.36 and later).
    pub devices: Box<[(Arc<str>, Box<str>)]>,
}

impl PodUse {
    /// Reads what a pod takes of its node; `None` if it is over, or has no node and no run. Terminating pods still count.
    pub fn read(pod: &Pod, interned: &mut Interned) -> Option<Self> {
        let status = pod.status.as_ref();
        if status.is_some_and(|status| matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))) {
            return None;
        }
        let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let nominated = || status.and_then(|status| status.nominated_node_name.as_deref());
        let is_of_run = || pod.labels().contains_key(RUN_LABEL);
        let node = named(bound).or_else(|| named(nominated()));
        let node = node.or_else(|| is_of_run().then_some(""))?;
        let requests = effective_request(pod, interned.texts()).trimmed();
        Some(Self {
            name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()).into(),
            node: interned.share(node),
            requests: interned.share_amounts(requests),
            devices: plugin_devices(status, interned),
        })
    }

    /// Ids of the devices of a resource that the kubelet reports.
    pub fn devices_of(&self, resource: &str) -> impl Iterator<Item = &str> {
        let of_resource = self.devices.iter().filter(move |(known, _)| **known == *resource);
        of_resource.map(|(_, id)| &**id)
    }
}

fn plugin_devices(status: Option<&PodStatus>, interned: &mut Interned) -> Box<[(Arc<str>, Box<str>)]> {
    let of_resources =
        container_statuses(status).flat_map(|container| container.allocated_resources_status.iter().flatten());
    let mut devices = Vec::new();
    for of_resource in of_resources.filter(|of_resource| !of_resource.name.starts_with("claim:")) {
        let ids = of_resource.resources.iter().flatten();
        devices.extend(ids.map(|device| (interned.share(&of_resource.name), device.resource_id.as_str().into())));
    }
    devices.into()
}

fn container_statuses(status: Option<&PodStatus>) -> impl Iterator<Item = &ContainerStatus> {
    status.into_iter().flat_map(|status| {
        let lists = [&status.container_statuses, &status.init_container_statuses];
        lists.into_iter().flatten().flatten()
    })
}

fn named(node: Option<&str>) -> Option<&str> {
    node.filter(|node| !node.is_empty())
}

/// Request of a pod as the scheduler counts it: containers and sidecars together, or the largest moment of its start,
/// plus the overhead of its runtime class. A request for the whole pod replaces the sum.
fn effective_request(pod: &Pod, texts: &mut Texts) -> Amounts {
    let Some(spec) = &pod.spec else {
        return Amounts::default();
    };
    let reported = ReportedResources::new(pod.status.as_ref());
    let mut sidecars = Amounts::default();
    let mut start = Amounts::default();
    for container in spec.init_containers.iter().flatten() {
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        let mut moment = reported.request(container, is_sidecar, texts);
        if is_sidecar {
            sidecars.add(&moment);
            moment.clone_from(&sidecars);
        } else {
            moment.add(&sidecars);
        }
        start.raise(&moment);
    }
    let mut total = sidecars;
    for container in &spec.containers {
        total.add(&reported.request(container, true, texts));
    }
    total.raise(&start);
    total.replace(&reported.whole_pod(spec.resources.as_ref(), texts));
    total.add(&Amounts::read(spec.overhead.as_ref(), texts));
    total
}

/// Resources that the status of a pod reports.
struct ReportedResources<'a> {
    status: Option<&'a PodStatus>,
    /// True if the kubelet will not resize it, so that its request does not count.
    resize_is_infeasible: bool,
}

impl<'a> ReportedResources<'a> {
    fn new(status: Option<&'a PodStatus>) -> Self {
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

    /// Request of a container as the scheduler counts it. A container that ends before the others begin is never
    /// resized.
    fn request(&self, container: &Container, can_resize: bool, texts: &mut Texts) -> Amounts {
        let mut request = Amounts::requests(container.resources.as_ref(), texts);
        let status = container_statuses(self.status).find(|status| status.name == container.name);
        if let Some(status) = status.filter(|_| can_resize) {
            let (has, promised) = (status.resources.as_ref(), status.allocated_resources.as_ref());
            self.resize(&mut request, has, promised, texts);
        }
        for served in self.served_by_claim(&container.name) {
            request.remove(&served.resource_name);
        }
        request
    }

    /// Request for the pod as a whole. Only these resources are allowed there; the scheduler ignores all others.
    fn whole_pod(&self, resources: Option<&ResourceRequirements>, texts: &mut Texts) -> Amounts {
        let asked = Amounts::requests(resources, texts);
        let mut request = asked.clone();
        if let Some(status) = self.status {
            let (has, promised) = (status.resources.as_ref(), status.allocated_resources.as_ref());
            self.resize(&mut request, has, promised, texts);
        }
        request.retain(|name| {
            let is_known = matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
            is_known && asked.listed(name).is_some()
        });
        request
    }

    /// Replaces each request by the largest of the requested, the allocated and the actual amount, because a resize
    /// in place takes time.
    fn resize(
        &self,
        request: &mut Amounts,
        has: Option<&ResourceRequirements>,
        promised: Option<&BTreeMap<String, Quantity>>,
        texts: &mut Texts,
    ) {
        let Some(has) = has else { return };
        let mut given = Amounts::read(has.requests.as_ref(), texts);
        given.raise(&Amounts::read(promised, texts));
        if self.resize_is_infeasible {
            request.replace(&given);
        } else {
            request.raise(&given);
        }
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
mod tests;
