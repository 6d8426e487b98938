//! The reconcile loop: a DynamoGraphDeployment in, Deployments and Services out, a status back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::controller::{self, Action};
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::children;
use super::error::Error;
use super::faults::{self, Faults};
use super::shape::Graph;
use super::status::{GraphStatus, Pass};
use super::{FIELD_MANAGER, delete};

/// Keeps a graph until its pods are gone.
pub const FINALIZER: &str = "nvidia.com/finalizer";
/// The operator's version, on every graph it has seen.
pub const ORIGIN_VERSION: &str = "nvidia.com/dynamo-operator-origin-version";

const PASS_LIMIT: Duration = Duration::from_secs(30);
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
    /// Fingerprints of the children of each graph as they were last written, by the graph's name.
    pub written: Mutex<HashMap<String, u64>>,
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
    let object = object_name(&dgd);
    tokio::time::timeout(PASS_LIMIT, pass(&dgd, &ctx))
        .await
        .map_err(|_| Error::Timeout {
            object,
            seconds: PASS_LIMIT.as_secs(),
        })?
}

/// Namespace and name.
pub fn object_name(dgd: &DynamicObject) -> String {
    format!("{}/{}", dgd.namespace().unwrap_or_default(), dgd.name_any())
}

async fn pass(dgd: &DynamicObject, ctx: &Context) -> Result<Action, Error> {
    let namespace = dgd.namespace().unwrap_or_default();
    let faults = read_faults(ctx, &namespace).await?;
    if dgd.metadata.deletion_timestamp.is_some() {
        ctx.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&object_name(dgd));
        let delay = faults.delete_seconds.map_or(ctx.delete_delay, Duration::from_secs);
        return delete::step(ctx, dgd, delay).await;
    }
    adopt(ctx, dgd).await?;
    let graph = Graph::read(dgd)?;
    let mut deployments = children::deployments(ctx, &graph).await?;
    let applied = children::write(ctx, dgd, &graph, (&mut deployments, &faults)).await;
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

/// Parameters of a merge patch.
pub fn merge_params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}
