//! The part of an inventory that decides on one node.

use std::collections::HashSet;

use super::{ClaimUse, Inventory, Slice};
use crate::Seen;

impl Inventory {
    /// Reduces the inventory to everything that decides on this node. It keeps all slices of a pool that the node can
    /// use, because a pool counts only if it is complete. It keeps all claims of such a pool, because devices of
    /// other nodes share its counters.
    #[must_use]
    pub fn for_node(&self, node: &str) -> Self {
        let pools: Option<HashSet<(&str, &str)>> = self.slices.present().map(|slices| {
            let usable = slices.iter().filter(|slice| may_serve(slice, node));
            usable.map(|slice| (&*slice.driver, &*slice.pool)).collect()
        });
        // Where slices cannot be read, each may be one of the node.
        let has = |driver: &str, pool: &str| pools.as_ref().is_none_or(|pools| pools.contains(&(driver, pool)));
        let holds_here = |claim: &ClaimUse| claim.devices.iter().any(|device| has(&device.driver, &device.pool));
        Self {
            device_class: self.device_class.clone(),
            slices: only(&self.slices, |slice| has(&slice.driver, &slice.pool)),
            taint_rules: self.taint_rules.clone(),
            nodes: only(&self.nodes, |known| &*known.name == node),
            pods: only(&self.pods, |pod| &*pod.node == node),
            quotas: self.quotas.clone(),
            limit_ranges: self.limit_ranges.clone(),
            cache_volume: self.cache_volume.clone(),
            promises: only(&self.promises, holds_here),
            claims: only(&self.claims, holds_here),
            naming: self.naming.clone(),
        }
    }
}

/// Returns true if a device of a slice may serve a node, because the slice does not belong to another node.
fn may_serve(slice: &Slice, node: &str) -> bool {
    slice.target_per_device || slice.target.node_name.as_deref().is_none_or(|name| name == node)
}

fn only<T: Clone>(all: &Seen<Vec<T>>, keep: impl Fn(&T) -> bool) -> Seen<Vec<T>> {
    all.map(|all| all.iter().filter(|one| keep(one)).cloned().collect())
}
