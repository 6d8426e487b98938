//! What a random cluster is asked for: the part of a `PerfValidation` that sizing reads.

use serde_json::{Value, json};

use crate::draw::Draw;

/// The question.
pub struct Question {
    driver: String,
    resource: String,
    allocation: &'static str,
    /// Tolerations of the spec; none: the node's own taints.
    pub tolerations: Value,
    /// Taints of devices that the spec bears.
    pub device_tolerations: Value,
    /// True if only arm64 nodes are wanted.
    pub selective: bool,
    worker: Value,
    frontend: &'static str,
    trial: &'static str,
    trial_cpu: &'static str,
}

impl Question {
    pub fn draw(draw: &mut Draw, driver: &str, resource: &str) -> Self {
        let workers = [
            json!({}),
            json!({ "requests": { "cpu": "2", "memory": "8Gi" } }),
            json!({ "requests": { "cpu": "500m" }, "limits": { "memory": "16Gi" } }),
            json!({ "limits": { "cpu": "1500m", "memory": "1G", "ephemeral-storage": "2Gi" } }),
            json!({ "requests": { "cpu": "3" }, "limits": { "cpu": "6" } }),
        ];
        let tolerations = [
            json!([]),
            json!([]),
            json!([{ "key": "nvidia.com/gpu", "operator": "Exists" }]),
            json!([{ "key": "dedicated", "value": "inference", "effect": "NoExecute" }, { "key": "nvidia.com/gpu", "operator": "Exists" }]),
            json!([{ "operator": "Exists" }]),
        ];
        Self {
            driver: driver.to_owned(),
            resource: resource.to_owned(),
            allocation: draw.pick(&["Auto", "Auto", "Auto", "Auto", "Auto", "Auto", "DRA", "DevicePlugin"]),
            tolerations: tolerations[draw.between(0, tolerations.len() - 1)].clone(),
            device_tolerations: if draw.chance(20) {
                draw.pick(&[every_taint as fn() -> Value, one_effect])()
            } else {
                json!([])
            },
            selective: draw.chance(15),
            worker: workers[draw.between(0, workers.len() - 1)].clone(),
            frontend: draw.pick(&["WorkloadNode", "WorkloadNode", "Anywhere"]),
            trial: draw.pick(&["WorkloadNode", "Anywhere"]),
            trial_cpu: draw.pick(&["1", "250m", "4"]),
        }
    }

    /// Whether its pods bear anything at all.
    pub fn tolerates_everything(&self) -> bool {
        self.tolerations[0] == json!({ "operator": "Exists" })
    }

    /// Whether it says how GPUs are asked for.
    pub fn is_explicit(&self) -> bool {
        self.allocation != "Auto"
    }

    /// Whether a node's GPUs may be asked for as an extended resource.
    pub fn takes_plugins(&self) -> bool {
        self.allocation != "DRA"
    }

    /// Whether a node's GPUs may be asked for by claims.
    pub fn takes_claims(&self) -> bool {
        self.allocation != "DevicePlugin"
    }

    /// The `spec`.
    pub fn spec(&self) -> Value {
        let selector = if self.selective {
            json!({ "kubernetes.io/arch": "arm64" })
        } else {
            json!({})
        };
        json!({
            "model": { "name": "lab/tiny-qwen3" },
            "workload": { "dynamo": {
                "image": "localhost/dynamo-lab:oracle",
                "worker": { "resources": self.worker },
                "frontend": { "placement": self.frontend },
            } },
            "placement": {
                "deviceClassName": self.driver,
                "resourceName": self.resource,
                "allocation": self.allocation,
                "tolerations": self.tolerations,
                "deviceTolerations": self.device_tolerations,
                "nodeSelector": selector,
            },
            "benchmark": {
                "image": "localhost/dynamo-lab:oracle",
                "placement": self.trial,
                "resources": { "requests": { "cpu": self.trial_cpu, "memory": "1Gi" } },
            },
        })
    }
}

fn every_taint() -> Value {
    json!([{ "operator": "Exists" }])
}

fn one_effect() -> Value {
    json!([{ "key": "gpu.example/xid", "operator": "Equal", "value": "79", "effect": "NoSchedule" }])
}
