use std::cmp::Ordering;
use std::sync::Arc;

use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{self, ResourceSlice};
use perfval_api::quantity;
use rust_decimal::Decimal;

use super::attribute::Attribute;
use super::interned::{Interned, NamedAttribute};

/// A `ResourceSlice`: devices of one pool, or the counters that they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Its own name, which decides on the order in which the scheduler walks a pool.
    pub name: Box<str>,
    /// The driver.
    pub driver: Arc<str>,
    /// Name of the pool.
    pub pool: Arc<str>,
    /// Generation of the pool that this slice belongs to.
    pub generation: i64,
    /// Slices that the driver announces for the pool.
    pub slice_count: i64,
    /// The nodes that can use the devices.
    pub target: SliceTarget,
    /// True if every device has a target of its own instead.
    pub target_per_device: bool,
    /// The devices.
    pub devices: Box<[Device]>,
    /// Counters from which devices of the pool draw.
    pub shared_counters: Box<[Consumption]>,
}

/// Nodes that can use a device: exactly one of the three is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceTarget {
    /// All of them.
    pub all_nodes: bool,
    /// The one of this name.
    pub node_name: Option<Arc<str>>,
    /// Those that match.
    pub node_selector: Option<Box<NodeSelector>>,
}

/// A device.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Its name in the pool.
    pub name: Arc<str>,
    /// Its attributes, sorted by name.
    pub attributes: Box<[Arc<NamedAttribute>]>,
    /// Its capacities as quantities, sorted by name.
    pub capacity: Box<[(Arc<str>, Arc<str>)]>,
    /// Taints of its slice; `DeviceTaintRule`s are apart.
    pub taints: Box<[Taint]>,
    /// Amounts that it takes from the pool's counters.
    pub consumes: Box<[Consumption]>,
    /// True if many claims can have it at once (`allowMultipleAllocations`).
    pub shareable: bool,
    /// True if it is attached only after binding (`bindingConditions`).
    pub binds_later: bool,
    /// Its own target, in a slice that leaves it to the devices.
    pub target: Option<Box<SliceTarget>>,
}

/// A taint of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: Arc<str>,
    /// Its value.
    pub value: Option<Arc<str>>,
    /// `NoSchedule`, `NoExecute`, `None` or something newer.
    pub effect: Arc<str>,
}

/// Counters of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumption {
    /// Name of the set.
    pub set: Arc<str>,
    /// The counters with their amounts, sorted by name. An amount is negative if its text is no quantity.
    pub counters: Box<[(Arc<str>, Decimal)]>,
}

impl Slice {
    /// Reduces a slice to sizing's needs.
    pub fn read(slice: &ResourceSlice, interned: &mut Interned) -> Self {
        let spec = &slice.spec;
        let counters = spec.shared_counters.iter().flatten();
        let mut read = Self {
            name: slice.metadata.name.as_deref().unwrap_or_default().into(),
            driver: interned.share(&spec.driver),
            pool: interned.share(&spec.pool.name),
            generation: spec.pool.generation,
            slice_count: spec.pool.resource_slice_count,
            target: SliceTarget {
                all_nodes: spec.all_nodes == Some(true),
                node_name: spec.node_name.as_deref().map(|name| interned.share(name)),
                node_selector: spec.node_selector.clone().map(Box::new),
            },
            target_per_device: spec.per_device_node_selection == Some(true),
            shared_counters: counters
                .map(|set| Consumption::read(&set.name, &set.counters, interned))
                .collect(),
            devices: spec
                .devices
                .iter()
                .flatten()
                .map(|device| Device::read(device, interned))
                .collect(),
        };
        read.keep_counters_apart(interned);
        read
    }

    /// Renames the counter sets of a slice that has devices too after the slice. Kubernetes 1.34 allows both in one
    /// slice, and such a set belongs to that slice alone; from 1.35 on a set belongs to the pool, and its slice has
    /// no devices.
    fn keep_counters_apart(&mut self, interned: &mut Interned) {
        if self.devices.is_empty() {
            return;
        }
        let own: Vec<Arc<str>> = self.shared_counters.iter().map(|set| set.set.clone()).collect();
        let consumed = self.devices.iter_mut().flat_map(|device| &mut device.consumes);
        for set in self.shared_counters.iter_mut().chain(consumed) {
            if own.contains(&set.set) {
                set.set = interned.share(&format!("{}/{}", self.name, set.set));
            }
        }
    }
}

impl Device {
    /// Reduces a device to sizing's needs.
    pub fn read(device: &v1::Device, interned: &mut Interned) -> Self {
        let attributes = device.attributes.iter().flatten();
        let capacity = device.capacity.iter().flatten();
        let consumed = device.consumes_counters.iter().flatten();
        let taints = device.taints.iter().flatten();
        let target = SliceTarget {
            all_nodes: device.all_nodes == Some(true),
            node_name: device.node_name.as_deref().map(|name| interned.share(name)),
            node_selector: device.node_selector.clone().map(Box::new),
        };
        Self {
            name: interned.share(&device.name),
            attributes: attributes
                .map(|(name, value)| {
                    let value = Attribute::read(value, interned.texts());
                    interned.share_attribute(name, value)
                })
                .collect(),
            capacity: capacity
                .map(|(name, amount)| (interned.share(name), interned.share(&amount.value.0)))
                .collect(),
            taints: taints
                .map(|taint| Taint {
                    key: interned.share(&taint.key),
                    value: taint.value.as_deref().map(|value| interned.share(value)),
                    effect: interned.share(&taint.effect),
                })
                .collect(),
            consumes: consumed
                .map(|consumed| Consumption::read(&consumed.counter_set, &consumed.counters, interned))
                .collect(),
            shareable: device.allow_multiple_allocations == Some(true),
            binds_later: device
                .binding_conditions
                .as_ref()
                .is_some_and(|conditions| !conditions.is_empty()),
            target: (target != SliceTarget::default()).then(|| Box::new(target)),
        }
    }

    /// An attribute by the name that the slice gives it.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.find(|known| known.cmp(name))
    }

    /// An attribute by its name in a domain. The function allocates no text, because it runs for every GPU of a
    /// cluster.
    pub fn attribute_of(&self, domain: &str, name: &str) -> Option<&Attribute> {
        let qualified = || domain.bytes().chain([b'/']).chain(name.bytes());
        self.find(|known| known.bytes().cmp(qualified()))
    }

    fn find(&self, order: impl Fn(&str) -> Ordering) -> Option<&Attribute> {
        let index = self.attributes.binary_search_by(|attribute| order(&attribute.0)).ok()?;
        Some(&self.attributes[index].1)
    }
}

impl Consumption {
    fn read(set: &str, counters: &std::collections::BTreeMap<String, v1::Counter>, interned: &mut Interned) -> Self {
        let amount = |text: &str| quantity::parse(text).unwrap_or(Decimal::NEGATIVE_ONE);
        Self {
            set: interned.share(set),
            counters: counters
                .iter()
                .map(|(name, counter)| (interned.share(name), amount(&counter.value.0)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn an_attribute_is_found_by_its_name_and_by_its_domain() {
        let device = from_value(json!({
            "name": "gpu-0",
            "attributes": {
                "gpu.example/uuid": { "string": "own" },
                "index": { "int": 1 },
                "resource.kubernetes.io/pciBusID": { "string": "0000:1a:00.0" },
            },
        }))
        .expect("a device");
        let device = Device::read(&device, &mut Interned::default());
        let text = |found: Option<&Attribute>| found.and_then(Attribute::string).map(str::to_owned);
        assert_eq!(text(device.attribute_of("gpu.example", "uuid")).as_deref(), Some("own"));
        assert_eq!(text(device.attribute("gpu.example/uuid")).as_deref(), Some("own"));
        assert!(device.attribute("index").is_some());
        let absent = [
            ("gpu.example", "index"),
            ("other.example", "uuid"),
            ("gpu.example/uuid", ""),
        ];
        assert!(
            absent
                .iter()
                .all(|(domain, name)| device.attribute_of(domain, name).is_none())
        );
        assert!(device.attribute("uuid").is_none());
    }
}
