//! The parts of a cluster that sizing reads, reduced to what it counts.
//!
//! A cluster of 5,000 GPU nodes lists half a gigabyte of JSON. Every page of a list is reduced at once, and repeated
//! texts (nodes, drivers, attribute names) are held once.

mod amounts;
mod attribute;
mod claim;
mod dump;
mod for_node;
mod interned;
mod node;
mod pod;
mod slice;
mod texts;
mod volume;

use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use k8s_openapi::api::resource::v1::DeviceClass;

pub use amounts::Amounts;
pub use attribute::Attribute;
pub use claim::{ClaimUse, HeldDevice};
pub use dump::{Dump, DumpError, Saved};
pub use interned::{Interned, NamedAttribute};
pub use node::Node;
pub use pod::PodUse;
pub use slice::{Consumption, Device, Slice, SliceTarget, Taint};
pub use texts::Texts;
pub use volume::CacheVolume;

use crate::{Naming, Seen};

/// Everything that sizing counts. If its kinds are listed and not watched, holders are never older than devices: pods and promises
/// are read after all else, claims last. Watches have no common order.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Our `DeviceClass`; absent: "no DRA here" or "half installed".
    pub device_class: Seen<DeviceClass>,
    /// `ResourceSlices` of all drivers; absent: the API is not served.
    pub slices: Seen<Vec<Slice>>,
    /// `DeviceTaintRules` as raw JSON of any version; absent: the kind is not served, so there are none.
    pub taint_rules: Seen<Vec<serde_json::Value>>,
    /// Nodes.
    pub nodes: Seen<Vec<Node>>,
    /// Pods of all namespaces that take room on a node.
    pub pods: Seen<Vec<PodUse>>,
    /// `ResourceQuotas` of the run's namespace.
    pub quotas: Seen<Vec<ResourceQuota>>,
    /// `LimitRanges` of the run's namespace.
    pub limit_ranges: Seen<Vec<LimitRange>>,
    /// The volume of the run's model cache; absent: there is none yet, or every node can reach it.
    pub cache_volume: Seen<CacheVolume>,
    /// Devices that KAI's scheduler has promised to pods and not yet written into their claims; absent: KAI is not there.
    pub promises: Seen<Vec<ClaimUse>>,
    /// `ResourceClaims` of all namespaces that hold devices.
    pub claims: Seen<Vec<ClaimUse>>,
    /// Rule for the names of these pods and claims in messages.
    pub naming: Naming,
}

/// Reads for one run alone; everything else in an [`Inventory`] is the same for all runs.
#[derive(Clone, Copy, Debug)]
pub struct OfRun<'a> {
    /// The run's `DeviceClass`.
    pub device_class: &'a Seen<DeviceClass>,
    /// `ResourceQuotas` of its namespace.
    pub quotas: &'a Seen<Vec<ResourceQuota>>,
    /// `LimitRanges` of its namespace.
    pub limit_ranges: &'a Seen<Vec<LimitRange>>,
    /// The volume of its model cache.
    pub cache_volume: &'a Seen<CacheVolume>,
    /// Rule for the names of pods, claims and runs in its messages.
    pub naming: &'a Naming,
}

impl Inventory {
    /// The part that was read for one run.
    pub fn for_run(&self) -> OfRun<'_> {
        OfRun {
            device_class: &self.device_class,
            quotas: &self.quotas,
            limit_ranges: &self.limit_ranges,
            cache_volume: &self.cache_volume,
            naming: &self.naming,
        }
    }
}
