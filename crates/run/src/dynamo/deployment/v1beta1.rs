//! The shape that Dynamo's operator serves from 1.2 on: a list of components, each a plain pod template.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::{Value, json};

use super::component::Component;

pub fn spec(components: [Component; 2]) -> Value {
    json!({ "components": components.map(component) })
}

fn component(component: Component) -> Value {
    let pod = PodSpec {
        containers: vec![Container {
            resources: Some(component.resources),
            ..component.main
        }],
        ..component.pod
    };
    let mut value = json!({
        "name": component.name,
        "type": component.name,
        "replicas": component.replicas,
        "podTemplate": { "metadata": component.metadata, "spec": pod },
    });
    if let Some(version) = component.runtime_version {
        value["runtimeVersionOverride"] = json!(version);
    }
    if let Some(size) = component.shared_memory {
        value["sharedMemorySize"] = json!(size);
    }
    value
}
