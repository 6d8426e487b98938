//! GPUs that a device plugin gives out: one number in a node's allocatable, minus what pods ask for.

use k8s_openapi::api::core::v1::{Node, Pod};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::pods::{amounts, effective_request, on_node};

/// GPUs of a device plugin on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginGpus {
    /// GPUs of the node, healthy or not.
    pub total: i64,
    /// GPUs that no pod asked for.
    pub free: i64,
}

/// Counts the plugin's GPUs of a node; none if it offers no such resource.
pub fn count(node: &Node, resource: &str, pods: &[Pod]) -> Option<PluginGpus> {
    let status = node.status.as_ref()?;
    let amount = |quantities| whole(amounts(quantities).get(resource).copied());
    let allocatable = amount(status.allocatable.as_ref());
    if allocatable <= 0 {
        return None;
    }
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let used = on_node(pods, name).fold(Decimal::ZERO, |sum, pod| {
        sum.saturating_add(plugin_request(pod, resource))
    });
    Some(PluginGpus {
        total: allocatable.max(amount(status.capacity.as_ref())),
        free: (allocatable - used.ceil().to_i64().unwrap_or(i64::MAX)).max(0),
    })
}

/// What a pod takes from the plugin. Containers that the scheduler served with a claim instead (KEP-5004) take nothing.
fn plugin_request(pod: &Pod, resource: &str) -> Decimal {
    let status = pod.status.as_ref();
    let mappings = status
        .and_then(|status| status.extended_resource_claim_status.as_ref())
        .map(|status| &status.request_mappings);
    let mut pod = pod.clone();
    if let (Some(mappings), Some(spec)) = (mappings, pod.spec.as_mut()) {
        let containers = spec
            .containers
            .iter_mut()
            .chain(spec.init_containers.iter_mut().flatten());
        for container in containers {
            let served = mappings
                .iter()
                .any(|mapping| mapping.container_name == container.name && mapping.resource_name == resource);
            if let Some(resources) = container.resources.as_mut().filter(|_| served) {
                for quantities in [&mut resources.requests, &mut resources.limits].into_iter().flatten() {
                    quantities.remove(resource);
                }
            }
        }
    }
    effective_request(&pod).get(resource).copied().unwrap_or_default()
}

fn whole(amount: Option<Decimal>) -> i64 {
    amount.and_then(|amount| amount.floor().to_i64()).unwrap_or_default()
}
