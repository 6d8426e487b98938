//! Tables of what a DynamoGraphDeployment becomes, in both shapes.

mod children;
mod state;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::controller::resource;
use super::defaults::Workers;
use super::deployment;
use super::shape::{Component, Graph};

fn graph(version: &str, spec: &Value) -> Graph {
    let mut object = DynamicObject::new("pv-3f9a1c07", &resource(version)).within("perf");
    object.data = json!({ "spec": spec });
    Graph::read(&object).unwrap()
}

/// A frontend and eight workers on claims, as a run sends them to operators from 1.2 on.
fn v1beta1() -> Graph {
    graph(
        "v1beta1",
        &json!({
            "backendFramework": "vllm",
            "labels": {"perfvalidation.dev/run": "r"},
            "env": [{"name": "EVERYWHERE", "value": "1"}],
            "components": [
                {"name": "Frontend", "type": "frontend", "replicas": 1, "podTemplate": {"spec": {"containers": [
                    {"name": "sidecar", "image": "s:1"},
                    {"name": "main", "image": "d:1", "command": ["python3", "-m", "dynamo.frontend"],
                     "args": ["--router-mode", "least-loaded"], "env": [{"name": "DYN_HTTP_PORT", "value": "8001"}]}]}}},
                {"name": "worker", "type": "worker", "replicas": 8, "sharedMemorySize": "2Gi", "podTemplate": {
                    "metadata": {"labels": {"mine": "yes"}, "annotations": {"a": "b"}},
                    "spec": {
                        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "pv-3f9a1c07"}],
                        "containers": [{"name": "main", "image": "d:1", "command": ["lab-worker"],
                                        "resources": {"claims": [{"name": "gpu"}]}}]}}}
            ]
        }),
    )
}

/// The same for operators 1.0 and 1.1.
fn v1alpha1() -> Graph {
    graph(
        "v1alpha1",
        &json!({
            "labels": {"perfvalidation.dev/run": "r"},
            "envs": [{"name": "EVERYWHERE", "value": "1"}],
            "pvcs": [{"create": false, "name": "weights"}],
            "services": {
                "Frontend": {"componentType": "frontend", "replicas": 1, "extraPodSpec": {
                    "containers": [{"name": "sidecar", "image": "s:1"}],
                    "mainContainer": {"image": "d:1", "command": ["python3", "-m", "dynamo.frontend"],
                        "args": ["--router-mode", "least-loaded"], "env": [{"name": "DYN_HTTP_PORT", "value": "8001"}]}}},
                "worker": {"componentType": "worker", "replicas": 8, "sharedMemory": {"size": "2Gi"},
                    "resources": {"claims": [{"name": "gpu"}]},
                    "volumeMounts": [{"name": "weights", "mountPoint": "/model-cache"}],
                    "extraPodMetadata": {"labels": {"mine": "yes"}, "annotations": {"a": "b"}},
                    "extraPodSpec": {
                        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "pv-3f9a1c07"}],
                        "mainContainer": {"image": "d:1", "command": ["lab-worker"]}}}
            }
        }),
    )
}

fn component<'a>(graph: &'a Graph, name: &str) -> &'a Component {
    graph
        .components
        .iter()
        .find(|component| component.name == name)
        .unwrap()
}

fn made(graph: &Graph, name: &str) -> Deployment {
    deployment::build(
        graph,
        component(graph, name),
        OwnerReference::default(),
        Workers {
            gpu_speed: Some("3=0.1"),
            liveness_failures: 3,
            canaries: true,
            grace_seconds: 60,
        },
    )
}
