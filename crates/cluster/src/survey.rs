//! One look at the cluster for all policies.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use k8s_openapi::api::resource::v1::DeviceClass;
use perfval_api::PerfValidationSpec;
use perfval_sizing::inventory::{CacheVolume, Inventory, OfRun};
use perfval_sizing::{Naming, Seen};

use crate::Cluster;
use crate::followed::LookTurn;

/// Quotas are read when a validation gets its GPUs.
static NO_QUOTAS: Seen<Vec<ResourceQuota>> = Seen::Present(Vec::new());
static NO_LIMITS: Seen<Vec<LimitRange>> = Seen::Present(Vec::new());
static NO_VOLUME: Seen<CacheVolume> = Seen::Absent;
static NAMING: Naming = Naming::All;

/// Inventory of the cluster with the device classes of some specs.
pub struct Survey {
    classes: BTreeMap<String, Seen<DeviceClass>>,
    turn: LookTurn,
}

impl Survey {
    /// Returns the inventory.
    pub fn inventory(&self) -> &Inventory {
        self.turn.inventory()
    }

    /// Reads of sizing for a spec that was named before; `None` for another one.
    pub fn for_spec(&self, spec: &PerfValidationSpec) -> Option<OfRun<'_>> {
        Some(OfRun {
            device_class: self.classes.get(&spec.placement.device_class_name)?,
            quotas: &NO_QUOTAS,
            limit_ranges: &NO_LIMITS,
            cache_volume: &NO_VOLUME,
            naming: &NAMING,
        })
    }
}

impl Cluster {
    /// Reads the inventory and the device classes of these specs. It waits while another look holds the inventory.
    pub async fn survey(&self, specs: &[&PerfValidationSpec]) -> Survey {
        let names: BTreeSet<&str> = specs
            .iter()
            .map(|spec| spec.placement.device_class_name.as_str())
            .collect();
        let (classes, turn) = Box::pin(self.counted(self.classes(&names))).await;
        Survey { classes, turn }
    }
}
