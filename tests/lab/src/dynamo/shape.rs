//! Both shapes of a DynamoGraphDeployment, read into one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, EnvFromSource, EnvVar, PersistentVolumeClaimVolumeSource, PodSpec, ResourceRequirements,
    SecretEnvSource, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::Value;

use super::error::Error;
use super::v1alpha1::{self, ResourceItem};
use super::v1beta1;

/// The container that gets the operator's defaults.
pub const MAIN: &str = "main";

/// Which shape an object was written in; its status uses the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A list of components.
    V1beta1,
    /// A map of services.
    V1alpha1,
}

/// A DynamoGraphDeployment, whatever its shape.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// How it was written.
    pub shape: Shape,
    /// Copied to every child.
    pub labels: BTreeMap<String, String>,
    /// Copied to every child.
    pub annotations: BTreeMap<String, String>,
    /// Put before every component's environment.
    pub env: Vec<EnvVar>,
    /// The roles, in the order written or by name.
    pub components: Vec<Component>,
}

/// One role of the graph.
#[derive(Clone, Debug)]
pub struct Component {
    /// As written.
    pub name: String,
    /// `frontend`, `worker`, ….
    pub kind: String,
    /// Wanted pods.
    pub replicas: i32,
    /// Size of the tmpfs at /dev/shm, if there is to be one.
    pub shared_memory: Option<Quantity>,
    /// Labels the user wants on the pods.
    pub labels: BTreeMap<String, String>,
    /// Annotations the user wants on the pods.
    pub annotations: BTreeMap<String, String>,
    /// The pods, with a container called `main` first.
    pub pod: PodSpec,
}

impl Graph {
    /// Reads an object of either version.
    pub fn read(object: &DynamicObject) -> Result<Self, Error> {
        let name = object.name_any();
        let namespace = object.namespace().unwrap_or_default();
        let fail = |what: String| Error::Spec {
            object: format!("{namespace}/{name}"),
            what,
        };
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        if spec.get("services").is_some() {
            let spec: v1alpha1::DynamoGraphDeploymentSpec = parse(spec).map_err(fail)?;
            return Ok(Self {
                shape: Shape::V1alpha1,
                labels: spec.labels.unwrap_or_default(),
                annotations: spec.annotations.unwrap_or_default(),
                env: spec.envs.unwrap_or_default(),
                components: spec
                    .services
                    .unwrap_or_default()
                    .into_iter()
                    .map(from_service)
                    .collect(),
                name,
                namespace,
            });
        }
        let spec: v1beta1::DynamoGraphDeploymentSpec = parse(spec).map_err(fail)?;
        Ok(Self {
            shape: Shape::V1beta1,
            labels: spec.labels.unwrap_or_default(),
            annotations: spec.annotations.unwrap_or_default(),
            env: spec.env.unwrap_or_default(),
            components: spec
                .components
                .unwrap_or_default()
                .into_iter()
                .map(from_component)
                .collect(),
            name,
            namespace,
        })
    }

    /// Name of a component's Deployment and Service.
    pub fn child_name(&self, component: &Component) -> String {
        format!("{}-{}", self.name, component.name.to_lowercase())
    }

    /// Dynamo's own namespace, which keeps graphs apart in discovery.
    pub fn dynamo_namespace(&self) -> String {
        format!("{}-{}", self.namespace, self.name)
    }

    /// Service account of the pods; it may read and write discovery.
    pub fn service_account(&self) -> String {
        format!("{}-k8s-service-discovery", self.name)
    }
}

impl Component {
    /// Whether it runs an engine, and so gets the worker's probes and ports.
    pub fn is_worker(&self) -> bool {
        matches!(self.kind.as_str(), "worker" | "prefill" | "decode")
    }

    /// Whether it serves the HTTP API.
    pub fn is_frontend(&self) -> bool {
        self.kind == "frontend"
    }
}

fn parse<T: for<'de> Deserialize<'de>>(spec: Value) -> Result<T, String> {
    serde_json::from_value(spec).map_err(|error| error.to_string())
}

fn from_component(component: v1beta1::Component) -> Component {
    let template = component.pod_template.unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    Component {
        kind: component.kind.unwrap_or_default(),
        replicas: component.replicas.unwrap_or(1),
        shared_memory: shared_memory(false, component.shared_memory_size),
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        pod: main_first(template.spec.unwrap_or_default()),
        name: component.name,
    }
}

fn from_service((name, service): (String, v1alpha1::Service)) -> Component {
    let metadata = service.extra_pod_metadata.unwrap_or_default();
    let extra = service.extra_pod_spec.unwrap_or_default();
    let mut pod = extra.pod;
    let mut main = extra.main_container.unwrap_or_default();
    MAIN.clone_into(&mut main.name);

    main.resources = Some(resources(
        service.resources.unwrap_or_default(),
        main.resources.unwrap_or_default(),
    ));
    main.liveness_probe = main.liveness_probe.or(service.liveness_probe);
    main.readiness_probe = main.readiness_probe.or(service.readiness_probe);
    main.env = Some([service.envs.unwrap_or_default(), main.env.unwrap_or_default()].concat());
    if let Some(secret) = service.env_from_secret {
        let secret_ref = Some(SecretEnvSource {
            name: secret,
            ..SecretEnvSource::default()
        });
        main.env_from.get_or_insert_default().push(EnvFromSource {
            secret_ref,
            ..EnvFromSource::default()
        });
    }
    for mount in service.volume_mounts.unwrap_or_default() {
        pod.volumes.get_or_insert_default().push(Volume {
            name: mount.name.clone(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: mount.name.clone(),
                ..PersistentVolumeClaimVolumeSource::default()
            }),
            ..Volume::default()
        });
        main.volume_mounts.get_or_insert_default().push(VolumeMount {
            name: mount.name,
            mount_path: mount.mount_point,
            ..VolumeMount::default()
        });
    }
    pod.containers.insert(0, main);

    let (disabled, size) = service
        .shared_memory
        .map_or((false, None), |memory| (memory.disabled.unwrap_or(false), memory.size));
    Component {
        name,
        kind: service.component_type.unwrap_or_default(),
        replicas: service.replicas.unwrap_or(1),
        shared_memory: shared_memory(disabled, size),
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        pod,
    }
}

/// 8Gi by default; "0" means none.
fn shared_memory(disabled: bool, size: Option<Quantity>) -> Option<Quantity> {
    let size = size.unwrap_or_else(|| Quantity("8Gi".to_owned()));
    (!disabled && size.0 != "0").then_some(size)
}

fn main_first(mut pod: PodSpec) -> PodSpec {
    match pod.containers.iter().position(|container| container.name == MAIN) {
        Some(index) => pod.containers.swap(0, index),
        None => pod.containers.insert(
            0,
            Container {
                name: MAIN.to_owned(),
                ..Container::default()
            },
        ),
    }
    pod
}

/// Dynamo's own words for resources as Kubernetes'; what the container says itself wins.
fn resources(service: v1alpha1::Resources, main: ResourceRequirements) -> ResourceRequirements {
    let merge = |theirs: Option<ResourceItem>, ours: Option<BTreeMap<String, Quantity>>| {
        let mut amounts = amounts(theirs.unwrap_or_default());
        amounts.extend(ours.unwrap_or_default());
        (!amounts.is_empty()).then_some(amounts)
    };
    ResourceRequirements {
        requests: merge(service.requests, main.requests),
        limits: merge(service.limits, main.limits),
        claims: service.claims.or(main.claims),
    }
}

fn amounts(item: ResourceItem) -> BTreeMap<String, Quantity> {
    let gpu_type = item.gpu_type.unwrap_or_else(|| "nvidia.com/gpu".to_owned());
    [
        ("cpu".to_owned(), item.cpu),
        ("memory".to_owned(), item.memory),
        (gpu_type, item.gpu),
    ]
    .into_iter()
    .filter_map(|(name, amount)| amount.map(|amount| (name, amount)))
    .chain(item.custom.unwrap_or_default())
    .map(|(name, amount)| (name, Quantity(amount)))
    .collect()
}
