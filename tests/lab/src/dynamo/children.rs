//! Objects that a graph becomes, and their writes.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::PoisonError;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::controller::{Context, object_name};
use super::defaults::{self, Workers};
use super::error::Error;
use super::faults::Faults;
use super::shape::Graph;
use super::{FIELD_MANAGER, deployment, discovery, service};

/// Seconds that Dynamo gives its pods to end.
const GRACE_SECONDS: i64 = 60;

/// Objects that a graph becomes.
#[derive(Serialize)]
struct Children {
    account: ServiceAccount,
    role: Role,
    binding: RoleBinding,
    services: Vec<Service>,
    deployments: Vec<Deployment>,
}

/// Writes the children, unless they are as they were last written: a pass for each change of a pod would write all of them.
/// `deployments` are those of the graph, before and after.
pub async fn write(
    ctx: &Context,
    dgd: &DynamicObject,
    graph: &Graph,
    (deployments, faults): (&mut BTreeMap<String, Deployment>, &Faults),
) -> Result<(), Error> {
    let Some(owner) = dgd.controller_owner_ref(&ctx.resource) else {
        return Ok(());
    };
    let children = children(ctx, graph, &owner, (deployments, faults));
    let object = object_name(dgd);
    let is_written = |known: &BTreeMap<String, Deployment>| {
        let written = ctx.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.get(&object) == Some(&fingerprint(&children, known))
    };
    if is_written(deployments) {
        return Ok(());
    }
    apply(ctx, graph, &children.account).await?;
    apply(ctx, graph, &children.role).await?;
    apply(ctx, graph, &children.binding).await?;
    for (service, deployment) in children.services.iter().zip(&children.deployments) {
        apply(ctx, graph, service).await?;
        apply(ctx, graph, deployment).await?;
    }
    *deployments = self::deployments(ctx, graph).await?;
    let mut written = ctx.written.lock().unwrap_or_else(PoisonError::into_inner);
    written.insert(object, fingerprint(&children, deployments));
    Ok(())
}

/// Another client's change of a Deployment has another generation.
pub fn fingerprint(children: &impl Serialize, deployments: &BTreeMap<String, Deployment>) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(children).unwrap_or_default().hash(&mut hasher);
    for (name, deployment) in deployments {
        (name, deployment.metadata.generation).hash(&mut hasher);
    }
    hasher.finish()
}

fn children(
    ctx: &Context,
    graph: &Graph,
    owner: &OwnerReference,
    (known, faults): (&BTreeMap<String, Deployment>, &Faults),
) -> Children {
    let (account, role, binding) = discovery::build(graph, owner);
    let (liveness_failures, canaries) = defaults::of_release(&ctx.dynamo_version);
    let deployment = |component| {
        let gpu_speed = match known.get(&graph.child_name(component)) {
            Some(deployment) => deployment::gpu_speed(deployment),
            None => faults.gpu_speed.as_deref(),
        };
        let workers = Workers {
            gpu_speed,
            liveness_failures: faults.liveness_failures.unwrap_or(liveness_failures),
            canaries: canaries || faults.canaries,
            grace_seconds: faults
                .grace_seconds
                .and_then(|seconds| seconds.try_into().ok())
                .unwrap_or(GRACE_SECONDS),
        };
        deployment::build(graph, component, owner.clone(), workers)
    };
    let services = graph.components.iter();
    Children {
        account,
        role,
        binding,
        services: services
            .map(|component| service::build(graph, component, owner.clone()))
            .collect(),
        deployments: graph.components.iter().map(deployment).collect(),
    }
}

/// Deployments of a graph by name.
pub async fn deployments(ctx: &Context, graph: &Graph) -> Result<BTreeMap<String, Deployment>, Error> {
    let api: Api<Deployment> = Api::namespaced(ctx.client.clone(), &graph.namespace);
    let of_graph = ListParams::default().labels(&format!("{}={}", deployment::GRAPH_LABEL, graph.name));
    let found = api
        .list(&of_graph)
        .await
        .map_err(Error::api("list Deployments of", &graph.name))?;
    Ok(found
        .into_iter()
        .map(|deployment| (deployment.name_any(), deployment))
        .collect())
}

async fn apply<K>(ctx: &Context, graph: &Graph, child: &K) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
{
    let api: Api<K> = Api::namespaced(ctx.client.clone(), &graph.namespace);
    let name = child.name_any();
    api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(child))
        .await
        .map_err(Error::api("apply child", &name))?;
    Ok(())
}
