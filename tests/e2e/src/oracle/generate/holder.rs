//! Claims that hold devices, in every state in which a claim may be.

use serde_json::{Value, json};

use super::device::Gpu;
use super::{Site, Workshop};
use crate::oracle::DELETED;

/// Keeps a claim, and is the scheduler's own.
const PROTECTION: &str = "resource.kubernetes.io/delete-protection";

impl Workshop {
    /// Lets claims hold some devices of a pool; the features that this brings.
    pub fn hold(&mut self, site: &mut Site, pool: &str, gpus: &[Gpu]) -> Vec<&'static str> {
        let before = site.features.clone();
        let busy = self.draw.pick(&[0, 10, 30, 30, 60, 100]);
        let mut held: Vec<String> = Vec::new();
        for gpu in gpus {
            let (whole, partitions) = (&gpu.devices[0], &gpu.devices[1..]);
            if whole["attributes"]["type"].is_null() {
                // The scheduler fails at one that is free.
                held.push(name(whole));
                continue;
            }
            if !self.draw.chance(busy) {
                continue;
            }
            if whole["allowMultipleAllocations"] == true {
                self.share(site, pool, whole);
            } else if partitions.is_empty() || self.draw.chance(40) {
                held.push(name(whole));
            } else {
                let some = self.draw.between(1, partitions.len());
                held.extend(partitions[..some].iter().map(name));
                if self.draw.chance(8) {
                    // As a driver leaves it that published its partitions anew.
                    site.has("counters below zero");
                    held.push(name(whole));
                }
            }
        }
        while !held.is_empty() {
            let together = if self.draw.chance(20) {
                self.draw.between(1, held.len())
            } else {
                1
            };
            let devices: Vec<String> = held.drain(..together).collect();
            self.claim(site, pool, &devices);
        }
        if self.draw.chance(12) {
            site.has("admin access");
            let devices: Vec<String> = gpus
                .iter()
                .take(self.draw.between(1, 3))
                .map(|gpu| name(&gpu.devices[0]))
                .collect();
            self.admin_claim(site, pool, &devices);
        }
        if self.draw.chance(6) {
            site.has("stale allocation");
            self.claim(site, pool, &["gpu-99".to_owned()]);
        }
        site.features.difference(&before).copied().collect()
    }

    /// A claim that holds devices as a whole.
    fn claim(&mut self, site: &mut Site, pool: &str, devices: &[String]) {
        let style = self
            .draw
            .pick(&["reserved", "reserved", "unreserved", "deleting", "prioritized"]);
        site.has(match style {
            "unreserved" => "unreserved claims",
            "deleting" => "claims being deleted",
            "prioritized" => "prioritized lists",
            _ if devices.len() > 1 => "claims of several devices",
            _ => "claims",
        });
        let name = self.number("claim", &site.name);
        // Tolerates everything, so that a NoExecute taint takes no device from a pod while we count.
        let tolerations = json!([{ "operator": "Exists" }]);
        let wants = json!({
            "deviceClassName": self.driver, "allocationMode": "ExactCount", "count": devices.len(), "tolerations": tolerations,
        });
        let (request, given) = if style == "prioritized" {
            let sub = |name: &str, count: usize| {
                let mut sub = wants.clone();
                sub["name"] = json!(name);
                sub["count"] = json!(count);
                sub
            };
            let list = [sub("many", 16), sub("some", devices.len())];
            (json!({ "name": "main", "firstAvailable": list }), "main/some")
        } else {
            (json!({ "name": "gpu", "exactly": wants }), "gpu")
        };
        let results: Vec<Value> = devices
            .iter()
            .map(|device| {
                json!({ "request": given, "driver": self.driver, "pool": pool, "device": device, "tolerations": tolerations })
            })
            .collect();
        let mut claim = claim(&name, &request, &results);
        if style != "unreserved" {
            self.reserve(site, &mut claim, &name);
        }
        if style == "deleting" {
            claim["metadata"]["annotations"] = json!({ DELETED: "true" });
        }
        self.objects.push(claim);
    }

    /// Takes shares of a device that many claims may have.
    fn share(&mut self, site: &mut Site, pool: &str, device: &Value) {
        for share in 0..self.draw.between(1, 2) {
            let name = self.number("share", &site.name);
            let request = json!({
                "name": "gpu",
                "exactly": {
                    "deviceClassName": self.driver, "allocationMode": "ExactCount", "count": 1,
                    "capacity": { "requests": { "memory": "20Gi" } },
                },
            });
            let result = json!({
                "request": "gpu", "driver": self.driver, "pool": pool, "device": device["name"],
                "shareID": format!("00000000-0000-4000-8000-{:012}", self.objects.len() * 2 + share),
                "consumedCapacity": { "memory": "20Gi" },
            });
            let mut claim = claim(&name, &request, &[result]);
            self.reserve(site, &mut claim, &name);
            self.objects.push(claim);
        }
    }

    /// A claim that looks at devices and takes none.
    fn admin_claim(&mut self, site: &mut Site, pool: &str, devices: &[String]) {
        let name = self.number("admin", &site.name);
        let request = json!({
            "name": "gpu",
            "exactly": {
                "deviceClassName": self.driver, "allocationMode": "ExactCount", "count": devices.len(), "adminAccess": true,
            },
        });
        let results: Vec<Value> = devices
            .iter()
            .map(|device| {
                json!({ "request": "gpu", "driver": self.driver, "pool": pool, "device": device, "adminAccess": true })
            })
            .collect();
        let mut claim = claim(&name, &request, &results);
        self.reserve(site, &mut claim, &name);
        self.objects.push(claim);
    }

    /// A claim on another driver's device of the same pool and device name.
    pub fn foreign_claim(&mut self, pool: &str, driver: &str) {
        let name = self.number("foreign", pool);
        let request = json!({
            "name": "nic", "exactly": { "deviceClassName": driver, "allocationMode": "ExactCount", "count": 1 },
        });
        let result = json!({ "request": "nic", "driver": driver, "pool": pool, "device": "gpu-0" });
        self.objects.push(claim(&name, &request, &[result]));
    }

    /// Reserves a claim for a pod on the node.
    fn reserve(&mut self, site: &Site, claim: &mut Value, claim_name: &str) {
        let pod = format!("{claim_name}-pod");
        claim["metadata"]["finalizers"] = json!([PROTECTION]);
        claim["status"]["reservedFor"] = json!([{ "resource": "pods", "name": pod, "uid": "" }]);
        let mut holder = Self::pod(&pod, &site.name, &json!({ "claims": [{ "name": "gpu" }] }));
        holder["spec"]["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimName": claim_name }]);
        self.objects.push(holder);
    }

    /// A name that nothing else of the cluster has.
    pub fn number(&self, what: &str, node: &str) -> String {
        format!("{node}-{what}-{}", self.objects.len())
    }
}

fn claim(name: &str, request: &Value, results: &[Value]) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": { "name": name },
        "spec": { "devices": { "requests": [request] } },
        "status": { "allocation": { "devices": { "results": results } } },
    })
}

fn name(device: &Value) -> String {
    device["name"].as_str().unwrap_or_default().to_owned()
}
