//! A component as a Deployment, the way Dynamo's operator makes it without Grove.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, PodSecurityContext, PodSpec, PodTemplateSpec, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use sha2::{Digest, Sha256};

use super::defaults::{self, Workers};
use super::shape::{Component, Graph};

/// Pods of a graph are found by this label.
pub const GRAPH_LABEL: &str = "nvidia.com/dynamo-graph-deployment-name";
/// Pods of one component are found by this label.
pub const SELECTOR_LABEL: &str = "nvidia.com/selector";

/// The Deployment of one component.
pub fn build(graph: &Graph, component: &Component, owner: OwnerReference, workers: Workers<'_>) -> Deployment {
    let name = graph.child_name(component);
    let selector = BTreeMap::from([(SELECTOR_LABEL.to_owned(), name.clone())]);
    let hash = worker_hash(graph);
    Deployment {
        metadata: ObjectMeta {
            labels: Some(child_labels(graph, component)),
            annotations: Some(graph.annotations.clone()),
            owner_references: Some(vec![owner]),
            namespace: Some(graph.namespace.clone()),
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(component.replicas),
            selector: LabelSelector {
                match_labels: Some(selector.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(pod_labels(graph, component, &hash, selector)),
                    annotations: Some(over(&graph.annotations, &component.annotations)),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(graph, component, &hash, workers)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

/// Labels of everything made for a component.
pub fn child_labels(graph: &Graph, component: &Component) -> BTreeMap<String, String> {
    over(
        &graph.labels,
        &labels([
            (GRAPH_LABEL, &graph.name),
            ("nvidia.com/dynamo-component", &component.name),
            ("nvidia.com/dynamo-component-type", &component.kind),
            ("nvidia.com/dynamo-namespace", &graph.dynamo_namespace()),
        ]),
    )
}

/// What Kubernetes discovery looks for, on pods and on Services.
pub fn discovery_labels() -> BTreeMap<String, String> {
    labels([
        ("nvidia.com/dynamo-discovery-backend", "kubernetes"),
        ("nvidia.com/dynamo-discovery-enabled", "true"),
    ])
}

/// The speeds a Deployment's workers were made with: a fault set later must not restart running workers.
pub fn gpu_speed(deployment: &Deployment) -> Option<&str> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let env = pod.containers.first()?.env.as_ref()?;
    env.iter().find(|var| var.name == defaults::GPU_SPEED)?.value.as_deref()
}

fn pod_labels(
    graph: &Graph,
    component: &Component,
    hash: &str,
    selector: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all = over(&component.labels, &child_labels(graph, component));
    all.extend(discovery_labels());
    all.extend(selector);
    all.extend(labels([("nvidia.com/metrics-enabled", "true")]));
    if component.is_worker() {
        all.extend(labels([("nvidia.com/dynamo-worker-hash", hash)]));
    }
    all
}

fn pod(graph: &Graph, component: &Component, hash: &str, workers: Workers<'_>) -> PodSpec {
    let mut pod = component.pod.clone();
    let defaults = defaults::container(graph, component, hash, workers);
    if let Some(main) = pod.containers.first_mut() {
        *main = defaults::merge(std::mem::take(main), defaults, &graph.env);
    }
    if let Some(size) = &component.shared_memory {
        mount_shared_memory(&mut pod, size);
    }
    pod.service_account_name.get_or_insert_with(|| graph.service_account());
    pod.termination_grace_period_seconds
        .get_or_insert(workers.grace_seconds);
    pod.security_context.get_or_insert_with(|| PodSecurityContext {
        fs_group: Some(1000),
        ..Default::default()
    });
    pod
}

fn mount_shared_memory(pod: &mut PodSpec, size: &Quantity) {
    let Some(main) = pod.containers.first_mut() else { return };
    let mounts = main.volume_mounts.get_or_insert_default();
    if mounts.iter().any(|mount| mount.mount_path == "/dev/shm") {
        return;
    }
    let name = "shared-memory".to_owned();
    mounts.push(VolumeMount {
        name: name.clone(),
        mount_path: "/dev/shm".to_owned(),
        ..VolumeMount::default()
    });
    pod.volumes.get_or_insert_default().push(Volume {
        name,
        empty_dir: Some(EmptyDirVolumeSource {
            medium: Some("Memory".to_owned()),
            size_limit: Some(size.clone()),
        }),
        ..Volume::default()
    });
}

/// One value for all workers of a graph, new when what they run is new: workers of two generations never mix in discovery.
fn worker_hash(graph: &Graph) -> String {
    let mut digest = Sha256::new();
    for component in graph.components.iter().filter(|component| component.is_worker()) {
        digest.update(&component.name);
        digest.update(serde_json::to_vec(&component.pod).unwrap_or_default());
        digest.update(serde_json::to_vec(&graph.env).unwrap_or_default());
    }
    let [a, b, c, d, ..]: [u8; 32] = digest.finalize().into();
    format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
}

fn labels<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn over(below: &BTreeMap<String, String>, above: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all = below.clone();
    all.extend(above.clone());
    all
}
