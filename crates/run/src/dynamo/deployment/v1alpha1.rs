//! The shape of Dynamo's operator 1.0 and 1.1: a map of services, a pod with one `mainContainer`, own words for
//! resources.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Map, Value, json};

use super::component::Component;

/// Resource of the field `gpu` unless `gpuType` names another.
const NVIDIA_GPU: &str = "nvidia.com/gpu";

pub fn spec(components: [Component; 2]) -> Value {
    let services: Map<String, Value> = components
        .into_iter()
        .map(|component| (component.name.to_owned(), service(component)))
        .collect();
    json!({ "services": services })
}

fn service(component: Component) -> Value {
    let mut pod = json!(component.pod);
    if let Value::Object(fields) = &mut pod {
        fields.remove("containers");
        fields.insert("mainContainer".to_owned(), json!(component.main));
    }
    let mut service = json!({
        "componentType": component.name,
        "replicas": component.replicas,
        "extraPodMetadata": component.metadata,
        "extraPodSpec": pod,
    });
    let resources = resources(component.resources);
    if !resources.is_empty() {
        service["resources"] = Value::Object(resources);
    }
    if let Some(version) = component.runtime_version {
        service["runtimeVersionOverride"] = json!(version);
    }
    if let Some(size) = component.shared_memory {
        service["sharedMemory"] = json!({ "size": size });
    }
    service
}

fn resources(resources: ResourceRequirements) -> Map<String, Value> {
    let amounts = [("requests", resources.requests), ("limits", resources.limits)];
    let amounts = amounts
        .into_iter()
        .filter_map(|(key, amounts)| amounts.map(|amounts| (key.to_owned(), item(amounts))));
    let claims = resources.claims.map(|claims| ("claims".to_owned(), json!(claims)));
    amounts.chain(claims).collect()
}

/// cpu, memory and gpu have their own fields; everything else goes under `custom`.
fn item(amounts: BTreeMap<String, Quantity>) -> Value {
    let mut item = Map::new();
    let mut custom = Map::new();
    for (name, Quantity(amount)) in amounts {
        match name.as_str() {
            "cpu" | "memory" => item.insert(name, json!(amount)),
            NVIDIA_GPU => item.insert("gpu".to_owned(), json!(amount)),
            _ => custom.insert(name, json!(amount)),
        };
    }
    if !custom.is_empty() {
        item.insert("custom".to_owned(), Value::Object(custom));
    }
    Value::Object(item)
}
