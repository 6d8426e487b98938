//! Devices of one node, as drivers publish them.

use serde_json::{Value, json};

use super::{Site, Workshop};

/// One GPU: the devices that stand for it, whole first, and its counters.
pub struct Gpu {
    pub devices: Vec<Value>,
    pub counters: Option<Value>,
}

/// Memory slices of a card that is partitionable.
const MEMORY_SLICES: usize = 4;

impl Workshop {
    /// The GPUs of a node.
    pub fn gpus(&mut self, site: &mut Site) -> Vec<Gpu> {
        let count = self.draw.rather_few(1, 8);
        let partitionable = self.draw.chance(18);
        let shares = self.draw.chance(8);
        let tainted = self.draw.chance(18);
        let odd = self.draw.chance(15);
        let bare = self.draw.chance(10);
        (0..count)
            .map(|index| {
                let mut whole = self.whole(site, index);
                if partitionable {
                    site.has("partitions and counters");
                    return self.partitionable(whole, index);
                }
                if shares && self.draw.chance(40) {
                    site.has("consumable capacity");
                    whole["allowMultipleAllocations"] = json!(true);
                } else if tainted && self.draw.chance(50) {
                    site.has("device taints");
                    whole["taints"] = json!([self.device_taint()]);
                } else if odd && self.draw.chance(30) {
                    site.has("devices of another type");
                    whole["attributes"]["type"]["string"] = json!(self.draw.pick(&["vfio", "mig"]));
                    whole["capacity"]["memory"]["value"] = json!("20Gi");
                } else if bare && self.draw.chance(30) {
                    site.has("devices in use without a type");
                    whole["attributes"].as_object_mut().map(|fields| fields.remove("type"));
                }
                Gpu {
                    devices: vec![whole],
                    counters: None,
                }
            })
            .collect()
    }

    /// A GPU that is not partitioned.
    pub fn whole(&mut self, site: &Site, index: usize) -> Value {
        json!({
            "name": format!("gpu-{index}"),
            "attributes": {
                "type": { "string": "gpu" },
                "uuid": { "string": format!("GPU-{}-{index}", site.name) },
                "productName": { "string": "NVIDIA H100 80GB HBM3" },
                "index": { "int": index },
                "healthy": { "bool": !self.draw.chance(10) },
                "driverVersion": { "version": self.draw.pick(&["580.82.7", "580.105.8", "565.57.1"]) },
                "resource.kubernetes.io/pciBusID": { "string": format!("0000:{index:02x}:00.0") },
            },
            "capacity": { "memory": { "value": "80Gi" } },
        })
    }

    /// A taint of a device, or of a rule.
    pub fn device_taint(&mut self) -> Value {
        let effect = self.draw.pick(&["NoSchedule", "NoExecute", "None"]);
        json!({ "key": "gpu.example/xid", "value": "79", "effect": effect })
    }

    /// A card and its partitions, which all draw on the card's counters.
    fn partitionable(&mut self, mut whole: Value, index: usize) -> Gpu {
        let set = format!("gpu-{index}-counters");
        let consumes = |slices: std::ops::Range<usize>| {
            let mut counters = json!({ "memory": { "value": format!("{}Gi", 20 * slices.len()) } });
            for slice in slices {
                counters[format!("slice-{slice}")] = json!({ "value": "1" });
            }
            json!([{ "counterSet": set, "counters": counters }])
        };
        whole["consumesCounters"] = consumes(0..MEMORY_SLICES);
        let all = whole["consumesCounters"][0]["counters"].clone();
        let uuid = whole["attributes"]["uuid"]["string"].clone();
        let width = self.draw.pick(&[1, 2]);
        let partitions = (0..MEMORY_SLICES).step_by(width).map(|start| {
            let mut partition = whole.clone();
            partition["name"] = json!(format!("gpu-{index}-mig-{width}-{start}"));
            partition["attributes"]["type"] = json!({ "string": "mig" });
            partition["attributes"]["parentUUID"] = json!({ "string": uuid });
            let fields = partition["attributes"].as_object_mut();
            fields.map(|fields| (fields.remove("uuid"), fields.remove("resource.kubernetes.io/pciBusID")));
            partition["capacity"]["memory"]["value"] = json!(format!("{}Gi", 20 * width));
            partition["consumesCounters"] = consumes(start..start + width);
            partition
        });
        let mut devices: Vec<Value> = partitions.collect();
        devices.insert(0, whole);
        Gpu {
            devices,
            counters: Some(json!({ "name": set, "counters": all })),
        }
    }
}
