//! GPUs that a device plugin gives out: one number in a node's allocatable, minus what pods ask for.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::inventory::{Node, PodUse};

/// GPUs of a device plugin on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginGpus {
    /// GPUs of the node, healthy or not.
    pub total: i64,
    /// GPUs that no pod asked for.
    pub free: i64,
}

/// Counts the plugin's GPUs of a node and its pods; none if it offers no such resource. Unhealthy GPUs are in the capacity,
/// but not allocatable.
pub fn count(node: &Node, resource: &str, pods: &[&PodUse]) -> Option<PluginGpus> {
    let allocatable = whole(node.allocatable.get(resource));
    if allocatable <= 0 {
        return None;
    }
    let used = pods
        .iter()
        .fold(Decimal::ZERO, |sum, pod| sum.saturating_add(pod.requests.get(resource)));
    let used = used.ceil().to_i64().unwrap_or(i64::MAX);
    Some(PluginGpus {
        total: allocatable.max(whole(node.capacity.get(resource))),
        free: allocatable.saturating_sub(used).max(0),
    })
}

fn whole(amount: Decimal) -> i64 {
    amount.floor().to_i64().unwrap_or_default()
}
