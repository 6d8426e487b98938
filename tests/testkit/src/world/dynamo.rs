//! Dynamo's operator: pods for every component, a status, and a finalizer.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{World, condition, leaves, owner, uid, whose};

const PLURAL: &str = "dynamographdeployments";
const FINALIZER: &str = "nvidia.com/finalizer";

/// A component of a deployment, in either shape.
struct Component {
    name: String,
    replicas: usize,
    labels: Value,
    spec: Value,
}

impl World {
    pub(super) fn run_dynamo(&mut self) {
        if self.faults.no_dynamo_operator || !self.server.serves(PLURAL) {
            return;
        }
        let mut pods = self.pods_by_owner();
        for deployment in self.server.shared(PLURAL) {
            let pods = pods.remove(&uid(&deployment)).unwrap_or_default();
            if leaves(&deployment) {
                self.tear_down(&deployment, &pods);
            } else {
                self.bring_up(&deployment, &pods);
            }
        }
    }

    fn tear_down(&self, deployment: &Value, pods: &[Arc<Value>]) {
        for pod in pods.iter().filter(|pod| !leaves(pod)) {
            let (namespace, name) = whose(pod);
            self.server.delete("pods", &namespace, &name);
        }
        self.without_finalizer(PLURAL, deployment, FINALIZER);
    }

    fn bring_up(&mut self, deployment: &Value, pods: &[Arc<Value>]) {
        let (namespace, name) = whose(deployment);
        let held = deployment["metadata"]["finalizers"].as_array();
        if !held.is_some_and(|held| held.iter().any(|one| one == FINALIZER)) {
            self.server.edit(PLURAL, &namespace, &name, |object| {
                object["metadata"]["finalizers"] = json!([FINALIZER]);
            });
        }
        let mut reported = Map::new();
        let mut all_ready = true;
        for component in components(deployment) {
            let of = |pod: &&Arc<Value>| {
                pod["metadata"]["labels"]["perfvalidation.dev/component"] == component.name.as_str()
            };
            let living: Vec<&Arc<Value>> = pods.iter().filter(|pod| !leaves(pod)).filter(of).collect();
            for _ in living.len()..component.replicas {
                if !self.may_create(deployment) {
                    break;
                }
                let pod_name = format!("{name}-{}-{}", component.name, self.suffix());
                self.create_pod(
                    &namespace,
                    &pod_name,
                    &owner(deployment),
                    &component.labels,
                    &component.spec,
                );
            }
            let ready = living
                .iter()
                .filter(|pod| condition(pod, "Ready") == Some(true))
                .count();
            all_ready &= ready >= component.replicas;
            reported.insert(
                component.name,
                json!({"readyReplicas": ready, "replicas": living.len()}),
            );
        }
        let field = if deployment["spec"]["services"].is_object() {
            "services"
        } else {
            "components"
        };
        let status = json!({
            "observedGeneration": deployment["metadata"]["generation"],
            "state": if all_ready { "successful" } else { "pending" },
            "conditions": [{"type": "Ready", "status": if all_ready { "True" } else { "False" }, "reason": "r", "message": "some resources are not ready"}],
            field: reported,
        });
        if deployment["status"] != status {
            self.server
                .edit(PLURAL, &namespace, &name, |object| object["status"] = status);
        }
    }
}

fn components(deployment: &Value) -> Vec<Component> {
    let replicas = |of: &Value| {
        of["replicas"]
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(1)
    };
    if let Some(services) = deployment["spec"]["services"].as_object() {
        return services
            .iter()
            .map(|(name, service)| {
                let mut spec = service["extraPodSpec"].clone();
                let mut main = spec["mainContainer"].take();
                main["name"] = "main".into();
                spec["containers"] = json!([main]);
                Component {
                    name: name.clone(),
                    replicas: replicas(service),
                    labels: service["extraPodMetadata"]["labels"].clone(),
                    spec,
                }
            })
            .collect();
    }
    let all = deployment["spec"]["components"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|component| Component {
            name: component["name"].as_str().unwrap_or_default().to_owned(),
            replicas: replicas(component),
            labels: component["podTemplate"]["metadata"]["labels"].clone(),
            spec: component["podTemplate"]["spec"].clone(),
        })
        .collect()
}
