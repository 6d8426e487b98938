//! The scheduler: a node for every pod, and free GPUs for every claim.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{World, condition, leaves, uid, whose};
use crate::api_server::ApiServer;
use crate::inventory::GPU_DRIVER;

/// A claim, and the GPUs that it gets.
type Given = (Arc<Value>, Vec<String>);

/// GPUs and claims, counted once for all pods of a step: 5,000 nodes have too many to count them for each pod.
struct Gpus {
    slices: HashMap<String, Vec<Arc<Value>>>,
    /// Node and device.
    held: HashSet<(String, String)>,
    /// By the uid of their owner.
    claims: HashMap<String, Vec<Arc<Value>>>,
}

impl Gpus {
    fn count(server: &ApiServer) -> Self {
        let (mut slices, mut claims, mut held) =
            (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new(), HashSet::new());
        for slice in server.shared("resourceslices") {
            slices.entry(text(&slice["spec"]["nodeName"])).or_default().push(slice);
        }
        for claim in server.shared("resourceclaims") {
            let results = claim["status"]["allocation"]["devices"]["results"].as_array();
            held.extend(results.into_iter().flatten().map(device));
            claims
                .entry(text(&claim["metadata"]["ownerReferences"][0]["uid"]))
                .or_default()
                .push(claim);
        }
        Self { slices, held, claims }
    }

    fn free(&self, node: &str) -> Vec<String> {
        let slices = self.slices.get(node).into_iter().flatten();
        let devices = slices.filter_map(|slice| slice["spec"]["devices"].as_array()).flatten();
        let names = devices.map(|device| text(&device["name"]));
        names
            .filter(|name| !self.held.contains(&(node.to_owned(), name.clone())))
            .collect()
    }

    fn claims_of(&self, pod: &Value) -> Vec<Arc<Value>> {
        self.claims.get(&uid(pod)).cloned().unwrap_or_default()
    }
}

impl World {
    pub(super) fn schedule(&mut self) {
        let mut pending = self.server.shared("pods");
        pending.retain(|pod| !pod["spec"]["nodeName"].is_string() && !leaves(pod));
        if pending.is_empty() {
            return;
        }
        let mut gpus = Gpus::count(&self.server);
        for pod in pending {
            let allocated = self.has_lasted(&uid(&pod), "unallocated", self.faults.allocates_after);
            match self
                .place(&pod, &gpus)
                .filter(|(_, given)| given.is_empty() || allocated)
            {
                Some((node, given)) => {
                    self.bind(&pod, &node, &given);
                    let devices = given.into_iter().flat_map(|(_, devices)| devices);
                    gpus.held.extend(devices.map(|device| (node.clone(), device)));
                }
                None => self.refuse(&pod),
            }
        }
    }

    /// A node with enough free GPUs for the pod's claims, and which of them each claim gets.
    fn place(&self, pod: &Value, gpus: &Gpus) -> Option<(String, Vec<Given>)> {
        let claims = gpus.claims_of(pod);
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
            let name = text(&node["metadata"]["name"]);
            let mut free = gpus.free(&name);
            let wanted: usize = claims.iter().map(|claim| count(claim)).sum();
            if free.len() < wanted {
                return None;
            }
            let give = |claim: &Arc<Value>| (claim.clone(), free.drain(..count(claim)).collect());
            let given: Vec<Given> = claims.iter().map(give).collect();
            Some((name, given))
        })
    }

    fn bind(&self, pod: &Value, node: &str, given: &[Given]) {
        for (claim, devices) in given {
            let result =
                |device: &String| json!({"request": "gpu", "driver": GPU_DRIVER, "pool": node, "device": device});
            let results: Vec<Value> = devices.iter().map(result).collect();
            let (namespace, name) = whose(claim);
            self.server.edit("resourceclaims", &namespace, &name, |claim| {
                claim["status"] = json!({
                    "allocation": {"devices": {"results": results}},
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

/// Number of devices that a claim requests.
fn count(claim: &Value) -> usize {
    let requests = claim["spec"]["devices"]["requests"].as_array();
    let count = |request: &Value| request["exactly"]["count"].as_u64().unwrap_or(1);
    let counts = requests.into_iter().flatten().map(count);
    counts.sum::<u64>().try_into().unwrap_or(usize::MAX)
}

/// The node that a pod names, if it names one.
fn pinned_to(pod: &Value) -> Option<String> {
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let field = &terms["nodeSelectorTerms"][0]["matchFields"][0];
    field["values"][0].as_str().map(str::to_owned)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn device(allocated: &Value) -> (String, String) {
    (text(&allocated["pool"]), text(&allocated["device"]))
}
