//! Nodes: what they offer, and what speaks against them.

use serde_json::{Value, json};

use super::{Site, Workshop};
use crate::oracle::NODE_LABEL;

/// How a node offers GPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    Devices,
    Plugin,
    Both,
    OnlyLabel,
    Nothing,
}

const OFFERS: [(Offer, u32); 4] = [
    (Offer::Plugin, 17),
    (Offer::Both, 4),
    (Offer::OnlyLabel, 3),
    (Offer::Nothing, 4),
];

impl Workshop {
    /// Makes a node with everything on it. Where nodes share devices, they have none of their own.
    pub fn site(&mut self, number: usize, shared: bool) -> Site {
        let mut site = Site {
            name: format!("{}-n{number}", self.id),
            ..Site::plain()
        };
        let offer = if shared { Offer::Nothing } else { self.offer() };
        let node = self.node(&mut site, offer, shared);
        self.objects.push(node);
        if matches!(offer, Offer::Devices | Offer::Both) {
            let gpus = self.gpus(&mut site);
            self.class_matters(&mut site);
            let pool = self.objects.len();
            self.publish(&mut site, &gpus);
            let pool = self.objects[pool]["spec"]["pool"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            self.hold(&mut site, &pool, &gpus);
            if offer == Offer::Devices {
                self.extended_pods(&mut site);
            }
        }
        if matches!(offer, Offer::Plugin | Offer::Both) {
            self.plugin_pods(&mut site);
        }
        if offer == Offer::Both {
            site.has("mixed allocation");
            let recorded = if self.question.is_explicit() {
                &mut site.excuses
            } else {
                &mut site.refusals
            };
            recorded.push("TwoLedgers");
        }
        self.other_driver(&mut site);
        self.neighbours(&mut site);
        if shared {
            self.class_matters(&mut site);
        }
        site
    }

    fn offer(&mut self) -> Offer {
        let mut draw = u32::try_from(self.draw.between(0, 99)).unwrap_or_default();
        for (offer, weight) in OFFERS {
            if draw < weight {
                return offer;
            }
            draw -= weight;
        }
        Offer::Devices
    }

    fn class_matters(&mut self, site: &mut Site) {
        site.has(self.class.feature());
        // A class of whole cards and partitions: no claim can ask for the one and not the other.
        let several_types = ["partitions and counters", "devices of another type"];
        site.excuses.extend(
            several_types
                .iter()
                .any(|kind| site.features.contains(kind))
                .then_some("Inseparable"),
        );
        site.excuses.extend(self.class.excuses());
    }

    fn node(&mut self, site: &mut Site, offer: Offer, shared: bool) -> Value {
        let tight = self.draw.chance(35);
        let (cpu, memory, pods) = if tight {
            site.has("tight node");
            (
                self.draw.pick(&["3", "6", "7500m", "12"]),
                self.draw.pick(&["9Gi", "20Gi", "40G"]),
                self.draw.pick(&["2", "3", "5", "8"]),
            )
        } else {
            ("192", "2Ti", "110")
        };
        let mut allocatable = json!({ "cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": if tight { "7Gi" } else { "1Ti" } });
        let mut capacity = allocatable.clone();
        if matches!(offer, Offer::Plugin | Offer::Both) {
            site.has("device plugin");
            allocatable[&self.resource] = json!(self.draw.between(1, 8).to_string());
            capacity[&self.resource] = json!("8");
        }
        let mut labels = json!({});
        if offer == Offer::Plugin {
            labels = self.discovered(site, &mut allocatable, &mut capacity);
        } else if offer != Offer::Both && self.draw.chance(15) {
            // A plugin that left, or whose GPUs are all unhealthy.
            allocatable[&self.resource] = json!("0");
            capacity[&self.resource] = json!("8");
        }
        let architecture = self.draw.pick(&["arm64", "amd64"]);
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": site.name,
                "labels": {
                    NODE_LABEL: site.name,
                    "kubernetes.io/hostname": format!("host-of-{}", site.name),
                    "kubernetes.io/arch": architecture,
                },
                "annotations": { "kwok.x-k8s.io/node": "fake" },
            },
            "spec": {},
            "status": {
                "allocatable": allocatable, "capacity": capacity, "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
            },
        });
        for (key, value) in labels.as_object().into_iter().flatten() {
            node["metadata"]["labels"][key] = value.clone();
        }
        if offer == Offer::OnlyLabel {
            site.has("labelled only");
            node["metadata"]["labels"]["nvidia.com/gpu.present"] = json!("true");
        }
        self.trouble(site, &mut node);
        let not_selected = self.question.selective && architecture == "amd64";
        if not_selected {
            site.has("node not selected");
            site.refusals.push("LabelMissing");
        }
        match offer {
            Offer::Plugin if !self.question.takes_plugins() => site.refusals.push("OnlyByPlugin"),
            Offer::Devices if !self.question.takes_claims() => site.refusals.push("OnlyByClaims"),
            Offer::Nothing if shared && !self.question.takes_claims() => site.refusals.push("OnlyByClaims"),
            _ => {}
        }
        node
    }

    /// Labels of a plugin's node, as NVIDIA's feature discovery, GKE and Karpenter write them; where the plugin gives one
    /// GPU to several pods, what it then offers.
    fn discovered(&mut self, site: &mut Site, allocatable: &mut Value, capacity: &mut Value) -> Value {
        let resource = self.resource.clone();
        let label = |what: &str| format!("{resource}.{what}");
        let strategy = format!("{}/mig.strategy", resource.split('/').next().unwrap_or_default());
        let mut offers = |resource: &str, amount: &str| {
            for amounts in [&mut *allocatable, &mut *capacity] {
                amounts[resource] = json!(amount);
            }
        };
        let labels = match self.draw.between(0, 15) {
            0 => {
                offers(&resource, "32");
                let strategy = self.draw.pick(&["time-slicing", "mps"]);
                json!({ label("replicas"): "4", label("sharing-strategy"): strategy, label("product"): "H100-SHARED" })
            }
            1 => {
                offers(&resource, "0");
                offers(&label("shared"), "32");
                json!({ label("replicas"): "4", label("sharing-strategy"): "time-slicing", label("product"): "H100" })
            }
            2 => {
                offers(&resource, "56");
                json!({ label("replicas"): "1", label("product"): "H100-MIG-1g.10gb", strategy: "single" })
            }
            3 => {
                offers(&resource, "32");
                json!({ "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing" })
            }
            4 => {
                offers(&resource, "32");
                json!({ "karpenter.k8s.aws/instance-gpu-count": "8" })
            }
            5..=8 => {
                site.has("device plugin: labels of whole GPUs");
                let whole = json!({
                    label("replicas"): "1", label("sharing-strategy"): "none", label("product"): "H100",
                    strategy: self.draw.pick(&["none", "single", "mixed"]), "karpenter.k8s.aws/instance-gpu-count": "8",
                });
                return whole;
            }
            _ => return json!({}),
        };
        site.has("device plugin: shared GPUs");
        site.refusals.push("SharedGpus");
        labels
    }

    /// Cordons, conditions and taints.
    fn trouble(&mut self, site: &mut Site, node: &mut Value) {
        let bears_all = self.question.tolerates_everything();
        match self.draw.between(0, 19) {
            0 => {
                site.has("cordoned node");
                node["spec"]["unschedulable"] = json!(true);
                site.refusals.extend(bears_all.then_some("Cordoned"));
            }
            1 => {
                site.has("node not ready");
                // No kwok: it would make the node ready.
                node["metadata"]
                    .as_object_mut()
                    .map(|metadata| metadata.remove("annotations"));
                node["status"]["conditions"][0]["status"] = json!("False");
                site.refusals.extend(bears_all.then_some("NotReady"));
            }
            _ => {}
        }
        let taints = [
            json!({ "key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule" }),
            json!({ "key": "dedicated", "value": "inference", "effect": "NoExecute" }),
            json!({ "key": "dedicated", "value": "training", "effect": "NoSchedule" }),
            json!({ "key": "soft", "effect": "PreferNoSchedule" }),
            json!({ "key": "node.kubernetes.io/maintenance", "effect": "NoSchedule" }),
            json!({ "key": "sku", "value": "gpu", "effect": "NoSchedule" }),
            json!({ "key": "sku", "value": "cpu", "effect": "NoSchedule" }),
            json!({ "key": self.resource, "effect": "NoSchedule" }),
            json!({ "key": "ToBeDeletedByClusterAutoscaler", "value": "1732200000", "effect": "NoSchedule" }),
            json!({ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }),
        ];
        let mut some: Vec<Value> = taints.into_iter().filter(|_| self.draw.chance(6)).collect();
        // The API server refuses two of one key and effect.
        some.dedup_by_key(|taint| (taint["key"].clone(), taint["effect"].clone()));
        if !some.is_empty() {
            site.has("node taints");
            node["spec"]["taints"] = json!(some);
        }
    }
}

impl Site {
    /// A node of which nothing is known yet.
    pub fn plain() -> Self {
        Self {
            name: String::new(),
            features: [].into(),
            refusals: Vec::new(),
            excuses: Vec::new(),
        }
    }
}
