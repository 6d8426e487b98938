//! The slow, graceful end of a graph: its pods first, then the finalizer.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch};
use kube::runtime::controller::Action;
use serde_json::json;

use super::controller::{Context, FINALIZER, merge_params};
use super::deployment::GRAPH_LABEL;
use super::error::Error;

const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// One look at a graph that is to go. Everything but the Deployments is left to the garbage collector, since ending pods still use it.
pub async fn step(ctx: &Context, dgd: &DynamicObject, delay: Duration) -> Result<Action, Error> {
    if !dgd.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        return Ok(Action::await_change());
    }
    let (name, namespace) = (dgd.name_any(), dgd.namespace().unwrap_or_default());
    let of_graph = ListParams::default().labels(&format!("{GRAPH_LABEL}={name}"));
    let deployments: Api<Deployment> = Api::namespaced(ctx.client.clone(), &namespace);
    deployments
        .delete_collection(&DeleteParams::background(), &of_graph)
        .await
        .map_err(Error::api("delete Deployments of", &name))?;

    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), &namespace);
    let left = pods
        .list(&of_graph)
        .await
        .map_err(Error::api("list Pods of", &name))?
        .items
        .len();
    if left > 0
        || dgd
            .metadata
            .deletion_timestamp
            .as_ref()
            .is_some_and(|deleted| seconds_since(deleted) < delay.as_secs())
    {
        tracing::debug!(name, left, "deletion waits");
        return Ok(Action::requeue(LOOK_AGAIN));
    }

    let finalizers: Vec<_> = dgd
        .finalizers()
        .iter()
        .filter(|finalizer| *finalizer != FINALIZER)
        .collect();
    let patch = json!({ "metadata": { "resourceVersion": dgd.resource_version(), "finalizers": finalizers } });
    let api = ctx.graphs(&namespace);
    match api.patch(&name, &merge_params(), &Patch::Merge(&patch)).await {
        Ok(_) => tracing::info!(name, namespace, "graph is gone"),
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(Error::api("release DynamoGraphDeployment", &name)(error)),
    }
    Ok(Action::await_change())
}

/// Whole seconds since a point in time; 0 when it lies ahead.
pub fn seconds_since(time: &Time) -> u64 {
    let now = k8s_openapi::jiff::Timestamp::now();
    u64::try_from(now.as_second() - time.0.as_second()).unwrap_or(0)
}
