//! Pools: how devices are spread over slices, generations and nodes.

use serde_json::{Value, json};

use super::device::Gpu;
use super::{Site, Workshop};
use crate::oracle::NODE_LABEL;

/// Field of a slice, and its devices or counters.
type Published = (&'static str, Vec<Value>);

impl Workshop {
    /// Publishes the GPUs of a node in a pool of its own.
    pub fn publish(&mut self, site: &mut Site, gpus: &[Gpu]) {
        let target = if self.draw.chance(12) {
            site.has("slices by node selector");
            json!({ "nodeSelector": by_label(NODE_LABEL, &[&site.name]) })
        } else if self.draw.chance(8) {
            site.has("per-device node selection");
            json!({ "perDeviceNodeSelection": true })
        } else {
            json!({ "nodeName": site.name })
        };
        let mut devices: Vec<Value> = gpus.iter().flat_map(|gpu| gpu.devices.clone()).collect();
        if target["perDeviceNodeSelection"] == true {
            for device in &mut devices {
                device["nodeName"] = json!(site.name);
            }
        }
        let counters: Vec<Value> = gpus.iter().filter_map(|gpu| gpu.counters.clone()).collect();
        // The driver's own order is that of a map.
        self.draw.shuffle(&mut devices);
        let pool = if self.draw.chance(80) {
            site.name.clone()
        } else {
            format!("{}-pool", site.name)
        };
        self.pool(site, &pool, &target, &devices, counters);
    }

    /// Writes the slices of a pool.
    fn pool(&mut self, site: &mut Site, pool: &str, target: &Value, devices: &[Value], counters: Vec<Value>) {
        let parts = if self.draw.chance(25) {
            self.draw.between(2, 3)
        } else {
            1
        };
        if parts > 1 {
            site.has("several slices");
        }
        let per_slice = devices.len().div_ceil(parts).max(1);
        let mut slices: Vec<Published> = devices
            .chunks(per_slice)
            .map(|part| ("devices", part.to_vec()))
            .collect();
        if !counters.is_empty() {
            slices.insert(0, ("sharedCounters", counters));
        }
        let generation = self.draw.pick(&[1, 1, 1, 2, 7]);
        let mut announced = slices.len();
        if self.draw.chance(5) {
            site.has("incomplete pool");
            site.refusals.push("PoolIncomplete");
            announced += 1;
        } else if slices.len() > 1 && self.draw.chance(6) {
            Self::break_pool(site, &mut slices);
        }
        if generation > 1 && self.draw.chance(70) {
            site.has("slices of an earlier generation");
            let mut stale = devices.to_vec();
            for (index, device) in stale.iter_mut().enumerate() {
                device["name"] = json!(format!("old-{index}"));
                device.as_object_mut().map(|device| device.remove("consumesCounters"));
            }
            self.slice(pool, target, (generation - 1, 1), 90, &("devices", stale));
        }
        let own_node = json!({ "nodeName": site.name });
        for (number, slice) in slices.iter().enumerate() {
            // Counters have no node of their own.
            let per_device = slice.0 == "sharedCounters" && target["perDeviceNodeSelection"] == true;
            let target = if per_device { &own_node } else { target };
            self.slice(pool, target, (generation, announced), number, slice);
        }
    }

    /// Two devices of one name in different slices: no scheduler uses such a pool.
    fn break_pool(site: &mut Site, slices: &mut [Published]) {
        let named: Vec<usize> = (0..slices.len())
            .filter(|index| slices[*index].0 == "devices")
            .collect();
        if let [first, second, ..] = named[..] {
            site.has("invalid pool");
            site.refusals.push("PoolInvalid");
            slices[second].1[0]["name"] = slices[first].1[0]["name"].clone();
        }
    }

    fn slice(
        &mut self,
        pool: &str,
        target: &Value,
        (generation, announced): (usize, usize),
        number: usize,
        (field, items): &Published,
    ) {
        let driver = &self.driver;
        let mut slice = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": { "name": format!("{number:05}-{driver}-{pool}") },
            "spec": {
                "driver": driver,
                "pool": { "name": pool, "generation": generation, "resourceSliceCount": announced },
                *field: items,
            },
        });
        merge(&mut slice["spec"], target);
        self.objects.push(slice);
    }

    /// Devices that several nodes share, and no node's own.
    pub fn fabric(&mut self, sites: &mut [Site]) {
        let nodes: Vec<String> = sites.iter().map(|site| site.name.clone()).collect();
        let reach = self.draw.between(0, 2);
        let count = self.draw.between(1, 6);
        let some = self.draw.between(1, nodes.len());
        let within: Vec<&str> = nodes[..some].iter().map(String::as_str).collect();
        let (target, reached) = match reach {
            0 => (json!({ "allNodes": true }), nodes.len()),
            1 => (json!({ "nodeSelector": by_label(NODE_LABEL, &within) }), some),
            _ => (json!({ "perDeviceNodeSelection": true }), nodes.len()),
        };
        for site in &mut sites[..reached] {
            site.has(
                [
                    "devices of all nodes",
                    "slices by node selector",
                    "per-device node selection",
                ][reach],
            );
        }
        let maker = Site {
            name: format!("{}-fabric", self.id),
            ..Site::plain()
        };
        let devices: Vec<Value> = (0..count)
            .map(|index| {
                let mut device = self.whole(&maker, 100 + index);
                if reach == 2 {
                    let to = match self.draw.between(0, 2) {
                        0 => json!({ "nodeName": nodes[self.draw.between(0, nodes.len() - 1)] }),
                        1 => json!({ "nodeSelector": by_label(NODE_LABEL, &within) }),
                        _ => json!({ "allNodes": true }),
                    };
                    merge(&mut device, &to);
                }
                device
            })
            .collect();
        let gpus: Vec<Gpu> = devices
            .iter()
            .map(|device| Gpu {
                devices: vec![device.clone()],
                counters: None,
            })
            .collect();
        let held = self.hold(&mut sites[0], &maker.name, &gpus);
        for site in &mut sites[1..] {
            site.features.extend(held.iter().copied());
        }
        self.slice(&maker.name, &target, (1, 1), 0, &("devices", devices));
    }

    /// Rules that taint devices without touching slices; whether one of them is for the devices of every cluster.
    pub fn taint_rules(&mut self, sites: &mut [Site]) -> bool {
        if !self.draw.chance(20) {
            return false;
        }
        let mut of_everything = false;
        for number in 0..self.draw.between(1, 2) {
            let index = self.draw.between(0, sites.len() - 1);
            let pool = sites[index].name.clone();
            let device = format!("gpu-{}", self.draw.between(0, 3));
            let (selector, of_all) = match self.draw.between(0, 4) {
                4 => {
                    of_everything = true;
                    (Value::Null, true)
                }
                0 if sites.len() < 4 => (json!({ "driver": self.driver }), true),
                0 | 1 => (json!({ "driver": self.driver, "pool": pool }), false),
                2 => (json!({ "pool": pool, "device": device }), false),
                _ => (json!({ "driver": self.driver, "device": device }), true),
            };
            let reached = if of_all {
                &mut sites[..]
            } else {
                &mut sites[index..=index]
            };
            for site in reached {
                site.has("DeviceTaintRules");
                if selector.is_null() {
                    site.has("DeviceTaintRules without a selector");
                }
            }
            let rule = json!({
                "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule",
                "metadata": { "name": format!("{}-rule-{number}", self.id) },
                "spec": { "deviceSelector": selector, "taint": self.device_taint() },
            });
            self.objects.push(rule);
        }
        of_everything
    }

    /// Another driver's devices on the node, in a pool of the same name.
    pub fn other_driver(&mut self, site: &mut Site) {
        if !self.draw.chance(15) {
            return;
        }
        site.has("other drivers");
        let name = self
            .draw
            .pick(&["nic.maker", "gpudirect-nic.maker", "gpu.other", "nic"]);
        if name.contains("gpu") {
            site.has("other drivers with gpu in the name");
        }
        let driver = format!("{name}.{}.example", self.id);
        let incomplete = usize::from(self.draw.chance(20));
        let devices: Vec<Value> = (0..self.draw.between(1, 3))
            .map(|index| json!({ "name": format!("gpu-{index}"), "attributes": { "type": { "string": "gpu" } } }))
            .collect();
        self.objects.push(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": { "name": format!("00000-{driver}-{}", site.name) },
            "spec": {
                "driver": driver, "nodeName": site.name, "devices": devices,
                "pool": { "name": site.name, "generation": 1, "resourceSliceCount": 1 + incomplete },
            },
        }));
        if self.draw.chance(50) {
            self.foreign_claim(&site.name, &driver);
        }
    }
}

/// A node selector for some values of a label.
pub fn by_label(key: &str, values: &[&str]) -> Value {
    json!({ "nodeSelectorTerms": [{ "matchExpressions": [{ "key": key, "operator": "In", "values": values }] }] })
}

fn merge(into: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        into[name] = value.clone();
    }
}
