//! The reconcile loop: a DynamoGraphDeployment in, Deployments and Services out, a status back.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::controller::{self, Action};
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::defaults::{self, Workers};
use super::error::Error;
use super::faults::{self, Faults};
use super::shape::Graph;
use super::status::{GraphStatus, Pass};
use super::{FIELD_MANAGER, delete, deployment, discovery, service};

/// Keeps a graph until its pods are gone.
pub const FINALIZER: &str = "nvidia.com/finalizer";
/// The operator's version, on every graph it has seen.
pub const ORIGIN_VERSION: &str = "nvidia.com/dynamo-operator-origin-version";

const PASS_LIMIT: Duration = Duration::from_secs(30);
/// Seconds that Dynamo gives its pods to end.
const GRACE_SECONDS: i64 = 60;
const RETRY: Duration = Duration::from_secs(5);
const DEBOUNCE: Duration = Duration::from_millis(100);

/// What every pass needs.
pub struct Context {
    /// Without retries: a pass that fails shows in the status at once.
    pub client: Client,
    /// DynamoGraphDeployment in the version served.
    pub resource: ApiResource,
    /// Version the stand-in plays.
    pub dynamo_version: String,
    /// Seconds a deletion lasts at least.
    pub delete_delay: Duration,
}

impl Context {
    /// The graphs of a namespace.
    pub fn graphs(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &self.resource)
    }
}

/// DynamoGraphDeployment at one version.
pub fn resource(version: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("nvidia.com", version, "DynamoGraphDeployment"),
        "dynamographdeployments",
    )
}

/// Reconciles until it is dropped.
pub async fn run(ctx: Context) {
    let ctx = Arc::new(ctx);
    let writer = reflector::store::Writer::new(ctx.resource.clone());
    let store = writer.as_reader();
    let graphs = Api::<DynamicObject>::all_with(ctx.client.clone(), &ctx.resource);
    let graphs = watcher(graphs, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects();
    let deployments = Api::<Deployment>::all(ctx.client.clone());
    let deployments = watcher(deployments, watcher::Config::default())
        .default_backoff()
        .touched_objects();
    let faults = Api::<ConfigMap>::namespaced(ctx.client.clone(), faults::NAMESPACE);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", faults::CONFIG_MAP));
    let faults = watcher(faults, only).default_backoff().touched_objects();
    Controller::for_stream_with(drop_errors(graphs).map(Ok), store, ctx.resource.clone())
        .owns_stream(drop_errors(deployments).map(Ok))
        .reconcile_all_on(drop_errors(faults).map(drop))
        .with_config(controller::Config::default().concurrency(4).debounce(DEBOUNCE))
        .run(reconcile, |_, _, _| Action::requeue(RETRY), ctx)
        .for_each(|outcome| async move {
            match outcome {
                // Its Deployments go after the graph.
                Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
                Err(error) => tracing::warn!(%error, "pass failed"),
            }
        })
        .await;
}

/// A `Controller` slows down all its triggers for an error in one: after a restart of the API server that was 30 s of silence.
fn drop_errors<K>(events: impl Stream<Item = Result<K, watcher::Error>>) -> impl Stream<Item = K> {
    events.filter_map(|event| async move { event.inspect_err(|error| tracing::warn!(%error, "watch failed")).ok() })
}

async fn reconcile(dgd: Arc<DynamicObject>, ctx: Arc<Context>) -> Result<Action, Error> {
    let object = format!("{}/{}", dgd.namespace().unwrap_or_default(), dgd.name_any());
    tokio::time::timeout(PASS_LIMIT, pass(&dgd, &ctx))
        .await
        .map_err(|_| Error::Timeout {
            object,
            seconds: PASS_LIMIT.as_secs(),
        })?
}

async fn pass(dgd: &DynamicObject, ctx: &Context) -> Result<Action, Error> {
    let namespace = dgd.namespace().unwrap_or_default();
    let faults = read_faults(ctx, &namespace).await?;
    if dgd.metadata.deletion_timestamp.is_some() {
        let delay = faults.delete_seconds.map_or(ctx.delete_delay, Duration::from_secs);
        return delete::step(ctx, dgd, delay).await;
    }
    adopt(ctx, dgd).await?;
    let graph = Graph::read(dgd)?;
    let applied = apply_children(ctx, dgd, &graph, &faults).await;
    let deployments = deployments(ctx, &graph).await?;
    let previous = dgd.data.get("status").cloned().unwrap_or_default();
    let previous: GraphStatus = serde_json::from_value(previous).unwrap_or_default();
    let age_seconds = dgd.creation_timestamp().as_ref().map_or(0, delete::seconds_since);
    let status = Pass {
        graph: &graph,
        generation: dgd.metadata.generation.unwrap_or(0),
        age_seconds,
        deployments: &deployments,
        faults: &faults,
        failure: applied.as_ref().err().map(ToString::to_string),
        previous: &previous,
        now: Time(k8s_openapi::jiff::Timestamp::now()),
    }
    .status();
    if status != previous {
        tracing::info!(graph = graph.name, namespace, state = status.state, "status changes");
        let patch = Patch::Merge(json!({ "status": status }));
        ctx.graphs(&namespace)
            .patch_status(&graph.name, &merge_params(), &patch)
            .await
            .map_err(Error::api("patch status of DynamoGraphDeployment", &graph.name))?;
    }
    applied?;
    // Nothing else wakes the loop when a timed fault ends.
    let heals = faults.failed_seconds.filter(|seconds| age_seconds < *seconds);
    Ok(heals.map_or_else(Action::await_change, |_| Action::requeue(Duration::from_secs(1))))
}

async fn read_faults(ctx: &Context, namespace: &str) -> Result<Faults, Error> {
    let config_maps = Api::<ConfigMap>::namespaced(ctx.client.clone(), faults::NAMESPACE);
    let found = config_maps
        .get_opt(faults::CONFIG_MAP)
        .await
        .map_err(Error::api("get ConfigMap", faults::CONFIG_MAP))?;
    let data = found.and_then(|config_map| config_map.data).unwrap_or_default();
    let (faults, unknown) = Faults::read(&data, namespace);
    if !unknown.is_empty() {
        tracing::warn!(?unknown, "unknown faults are ignored");
    }
    Ok(faults)
}

/// Sets finalizer and origin version, which the real operator's webhook does at admission.
async fn adopt(ctx: &Context, dgd: &DynamicObject) -> Result<(), Error> {
    let mut finalizers = dgd.finalizers().to_vec();
    if finalizers.iter().any(|known| known == FINALIZER) && dgd.annotations().contains_key(ORIGIN_VERSION) {
        return Ok(());
    }
    if !finalizers.iter().any(|known| known == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let patch = json!({ "metadata": {
        "resourceVersion": dgd.resource_version(),
        "finalizers": finalizers,
        "annotations": { ORIGIN_VERSION: ctx.dynamo_version },
    }});
    let name = dgd.name_any();
    ctx.graphs(&dgd.namespace().unwrap_or_default())
        .patch(&name, &merge_params(), &Patch::Merge(&patch))
        .await
        .map_err(Error::api("patch DynamoGraphDeployment", &name))?;
    Ok(())
}

async fn apply_children(ctx: &Context, dgd: &DynamicObject, graph: &Graph, faults: &Faults) -> Result<(), Error> {
    let Some(owner) = dgd.controller_owner_ref(&ctx.resource) else {
        return Ok(());
    };
    let (account, role, binding) = discovery::build(graph, &owner);
    apply(ctx, graph, &account).await?;
    apply(ctx, graph, &role).await?;
    apply(ctx, graph, &binding).await?;
    let known = deployments(ctx, graph).await?;
    for component in &graph.components {
        apply(ctx, graph, &service::build(graph, component, owner.clone())).await?;
        let gpu_speed = match known.get(&graph.child_name(component)) {
            Some(deployment) => deployment::gpu_speed(deployment),
            None => faults.gpu_speed.as_deref(),
        };
        let (liveness_failures, canaries) = defaults::of_release(&ctx.dynamo_version);
        let workers = Workers {
            gpu_speed,
            liveness_failures: faults.liveness_failures.unwrap_or(liveness_failures),
            canaries: canaries || faults.canaries,
            grace_seconds: faults
                .grace_seconds
                .and_then(|seconds| seconds.try_into().ok())
                .unwrap_or(GRACE_SECONDS),
        };
        apply(ctx, graph, &deployment::build(graph, component, owner.clone(), workers)).await?;
    }
    Ok(())
}

async fn deployments(ctx: &Context, graph: &Graph) -> Result<BTreeMap<String, Deployment>, Error> {
    let api: Api<Deployment> = Api::namespaced(ctx.client.clone(), &graph.namespace);
    let of_graph = kube::api::ListParams::default().labels(&format!("{}={}", deployment::GRAPH_LABEL, graph.name));
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

fn merge_params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}
