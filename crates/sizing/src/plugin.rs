//! GPUs that a device plugin gives out: one number in a node's allocatable, minus what pods ask for.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::naming::{Holder, Naming};
use super::taken::{Taken, TakenBy};
use crate::inventory::{Node, PodUse};

/// GPUs of a device plugin on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginGpus {
    /// GPUs of the node, healthy or not.
    pub total: i64,
    /// GPUs that no pod has requested.
    pub free: i64,
    /// GPUs that are not free, by what rules them out.
    pub taken: Vec<Taken>,
}

/// Counts the plugin's GPUs of a node and the pods that use them; none if it offers no such resource. Unhealthy GPUs are in the capacity,
/// but not allocatable.
pub fn count<'p>(
    node: &Node,
    resource: &str,
    users: impl FnOnce() -> Vec<&'p PodUse>,
    naming: &Naming,
) -> Option<PluginGpus> {
    let allocatable = whole(node.allocatable.get(resource));
    if allocatable <= 0 {
        return None;
    }
    let users = users();
    let used = users
        .iter()
        .fold(Decimal::ZERO, |sum, pod| sum.saturating_add(pod.requests.get(resource)));
    let used = used.ceil().to_i64().unwrap_or(i64::MAX);
    let total = allocatable.max(whole(node.capacity.get(resource)));
    let free = allocatable.saturating_sub(used).max(0);
    let names = users.iter().map(|pod| &*pod.name);
    let taken = [
        Taken::by(TakenBy::InUse, allocatable - free, (Holder::Pod, names), naming),
        Taken::by(TakenBy::Unhealthy, total - allocatable, (Holder::Pod, []), naming),
    ];
    Some(PluginGpus {
        total,
        free,
        taken: taken.into_iter().filter(|taken| taken.gpus > 0).collect(),
    })
}

/// The GPUs of a node whose plugin offers none of them, because all are unhealthy or the plugin is gone; `None` if
/// there were none.
pub fn unhealthy(node: &Node, resource: &str, naming: &Naming) -> Option<PluginGpus> {
    let total = Some(whole(node.capacity.get(resource))).filter(|total| *total > 0)?;
    Some(PluginGpus {
        total,
        free: 0,
        taken: vec![Taken::by(TakenBy::Unhealthy, total, (Holder::Pod, []), naming)],
    })
}

pub fn whole(amount: Decimal) -> i64 {
    amount.floor().to_i64().unwrap_or_default()
}
