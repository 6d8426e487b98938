//! The scheduler: a node for every pod, and a free GPU for every claim.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{World, condition, is_owned_by, leaves, uid, whose};
use crate::inventory::GPU_DRIVER;

/// A claim, and the GPU that it gets.
type Given = (Arc<Value>, String);

impl World {
    pub(super) fn schedule(&mut self) {
        for pod in self.server.shared("pods") {
            if pod["spec"]["nodeName"].is_string() || leaves(&pod) {
                continue;
            }
            let allocated = self.has_lasted(&uid(&pod), "unallocated", self.faults.allocates_after);
            match self.place(&pod).filter(|(_, given)| given.is_empty() || allocated) {
                Some((node, given)) => self.bind(&pod, &node, &given),
                None => self.refuse(&pod),
            }
        }
    }

    /// A node with enough free GPUs for the pod's claims, and which of them each claim gets.
    fn place(&self, pod: &Value) -> Option<(String, Vec<Given>)> {
        let claims = self.claims_of(pod);
        if !claims.is_empty() && self.faults.no_allocation {
            return None;
        }
        let nodes = match pinned_to(pod) {
            Some(pinned) => self
                .server
                .get("nodes", "", &pinned)
                .map(Arc::new)
                .into_iter()
                .collect(),
            None => self.server.shared("nodes"),
        };
        let mut fit = nodes
            .iter()
            .filter(|node| condition(node, "Ready") == Some(true) && node["spec"]["unschedulable"] != true);
        fit.find_map(|node| {
            let name = node["metadata"]["name"].as_str()?.to_owned();
            let free = self.free_gpus(&name);
            (free.len() >= claims.len()).then(|| (name, claims.iter().cloned().zip(free).collect()))
        })
    }

    fn claims_of(&self, pod: &Value) -> Vec<Arc<Value>> {
        let mut claims = self.server.shared("resourceclaims");
        claims.retain(|claim| is_owned_by(claim, pod));
        claims
    }

    fn free_gpus(&self, node: &str) -> Vec<String> {
        let claims = self.server.shared("resourceclaims");
        let is_held = |device: &str| {
            let results = claims
                .iter()
                .filter_map(|claim| claim["status"]["allocation"]["devices"]["results"].as_array());
            results
                .flatten()
                .any(|result| result["pool"] == node && result["device"] == device)
        };
        let slices = self.server.shared("resourceslices");
        let of_node = slices.iter().filter(|slice| slice["spec"]["nodeName"] == node);
        let devices = of_node
            .filter_map(|slice| slice["spec"]["devices"].as_array())
            .flatten();
        let names = devices.filter_map(|device| device["name"].as_str());
        names.filter(|name| !is_held(name)).map(str::to_owned).collect()
    }

    fn bind(&self, pod: &Value, node: &str, given: &[(Arc<Value>, String)]) {
        for (claim, device) in given {
            let (namespace, name) = whose(claim);
            self.server.edit("resourceclaims", &namespace, &name, |claim| {
                claim["status"] = json!({
                    "allocation": {"devices": {"results": [
                        {"request": "gpu", "driver": GPU_DRIVER, "pool": node, "device": device},
                    ]}},
                    "reservedFor": [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}],
                });
            });
        }
        let (namespace, name) = whose(pod);
        self.server.edit("pods", &namespace, &name, |pod| {
            pod["spec"]["nodeName"] = node.into();
            pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}]);
        });
    }

    fn refuse(&self, pod: &Value) {
        if condition(pod, "PodScheduled").is_some() {
            return;
        }
        let (namespace, name) = whose(pod);
        let now = self.by_controllers();
        self.server.edit("pods", &namespace, &name, |pod| {
            pod["status"]["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/2 nodes are available: 2 cannot allocate all claims", "lastTransitionTime": now,
            }]);
        });
    }
}

/// The node that a pod names, if it names one.
fn pinned_to(pod: &Value) -> Option<String> {
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let field = &terms["nodeSelectorTerms"][0]["matchFields"][0];
    field["values"][0].as_str().map(str::to_owned)
}
