//! Pods of others.

use serde_json::{Value, json};

use super::{Site, Workshop};
use crate::oracle::DELETED;

const IMAGE: &str = "localhost/others:oracle";

impl Workshop {
    /// A pod on a node with one container, which no taint drives away.
    pub fn pod(name: &str, node: &str, resources: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name },
            "spec": {
                "nodeName": node,
                "tolerations": [{ "operator": "Exists" }],
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": false,
                "containers": [{ "name": "main", "image": IMAGE, "resources": resources }],
            },
        })
    }

    /// Pods that the scheduler itself gives devices for an extended resource (KEP-5004).
    pub fn extended_pods(&mut self, site: &mut Site) {
        if !(self.class.exists && self.class.extended && self.draw.chance(35)) {
            return;
        }
        site.has("extended resource by DRA");
        for _ in 0..self.draw.between(1, 2) {
            let resource = if self.draw.chance(80) {
                self.resource.clone()
            } else {
                format!("deviceclass.resource.kubernetes.io/{}", self.driver)
            };
            let amount = self.draw.pick(&["1", "1", "2"]);
            let name = self.number("extended", &site.name);
            let mut pod = Self::pod(&name, &site.name, &json!({ "limits": { resource: amount } }));
            pod["spec"].as_object_mut().map(|spec| spec.remove("nodeName"));
            let by_name = json!([{ "key": "metadata.name", "operator": "In", "values": [site.name] }]);
            pod["spec"]["affinity"] = json!({ "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchFields": by_name }] },
            } });
            self.objects.push(pod);
        }
    }

    /// Pods that take cpu, memory or slots, and those that only look as if they did.
    pub fn neighbours(&mut self, site: &mut Site) {
        for _ in 0..self.draw.rather_few(0, 6) {
            let cpu = self.draw.pick(&["100m", "500m", "1", "2"]);
            let memory = self.draw.pick(&["64Mi", "1Gi", "4G"]);
            let requests = json!({ "requests": { "cpu": cpu, "memory": memory } });
            self.consumer(site, &requests);
        }
    }

    /// Pods that take GPUs of a device plugin.
    pub fn plugin_pods(&mut self, site: &mut Site) {
        for _ in 0..self.draw.rather_few(0, 5) {
            let gpus = self.draw.pick(&["1", "1", "2", "4"]);
            let limits = json!({ "limits": { self.resource.clone(): gpus } });
            site.has("device plugin: pods");
            self.consumer(site, &limits);
        }
    }

    /// A pod that asks for something in one of the ways in which a pod can.
    fn consumer(&mut self, site: &mut Site, resources: &Value) {
        let name = self.number("pod", &site.name);
        let mut pod = Self::pod(&name, &site.name, resources);
        let init = |restart: Option<&str>, resources: &Value| {
            let mut container = json!({ "name": "first", "image": IMAGE, "resources": resources });
            if let Some(policy) = restart {
                container["restartPolicy"] = json!(policy);
            }
            container
        };
        match self.draw.between(0, 13) {
            0 => {
                site.has("pods: init containers");
                pod["spec"]["initContainers"] = json!([init(None, resources)]);
                if self.draw.chance(50) {
                    pod["spec"]["containers"][0]["resources"] = json!({});
                }
            }
            1 => {
                site.has("pods: sidecars");
                pod["spec"]["initContainers"] = json!([init(Some("Always"), resources)]);
            }
            2 => {
                site.has("pods: sidecars");
                let mut sidecar = init(Some("Always"), resources);
                sidecar["name"] = json!("sidecar");
                pod["spec"]["initContainers"] = json!([sidecar, init(None, resources)]);
            }
            3 => {
                site.has("pods: overhead");
                pod["spec"]["runtimeClassName"] = json!(self.id);
            }
            4 => {
                site.has("pods: over");
                let phase = self.draw.pick(&["Succeeded", "Failed"]);
                pod["status"] = json!({ "phase": phase });
            }
            5 => {
                site.has("pods: terminating");
                pod["metadata"]["finalizers"] = json!(["oracle.perfvalidation.dev/hold"]);
                pod["metadata"]["annotations"] = json!({ DELETED: "true" });
            }
            6 if resources["requests"].is_object() => {
                site.has("pods: requests of the whole pod");
                pod["spec"]["resources"] = resources.clone();
                pod["spec"]["containers"][0]["resources"] = json!({});
            }
            8 if resources["requests"].is_object() => {
                site.has("pods: resize of the whole pod");
                pod["spec"]["resources"] = resources.clone();
                pod["spec"]["containers"][0]["resources"] = json!({});
                let (has, promised) = self.resize(&mut pod);
                pod["status"]["resources"] = has;
                pod["status"]["allocatedResources"] = promised;
            }
            9 if resources["requests"].is_object() => {
                site.has("pods: resize of a container");
                let (has, promised) = self.resize(&mut pod);
                pod["status"]["containerStatuses"] = json!([{
                    "name": "main", "image": IMAGE, "imageID": "", "ready": true, "restartCount": 0,
                    "resources": has, "allocatedResources": promised,
                }]);
            }
            7 => {
                pod["spec"]["containers"] = json!([
                    { "name": "a", "image": IMAGE, "resources": resources },
                    { "name": "b", "image": IMAGE, "resources": resources },
                ]);
            }
            _ => {}
        }
        self.objects.push(pod);
    }

    /// A resize in place that is under way, or that the kubelet refuses: what the pod has, and what it was promised.
    fn resize(&mut self, pod: &mut Value) -> (Value, Value) {
        let mut amounts = || {
            let cpu = self.draw.pick(&["250m", "1500m", "3"]);
            json!({ "cpu": cpu, "memory": self.draw.pick(&["128Mi", "2Gi", "6G"]) })
        };
        let (has, promised) = (json!({ "requests": amounts() }), amounts());
        pod["status"] = json!({ "phase": "Running" });
        if self.draw.chance(50) {
            let reason = self.draw.pick(&["Deferred", "Infeasible"]);
            pod["status"]["conditions"] = json!([{ "type": "PodResizePending", "status": "True", "reason": reason }]);
        }
        (has, promised)
    }

    /// The runtime class whose overhead some pods bear.
    pub fn runtime_class(&mut self) {
        if self
            .objects
            .iter()
            .any(|object| !object["spec"]["runtimeClassName"].is_null())
        {
            self.objects.push(json!({
                "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "oracle",
                "metadata": { "name": self.id },
                "overhead": { "podFixed": { "cpu": "250m", "memory": "120Mi" } },
            }));
        }
    }
}
